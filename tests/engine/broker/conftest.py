"""One agent's data folder, a pool of real workers, and brokers over both."""

from __future__ import annotations

import functools
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from device.clock import SystemClock
from edge_agent.engine.broker.broker import Broker
from edge_agent.engine.broker.capabilities import parse_capabilities
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.sandbox import bubblewrap
from edge_agent.engine.sandbox.child import complaint
from edge_agent.events import Event, Spine
from edge_agent.json_types import JsonValue
from tests.engine.broker.world import ALL, MakeRun, Models, Run, make_host, picture


@functools.lru_cache(maxsize=1)
def _no_bubblewrap() -> str | None:
    if shutil.which("bwrap") is None:
        return "Bubblewrap is not installed"
    words = complaint(bubblewrap.RootSpec())
    return f"Bubblewrap cannot start here: {words.strip()}" if words else None


@pytest.fixture
def needs_bubblewrap() -> None:
    """Skips where Bubblewrap cannot start, and says why."""
    reason = _no_bubblewrap()
    if reason:
        pytest.skip(reason)


@pytest.fixture
async def pool(needs_bubblewrap: None) -> AsyncIterator[SqlPool]:
    """Workers in real Bubblewrap."""
    made = SqlPool()
    yield made
    await made.aclose()


@pytest.fixture(params=["bubblewrap", "process"])
async def any_pool(request: pytest.FixtureRequest) -> AsyncIterator[SqlPool]:
    """Workers in Bubblewrap, and the same beside the app, as in WORLDAGENTS_TOOL_SANDBOX=process."""
    sandboxed = request.param == "bubblewrap"
    reason = _no_bubblewrap() if sandboxed else None
    if reason:
        pytest.skip(reason)
    made = SqlPool(sandboxed=sandboxed)
    yield made
    await made.aclose()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An agent's data folder: two databases, a photo, a text file, a secret outside."""
    folder = tmp_path / "agent" / "data"
    for name in ("databases", "photos/deep", "diary", "guide", "tools"):
        (folder / name).mkdir(parents=True)
    with sqlite3.connect(folder / "databases" / "catalog.sqlite") as made:
        made.execute("CREATE TABLE products(id INTEGER PRIMARY KEY, name TEXT)")
        made.executemany("INSERT INTO products(name) VALUES (?)", [(f"coat {n}",) for n in range(100)])
        made.execute("CREATE VIRTUAL TABLE words USING fts5(name)")
        made.execute("INSERT INTO words(name) SELECT name FROM products")
    made.close()
    with sqlite3.connect(folder / "databases" / "notes.sqlite") as made:
        made.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
    made.close()
    (folder / "photos" / "coat.jpg").write_bytes(picture(64, 48))
    (folder / "photos" / "deep" / "coat.png").write_bytes(picture(10, 20, ".png"))
    (folder / "guide" / "sizes.txt").write_text("S M L ✓", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "secret.jpg").write_bytes(picture(8, 8))
    return folder


@pytest.fixture
def make_run(data: Path) -> MakeRun:
    """Makes runs over `data`; `declared` is the tool's capabilities export."""

    def make(
        declared: JsonValue = ALL,
        *,
        sql: SqlPool | None = None,
        host: EngineHost | None = None,
        **options: Any,
    ) -> Run:
        capabilities = parse_capabilities(declared)
        clock = SystemClock()
        spine = Spine(clock)
        events: list[Event] = []
        spine.subscribe(events.append)
        models = Models()
        table = ImageTable()
        broker = Broker(
            capabilities,
            data,
            host or make_host(models),
            table,
            sql or SqlPool(),
            spine,
            clock,
            "tool-1",
            **options,
        )
        return Run(broker, table, models, events, capabilities, clock)

    return make
