# ruff: noqa: E501 - a row of code inside a table reads best on one line
"""Runs of tools in real guests: ctx, results, errors, limits on both sides of their borders."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest, GuestError

from .conftest import HEAD, Bench, Resident, tool

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESULTS: dict[str, tuple[str, Any]] = {
    "nothing": ("", None),
    "undefined": ("return undefined", None),
    "null": ("return null", None),
    "false": ("return false", False),
    "zero": ("return 0", 0),
    "minus zero": ("return -0", 0),
    "empty text": ("return ''", ""),
    "empty array": ("return []", []),
    "empty object": ("return {}", {}),
    "undefined within": ("return {a: undefined, b: [undefined, 1]}", {"a": None, "b": [None, 1]}),
    "holes": ("return [1, , 3]", [1, None, 3]),
    "numbers": ("return [1e21, 1.5, -7, 2 ** 53, 1e-7, 5e-324]", [1e21, 1.5, -7, 2**53, 1e-7, 5e-324]),
    "a date": ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
    "toJSON": ("return {a: {toJSON(key) { return key + '!' }}}", {"a": "a!"}),
    "inherited is left out": ("class A { x = 1; get y() { return 2 } }; return new A()", {"x": 1}),
    "symbol keys are left out": ("return {[Symbol()]: 1, a: 1}", {"a": 1}),
    "own __proto__": ("return JSON.parse('{\"__proto__\": 1}')", {"__proto__": 1}),
    "the same twice is no cycle": ("const a = {b: 1}; return [a, a]", [{"b": 1}, {"b": 1}]),
    "wide text": ("return 'é日本😀\\u0000\\u2028'", "é日本😀\0\u2028"),
    "a promise": ("return Promise.resolve(Promise.resolve(5))", 5),
    "undefined at the end": (
        "return [{a: [1, 'x']}, {a: [undefined], b: undefined}]",
        [{"a": [1, "x"]}, {"a": [None], "b": None}],
    ),
    "toJSON within": (
        "return [{a: 1}, {b: [{toJSON() { return [this.c] }, c: 2}]}]",
        [{"a": 1}, {"b": [[2]]}],
    ),
    "no prototype": (
        "return Object.assign(Object.create(null), {a: [null, true, 'é']})",
        {"a": [None, True, "é"]},
    ),
    "200 levels": ("let a = 1; for (let i = 0; i < 200; i++) a = [a]; return JSON.stringify(a).length", 401),
}

INVALID = {
    "function": ("return {items: [1, {price() {}}]}", "$.items[1].price is a function"),
    "top level function": ("return () => 1", "$ is a function"),
    "symbol": ("return [Symbol('x')]", "$[0] is a symbol"),
    "BigInt": ("return {a: 10n}", "$.a is a BigInt"),
    "NaN": ("return {items: [0, 1, 2, {price: NaN}]}", "$.items[3].price is NaN"),
    "Infinity": ("return -Infinity", "$ is Infinity"),
    "NaN after much that is plain": (
        "return [...Array.from({length: 50}, (_, i) => ({i})), [[NaN]]]",
        "$[50][0][0] is NaN",
    ),
    "cycle": ("const a = {}; a.b = [a]; return a", "$.b[0] is a cycle"),
    "odd key": ("return {'a-b': {'': NaN}}", '$["a-b"][""] is NaN'),
    "201 levels": (
        "let a = 1; for (let i = 0; i < 202; i++) a = [a]; return a",
        "is nested deeper than 200 levels",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
async def test_results_arrive_unchanged(resident: Resident, name: str) -> None:
    body, expected = RESULTS[name]
    assert await resident.call(body) == expected


async def test_a_to_json_on_a_prototype_counts(bench: Bench) -> None:
    body = "Array.prototype.toJSON = function () { return this.length }; return {a: [1, 2]}"
    assert await bench.call(body) == {"a": 2}


async def test_a_getter_that_changes_its_mind_gives_json_all_the_same(bench: Bench) -> None:
    body = "let n = 0; return {get a() { n += 1; return n === 1 ? 1 : n === 2 ? NaN : () => 1 }}"
    try:
        assert await bench.call(body) in ({"a": 1}, {"a": None}, {})
    except GuestError as error:
        assert error.code == "INVALID_RESULT"


@pytest.mark.parametrize("step", range(0, 1_000_000, 125_000))
async def test_buffers_of_any_size_end_in_the_memory_limit(bench: Bench, step: int) -> None:
    """What is left when no other buffer fits decides whether V8 throws, or gives up the process."""
    error = await bench.failure(f"const a = []; for (;;) a.push(new ArrayBuffer({2**20 + step}))")
    assert error.code == "MEMORY_LIMIT"


@pytest.mark.parametrize("name", INVALID)
async def test_invalid_results_name_the_path(resident: Resident, name: str) -> None:
    body, words = INVALID[name]
    error = await resident.failure(body)
    assert error.code == "INVALID_RESULT"
    assert words in error.message


@pytest.mark.parametrize("unit", ["x", "é", "日", "😀", "\\u0001", "\\\\"])
async def test_the_result_limit_is_in_bytes_of_utf8_json(resident: Resident, unit: str) -> None:
    size = len(json.dumps(json.loads(f'"{unit}"'), ensure_ascii=False).encode()) - 2
    fits, rest = divmod(262_144 - 2, size)
    body = "return input.unit.repeat(input.n) + 'y'.repeat(input.rest)"
    argument = {"unit": json.loads(f'"{unit}"'), "n": fits, "rest": rest}
    assert len(await resident.call(body, argument=argument)) >= fits
    error = await resident.failure(body, argument={**argument, "rest": rest + 1})
    assert error.code == "RESULT_TOO_LARGE"


async def test_the_largest_input_arrives(bench: Bench) -> None:
    text = "\x01" * 43_000 + "é" * 2_000
    assert await bench.call("return input.length", argument=text) == 45_000


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": [1.5, "é", None]}])
async def test_input_arrives_unchanged(resident: Resident, value: object) -> None:
    assert await resident.call("return input", argument=value) == value


async def test_ctx_has_what_is_declared_and_nothing_else(resident: Resident) -> None:
    names = "return Object.keys(ctx)"
    always = ["now", "agent", "session", "wait", "log", "progress"]
    assert await resident.call(names, capabilities=()) == always
    for name in ("db", "images", "files", "llm", "camera", "conversation"):
        assert await resident.call(names, capabilities=(name,)) == [*always, name]


async def test_ctx_is_frozen_all_through(bench: Bench) -> None:
    body = (
        "const open = []; const walk = (v, p) => { if (v === null || (typeof v !== 'object' && typeof v !== 'function'))"
        " return; if (!Object.isFrozen(v)) open.push(p); for (const k of Object.keys(v)) walk(v[k], p + '.' + k) };"
        "walk(ctx, 'ctx'); return open"
    )
    assert await bench.call(body) == []


async def test_values_of_ctx(bench: Bench) -> None:
    got = await bench.call(
        "return [ctx.now, ctx.agent, ctx.session, ctx.conversation.recentTurns, ctx.camera.frame, ctx.camera.status]"
    )
    assert got == [
        "2026-12-01T00:00:00Z",
        {"id": "a", "name": "Agent"},
        {"id": "s", "mode": "demo"},
        [{"role": "user", "text": "hi", "at": "2026-12-01T00:00:00Z"}],
        None,
        {"state": "none", "ageMs": None, "reason": "no camera"},
    ]


async def test_every_method_reaches_the_handler_with_its_arguments(bench: Bench) -> None:
    await bench.call(
        "await ctx.db.query('c', 'select ?', [1, undefined, {a: undefined}]); await ctx.db.execute('c', 'x', {a: 1});"
        "await ctx.images.open('p', 'a.jpg'); await ctx.files.readText('n', 'a'); await ctx.files.writeText('n', 'a', 'é');"
        "await ctx.files.list('n'); await ctx.llm.generate({prompt: 'p', images: [null], schema: undefined})"
    )
    assert [(r.method, json.loads(r.args_json)) for r in bench.requests] == [
        ("db.query", ["c", "select ?", [1, None, {}]]),
        ("db.execute", ["c", "x", {"a": 1}]),
        ("images.open", ["p", "a.jpg"]),
        ("files.readText", ["n", "a"]),
        ("files.writeText", ["n", "a", "é"]),
        ("files.list", ["n"]),
        ("llm.generate", [{"prompt": "p", "images": [None]}]),
    ]


async def test_a_capability_error_is_an_error_with_a_code(bench: Bench) -> None:
    async def denied(_request: CapabilityRequest) -> CapabilityReply:
        return CapabilityReply(False, code="NOT_FOUND", message="There is no photo of that name.")

    body = "try { await ctx.images.open('p', 'x') } catch (e) { return [e instanceof Error, e.code, e.message, e.name] }"
    assert await bench.call(body, handler=denied) == [
        *(True, "NOT_FOUND", "There is no photo of that name.", "Error"),
    ]
    error = await bench.failure("\n  await ctx.images.open('p', 'x')", handler=denied)
    assert (error.code, error.message) == ("NOT_FOUND", "There is no photo of that name.")
    assert error.line == 4


async def test_a_failing_handler_becomes_a_reply(bench: Bench) -> None:
    async def broken(_request: CapabilityRequest) -> CapabilityReply:
        raise ZeroDivisionError("host detail")

    error = await bench.failure("await ctx.db.query('a')", handler=broken)
    assert error.code == "TOOL_ERROR"
    assert "host detail" not in error.message


@pytest.mark.parametrize("calls", [32, 33])
async def test_the_thirty_third_call_is_refused(bench: Bench, calls: int) -> None:
    body = f"let n = 0; for (let i = 0; i < {calls}; i++) {{ await ctx.db.query('a'); n++ }} return n"
    if calls == 32:
        assert await bench.call(body) == 32
    else:
        assert (await bench.failure(body)).code == "CAPABILITY_LIMIT"
    assert len(bench.requests) == 32


async def test_eight_at_once_and_the_ninth_waits(bench: Bench) -> None:
    running = most = 0
    full = asyncio.Event()
    release = asyncio.Event()

    async def counting(_request: CapabilityRequest) -> CapabilityReply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 8:
            full.set()
        await release.wait()
        running -= 1
        return CapabilityReply(True, value_json="1")

    call = asyncio.create_task(
        bench.call(
            "return (await Promise.all(Array.from({length: 20}, () => ctx.db.query('a')))).length",
            handler=counting,
        )
    )
    await asyncio.wait_for(full.wait(), 5)
    release.set()
    assert await call == 20
    assert most == 8


async def test_logs_are_cut_at_a_hundred_lines(bench: Bench) -> None:
    await bench.call("for (let i = 0; i < 101; i++) ctx.log('line ' + i)")
    assert len(bench.lines) == 101
    assert bench.lines[99] == "line 99"
    assert "truncated" in bench.lines[100]


async def test_a_hundred_lines_are_not_cut(bench: Bench) -> None:
    await bench.call("for (let i = 0; i < 100; i++) console.info('line ' + i)")
    assert bench.lines == [f"line {i}" for i in range(100)]


@pytest.mark.parametrize(("size", "cut"), [(16_384, False), (16_385, True)])
async def test_logs_are_cut_at_sixteen_kibibytes(bench: Bench, size: int, cut: bool) -> None:
    await bench.call("ctx.log('é'.repeat(input >> 1) + 'x'.repeat(input & 1))", argument=size)
    assert [len(line) < 100 for line in bench.lines] == [cut]


async def test_log_levels_and_data(bench: Bench) -> None:
    await bench.call(
        "console.log('a', 1, {b: [2]}, null, undefined); console.info('i'); console.warn('w'); console.error(new TypeError('e'));"
        "console.debug('d'); ctx.log('m', {x: 1}); ctx.log('f', () => 1); ctx.log({o: 1})"
    )
    assert [(n.level, n.text, n.data_json) for n in bench.notes] == [
        ("info", 'a 1 {"b":[2]} null undefined', None),
        ("info", "i", None),
        ("warn", "w", None),
        ("error", "TypeError: e", None),
        ("debug", "d", None),
        ("info", "m", '{"x":1}'),
        ("info", "f", '"() => 1"'),
        ("info", '{"o":1}', None),
    ]


async def test_progress_is_clamped_and_carries_words(bench: Bench) -> None:
    await bench.call("for (const f of [-1, 0.25, 2]) { await ctx.progress(f, 'at ' + f); await ctx.wait(0) }")
    assert [(n.fraction, n.text) for n in bench.notes] == [(0.0, "at -1"), (0.25, "at 0.25"), (1.0, "at 2")]


async def test_a_call_after_the_return_is_refused_and_heard_by_nobody(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    try:
        source = (
            f"{HEAD} let old;\nexport async function execute(ctx, input) {{ if (input === 1) {{ old = ctx;"
            "setTimeout(() => ctx.log('late'), 1); queueMicrotask(() => ctx.db.query('late').catch(() => 0)); return 1 }"
            "ctx.log('now'); old.log('old'); try { await old.db.query('old') } catch (e) { return e.code } }"
        )
        await guest.load(source.encode(), "t.tool.js", timeout_s=5)
        assert await bench.run(guest, 1, run_id="one") == 1
        heard = len(bench.requests)
        assert await bench.run(guest, 2, run_id="two") == "CAPABILITY_DENIED"
        assert bench.lines == ["now"]
        assert len(bench.requests) == heard
    finally:
        await guest.kill()


async def test_a_guest_keeps_its_module_between_runs(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    try:
        source = f"{HEAD} let n = 0;\nexport const execute = () => {{ n += 1; if (n === 2) throw new Error('two'); return n }};"
        await guest.load(source.encode(), "t.tool.js", timeout_s=5)
        assert await bench.run(guest) == 1
        with pytest.raises(GuestError, match="two"):
            await bench.run(guest)
        assert await bench.run(guest) == 3
    finally:
        await guest.kill()


async def test_runs_of_one_guest_take_turns(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    try:
        await guest.load(
            tool("const a = await ctx.db.query(input); await ctx.wait(5); return a[0]"),
            "t.tool.js",
            timeout_s=5,
        )
        got = await asyncio.gather(*(bench.run(guest, i, run_id=f"r{i}") for i in range(5)))
        assert got == [0, 1, 2, 3, 4]
    finally:
        await guest.kill()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("throw new Error('boom')", "boom"),
        ("throw new TypeError('boom')", "TypeError: boom"),
        ("throw 'text'", "text"),
        ("throw {a: 1}", '{"a":1}'),
        ("throw new Error('')", "Error"),
        ("throw Object.assign(new Error('x'), {name: 'Own'})", "Own: x"),
        ("return Promise.reject(new Error('later'))", "later"),
        ("null.x", "TypeError: Cannot read properties of null (reading 'x')"),
    ],
)
async def test_what_a_tool_throws_is_told(bench: Bench, body: str, message: str) -> None:
    error = await bench.failure(body)
    assert (error.code, error.message) == ("TOOL_ERROR", message)


@pytest.mark.parametrize(
    "body",
    [
        "const a = []; for (;;) a.push(new Array(1000).fill(1.5))",
        "const a = []; for (;;) { a.push(new Array(1000).fill(1.5)); await null }",
        "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
        "const a = []; for (let i = 0;; i++) a.push(('x' + i).repeat(1000))",
        "const a = []; for (;;) try { for (;;) a.push(new Array(1e4).fill(1)) } catch {}",
        "await ctx.wait(1); const a = []; for (;;) a.push({})",
        "const m = new Map(); for (let i = 0;; i++) m.set({}, {})",
    ],
)
async def test_too_much_memory_is_named_so(bench: Bench, body: str) -> None:
    error = await bench.failure(body, timeout_s=20)
    assert error.code == "MEMORY_LIMIT"


async def test_a_tool_may_use_what_memory_it_has(bench: Bench) -> None:
    body = (
        "const a = []; for (let i = 0; i < 60; i++) a.push(new Uint8Array(1 << 20).fill(i)); return a.length"
    )
    assert await bench.call(body) == 60
    body = "const a = []; for (let i = 0; i < 1e6; i++) a.push({i}); return a.length"
    assert await bench.call(body, timeout_s=20) == 1_000_000
