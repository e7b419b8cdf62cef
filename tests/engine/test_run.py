"""Runs through the whole engine: input, context, deadlines, cancelling, outcomes, events."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_agent.engine.broker.limits import MAX_JSON_BYTES
from edge_agent.engine.engine import EngineSession
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import CameraSnapshot, GenerateReply, GenerateRequest
from edge_agent.engine.run_input import for_log, least_size
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.events import (
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
)
from edge_agent.home import Home
from tests.engine.workshop import FRAME, TURN, Camera, Models, Workshop, host, source

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANY = '{ value: {}, more: { type: "string" } }'
CATALOG = 'export const capabilities = { databases: { c: { path: "databases/c.sqlite", mode: "read" } } };'
SLOW_SQL = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS c FROM n WHERE i < 0"
)


def error_of(outcome: ToolOutcome) -> ErrorInfo:
    assert outcome.error is not None, outcome.value
    assert outcome.value is None
    return outcome.error


def quick(timeout_ms: int) -> str:
    return f"export const timeoutMs = {timeout_ms};"


# -- input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", [0, 1])
async def test_the_input_limit_is_exact_in_bytes_of_utf8(shop: Workshop, over: int) -> None:
    room = MAX_JSON_BYTES - len(json.dumps({"value": ""}, separators=(",", ":")))
    text = "é" * (room // 2) + "x" * (room % 2 + over)
    outcome = await shop.outcome(source("return input.value.length;", schema=ANY), {"value": text})
    if over:
        assert error_of(outcome).code == "INPUT_TOO_LARGE"
        assert "262,145 bytes" in error_of(outcome).message
    else:
        assert outcome.value == len(text)


async def test_many_small_objects_up_to_the_limit_pass(shop: Workshop) -> None:
    value: Any = [{"a": 1}] * ((MAX_JSON_BYTES - len('{"value":[]}') + 1) // len('{"a":1},'))
    assert len(json.dumps({"value": value}, separators=(",", ":"))) > MAX_JSON_BYTES - 8
    outcome = await shop.outcome(source("return input.value.length;", schema=ANY), {"value": value})
    assert outcome.value == len(value)


async def test_an_input_of_any_size_is_refused_at_once_and_not_logged(shop: Workshop) -> None:
    outcome = await shop.outcome(source(schema=ANY), {"value": ["x" * 1000] * 20_000})
    assert error_of(outcome).code == "INPUT_TOO_LARGE"
    assert shop.bodies(ToolStarted)[0].input == "(too large to be shown)"


async def test_every_property_that_is_wrong_is_named(shop: Workshop) -> None:
    schema = (
        '{ colour: { enum: ["red", "blue"] }, limit: { type: "integer", maximum: 5 },'
        ' deep: { properties: { x: { type: "array", items: { type: "string" } } } } }'
    )
    given_value = {"colour": "green", "limit": 9, "deep": {"x": ["a", 1]}, "colr": 1}
    error = error_of(await shop.outcome(source(schema=schema), given_value))
    assert error.code == "INVALID_INPUT"
    for words in ("$.colour: ", '"red"', "$.limit: ", "5", "$.deep.x[1]: ", "string", "'colr'", "'colour'"):
        assert words in error.message


@pytest.mark.parametrize(
    "value", [None, [], "x", 5, float("nan"), {"value": float("inf")}, {"value": "\ud800"}]
)
async def test_what_is_no_object_of_json_is_an_invalid_input(shop: Workshop, value: Any) -> None:
    tool_id = shop.write_enabled("a-tool", source(schema=ANY))
    async with shop.session() as session:
        assert error_of(await session.call(tool_id, value, parent=TURN)).code == "INVALID_INPUT"


@pytest.mark.parametrize(("depth", "code"), [(198, None), (201, "INVALID_INPUT"), (900, "INVALID_INPUT")])
async def test_nesting_of_the_input_is_bounded(shop: Workshop, depth: int, code: str | None) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    outcome = await shop.outcome(source("return 1;", schema=ANY), {"value": value})
    assert (outcome.error.code if outcome.error else None) == code


async def test_a_hostile_pattern_cannot_stall_the_host(shop: Workshop) -> None:
    schema = '{ value: { type: "string", pattern: "^(a+)+$" } }'
    text = "a" * 100_000 + "!"
    began = time.monotonic()
    assert error_of(await shop.outcome(source(schema=schema), {"value": text})).code == "INVALID_INPUT"
    assert time.monotonic() - began < 3


# -- context ----------------------------------------------------------------------------------------


async def test_what_every_tool_sees(shop: Workshop) -> None:
    value: Any = (
        await shop.outcome(source("return [ctx.now, ctx.agent, ctx.session, Object.keys(ctx).sort()];"))
    ).value
    now, agent, session, members = value
    assert now.endswith("Z")
    assert (agent, session) == ({"id": "desk", "name": "Desk"}, {"id": "s-1", "mode": "demo"})
    assert members == ["agent", "log", "now", "progress", "session", "wait"]


async def test_the_snapshot_is_taken_at_the_start_and_the_log_names_it(shop: Workshop) -> None:
    camera = Camera()
    text = source(
        "await ctx.wait(50); return [ctx.camera.frame, ctx.camera.status];",
        exports="export const capabilities = { camera: true };",
    )
    value: Any = (await shop.outcome(text, given=host(camera=camera))).value
    assert value[0]["kind"] == "image"
    assert value[0]["ageMs"] == 90
    assert value[1] == {"state": "fresh", "ageMs": 90, "reason": "live"}
    assert shop.bodies(ToolStarted)[0].frame == FRAME
    camera.now = CameraSnapshot("stale", "no frame for 20 s", 20_000.0, None, None)
    value = (await shop.outcome(text, given=host(camera=camera))).value
    assert value == [None, {"state": "stale", "ageMs": 20_000, "reason": "no frame for 20 s"}]
    assert shop.bodies(ToolStarted)[1].frame is None


async def test_one_sessions_words_never_reach_another(shop: Workshop) -> None:
    text = source(
        "kept.push(...ctx.conversation.recentTurns.map((t) => t.text)); return kept;",
        before="const kept = [];",
        exports="export const capabilities = { conversation: true };",
    )
    tool_id = shop.write_enabled("a-tool", text)
    async with (
        shop.session(host(session="one", said=["my secret"])) as one,
        shop.session(host(session="two", said=["hello"])) as two,
    ):
        seen = [(await session.call(tool_id, {}, parent=TURN)).value for session in (one, two, one, two)]
    assert seen == [["my secret"], ["hello"], ["my secret"] * 2, ["hello"] * 2]


# -- outcomes ---------------------------------------------------------------------------------------

FALSY = ["null", "false", "0", '""', "[]", "{}"]


@pytest.mark.parametrize("text", FALSY)
async def test_falsy_values_arrive_unchanged(shop: Workshop, text: str) -> None:
    outcome = await shop.outcome(source(f"return {text};"))
    assert outcome == ToolOutcome(value=json.loads(text))
    assert outcome.ok


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("throw new Error('no luck');", "TOOL_ERROR", "no luck"),
        ("return { items: [0, { price: NaN }] };", "INVALID_RESULT", "$.items[1].price"),
        ("return { big: 10n };", "INVALID_RESULT", "$.big"),
        ("const a = {}; a.a = a; return a;", "INVALID_RESULT", "$.a"),
        ("return 'x'.repeat(262143);", "RESULT_TOO_LARGE", "262,144"),
        ("const a = []; for (;;) a.push(new Array(1e5).fill(a.length));", "MEMORY_LIMIT", "memory"),
        ("for (;;);", "TIMEOUT", "600 ms"),
        ("while (true) await null;", "TIMEOUT", "600 ms"),
        ("await new Promise(() => {});", "TIMEOUT", "600 ms"),
        ("await ctx.wait(60000);", "TIMEOUT", "600 ms"),
    ],
)
async def test_each_way_to_fail_is_a_value_and_the_next_call_works(
    shop: Workshop, body: str, code: str, words: str
) -> None:
    ms = 20_000 if code == "MEMORY_LIMIT" else 600
    tool_id = shop.write_enabled(
        "a-tool", source(f"if (input.value) return 'fine';\n{body}", schema=ANY, exports=quick(ms))
    )
    async with shop.session() as session:
        error = error_of(await session.call(tool_id, {}, parent=TURN))
        assert (error.code, words in error.message) == (code, True)
        assert (await session.call(tool_id, {"value": 1}, parent=TURN)).value == "fine"


async def test_an_error_has_the_place_in_the_authors_file(shop: Workshop) -> None:
    outcome = await shop.outcome(source("const a = undefined;\n  return a.b;"))
    shown = outcome.for_model()
    assert isinstance(shown, dict)
    assert shown["error"]["code"] == "TOOL_ERROR"
    assert shown["error"]["at"] == {"line": 7, "column": 12}


async def test_a_result_of_exactly_the_limit_passes(shop: Workshop) -> None:
    assert (await shop.outcome(source("return 'x'.repeat(262142);"))).value == "x" * 262_142


async def test_a_fault_of_the_host_is_an_outcome_too(shop: Workshop) -> None:
    camera = Camera(failure=RuntimeError("the driver is gone"))
    text = source(exports="export const capabilities = { camera: true };")
    outcome = await shop.outcome(text, given=host(camera=camera))
    assert error_of(outcome).code == "TOOL_ERROR"
    assert "RuntimeError" in error_of(outcome).message
    assert [body.ok for body in shop.bodies(ToolFinished)] == [False]


async def test_a_sandbox_that_went_away_is_an_outcome(shop: Workshop) -> None:
    sandbox = BubblewrapSandbox()
    other = Workshop.make(Home(shop.home.root.with_name("other")), sandbox)
    tool_id = other.write_enabled("a-tool", source())
    async with other.session() as session:
        await sandbox.aclose()
        assert error_of(await session.call(tool_id, {}, parent=TURN)).code == "SANDBOX_UNAVAILABLE"


async def test_a_capability_that_is_not_declared_is_absent(shop: Workshop) -> None:
    value = (await shop.outcome(source("return [typeof ctx.db, typeof ctx.llm, typeof ctx.files];"))).value
    assert value == ["undefined"] * 3


# -- deadlines and cancelling -------------------------------------------------------------------------


class _Stuck(Models):
    """A model that never answers, and a mark that it was asked and let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.called = asyncio.Event()

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        self.called.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.let_go.set()
        raise AssertionError


