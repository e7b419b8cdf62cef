// The web's own globals that tools may count on, in plain ECMAScript: the body of a function in
// harness.js that runs when one of them is first used.
const { fromCharCode, fromCodePoint } = String;
const Bytes = Uint8Array;

// ---- Text encoding (Encoding Standard; UTF-8 both ways, UTF-16LE and Latin-1 for reading) ------
const byteView = (source) => {
  if (source === undefined) return new Bytes(0);
  if (source instanceof ArrayBuffer) return new Bytes(source);
  if (ArrayBuffer.isView(source)) return new Bytes(source.buffer, source.byteOffset, source.byteLength);
  throw new TypeError("A buffer or a view of one is needed");
};

class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(input = "") {
    const string = String(input).toWellFormed();
    const bytes = new Bytes(string.length * 3);
    const { written } = this.encodeInto(string, bytes);
    return bytes.slice(0, written);
  }
  encodeInto(input, bytes) {
    const string = String(input).toWellFormed();
    let read = 0, written = 0;
    while (read < string.length) {
      const point = string.codePointAt(read);
      const length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (written + length > bytes.length) break;
      if (length === 1) bytes[written] = point;
      else {
        for (let i = length - 1, rest = point; i > 0; i--, rest >>= 6) bytes[written + i] = 0x80 | (rest & 63);
        bytes[written] = (0xf00 >> length) & 0xff | (point >> (6 * (length - 1)));
      }
      written += length;
      read += point > 0xffff ? 2 : 1;
    }
    return { read, written };
  }
}

const LABELS = {
  __proto__: null, "utf-8": "utf-8", utf8: "utf-8", "utf-16le": "utf-16le", "utf-16": "utf-16le",
  latin1: "windows-1252", "iso-8859-1": "windows-1252", ascii: "windows-1252", "windows-1252": "windows-1252",
};
const WINDOWS_1252 = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

