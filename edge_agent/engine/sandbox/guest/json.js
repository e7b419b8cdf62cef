// Values to strict JSON, naming the path of what is none: part of harness.js.
const AS_RESULT = 0, AS_ARGUMENTS = 1, AS_EXPORT = 2;
let mode = AS_RESULT, size = 0, trail = record(), failure = null, left = 0;

function fail(depth, what, tooLarge = false) {
  let path = "$";
  for (let i = 1; i <= depth; i++) {
    const key = trail[i];
    path += typeof key === "number" ? "[" + key + "]" : isPlainName(key) ? "." + key : "[" + quote(key) + "]";
  }
  failure = { __proto__: null, path, what, tooLarge };
  throw failure;
}

function isPlainName(key) {
  if (key.length === 0 || key.length > 64) return false;
  for (let i = 0; i < key.length; i++) {
    const c = key[i];
    const letter = (c >= "a" && c <= "z") || (c >= "A" && c <= "Z") || c === "_" || c === "$";
    if (!letter && (i === 0 || c < "0" || c > "9")) return false;
  }
  return true;
}

function grow(piece, depth) {
  size += piece.length;
  if (size > LIMITS.text) fail(depth, "is too large", true);
  return piece;
}

function encode(value, inMode) {
  mode = inMode; size = 0; trail = record();
  return encodeAt(value, 0, null, true);
}

// Whether V8's own JSON says of `value` what this file would say, which is true of nearly all that tools
// return and is many times faster. Getters may then be read twice, and tell two things: what comes out
// is JSON all the same, and the host looks at it again.
function isPlain(value, depth) {
  if (value.toJSON !== undefined || depth > LIMITS.depth) return false;
  const list = isArray(value), names = list ? null : keys(value), count = list ? value.length : names.length;
  left -= count;
  for (let i = 0; i < count && left > 0; i++) {
    const item = list ? value[i] : value[names[i]];
    switch (typeof item) {
      case "string": left -= item.length; break;
      case "number": if (item - item !== 0) return false; break;
      case "boolean": break;
      case "object": if (item !== null && !isPlain(item, depth + 1)) return false; break;
      case "undefined": if (!list && mode !== AS_ARGUMENTS) return false; break;
      default: return false;
    }
  }
  return left > 0;
}

function encodeAt(value, depth, above, convert) {
  switch (typeof value) {
    case "string":
      if (value.length > LIMITS.text) fail(depth, "is too large", true);
      return grow(stringify(value), depth);
    case "boolean": return value ? "true" : "false";
    case "number":
      if (!isFinite(value)) fail(depth, isNaN(value) ? "is NaN" : "is Infinity");
      return grow(value === 0 ? "0" : text(value), depth);
    case "undefined":
      if (mode === AS_EXPORT) fail(depth, "is undefined");
      return grow("null", depth);
    case "object": break;
    default: fail(depth, "is a " + (typeof value === "bigint" ? "BigInt" : typeof value));
  }
  if (value === null) return grow("null", depth);
  if (depth > LIMITS.depth) fail(depth, "is nested deeper than " + LIMITS.depth + " levels");
  for (let up = above; up !== null; up = up.above) if (up.value === value) fail(depth, "is a cycle");
  if (convert && mode !== AS_EXPORT) {
    const toJSON = value.toJSON;
    if (typeof toJSON === "function") {
      return encodeAt(apply(toJSON, value, [depth === 0 ? "" : text(trail[depth])]), depth, above, false);
    }
    left = LIMITS.text - size;
    if (isPlain(value, depth)) {
      const json = stringify(value);
      if (typeof json === "string") return grow(json, depth);
    }
  }
  const here = { __proto__: null, value, above };
  return isArray(value) ? encodeArray(value, depth, here) : encodeObject(value, depth, here);
}

function encodeArray(value, depth, here) {
  if (mode === AS_EXPORT && getPrototypeOf(value) !== arrayPrototype) fail(depth, "is not a plain array");
  const { length } = value;
  let json = "[";
  for (let i = 0; i < length; i++) {
    if (i > 0) json += ",";
    trail[depth + 1] = i;
    grow(",", depth);
    json += encodeAt(member(value, i, depth + 1), depth + 1, here, true);
  }
  return json + "]";
}

function encodeObject(value, depth, here) {
  if (mode === AS_EXPORT) {
    const above = getPrototypeOf(value);
    if (above !== objectPrototype && above !== null) fail(depth, "is not a plain object");
  }
  const names = keys(value);
  let json = "{", first = true;
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    trail[depth + 1] = name;
    const inner = member(value, name, depth + 1);
    if (inner === undefined && mode === AS_ARGUMENTS) continue;
    json += (first ? "" : ",") + grow(stringify(name), depth) + ":";
    first = false;
    json += encodeAt(inner, depth + 1, here, true);
  }
  return json + "}";
}

function member(value, key, depth) {
  if (mode !== AS_EXPORT) return value[key];
  const found = getOwnPropertyDescriptor(value, key);
  if (found === undefined) fail(depth, "is missing");
  if (found.get !== undefined || found.set !== undefined) fail(depth, "is a getter or setter");
  return found.value;
}
