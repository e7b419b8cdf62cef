# ruff: noqa: E501 - a row of code inside a table reads best on one line
"""Hostile tools: whatever they do, the host stands, the deadline holds and nothing is left.

Each row is a tool's body and what has to come of it: a value, or an error code, or a set of codes
where V8 decides which way it dies. `load` rows misbehave while the module is evaluated.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from edge_agent.engine.sandbox.api import GuestError
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox

from .conftest import HEAD, Bench, tool

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEADLINE_S = 5.0
SHORT_S = 0.5
"""For tools that are expected to run until they are killed."""
AT_ONCE = 4
GRACE_S = 10.0
"""Only tells a hang from an end: the benchmark measures how late a kill is."""

MEMORY = {"MEMORY_LIMIT", "TIMEOUT"}
DEAD = {"MEMORY_LIMIT", "TIMEOUT", "SANDBOX_CRASHED"}

HUNT = """
const seen = new Set(), found = [];
const forbidden = ["process", "require", "fetch", "XMLHttpRequest", "Deno", "Bun", "WebAssembly", "SharedArrayBuffer",
  "Atomics", "ShadowRealm", "importScripts", "load", "read", "print", "quit", "os", "std", "version", "gc", "d8"];
for (const name of forbidden) if (name in globalThis) found.push(name);
const walk = (value, path, depth) => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value) || depth > 6) return;
  seen.add(value);
  for (const key of Reflect.ownKeys(value)) {
    const own = Object.getOwnPropertyDescriptor(value, key);
    for (const inner of [own.value, own.get, own.set]) walk(inner, path + "." + String(key), depth + 1);
    if (typeof own.value === "string" && /\\/(root|home|work|code|usr|packages)\\//.test(own.value)) found.push(path);
  }
  walk(Object.getPrototypeOf(value), path + ".__proto__", depth + 1);
};
walk(globalThis, "global", 0);
walk(ctx, "ctx", 0);
return found;
"""

ROWS: dict[str, tuple[str, Any]] = {
    # code generation
    "eval": ("return eval('1+1')", {"TOOL_ERROR"}),
    "indirect eval": ("return (0, eval)('this')", {"TOOL_ERROR"}),
    "Function": ("return Function('return this')()", {"TOOL_ERROR"}),
    "constructor chain": ("return ctx.log.constructor.constructor('return process')()", {"TOOL_ERROR"}),
    "async function constructor": ("return (async () => {}).constructor('return 1')()", {"TOOL_ERROR"}),
    "generator constructor": ("return (function* () {}).constructor('yield 1')().next()", {"TOOL_ERROR"}),
    "setTimeout with text": ("setTimeout('1', 0)", {"TOOL_ERROR"}),
    "setTimeout is no way to eval": (
        "return setTimeout.constructor('return 7')()",
        {"TOOL_ERROR"},
    ),
    "error's prepareStackTrace": (
        "Error.prepareStackTrace = (e, frames) => frames.map(f => String(f.getThis()) + typeof f.getFunction());"
        "const s = new Error('x').stack; return s.every(t => t.startsWith('undefined'))",
        True,
    ),
    # hunting for the host
    "hunt for host objects": (HUNT, []),
    "this": ("return typeof this", "undefined"),
    "arguments.callee": ("return (function () { return arguments.callee.caller })()", {"TOOL_ERROR"}),
    "harness by name": ("return [typeof box, typeof emit, typeof receive, typeof run].join()",
                        "undefined,undefined,undefined,undefined"),
    "require": ("return typeof globalThis.require", "undefined"),
    "dynamic import by hand": ("return globalThis['imp' + 'ort']", None),
    "ctx is frozen": ("try { ctx.evil = 1 } catch { return Object.isFrozen(ctx) && Object.isFrozen(ctx.db) }", True),
    "ctx methods are frozen": ("ctx.db.query.x = 1", {"TOOL_ERROR"}),
    "undeclared capability": ("return Object.keys(ctx).includes('nothing')", False),
    # prototypes and promises
    "Object.prototype.toJSON": ("Object.prototype.toJSON = () => 'pwned'; return {a: 1}", "pwned"),
    "Array.prototype setters": (
        "Object.defineProperty(Array.prototype, 0, {set() { throw 1 }, get() { return 'pwned' }});"
        "return await ctx.db.query('a', 'b')",
        ["a", "b"],
    ),
    "Object.prototype getters": (
        "for (const k of ['run','id','t','code','waiting','open','calls','value','get','above'])"
        " Object.defineProperty(Object.prototype, k, {__proto__: null, get() { return 'pwned' }, set() {}, configurable: true});"
        "return await ctx.db.query('a', 'b')",
        ["a", "b"],
    ),
    "String.prototype": (
        "String.prototype.slice = String.prototype.indexOf = () => { throw 1 };"
        "return await ctx.db.query('a', 'b')",
        ["a", "b"],
    ),
    "JSON replaced": ("JSON.stringify = JSON.parse = () => { throw 1 }; return await ctx.db.query('a')", ["a"]),
    "Promise replaced": ("globalThis.Promise = null; return await ctx.db.query('a')", ["a"]),
    "Promise.prototype.then": (
        "Promise.prototype.then = function () { throw new Error('caught') }; return 5",
        {"TIMEOUT", 5, "TOOL_ERROR"},
    ),
    "Promise species": (
        "Object.defineProperty(Promise.prototype, 'constructor', {get() { throw new Error('x') }});"
        "await 1; return 5",
        {"TIMEOUT", 5, "TOOL_ERROR"},
    ),
    "Object.prototype.then": (
        "Object.prototype.then = function (f) { delete Object.prototype.then; f(7) }; return {a: 1}", 7),
    "Function.prototype.call": (
        "Function.prototype.call = Function.prototype.apply = Reflect.apply = () => { throw 1 }; return await ctx.db.query('a')",
        ["a"],
    ),
    "WeakMap.prototype": (
        "WeakMap.prototype.get = WeakMap.prototype.set = () => 'CAMERA_UNAVAILABLE'; throw new Error('x')",
        {"TOOL_ERROR"},
    ),
    "Error replaced": ("globalThis.Error = null; await ctx.db.query(() => 1)", {"INVALID_INPUT"}),
    "Date.now": ("Date.now = () => NaN; await ctx.wait(1); return 1", 1),
    "Math.min": ("Math.min = Math.max = () => -Infinity; await ctx.wait(1); return 1", 1),
    "globalThis frozen": ("Object.freeze(globalThis); await ctx.wait(1); return 1", 1),
    "toString bombs": ("throw {get message() { throw 1 }, toString() { throw 2 }}", {"TOOL_ERROR"}),
    # loops
    "endless loop": ("for (;;);", {"TIMEOUT"}),
    "endless microtasks": ("while (true) await null", {"TIMEOUT"}),
    "endless promise chain": ("const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})", MEMORY),
    "never settles": ("await new Promise(() => {})", {"TIMEOUT"}),
    "waits for ever": ("await ctx.wait(1e12)", {"TIMEOUT"}),
    "timer storm": ("const f = () => setTimeout(f, 0); f(); await new Promise(() => {})", {"TIMEOUT"}),
    "ten thousand timers": ("for (let i = 0; i < 10000; i++) setTimeout(() => {}, 1e6)", {"TOOL_ERROR"}),
    "catastrophic pattern": ("return /^(a+)+$/.test('a'.repeat(40) + 'b')", {"TIMEOUT"}),
    "catastrophic replace": ("return 'a'.repeat(50000).replace(/(a*)*b/g, '')", {"TIMEOUT", "TOOL_ERROR"}),
    "huge BigInt": ("let a = 3n; for (;;) a = a * a", {"TIMEOUT", "TOOL_ERROR", "MEMORY_LIMIT"}),
    "slow sort": ("return Array.from({length: 1e5}, (_, i) => i).sort(() => { for (;;); })", {"TIMEOUT"}),
    "generator for ever": ("const g = (function* () { for (;;) yield 1 })(); for (const x of g);", {"TIMEOUT"}),
    "finally for ever": ("for (;;) try { throw 1 } finally { continue }", {"TIMEOUT"}),
    # recursion
    "deep recursion": ("const f = () => f() + 1; return f()", {"TOOL_ERROR"}),
    "deep recursion in toJSON": ("const o = {toJSON() { return JSON.stringify(o) }}; return o", {"TOOL_ERROR"}),
    "deep result": ("let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return a", {"INVALID_RESULT"}),
    "deep arguments": ("let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; await ctx.db.query(a)", {"INVALID_INPUT"}),
    "deep log": ("let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; ctx.log('x', a); return 1", 1),
    # memory
    "heap of arrays": ("const a = []; for (;;) a.push(new Array(1000).fill(1.5))", MEMORY),
    "heap of objects": ("const a = []; for (;;) a.push({x: a.length, y: {z: 1}})", MEMORY),
    "heap in microtasks": ("const a = []; for (;;) { a.push(new Array(1000).fill(1)); await null }", MEMORY),
    "heap of strings": ("const a = []; for (let i = 0;; i++) a.push(('x' + i).repeat(1000))", MEMORY),
    "one long string": ("let s = 'x'; for (;;) s = s + s", {"TOOL_ERROR"} | MEMORY),
    "flattened ropes": ("const a = []; for (let i = 0;; i++) { let s = 'x' + i; while (s.length < 1e6) s += s; a.push(s); s.charCodeAt(3) }", DEAD),
    "ArrayBuffers": ("const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))", MEMORY),
    "one vast ArrayBuffer": ("new ArrayBuffer(2 ** 33)", {"MEMORY_LIMIT"}),
    "touched ArrayBuffers": ("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))", MEMORY),
    "resizable buffers": ("const a = []; for (;;) { const b = new ArrayBuffer(8, {maxByteLength: 1 << 26}); b.resize(1 << 26); new Uint8Array(b).fill(1); a.push(b) }",
                          MEMORY | {"TOOL_ERROR", "SANDBOX_CRASHED"}),
    "map growth": ("const m = new Map(); for (let i = 0;; i++) m.set(i, i)", DEAD | {"TOOL_ERROR"}),
    "array length": ("const a = []; a.length = 2 ** 32 - 1; a.fill(1)", DEAD | {"TOOL_ERROR"}),
    "repeat": ("return 'x'.repeat(2 ** 29 - 25).length", {536870887} | DEAD | {"TOOL_ERROR"}),
    "Array.from": ("return Array.from({length: 2 ** 31})", DEAD | {"TOOL_ERROR"}),
    "closures": ("const a = []; for (;;) a.push(() => a)", MEMORY),
    "pending promises": ("const a = []; for (;;) a.push(new Promise(() => {}))", MEMORY),
    "split": ("const s = 'ab'.repeat(1e7); const a = []; for (;;) a.push(s.split('b'))", DEAD),
    "catch the end": ("const a = []; for (;;) try { for (;;) a.push(new Array(1e4).fill(1)) } catch {}", MEMORY),
    # results
    "cycle": ("const a = {}; a.a = a; return a", {"INVALID_RESULT"}),
    "huge result": ("return 'x'.repeat(300000)", {"RESULT_TOO_LARGE"}),
    "vast result": ("return Array.from({length: 1e6}, () => 'xxxxxxxxxx')", {"RESULT_TOO_LARGE"}),
    "sparse result": ("const a = []; a[2 ** 32 - 2] = 1; return a", {"RESULT_TOO_LARGE"}),
    "endless proxy": ("const p = new Proxy({}, {ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({enumerable: true, configurable: true, value: 1}), get: () => p}); return p",
                      {"INVALID_RESULT", "TOOL_ERROR"}),
    "throwing proxy": ("return new Proxy({}, {ownKeys() { throw new Error('no') }})", {"TOOL_ERROR"}),
    "revoked proxy": ("const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); return proxy", {"TOOL_ERROR"}),
    "getter throws": ("return {get a() { throw new Error('no') }}", {"TOOL_ERROR"}),
    "getter loops": ("return {get a() { for (;;); }}", {"TIMEOUT"}),
    "toJSON throws": ("return {toJSON() { throw new Error('no') }}", {"TOOL_ERROR"}),
    "toJSON for ever": ("const f = () => ({toJSON: f}); return {toJSON: f}", {"INVALID_RESULT", None} | {"{}"}),
    "thenable trap": ("return {then(resolve) { resolve(this) }}", {"TOOL_ERROR", "TIMEOUT"}),
    "thenable twice": ("return {then(resolve, reject) { resolve(1); reject(2); resolve(3) }}", 1),
    # odd throws
    "throw null": ("throw null", {"TOOL_ERROR"}),
    "throw undefined": ("throw undefined", {"TOOL_ERROR"}),
    "throw symbol": ("throw Symbol('x')", {"TOOL_ERROR"}),
    "throw proxy": ("throw new Proxy({}, {get() { throw 1 }, has() { throw 1 }, getPrototypeOf() { throw 1 }})", {"TOOL_ERROR"}),
    "throw with a stack getter": ("throw {get stack() { throw new Error('deadly') }}", {"TOOL_ERROR"}),
    "reject with a stack getter": ("return Promise.reject({message: 'x', get stack() { for (;;); }})", {"TIMEOUT"}),
    "throw cyclic cause": ("const e = new Error('x'); e.cause = e; throw e", {"TOOL_ERROR"}),
    "throw a long message": ("throw new Error('x'.repeat(1e7))", {"TOOL_ERROR"}),
    "throw a claim": ("const e = new Error('x'); e.code = 'CAMERA_UNAVAILABLE'; throw e", {"TOOL_ERROR"}),
    "throw a copied code": ("try { await ctx.db.query(() => 1) } catch (e) { throw Object.assign(new Error('x'), {code: e.code}) }", {"TOOL_ERROR"}),
    "throw ctx": ("throw ctx", {"TOOL_ERROR"}),
    "unhandled rejections": ("for (let i = 0; i < 1000; i++) Promise.reject(new Error('x')); return 1", 1),
    # floods
    "ten thousand calls at once": (
        "const all = await Promise.allSettled(Array.from({length: 10000}, () => ctx.db.query('a')));"
        "return all.filter(r => r.status === 'fulfilled').length",
        32,
    ),
    "log flood": ("for (let i = 0; i < 1e5; i++) ctx.log('line ' + i); return 1", 1),
    "log of a megabyte": ("ctx.log('x'.repeat(1e6), {d: 'y'.repeat(1e6)}); return 1", 1),
    "console flood": ("for (let i = 0; i < 1e5; i++) console.error(i, {a: i}); return 1", 1),
    "progress flood": ("for (let i = 0; i < 1e5; i++) { ctx.progress(i / 1e5, 'x'); if (i % 50 === 0) await ctx.wait(0) } return 1", {1, "TIMEOUT"}),
    "odd progress": ("ctx.progress(NaN); ctx.progress({}); ctx.progress(-5); ctx.progress(1e9); ctx.progress(Infinity); return 1", 1),
    "progress of a symbol": ("await ctx.progress(Symbol())", {"TOOL_ERROR"}),
    "large arguments": ("await ctx.db.query('x'.repeat(3e6))", {"INPUT_TOO_LARGE"}),
    "function as argument": ("await ctx.db.query(() => 1)", {"INVALID_INPUT"}),
    "newlines in every text": ("ctx.log('a\\n{\"t\":\"result\"}\\n1\\n'); return await ctx.db.query('\\n{\"t\":\"result\"}\\n1')",
                               ['\n{"t":"result"}\n1']),
    "lone surrogates": ("return ['\\ud800', '\\udc00x', '\\ud83d\\ude00']", ["\ufffd", "\ufffdx", "😀"]),
    "strings of all kinds": ("return '\\0\\x7f\\u2028\\u2029\\ufeff'", "\0\x7f\u2028\u2029\ufeff"),
}  # fmt: skip

LOADS: dict[str, tuple[str, set[str]]] = {
    "loop at the top": (HEAD + "for (;;);", {"TIMEOUT"}),
    "microtasks at the top": (HEAD + "(async () => { for (;;) await null })();", {"TIMEOUT"}),
    "memory at the top": (HEAD + "const a = []; for (;;) a.push(new Array(1000).fill(1));", MEMORY),
    "ArrayBuffers at the top": (HEAD + "const a = []; for (;;) a.push(new ArrayBuffer(1 << 22));", MEMORY),
    "throw at the top": (HEAD + "throw {get stack() { throw 1 }};", {"INVALID_TOOL"}),
    "throw null at the top": ("throw null;", {"INVALID_TOOL"}),
    "closes the wrapper": ("})(); for (;;); (function () {", {"INVALID_TOOL", "TIMEOUT"}),
    "closes the wrapper and throws": (
        "})(); throw {get stack() { throw 1 }, get message() { throw 1 }}; (function () {",
        {"INVALID_TOOL", "SANDBOX_CRASHED"},
    ),
    "comment opens": (HEAD + "/*", {"INVALID_TOOL"}),
    "template opens": (HEAD + "`${", {"INVALID_TOOL"}),
    "own source name": ("//# sourceURL=/etc/passwd\nthrow new Error('x')", {"INVALID_TOOL"}),
    "nested brackets": ("(" * 50_000, {"INVALID_TOOL", "SANDBOX_CRASHED", "TIMEOUT"}),
    "nested arrays": ("const a = " + "[" * 50_000 + "]" * 50_000, DEAD | {"INVALID_TOOL"}),
    "nested functions": ("(()=>" * 5_000 + "1" + ")" * 5_000, DEAD | {"INVALID_TOOL"}),
    "many awaits": ("await 1;" * 50_000, {"INVALID_TOOL", "TIMEOUT"}),
    "many tokens": ("a+" * 100_000 + "1", DEAD | {"INVALID_TOOL"}),
    "binary": ("\0\x01\x02\x7f" * 1000, {"INVALID_TOOL"}),
    "export of an endless getter": (
        "export const metadata = new Proxy({}, {ownKeys() { for (;;); }});",
        {"TIMEOUT"},
    ),
    "export of a throwing proxy": (
        "export const metadata = new Proxy({}, {ownKeys() { throw 1 }});",
        {"INVALID_TOOL"},
    ),
    "export of a cycle": ("export const metadata = {}; metadata.a = metadata;", {"INVALID_TOOL"}),
    "export of a vast schema": (
        "export const inputSchema = {a: Array.from({length: 1e6}, () => 'xxxxx')};",
        {"INVALID_TOOL"},
    ),
    "huge file": (HEAD + "//" + "x" * 3_000_000, {"INVALID_TOOL"}),
}


TABLES = {"test_hostile_tool": "tool", "test_hostile_file": "file"}


def host_leftovers() -> tuple[int, int]:
    """Open descriptors of this process, and zombies among its children."""
    zombies = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            zombies += state == "Z"
    return len(list(Path("/proc/self/fd").iterdir())), zombies


@dataclass
class Outcome:
    """What a row came to: a value or an error's code, how late it ended, and what it said till then."""

    value: Any
    message: str
    late_s: float
    bench: Bench


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(
    request: pytest.FixtureRequest, shared_sandbox: BubblewrapSandbox
) -> dict[tuple[str, str], Outcome]:
    """The rows that are asked for, by table and name: run a few at a time, as the tools of several
    sessions are, since many only wait for their deadline."""
    found: dict[tuple[str, str], Outcome] = {}
    waiting = [
        (TABLES[item.originalname], str(item.callspec.params["name"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname in TABLES
    ]

    async def work() -> None:
        while waiting:
            table, name = waiting.pop(0)
            found[table, name] = await outcome_of(Bench(shared_sandbox), table, name)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return found


async def outcome_of(bench: Bench, table: str, name: str) -> Outcome:
    text, expected = (ROWS if table == "tool" else LOADS)[name]
    deadline = SHORT_S if isinstance(expected, set) and "TIMEOUT" in expected else DEADLINE_S
    message = ""
    started = time.monotonic()
    try:
        value = await (bench.call if table == "tool" else bench.load)(text, timeout_s=deadline)
    except GuestError as error:
        value, message = error.code, error.message
    return Outcome(value, message, time.monotonic() - started - deadline, bench)


@pytest.mark.parametrize("name", ROWS)
async def test_hostile_tool(outcomes: dict[tuple[str, str], Outcome], name: str) -> None:
    expected, outcome = ROWS[name][1], outcomes["tool", name]
    assert outcome.value in (expected if isinstance(expected, set) else [expected])
    assert len(outcome.message) <= 2000
    assert outcome.late_s < GRACE_S
    assert len(outcome.bench.notes) <= 1101
    assert len(outcome.bench.requests) <= 32


@pytest.mark.parametrize("name", LOADS)
async def test_hostile_file(outcomes: dict[tuple[str, str], Outcome], name: str) -> None:
    outcome = outcomes["file", name]
    assert outcome.value in LOADS[name][1]
    assert outcome.late_s < GRACE_S


async def test_nothing_is_left_after_abuse(bench: Bench) -> None:
    await bench.call("return 1")
    descriptors, _zombies = host_leftovers()
    for body in ("for (;;);", "throw null", "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))"):
        await bench.failure(body, timeout_s=0.3)
    assert await bench.call("return 1") == 1
    after, zombies = host_leftovers()
    # One spare more or less may be standing ready: two descriptors each.
    assert after <= descriptors + 4
    assert zombies == 0


async def test_a_tool_cannot_reach_the_next_guest(bench: Bench) -> None:
    await bench.call("globalThis.mine = 'secret'; Object.prototype.mine = 'secret'; return 1")
    assert await bench.execute(tool("return [globalThis.mine ?? null, ({}).mine ?? null]")) == [None, None]