class TextDecoder {
  #encoding; #fatal; #ignoreBOM; #held = new Bytes(0);
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    this.#encoding = LABELS[String(label).trim().toLowerCase()];
    if (this.#encoding === undefined) throw new RangeError("The encoding " + label + " is not available");
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#ignoreBOM; }
  decode(source, { stream = false } = {}) {
    let bytes = byteView(source);
    if (this.#held.length > 0) {
      const joined = new Bytes(this.#held.length + bytes.length);
      joined.set(this.#held);
      joined.set(bytes, this.#held.length);
      bytes = joined;
    }
    const read = { "utf-8": readUtf8, "utf-16le": readUtf16, "windows-1252": readLatin }[this.#encoding];
    const [decoded, used] = read(bytes, Boolean(stream), () => {
      if (this.#fatal) throw new TypeError("The data is not valid " + this.#encoding);
      return "\ufffd";
    });
    this.#held = bytes.slice(used);
    return !this.#ignoreBOM && decoded[0] === "\ufeff" ? decoded.slice(1) : decoded;
  }
}

function readUtf8(bytes, stream, bad) {
  const parts = [];
  let piece = "", i = 0;
  while (i < bytes.length) {
    const first = bytes[i];
    let need = 0, point = first, low = 0x80, high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) { need = 1; point = first & 0x1f; }
    else if (first >= 0xe0 && first <= 0xef) {
      need = 2; point = first & 0xf;
      if (first === 0xe0) low = 0xa0; else if (first === 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
      need = 3; point = first & 7;
      if (first === 0xf0) low = 0x90; else if (first === 0xf4) high = 0x8f;
    } else if (first >= 0x80) { piece += bad(); i++; continue; }
    let got = 0;
    while (got < need && i + got + 1 < bytes.length) {
      const next = bytes[i + got + 1];
      if (next < low || next > high) break;
      point = (point << 6) | (next & 0x3f);
      low = 0x80; high = 0xbf; got++;
    }
    if (got < need) {
      if (stream && i + got + 1 >= bytes.length) break;
      piece += bad();
    } else piece += fromCodePoint(point);
    i += got + 1;
    if (piece.length > 8192) { parts.push(piece); piece = ""; }
  }
  return [parts.join("") + piece, i];
}

function readUtf16(bytes, stream, bad) {
  const whole = bytes.length - (bytes.length % 2);
  let decoded = "";
  for (let i = 0; i < whole; i += 2) decoded += fromCharCode(bytes[i] | (bytes[i + 1] << 8));
  if (!decoded.isWellFormed()) { bad(); decoded = decoded.toWellFormed(); }
  if (stream || whole === bytes.length) return [decoded, whole];
  return [decoded + bad(), bytes.length];
}

function readLatin(bytes) {
  let decoded = "";
  for (let i = 0; i < bytes.length; i++) {
    const b = bytes[i];
    decoded += b >= 0x80 && b < 0xa0 ? WINDOWS_1252[b - 0x80] : fromCharCode(b);
  }
  return [decoded, bytes.length];
}

// ---- Base64 (HTML Standard, forgiving decode) ---------------------------------------------------
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

class DOMException extends Error {
  #name;
  constructor(message = "", name = "Error") { super(message); this.#name = String(name); }
  get name() { return this.#name; }
  get code() { return { InvalidCharacterError: 5, DataCloneError: 25 }[this.#name] ?? 0; }
}

function btoa(input) {
  const string = String(input);
  let result = "";
  for (let i = 0; i < string.length; i += 3) {
    const a = string.charCodeAt(i), b = string.charCodeAt(i + 1), c = string.charCodeAt(i + 2);
    if (a > 255 || b > 255 || c > 255) {
      throw new DOMException("btoa takes characters up to U+00FF", "InvalidCharacterError");
    }
    result += BASE64[a >> 2] + BASE64[((a & 3) << 4) | (b >> 4)];
    result += i + 1 < string.length ? BASE64[((b & 15) << 2) | (c >> 6)] : "=";
    result += i + 2 < string.length ? BASE64[c & 63] : "=";
  }
  return result;
}

function atob(input) {
  let string = String(input).replace(/[\t\n\f\r ]/g, "");
  if (string.length % 4 === 0) string = string.replace(/={1,2}$/, "");
  if (string.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(string)) {
    throw new DOMException("atob takes base64", "InvalidCharacterError");
  }
  let result = "", held = 0, bits = 0;
  for (let i = 0; i < string.length; i++) {
    held = (held << 6) | BASE64.indexOf(string[i]);
    bits += 6;
    if (bits >= 8) { bits -= 8; result += fromCharCode((held >> bits) & 255); }
  }
  return result;
}

// ---- structuredClone (HTML Standard, the kinds that exist here) -----------------------------------
function structuredClone(value, { transfer = [] } = {}) {
  if (transfer.length > 0) throw new DOMException("Nothing can be transferred here", "DataCloneError");
  const made = new Map();
  const clone = (v) => {
    if (typeof v === "symbol" || typeof v === "function") {
      throw new DOMException(`A ${typeof v} cannot be cloned`, "DataCloneError");
    }
    if (typeof v !== "object" || v === null) return v;
    if (made.has(v)) return made.get(v);
    const keep = (copy) => { made.set(v, copy); return copy; };
    if (Array.isArray(v)) {
      const copy = keep(new Array(v.length));
      for (const key of Object.keys(v)) copy[key] = clone(v[key]);
      return copy;
    }
    switch (Object.prototype.toString.call(v)) {
      case "[object Boolean]": if (v instanceof Boolean) return keep(new Boolean(v.valueOf())); break;
      case "[object Number]": if (v instanceof Number) return keep(new Number(v.valueOf())); break;
      case "[object String]": if (v instanceof String) return keep(new String(v.valueOf())); break;
      case "[object Date]": if (v instanceof Date) return keep(new Date(v.getTime())); break;
      case "[object RegExp]": if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags)); break;
    }
    if (v instanceof Map) {
      const copy = keep(new Map());
      for (const [key, inner] of [...v]) copy.set(clone(key), clone(inner));
      return copy;
    }
    if (v instanceof Set) {
      const copy = keep(new Set());
      for (const inner of [...v]) copy.add(clone(inner));
      return copy;
    }
    if (v instanceof ArrayBuffer) return keep(v.slice(0));
    if (ArrayBuffer.isView(v)) {
      const buffer = clone(v.buffer);
      const size = v instanceof DataView ? v.byteLength : v.length;
      return keep(new v.constructor(buffer, v.byteOffset, size));
    }
    if (v instanceof Error) {
      const kinds = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
      const copy = keep(new (kinds[v.name] ?? Error)(String(v.message)));
      if ("cause" in v) copy.cause = clone(v.cause);
      copy.stack = String(v.stack);
      return copy;
    }
    if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet || v instanceof WeakRef) {
      throw new DOMException(`A ${v.constructor.name} cannot be cloned`, "DataCloneError");
    }
    const copy = keep({});
    for (const key of Object.keys(v)) {
      defineProperty(copy, key, { value: clone(v[key]), writable: true, enumerable: true, configurable: true });
    }
    return copy;
  };
  return clone(value);
}

// ---- crypto.randomUUID (RFC 9562, version 4; V8's generator is seeded from /dev/urandom) -----------
const random = Math.random;
const crypto = freeze({
  randomUUID() {
    let id = "";
    for (let i = 0; i < 36; i++) {
      if (i === 8 || i === 13 || i === 18 || i === 23) id += "-";
      else if (i === 14) id += "4";
      else id += (i === 19 ? 8 + ((random() * 4) | 0) : (random() * 16) | 0).toString(16);
    }
    return id;
  },
});

/* url.js */
return { TextEncoder, TextDecoder, DOMException, atob, btoa, structuredClone, crypto, URL, URLSearchParams };
