// URL and URLSearchParams: part of web.js.
// ---- URL (URL Standard; hosts are ASCII, IPv4 or IPv6: there is no IDNA here) ----------------------
const SPECIAL = { __proto__: null, "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
const encoder = new TextEncoder();
const percent = (string, keep) => {
  let result = "";
  for (const character of String(string).toWellFormed()) {
    if (keep.test(character)) result += character;
    else for (const byte of encoder.encode(character)) result += "%" + (byte < 16 ? "0" : "") + byte.toString(16).toUpperCase();
  }
  return result;
};
const IN_PATH = /^[!$%&'()*+,\-./0-9:;=@A-Z[\\\]^_a-z|~]$/;
const IN_OPAQUE = /^[ -~]$/;
const IN_QUERY = /^[!$%&'()*+,\-./0-9:;=?@A-Z[\\\]^_`a-z{|}~]$/;
const IN_SPECIAL_QUERY = /^[!$%&()*+,\-./0-9:;=?@A-Z[\\\]^_`a-z{|}~]$/;
const IN_FRAGMENT = /^[!#$%&'()*+,\-./0-9:;=?@A-Z[\\\]^_a-z{|}~]$/;
const IN_USER = /^[!$%&'()*+,\-.0-9A-Z_a-z~]$/;
const IN_FORM = /^[*\-.0-9A-Z_a-z]$/;

const unpercent = (string) => {
  const bytes = encoder.encode(string);
  const result = new Bytes(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const hex = bytes[i] === 37 ? fromCharCode(bytes[i + 1], bytes[i + 2]) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(hex)) { result[length++] = parseInt(hex, 16); i += 2; } else result[length++] = bytes[i];
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(result.subarray(0, length));
};

// Made for a URL: tells it of changes, and is told of its.
let boundParams;
class URLSearchParams {
  #pairs = []; #changed = null;
  constructor(init = "") {
    if (typeof init === "object" && init !== null) {
      const pairs = typeof init[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
      for (const pair of pairs) {
        const [name, value, ...more] = [...pair];
        if (value === undefined || more.length > 0) throw new TypeError("URLSearchParams takes pairs");
        this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]);
      }
    } else this.#read(String(init));
  }
  static {
    boundParams = (query, changed) => {
      const made = new URLSearchParams(query);
      made.#changed = changed;
      return [made, (fresh) => { made.#pairs = []; made.#read(fresh); }];
    };
  }
  #read(query) {
    for (const piece of query.replace(/^\?/, "").split("&")) {
      if (piece === "") continue;
      const [name, ...rest] = piece.replaceAll("+", " ").split("=");
      this.#pairs.push([unpercent(name), unpercent(rest.join("="))]);
    }
  }
  #tell() { if (this.#changed !== null) this.#changed(this.toString()); }
  get size() { return this.#pairs.length; }
  append(name, value) { this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]); this.#tell(); }
  delete(name, value) {
    this.#pairs = this.#pairs.filter(([n, v]) => n !== String(name) || (value !== undefined && v !== String(value)));
    this.#tell();
  }
  get(name) { return this.#pairs.find(([n]) => n === String(name))?.[1] ?? null; }
  getAll(name) { return this.#pairs.filter(([n]) => n === String(name)).map(([, v]) => v); }
  has(name, value) {
    return this.#pairs.some(([n, v]) => n === String(name) && (value === undefined || v === String(value)));
  }
  set(name, value) {
    const at = this.#pairs.findIndex(([n]) => n === String(name));
    if (at < 0) this.#pairs.push([String(name).toWellFormed(), String(value).toWellFormed()]);
    else {
      this.#pairs[at][1] = String(value).toWellFormed();
      this.#pairs = this.#pairs.filter(([n], i) => i <= at || n !== String(name));
    }
    this.#tell();
  }
  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#tell();
  }
  forEach(visit, self) { for (const [name, value] of this.#pairs) visit.call(self, value, name, this); }
  *entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
  *keys() { for (const [name] of this.#pairs) yield name; }
  *values() { for (const [, value] of this.#pairs) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  toString() {
    const form = (s) => percent(s, IN_FORM).replaceAll("%20", "+");
    return this.#pairs.map(([name, value]) => form(name) + "=" + form(value)).join("&");
  }
}

const invalid = (input) => new TypeError("Invalid URL: " + String(input).slice(0, 200));

function parseHost(raw, special) {
  if (raw.startsWith("[")) {
    if (!raw.endsWith("]")) throw invalid(raw);
    return "[" + parseIPv6(raw.slice(1, -1)) + "]";
  }
  if (!special) {
    if (/[\0\t\n\r #/:<>?@[\\\]^|]/.test(raw)) throw invalid(raw);
    return percent(raw, IN_OPAQUE);
  }
  const host = unpercent(raw).toLowerCase();
  if (host === "" || /[^!$&'()*+,\-.0-9;=_`a-z{}~"]/.test(host)) throw invalid(raw);
  const parts = host.replace(/\.$/, "").split(".");
  return /^(0x[0-9a-f]*|[0-9]+)$/.test(parts.at(-1)) ? parseIPv4(parts, raw) : host;
}

function parseIPv4(parts, raw) {
  if (parts.length > 4) throw invalid(raw);
  const numbers = parts.map((part) => {
    const base = /^0x/.test(part) ? 16 : /^0[0-9]/.test(part) ? 8 : 10;
    const digits = base === 16 ? part.slice(2) || "0" : part;
    if (!{ 16: /^[0-9a-f]+$/, 8: /^[0-7]+$/, 10: /^[0-9]+$/ }[base].test(digits)) throw invalid(raw);
    return parseInt(digits, base);
  });
  const last = numbers.pop();
  if (numbers.some((n) => n > 255) || last >= 256 ** (4 - numbers.length)) throw invalid(raw);
  let address = last;
  numbers.forEach((n, i) => { address += n * 256 ** (3 - i); });
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

function parseIPv6(raw) {
  let address = raw;
  const tail = /(.*:)([0-9.]+)$/.exec(address);
  if (tail !== null && tail[2].includes(".")) {
    const four = tail[2].split(".");
    if (four.length !== 4 || !four.every((n) => /^(0|[1-9][0-9]{0,2})$/.test(n) && n <= 255)) throw invalid(raw);
    const pair = (a, b) => (a * 256 + +b).toString(16);
    address = tail[1] + pair(four[0], four[1]) + ":" + pair(four[2], four[3]);
  }
  const halves = address.split("::");
  if (halves.length > 2) throw invalid(raw);
  const [head, rest] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const given = head.length + (rest?.length ?? 0);
  if (rest === undefined ? given !== 8 : given > 7) throw invalid(raw);
  const groups = rest === undefined ? head : [...head, ...new Array(8 - given).fill("0"), ...rest];
  if (!groups.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) throw invalid(raw);
  const numbers = groups.map((group) => parseInt(group, 16));
  let best = [-1, 1];
  for (let i = 0; i < 8; i++) {
    let length = 0;
    while (i + length < 8 && numbers[i + length] === 0) length++;
    if (length > best[1]) best = [i, length];
  }
  const text = (from, to) => numbers.slice(from, to).map((n) => n.toString(16)).join(":");
  return best[0] < 0 ? text(0, 8) : text(0, best[0]) + "::" + text(best[0] + best[1], 8);
}

function normalPath(path, special, base) {
  const segments = (special ? path.replaceAll("\\", "/") : path).split("/");
  const result = base;
  segments.forEach((segment, i) => {
    const plain = segment.replace(/%2e/gi, ".");
    const last = i === segments.length - 1;
    if (plain === "..") { result.pop(); if (last) result.push(""); }
    else if (plain === ".") { if (last) result.push(""); }
    else result.push(percent(segment, IN_PATH));
  });
  return "/" + result.join("/");
}

class URL {
  #scheme; #user = ""; #password = ""; #host = null; #port = ""; #path = ""; #opaque = false;
  #query = null; #fragment = null; #params; #refresh;
  constructor(input, base) {
    const from = base === undefined ? null : base instanceof URL ? base : new URL(base);
    this.#parse(String(input).toWellFormed(), from);
    [this.#params, this.#refresh] = boundParams(this.#query ?? "", (query) => {
      this.#query = query === "" ? null : query;
    });
  }
  static canParse(input, base) { return URL.parse(input, base) !== null; }
  static parse(input, base) { try { return new URL(input, base); } catch { return null; } }
  #parse(raw, base) {
    let rest = raw.replace(/^[\0- ]+|[\0- ]+$/g, "").replace(/[\t\n\r]/g, "");
    const hash = rest.indexOf("#");
    if (hash >= 0) { this.#fragment = percent(rest.slice(hash + 1), IN_FRAGMENT); rest = rest.slice(0, hash); }
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*:)/.exec(rest)?.[1].toLowerCase();
    const sameSpecial = scheme !== undefined && base !== null && scheme === base.#scheme && scheme in SPECIAL &&
      !/^[/\\]{2}/.test(rest.slice(scheme.length));
    if (scheme !== undefined && !sameSpecial) {
      this.#scheme = scheme;
      rest = rest.slice(scheme.length);
    } else {
      if (base === null) throw invalid(raw);
      this.#scheme = base.#scheme;
      if (sameSpecial) rest = rest.slice(scheme.length);
    }
    const special = this.#scheme in SPECIAL;
    const mark = rest.indexOf("?");
    if (mark >= 0) this.#query = percent(rest.slice(mark + 1), special ? IN_SPECIAL_QUERY : IN_QUERY);
    let path = mark >= 0 ? rest.slice(0, mark) : rest;
    if (special) path = path.replaceAll("\\", "/");
    const own = scheme !== undefined && !sameSpecial;
    if (!own && base.#opaque && (rest !== "" || this.#fragment === null)) throw invalid(raw);
    if (path.startsWith("//") || (own && special && this.#scheme !== "file:")) {
      path = path.replace(this.#scheme === "file:" || !special ? /^\/\// : /^\/*/, "");
      const end = path.indexOf("/");
      this.#authority(end < 0 ? path : path.slice(0, end), special, raw);
      path = end < 0 ? "" : path.slice(end);
      this.#path = path === "" && !special ? "" : normalPath(path.slice(1), special, []);
    } else if (own) {
      if (this.#scheme === "file:") this.#host = "";
      this.#opaque = !special && !path.startsWith("/");
      this.#path = this.#opaque ? percent(path, IN_OPAQUE) : normalPath(path.replace(/^\//, ""), special, []);
    } else this.#relative(path, base, special, mark >= 0);
  }
  #relative(path, base, special, hasQuery) {
    this.#opaque = base.#opaque;
    this.#user = base.#user; this.#password = base.#password; this.#host = base.#host; this.#port = base.#port;
    if (path === "") {
      this.#path = base.#path;
      if (!hasQuery) this.#query = base.#query;
    } else if (path.startsWith("/")) this.#path = normalPath(path.slice(1), special, []);
    else this.#path = normalPath(path, special, base.#path.split("/").slice(1, -1));
  }
  #authority(text, special, raw) {
    const at = text.lastIndexOf("@");
    if (at >= 0) {
      const [user, ...password] = text.slice(0, at).split(":");
      this.#user = percent(user, IN_USER);
      this.#password = percent(password.join(":"), IN_USER);
    }
    const [, host, port] = /^(\[.*\]|[^:]*)(?::(.*))?$/.exec(text.slice(at + 1)) ?? [];
    if (host === undefined || (host === "" && (this.#scheme !== "file:" && (special || at >= 0 || port)))) throw invalid(raw);
    this.#host = host === "" ? "" : parseHost(host, special);
    if (this.#scheme === "file:" && this.#host === "localhost") this.#host = "";
    if (port) this.#setPort(port, raw);
  }
  #setPort(port, raw) {
    if (!/^[0-9]{1,10}$/.test(port) || +port > 65535) throw invalid(raw);
    this.#port = String(+port) === SPECIAL[this.#scheme] ? "" : String(+port);
  }
  get href() {
    let result = this.#scheme;
    if (this.#host !== null) {
      result += "//";
      if (this.#user !== "" || this.#password !== "") {
        result += this.#user + (this.#password === "" ? "" : ":" + this.#password) + "@";
      }
      result += this.host;
    } else if (!this.#opaque && this.#path.startsWith("//")) result += "/.";
    return result + this.#path + (this.#query === null ? "" : "?" + this.#query) +
      (this.#fragment === null ? "" : "#" + this.#fragment);
  }
  set href(value) {
    const made = new URL(value);
    this.#scheme = made.#scheme; this.#user = made.#user; this.#password = made.#password; this.#host = made.#host;
    this.#port = made.#port; this.#path = made.#path; this.#opaque = made.#opaque; this.#query = made.#query;
    this.#fragment = made.#fragment;
    this.#refresh(this.#query ?? "");
  }
  get origin() {
    if (this.#scheme === "blob:") {
      const inner = URL.parse(this.#path);
      return inner !== null && /^https?:$/.test(inner.protocol) ? inner.origin : "null";
    }
    return this.#scheme in SPECIAL && this.#scheme !== "file:" ? this.#scheme + "//" + this.host : "null";
  }
  get protocol() { return this.#scheme; }
  set protocol(value) {
    const scheme = /^([A-Za-z][A-Za-z0-9+.-]*)/.exec(String(value))?.[1].toLowerCase();
    if (scheme === undefined || (scheme + ":" in SPECIAL) !== (this.#scheme in SPECIAL)) return;
    this.#scheme = scheme + ":";
    if (this.#port === SPECIAL[this.#scheme]) this.#port = "";
  }
  get username() { return this.#user; }
  set username(value) { if (this.#host) this.#user = percent(value, IN_USER); }
  get password() { return this.#password; }
  set password(value) { if (this.#host) this.#password = percent(value, IN_USER); }
  get host() { return (this.#host ?? "") + (this.#port === "" ? "" : ":" + this.#port); }
  set host(value) {
    if (this.#opaque) return;
    const [, host, port] = /^(\[[^\]]*\]|[^:/?#\\]*)(?::([0-9]+))?/.exec(String(value));
    try { this.#host = parseHost(host, this.#scheme in SPECIAL); if (port) this.#setPort(port, value); } catch { return; }
  }
  get hostname() { return this.#host ?? ""; }
  set hostname(value) {
    if (this.#opaque) return;
    try { this.#host = parseHost(String(value), this.#scheme in SPECIAL); } catch { return; }
  }
  get port() { return this.#port; }
  set port(value) {
    const digits = /^[0-9]*/.exec(String(value))[0];
    if (String(value) === "") this.#port = "";
    else if (digits !== "" && this.#host) { try { this.#setPort(digits, value); } catch { return; } }
  }
  get pathname() { return this.#path; }
  set pathname(value) {
    if (!this.#opaque) {
      const path = String(value).replaceAll("?", "%3F").replaceAll("#", "%23");
      this.#path = normalPath(path.replace(/^[/\\]/, ""), this.#scheme in SPECIAL, []);
    }
  }
  get search() { return this.#query ? "?" + this.#query : ""; }
  set search(value) {
    const query = String(value).replace(/^\?/, "");
    this.#query = query === "" ? null : percent(query.replaceAll("#", "%23"), this.#scheme in SPECIAL ? IN_SPECIAL_QUERY : IN_QUERY);
    this.#refresh(this.#query ?? "");
  }
  get searchParams() { return this.#params; }
  get hash() { return this.#fragment ? "#" + this.#fragment : ""; }
  set hash(value) {
    const fragment = String(value).replace(/^#/, "");
    this.#fragment = fragment === "" ? null : percent(fragment, IN_FRAGMENT);
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
}