class _StuckCamera(Camera):
    async def snapshot(self) -> CameraSnapshot:
        await asyncio.Event().wait()
        raise AssertionError


def make_catalog(shop: Workshop) -> None:
    with contextlib.closing(sqlite3.connect(shop.agent.databases / "c.sqlite")) as made, made:
        made.execute("CREATE TABLE products(name TEXT)")
        made.executemany("INSERT INTO products VALUES (?)", [("Blue coat",), ("Red hat",), ("coat rack",)])


MODEL = "export const capabilities = { llm: { models: ['default'] } };"


async def test_the_deadline_covers_a_model_call(shop: Workshop) -> None:
    models = _Stuck()
    text = source("return ctx.llm.generate({ prompt: 'x' });", exports=MODEL + quick(400))
    began = time.monotonic()
    assert error_of(await shop.outcome(text, given=host(models=models))).code == "TIMEOUT"
    assert models.let_go.is_set()
    assert time.monotonic() - began < 3
    [finished] = shop.bodies(CapabilityFinished)
    assert finished.error is not None
    assert finished.error.code == "CANCELLED"


async def test_the_deadline_covers_the_camera(shop: Workshop) -> None:
    text = source(exports="export const capabilities = { camera: true };" + quick(300))
    assert error_of(await shop.outcome(text, given=host(camera=_StuckCamera()))).code == "TIMEOUT"
    assert len(shop.bodies(ToolStarted)) == 1


