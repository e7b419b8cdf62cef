// The harness: evaluated once in every guest before any tool source. Its value is the box through
// which the process outside talks. Its functions have what they are given as `this`: `receive` takes
// one frame, `define` the compiled module, and `take` gives a line with the milliseconds to the next
// timer (or nothing) and then frames of two lines.
//
// Tool code may change every prototype and global afterwards. So whatever is used later is held
// here, dictionaries have no prototype, and all work is done in microtasks, which run between the
// calls: nothing of a tool's is ever on the stack of a call whose value mini-racer looks into.
(() => {
"use strict";
const LIMITS = { calls: 32, lines: 100, logCharacters: 16384, depth: 200, timers: 1000, steps: 1000, text: 1800000 };
const { parse, stringify } = JSON;
const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
const objectPrototype = Object.prototype, arrayPrototype = Array.prototype;
const { isArray } = Array;
const { apply } = Reflect;
const { isFinite, isNaN } = Number;
const { max, min } = Math;
const text = String;
const now = Date.now;
const PromiseOf = Promise, ErrorOf = Error, TypeErrorOf = TypeError, RangeErrorOf = RangeError;
const uncurry = (f) => (self, ...rest) => apply(f, self, rest);
const then = uncurry(Promise.prototype.then);
const indexOf = uncurry(String.prototype.indexOf);
const slice = uncurry(String.prototype.slice);
const remember = uncurry(WeakMap.prototype.set);
const recall = uncurry(WeakMap.prototype.get);
const capabilityErrors = new WeakMap();
const record = () => ({ __proto__: null });

// A promise whose `constructor` cannot be looked up on a changed prototype.
const ready = freeze(defineProperty(PromiseOf.resolve(), "constructor", { value: PromiseOf }));

let out = "";
let progress = "";
const emit = (header, body) => { out += "\n" + header + "\n" + body; };
const quote = (s) => stringify(s.length > LIMITS.text ? slice(s, 0, LIMITS.text) : s);

/* json.js */

// ---- Things thrown --------------------------------------------------------------------------
function describe(thrown) {
  try {
    if (typeof thrown === "object" && thrown !== null) {
      const { name, message } = thrown;
      if (typeof message === "string") {
        if (typeof name !== "string" || name === "" || name === "Error") return message || "Error";
        return message ? name + ": " + message : name;
      }
      return encode(thrown, AS_RESULT);
    }
    return text(thrown);
  } catch {
    return "a value that cannot be shown";
  }
}

function stackOf(thrown) {
  try {
    const { stack } = thrown;
    return typeof stack === "string" ? slice(stack, 0, 4000) : "";
  } catch {
    return "";
  }
}

const fault = (message, stack) => '{"message":' + quote(slice(message, 0, 4000)) + ',"stack":' + quote(stack) + "}";

// ---- One run --------------------------------------------------------------------------------
let current = null;
let execute;

function startRun(id, { context, input }) {
  if (current !== null) current.open = false;
  const run = { __proto__: null, id, open: true, calls: 0, waiting: record(), lines: 0, logged: 0, steps: 0 };
  current = run;
  clearTimers();
  const ctx = makeContext(run, context);
  then(ready, async () => {
    let value;
    try {
      value = await execute(ctx, input);
    } catch (thrown) {
      return finishRun(run, "failed", failedCode(thrown), fault(describe(thrown), stackOf(thrown)));
    }
    let json;
    try {
      json = encode(value, AS_RESULT);
    } catch (thrown) {
      if (thrown !== failure) {
        return finishRun(run, "failed", "TOOL_ERROR", fault(describe(thrown), stackOf(thrown)));
      }
      const code = failure.tooLarge ? "RESULT_TOO_LARGE" : "INVALID_RESULT";
      return finishRun(run, "failed", code, fault("The result's " + failure.path + " " + failure.what + ".", ""));
    }
    return finishRun(run, "result", "", json);
  });
}

function failedCode(thrown) {
  const known = typeof thrown === "object" && thrown !== null ? recall(capabilityErrors, thrown) : undefined;
  if (known !== undefined) return known;
  return isAllocationFailure(thrown) ? "MEMORY_LIMIT" : "TOOL_ERROR";
}

// An ArrayBuffer that the process may not have is no error of the script's logic.
function isAllocationFailure(thrown) {
  try {
    return getPrototypeOf(thrown) === RangeErrorOf.prototype && thrown.message === "Array buffer allocation failed";
  } catch {
    return false;
  }
}

function finishRun(run, kind, code, body) {
  if (!run.open) return;
  flushProgress();
  run.open = false;
  clearTimers();
  emit('{"t":"' + kind + '","run":' + quote(run.id) + (code ? ',"code":' + quote(code) : "") + "}", body);
}

function refuse(error, code) {
  error.code = code;
  remember(capabilityErrors, error, code);
  return error;
}

function call(run, method, parameters) {
  return new PromiseOf((resolve, reject) => {
    const error = new ErrorOf("");
    const no = (code, message) => { error.message = message; reject(refuse(error, code)); };
    if (!run.open) return no("CAPABILITY_DENIED", "This run has ended; its ctx can do nothing any more.");
    if (run.calls >= LIMITS.calls) {
      return no("CAPABILITY_LIMIT", "A run may make " + LIMITS.calls + " capability calls; this was one more.");
    }
    let json;
    try {
      json = encode(parameters, AS_ARGUMENTS);
    } catch (thrown) {
      if (thrown !== failure) return reject(thrown);
      if (failure.tooLarge) return no("INPUT_TOO_LARGE", "The arguments of ctx." + method + " are too large.");
      return no("INVALID_INPUT", "The arguments of ctx." + method + ": " + failure.path + " " + failure.what + ".");
    }
    run.calls += 1;
    const id = run.calls;
    run.waiting[id] = { __proto__: null, resolve, no };
    emit('{"t":"call","run":' + quote(run.id) + ',"id":' + id + ',"method":' + quote(method) + "}", json);
  });
}

function settle(header, body) {
  const run = current;
  if (run === null || header.run !== run.id) return;
  const waiter = run.waiting[header.id];
  if (waiter === undefined) return;
  delete run.waiting[header.id];
  if (header.ok) waiter.resolve(parse(body));
  else waiter.no(header.code, header.message);
}

// ---- ctx ------------------------------------------------------------------------------------
function deepFreeze(value) {
  if (typeof value !== "object" || value === null) return value;
  const names = keys(value);
  for (let i = 0; i < names.length; i++) deepFreeze(value[names[i]]);
  return freeze(value);
}

const METHODS = {
  __proto__: null,
  db: ["query", "execute"],
  images: ["open"],
  files: ["readText", "writeText", "list"],
  llm: ["generate"],
};
const METHOD_GROUPS = freeze(["db", "images", "files", "llm"]);

function makeContext(run, given) {
  const ctx = {
    now: given.now,
    agent: deepFreeze(given.agent),
    session: deepFreeze(given.session),
    wait: (ms) => new PromiseOf((resolve) => addTimer(resolve, ms)),
    log: async (message, data) => log(run, "info", message, data),
    progress: async (fraction, message) => setProgress(run, fraction, message),
  };
  const has = (name) => {
    for (let i = 0; i < given.capabilities.length; i++) if (given.capabilities[i] === name) return true;
    return false;
  };
  for (let g = 0; g < METHOD_GROUPS.length; g++) {
    const group = METHOD_GROUPS[g];
    if (!has(group)) continue;
    const methods = {};
    for (let m = 0; m < METHODS[group].length; m++) {
      const name = METHODS[group][m];
      methods[name] = freeze((...parameters) => call(run, group + "." + name, parameters));
    }
    ctx[group] = freeze(methods);
  }
  if (has("camera")) ctx.camera = deepFreeze(given.camera ?? { frame: null, status: null });
  if (has("conversation")) ctx.conversation = deepFreeze({ recentTurns: given.recentTurns ?? [] });
  freeze(ctx.wait); freeze(ctx.log); freeze(ctx.progress);
  return freeze(ctx);
}

function show(value) {
  if (typeof value === "string") return slice(value, 0, LIMITS.logCharacters + 1);
  return slice(describe(value), 0, LIMITS.logCharacters + 1);
}

// Limits are the host's to say; this only keeps a flood from crossing. One line too many goes out,
// so that the host can tell that there was more.
function log(run, level, message, data) {
  if (run === null || !run.open || run.lines > LIMITS.lines || run.logged > LIMITS.logCharacters) return;
  const line = show(message);
  let json = "null";
  if (data !== undefined) {
    try { json = encode(data, AS_RESULT); } catch { json = quote(show(data)); }
    if (json.length > LIMITS.logCharacters) json = quote(slice(json, 0, LIMITS.logCharacters + 1));
  }
  run.lines += 1;
  run.logged += line.length + (data === undefined ? 0 : json.length);
  emit('{"t":"log","run":' + quote(run.id) + ',"level":"' + level + '","data":' + (data !== undefined) + "}",
    "[" + quote(line) + "," + json + "]");
}

function setProgress(run, fraction, message) {
  const share = +fraction;
  if (!run.open || isNaN(share) || run.steps >= LIMITS.steps) return;
  const words = message === undefined ? "" : slice(show(message), 0, 500);
  progress = '\n{"t":"progress","run":' + quote(run.id) + ',"fraction":' + min(1, max(0, share)) + "}\n" + quote(words);
}

// One step a pump at most: a tool may report thousands.
function flushProgress() {
  if (progress === "") return;
  current.steps += 1;
  out += progress;
  progress = "";
}

const levelOf = { __proto__: null, log: "info", info: "info", warn: "warn", error: "error", debug: "debug" };
const consoleMethod = (level) => (...values) => {
  let line = "";
  for (let i = 0; i < values.length; i++) line += (i > 0 ? " " : "") + show(values[i]);
  log(current, level, line);
};

// ---- Timers ---------------------------------------------------------------------------------
let timers = record(), timerCount = 0, lastTimer = 0;

function clearTimers() { timers = record(); timerCount = 0; }

function addTimer(action, ms) {
  if (timerCount >= LIMITS.timers) throw new RangeErrorOf("More than " + LIMITS.timers + " timers are waiting.");
  let wait = +ms;
  if (!(wait > 0)) wait = 0;
  lastTimer += 1;
  timers[lastTimer] = { __proto__: null, id: lastTimer, action, due: now() + min(wait, 2147483647) };
  timerCount += 1;
  return lastTimer;
}

function nextDue() {
  let due = Infinity;
  for (const id in timers) if (timers[id].due < due) due = timers[id].due;
  return due;
}

function runTimers() {
  const time = now(), due = record();
  let count = 0;
  // By time, and at the same time in the order they were made (in which ids come): a process that was
  // woken late has several of different times to run.
  for (const id in timers) {
    const timer = timers[id];
    if (timer.due > time) continue;
    let place = count;
    for (; place > 0 && due[place - 1].due > timer.due; place--) due[place] = due[place - 1];
    due[place] = timer;
    count += 1;
  }
  for (let i = 0; i < count; i++) {
    const { id, action } = due[i];
    then(ready, () => {
      if (timers[id] !== due[i]) return;
      delete timers[id];
      timerCount -= 1;
      try {
        action();
      } catch (thrown) {
        log(current, "error", "Uncaught in a timer: " + describe(thrown));
      }
    });
  }
}

// ---- Globals --------------------------------------------------------------------------------
const define = (name, value) =>
  defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

delete globalThis.SharedArrayBuffer;
delete globalThis.Atomics;
delete globalThis.WebAssembly;
define("console", (() => {
  const made = {};
  for (const name in levelOf) made[name] = consoleMethod(levelOf[name]);
  return made;
})());
define("setTimeout", function setTimeout(action, ms = 0, ...rest) {
  if (typeof action !== "function") throw new TypeErrorOf("setTimeout takes a function");
  return addTimer(() => apply(action, undefined, rest), ms);
});
define("clearTimeout", function clearTimeout(id) {
  if (typeof id === "number" && timers[id] !== undefined) { delete timers[id]; timerCount -= 1; }
});
define("queueMicrotask", function queueMicrotask(action) {
  if (typeof action !== "function") throw new TypeErrorOf("queueMicrotask takes a function");
  then(ready, () => {
    try { action(); } catch (thrown) { log(current, "error", "Uncaught in a microtask: " + describe(thrown)); }
  });
});

// Most tools use none of these, and making them all would cost each guest a millisecond.
const WEB = freeze([
  "TextEncoder", "TextDecoder", "DOMException", "atob", "btoa", "structuredClone", "crypto", "URL", "URLSearchParams",
]);
let web = null;
function makeWeb() {
/* web.js */
}
for (let i = 0; i < WEB.length; i++) {
  const name = WEB[i];
  defineProperty(globalThis, name, {
    configurable: true,
    enumerable: false,
    get() {
      web ??= makeWeb();
      define(name, web[name]);
      return web[name];
    },
    set(value) { define(name, value); },
  });
}

// ---- The module -----------------------------------------------------------------------------
const JSON_EXPORTS = freeze(["schemaVersion", "metadata", "inputSchema", "capabilities", "timeoutMs"]);
const KNOWN_EXPORTS = record();
for (let i = 0; i < JSON_EXPORTS.length; i++) KNOWN_EXPORTS[JSON_EXPORTS[i]] = true;
KNOWN_EXPORTS.execute = true;

function loadModule(body) {
  let found;
  try {
    found = apply(body, undefined, []);
  } catch (thrown) {
    const code = isAllocationFailure(thrown) ? "MEMORY_LIMIT" : "INVALID_TOOL";
    return emit('{"t":"threw","code":"' + code + '"}', fault(describe(thrown), stackOf(thrown)));
  }
  let json = "{";
  for (let i = 0; i < JSON_EXPORTS.length; i++) {
    const name = JSON_EXPORTS[i];
    if (!(name in found)) continue;
    try {
      json += quote(name) + ":" + encode(found[name], AS_EXPORT) + ",";
    } catch (thrown) {
      const words = thrown === failure
        ? "The export " + name + slice(failure.path, 1) + " " + failure.what + "; it has to be plain JSON."
        : "The export " + name + " cannot be read: " + describe(thrown);
      return emit('{"t":"threw","code":"INVALID_TOOL","export":' + quote(name) + "}", fault(words, ""));
    }
  }
  const names = keys(found);
  for (let i = 0; i < names.length; i++) {
    if (!(names[i] in KNOWN_EXPORTS)) json += quote(names[i]) + ":null,";
  }
  execute = found.execute;
  return emit('{"t":"loaded"}', json + '"execute":' + (typeof execute === "function") + "}");
}

function handle(frame) {
  const cut = indexOf(frame, "\n");
  const header = parse(slice(frame, 0, cut));
  if (header.t === "reply") settle(header, slice(frame, cut + 1));
  else if (header.t === "run") startRun(header.run, parse(slice(frame, cut + 1)));
  else runTimers();
}

return freeze({
  __proto__: null,
  receive() { then(ready, () => handle(this)); },
  define() { then(ready, () => loadModule(this)); },
  take() {
    flushProgress();
    const due = timerCount > 0 ? text(max(0, nextDue() - now())) : "";
    const all = due + out;
    out = "";
    return all;
  },
  nothing: freeze([]),
});
})()
