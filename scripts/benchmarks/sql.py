"""Database calls in killable processes, against plain sqlite3 in this process, in the same run.

Every figure is of real workers in real Bubblewrap on a catalog-like database with a full-text index. A
killed operation is one C call of several seconds, which SQLite's own interrupt cannot end in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from device.clock import SystemClock
from edge_agent.cli.catalog_search import BareHost
from edge_agent.engine.broker.sql_pool import SqlOperation, SqlPool
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.ports import EngineHost, SessionIdentity
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import StyleEyesError
from edge_agent.events import Spine
from edge_agent.home import AgentFolder, Home

Figure = dict[str, Any]

_SEARCH = """SELECT products.name, price FROM words JOIN products ON products.id = words.rowid
    WHERE words MATCH ? ORDER BY rank LIMIT 5"""
_NATIVE = "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')"
_TOOL = f"""
export const schemaVersion = "worldagents.tool.v1";
export const metadata = {{ title: "Look up", description: "One statement" }};
export const inputSchema = {{
  type: "object", properties: {{ words: {{ type: "string" }} }}, additionalProperties: false,
}};
export const capabilities = {{ databases: {{ c: {{ path: "databases/catalog.sqlite", mode: "read" }} }} }};
export async function execute(ctx, input) {{
  return (await ctx.db.query("c", `{_SEARCH}`, [input.words])).rows;
}}
"""
_WARM_CALLS = 400
_KILLS = 12
_DEADLINE_S = 0.1


def measure() -> dict[str, Figure]:
    """Flat figures `sql.…`; a value is None with a reason where Bubblewrap cannot start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite"
        _make_catalog(path)
        try:
            return asyncio.run(_measure(path)) | asyncio.run(_tool_call(path))
        except StyleEyesError as error:
            return {
                "sql.overhead_p50": {
                    "value": None,
                    "unit": "ms",
                    "aim": 1.0,
                    "ok": False,
                    "reason": str(error),
                }
            }


def _make_catalog(path: Path) -> None:
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE products(id INTEGER PRIMARY KEY, name TEXT, price REAL, description TEXT)")
    made.execute("CREATE VIRTUAL TABLE words USING fts5(name, description)")
    colours, kinds = ("red", "blue", "green", "black"), ("jacket", "coat", "tee", "hoodie", "jersey")
    for number in range(2000):
        name = f"{colours[number % 4]} {kinds[number % 5]} {number}"
        text = f"A {name} for walking, number {number}, with pockets and a collar."
        made.execute("INSERT INTO products VALUES (?, ?, ?, ?)", (number, name, number / 10, text))
        made.execute("INSERT INTO words(rowid, name, description) VALUES (?, ?, ?)", (number, name, text))
    made.commit()
    made.close()


async def _measure(path: Path) -> dict[str, Figure]:
    pool = SqlPool()
    try:
        search = SqlOperation("query", path.parent.resolve(), path.name, False, _SEARCH, ["jacket AND red"])
        began = time.perf_counter()
        await pool.run(search)
        first = time.perf_counter() - began
        warm, plain = await _warm(pool, search, path)
        memory = _private_memory()
        late, replaced = await _kills(pool, search)
    finally:
        await pool.aclose()
    overhead = statistics.median(warm) - statistics.median(plain)
    return {
        "sql.overhead_p50": _figure(overhead, 1.0, peer=statistics.median(plain)),
        "sql.warm_p50": _figure(statistics.median(warm), None),
        "sql.warm_p99": _figure(_high(warm), None),
        "sql.cold_first": _figure(first, None),
        "sql.kill_late_p50": _figure(statistics.median(late), 25.0),
        "sql.kill_late_max": _figure(max(late), 25.0),
        "sql.replaced_first_p50": _figure(statistics.median(replaced), None),
        "sql.worker_private": {
            "value": None if memory is None else round(memory / 2**20, 2),
            "unit": "MB",
            "aim": 8.0,
            "ok": memory is not None and memory <= 8 * 2**20,
        },
    }


