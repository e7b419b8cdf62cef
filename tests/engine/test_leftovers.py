"""After the worst that tools and an operator can do, the next call works and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import psutil
import pytest

from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.events import CapabilityStarted, ToolLogged
from edge_agent.home import Home
from tests.engine.workshop import TURN, Workshop, host, source

pytestmark = pytest.mark.asyncio(loop_scope="session")

DATABASE = 'export const capabilities = { databases: { c: { path: "databases/c.sqlite", mode: "read" } } };'
ENDLESS_SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
GRIM = source(
    """switch (input.how) {
  case "hang": for (;;);
  case "eat": { const all = []; for (;;) all.push(new Array(1e5).fill(all.length)); }
  case "sql": return ctx.db.query("c", input.sql);
  case "wait": await ctx.log("waiting"); return ctx.wait(60000);
  default: return "fine";
}""",
    schema="{ how: { type: 'string' }, sql: { type: 'string' }, much: { allOf: "
    "Array(1000).fill({ uniqueItems: true }) } }",
    exports=DATABASE + "export const timeoutMs = 700;",
)


def mine(*, below: bool = False) -> set[int]:
    """Child processes; with `below` theirs too. Another sandbox's launcher may fork spares meanwhile."""
    return {process.pid for process in psutil.Process().children(recursive=below)}


def descriptors() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - the names are all that is wanted
        with contextlib.suppress(OSError):
            found.add(f"{name} → {Path('/proc/self/fd', name).readlink()}")
    return found


async def close(shop: Workshop, sandbox: BubblewrapSandbox) -> None:
    await shop.engine.aclose()
    await sandbox.aclose()


async def test_after_every_kind_of_trouble_no_process_descriptor_or_file_is_left(tmp_path: Path) -> None:
    await asyncio.to_thread(mine)  # the executor's own thread and descriptors are there before counting
    before = mine(), descriptors()
    sandbox = BubblewrapSandbox()
    shop = Workshop.make(Home(tmp_path / "home"), sandbox)
    with contextlib.closing(sqlite3.connect(shop.agent.databases / "c.sqlite")) as made, made:
        made.execute("CREATE TABLE t(a)")
    shop.write("grim", GRIM)
    shop.configure("grim")
    files = set(shop.home.root.rglob("*"))

    async with shop.session() as session:
        codes = []
        for value in (
            {"how": "hang"},
            {"how": "eat"},
            {"how": "sql", "sql": ENDLESS_SQL},
            {"much": list(range(40_000))},
            {"nonsense": 1},
        ):
            outcome = await session.call("grim", value, parent=TURN)
            codes.append(outcome.error.code if outcome.error else None)
            assert (await session.call("grim", {}, parent=TURN)).value == "fine"
        waiting = asyncio.ensure_future(session.call("grim", {"how": "wait"}, parent=TURN))
        await shop.told(ToolLogged)
        waiting.cancel()
        await asyncio.wait([waiting])
    shop.write("hung", source(exports="for (;;);"))
    shop.write("bad", "export")
    page = await shop.engine.catalog(shop.agent)
    assert codes[0] == "TIMEOUT"
    assert codes[1] in ("MEMORY_LIMIT", "TIMEOUT")  # whichever a busy machine reaches first
    assert codes[2:] == ["TIMEOUT", "TIMEOUT", "INVALID_INPUT"]
    assert waiting.cancelled()
    assert {e.source.id for e in page.entries if e.error} == {"hung", "bad"}

    await close(shop, sandbox)
    _, alive = await asyncio.to_thread(psutil.wait_procs, [psutil.Process(p) for p in mine() - before[0]], 5)
    assert alive == []
    assert descriptors() - before[1] == set()
    added = set(shop.home.root.rglob("*")) - files
    assert {path.name for path in added} == {"hung.tool.js", "bad.tool.js"}


async def test_a_launcher_killed_in_the_middle_of_calls_is_replaced(tmp_path: Path) -> None:
    sandbox = BubblewrapSandbox()
    shop = Workshop.make(Home(tmp_path / "home"), sandbox)
    for stem in ("a", "b"):
        shop.write(
            stem,
            source(
                "if (input.go) return 'back'; await ctx.log('in'); return ctx.wait(60000);", schema="{go: {}}"
            ),
        )
    shop.configure("a", "b")
    async with shop.session() as session:
        calls = [asyncio.ensure_future(session.call(tool, {}, parent=TURN)) for tool in "ab"]
        await shop.told(ToolLogged)
        inside = [p for p in psutil.Process().children() if p.name() == "bwrap"]
        assert inside
        for process in inside:
            process.kill()
        outcomes = await asyncio.wait_for(asyncio.gather(*calls), 20)
        assert {outcome.error.code for outcome in outcomes if outcome.error} == {"SANDBOX_CRASHED"}
        again = [await session.call(tool, {"go": 1}, parent=TURN) for tool in "ab"]
        assert [outcome.value for outcome in again] == ["back", "back"]
    await close(shop, sandbox)


async def test_killed_database_processes_are_replaced(shop: Workshop) -> None:
    with contextlib.closing(sqlite3.connect(shop.agent.databases / "c.sqlite")) as made, made:
        made.execute("CREATE TABLE t(a)")
        made.execute("INSERT INTO t VALUES (7)")
    tool_id = shop.write_enabled(
        "a-tool",
        source("return (await ctx.db.query('c', input.sql)).rows;", schema="{sql: {}}", exports=DATABASE),
    )
    elsewhere = mine(below=True)
    async with shop.session() as session:
        assert (await session.call(tool_id, {"sql": "SELECT a FROM t"}, parent=TURN)).value == [{"a": 7}]
        workers = mine(below=True) - elsewhere
        shop.events.clear()
        running = asyncio.ensure_future(session.call(tool_id, {"sql": ENDLESS_SQL}, parent=TURN))
        await shop.told(CapabilityStarted)
        for pid in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        # A read is tried once more by itself: whatever comes of this call, the next one works.
        running.cancel()
        await asyncio.wait([running])
        assert (await session.call(tool_id, {"sql": "SELECT a FROM t"}, parent=TURN)).value == [{"a": 7}]


async def test_sessions_side_by_side_answer_while_one_hangs(shop: Workshop) -> None:
    tool_id = shop.write_enabled(
        "a-tool",
        source(
            "await ctx.log('in'); await ctx.wait(1); if (input.hang) for (;;); return ctx.session.id;",
            schema="{hang: {}}",
        ),
    )
    async with contextlib.AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(shop.session(host(session=f"s{number}"))) for number in range(4)
        ]
        hung = asyncio.ensure_future(sessions[0].call(tool_id, {"hang": True}, parent=TURN))
        await shop.told(ToolLogged)
        others = await asyncio.wait_for(
            asyncio.gather(*(session.call(tool_id, {}, parent=TURN) for session in sessions[1:])), 20
        )
        assert [outcome.value for outcome in others] == ["s1", "s2", "s3"]
        assert not hung.done()
        hung.cancel()
        await asyncio.wait([hung])


async def test_enabling_many_at_once_loses_none(shop: Workshop) -> None:
    ids = [shop.write(f"t{number}", source()) for number in range(6)]
    await asyncio.gather(*(shop.engine.enable(shop.agent, tool_id) for tool_id in ids))
    async with shop.session() as session:
        assert sorted(pin.id for pin in session.pinned) == ids
    await asyncio.gather(*(shop.engine.disable(shop.agent, tool_id) for tool_id in ids[:5]))
    async with shop.session() as session:
        assert [pin.id for pin in session.pinned] == ids[5:]