async def test_the_deadline_covers_sql_in_native_code(shop: Workshop) -> None:
    make_catalog(shop)
    text = source(f"return ctx.db.query('c', `{SLOW_SQL}`);", exports=CATALOG + quick(900))
    began = time.monotonic()
    assert error_of(await shop.outcome(text)).code == "TIMEOUT"
    assert time.monotonic() - began < 4
    after = source(
        "return (await ctx.db.query('c', 'SELECT count(*) AS n FROM products')).rows;", exports=CATALOG
    )
    assert (await shop.outcome(after)).value == [{"n": 3}]


@pytest.mark.parametrize(
    "body", ["for (;;);", "await ctx.wait(1e8);", "await ctx.llm.generate({ prompt: 'x' });"]
)
async def test_cancelling_ends_the_run_and_is_told(shop: Workshop, body: str) -> None:
    models = _Stuck()
    text = source(
        f"ctx.progress(0.5);\nawait ctx.log('begun');\nif (input.value) return 1;\n{body}",
        schema=ANY,
        exports=MODEL,
    )
    tool_id = shop.write_enabled("a-tool", text)
    async with shop.session(host(models=models)) as session:
        task = asyncio.ensure_future(session.call(tool_id, {}, parent=TURN))
        await shop.told(ToolStarted)
        if "llm" in body:
            await asyncio.wait_for(models.called.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [finished] = shop.bodies(ToolFinished)
        assert finished.error is not None
        assert finished.error.code == "CANCELLED"
        assert models.let_go.is_set() == models.called.is_set()
        assert (await session.call(tool_id, {"value": 1}, parent=TURN)).value == 1


async def test_a_call_that_is_cancelled_while_it_waits_is_told_too(shop: Workshop) -> None:
    models = _Stuck()
    tool_id = shop.write_enabled("a-tool", source("return ctx.llm.generate({ prompt: 'x' });", exports=MODEL))
    async with shop.session(host(models=models)) as session:
        first = asyncio.ensure_future(session.call(tool_id, {}, call_id="first", parent=TURN))
        await asyncio.wait_for(models.called.wait(), 10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.call(tool_id, {}, call_id="second", parent=TURN), 0.3)
        assert [body.call_id for body in shop.bodies(ToolStarted)] == ["first", "second"]
        assert [body.error.code for body in shop.bodies(ToolFinished) if body.error] == ["CANCELLED"]
        first.cancel()
        await asyncio.wait([first])


# -- events -----------------------------------------------------------------------------------------


async def test_a_run_is_told_in_order_under_its_parents(shop: Workshop) -> None:
    make_catalog(shop)
    text = source(
        "await ctx.log('searching', { for: input.value }); ctx.progress(0.5, 'half');"
        "const found = await ctx.db.query('c', 'SELECT name FROM products WHERE name LIKE ?', [input.value]);"
        "console.warn('done'); return found.rowCount;",
        schema=ANY,
        exports=CATALOG,
    )
    tool_id = shop.write_enabled("a-tool", text)
    async with shop.session() as session:
        await session.call(tool_id, {"value": "%coat%"}, call_id="call-7", parent=TURN)
    kinds = [type(event.body) for event in shop.events]
    assert kinds[0] is ToolStarted
    assert kinds[-1] is ToolFinished
    assert sorted(kind.__name__ for kind in kinds[1:-1]) == [
        "CapabilityFinished",
        "CapabilityStarted",
        "ToolLogged",
        "ToolLogged",
        "ToolProgressed",
    ]
    run = shop.events[0].span
    for event in shop.events:
        capability = isinstance(event.body, CapabilityStarted | CapabilityFinished)
        assert event.parent == (run if capability else TURN)
        assert (event.span == run) != capability
    [started], [finished] = shop.bodies(ToolStarted), shop.bodies(ToolFinished)
    assert (started.call_id, started.tool, started.input) == ("call-7", tool_id, {"value": "%coat%"})
    assert (finished.ok, finished.result, finished.ms > 0) == (True, 2, True)
    logged = [(body.level, body.text, body.data) for body in shop.bodies(ToolLogged)]
    assert logged == [("info", "searching", {"for": "%coat%"}), ("warn", "done", None)]
    assert shop.bodies(ToolProgressed) == [ToolProgressed(fraction=0.5, message="half")]


async def test_no_escape_sequence_reaches_an_event(shop: Workshop) -> None:
    await shop.outcome(source("await ctx.log('\\u001b[2Jx\\u202e'); throw new Error('\\u009b31m y');"))
    shown = json.dumps([repr(event.body) for event in shop.events])
    assert "x1b" not in shown
    assert "202e" not in shown
    assert "x9b" not in shown


# -- any JSON ---------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    # Beyond 2^53 JavaScript prints a number's shortest digits, which as an integer are another number.
    | st.floats(-(2**53), 2**53)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def echo(
    engine_sandbox: BubblewrapSandbox, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EngineSession]:
    shop = Workshop.make(Home(tmp_path_factory.mktemp("echo") / "home"), engine_sandbox)
    shop.write_enabled("echo", source("return input.value;", schema=ANY))
    async with shop.session() as session:
        yield session
    await shop.engine.aclose()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=JSON)
async def test_any_json_goes_through_a_tool_unchanged(echo: EngineSession, value: Any) -> None:
    outcome = await echo.call("echo", {"value": value}, parent=TURN)
    assert outcome == ToolOutcome(value=value)


@given(value=JSON)
async def test_the_quick_measure_never_says_too_much(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert least_size(value) <= len(text.encode())
    assert for_log(value) == value


async def test_the_quick_measure_stops_early() -> None:
    wide: Any = ["x" * 300_000] + [[]] * 5_000_000
    gc.collect()
    began = time.process_time()
    assert least_size(wide) > MAX_JSON_BYTES
    assert time.process_time() - began < 1