async def _warm(pool: SqlPool, search: SqlOperation, path: Path) -> tuple[list[float], list[float]]:
    """Seconds a call through the pool and in this process, taken in turn so that load is shared."""
    connection = sqlite3.connect(path)
    warm, plain = [], []
    for _ in range(_WARM_CALLS):
        began = time.perf_counter()
        through = json.loads((await pool.run(search)).value_json)["rows"]
        between = time.perf_counter()
        found = connection.execute(_SEARCH, ["jacket AND red"]).fetchall()
        json.dumps([{"name": name, "price": price} for name, price in found])
        ended = time.perf_counter()
        if [tuple(row.values()) for row in through] != found:
            raise AssertionError("the two ways gave different rows")
        warm.append(between - began)
        plain.append(ended - between)
    connection.close()
    return warm, plain


async def _tool_call(path: Path) -> dict[str, Figure]:
    """A session's whole warm call of a tool that runs one statement, with all its events, beyond what
    the statement costs in this process."""
    clock, ports = SystemClock(), BareHost()
    home = Home(path.parent)
    agent = AgentFolder(home.root / "agents" / "bench")
    agent.tools.mkdir(parents=True)
    agent.databases.mkdir()
    shutil.copyfile(path, agent.catalog)
    (agent.tools / "look-up.tool.js").write_text(_TOOL)
    agent.config.write_text(json.dumps({"id": agent.id, "name": "Bench", "tools": ["look_up"]}))
    sandbox = BubblewrapSandbox()
    engine = ToolEngine(home, sandbox, Spine(clock), clock)
    over: list[float] = []
    try:
        host = EngineHost(SessionIdentity("s", "demo", agent.id, "Bench"), ports, ports, ports)
        session = await engine.open_session(agent, host)
        await session.warm()
        with contextlib.closing(sqlite3.connect(agent.catalog)) as plain:
            for _ in range(_WARM_CALLS):
                began = time.perf_counter()
                outcome = await session.call("look_up", {"words": "jacket AND red"}, parent="bench")
                between = time.perf_counter()
                found = plain.execute(_SEARCH, ["jacket AND red"]).fetchall()
                over.append(2 * between - began - time.perf_counter())
                if outcome.value != [{"name": name, "price": price} for name, price in found]:
                    raise AssertionError("the tool gave something else")
        await session.aclose()
    finally:
        await engine.aclose()
        await sandbox.aclose()
    return {
        "sql.tool_call_over_sql_p50": _figure(statistics.median(over), 3.0),
        "sql.tool_call_over_sql_p99": _figure(_high(over), None),
    }


async def _kills(pool: SqlPool, search: SqlOperation) -> tuple[list[float], list[float]]:
    """Seconds from the deadline to the process's death, and of the next call's answer."""
    native = SqlOperation("query", search.folder, search.name, False, _NATIVE)
    late, replaced = [], []
    for _ in range(_KILLS):
        handles = [os.pidfd_open(process.pid) for process in _workers()]
        began = time.perf_counter()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(pool.run(native), _DEADLINE_S)
        select.select(handles, [], [], 10)
        late.append(time.perf_counter() - began - _DEADLINE_S)
        for handle in handles:
            os.close(handle)
        began = time.perf_counter()
        await pool.run(search)
        replaced.append(time.perf_counter() - began)
    return late, replaced


def _workers() -> list[psutil.Process]:
    """The processes at the end of the tree below this one that run the worker script."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if not process.children() and "sql_worker.py" in " ".join(process.cmdline())
    ]


def _private_memory() -> int | None:
    """Bytes that one idle worker has to itself."""
    sizes = [process.memory_full_info().uss for process in _workers()]
    return max(sizes, default=None)


def _high(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _figure(seconds: float, aim_ms: float | None, *, peer: float | None = None) -> Figure:
    value = seconds * 1000
    figure: Figure = {
        "value": round(value, 3),
        "unit": "ms",
        "aim": aim_ms,
        "ok": aim_ms is None or value <= aim_ms,
    }
    return figure if peer is None else {**figure, "peer": {"plain sqlite3": round(peer * 1000, 3)}}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
