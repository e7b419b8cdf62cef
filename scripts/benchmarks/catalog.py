"""What the catalog costs: building it, and searching it through the real tool in the real sandbox.

The retail catalog is used where `../shared/data/retail` is there; a drawn one of 20,000 products with a
vocabulary of clothes shows how both grow.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from device.clock import SystemClock
from edge_agent.cli.catalog import default_catalog, ensure_agent
from edge_agent.cli.catalog_search import SEARCH_TOOL, BareHost
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.ports import EngineHost, SessionIdentity
from edge_agent.engine.sandbox.sandbox import open_sandbox
from edge_agent.errors import StyleEyesError
from edge_agent.events import CapabilityFinished, Event, Spine
from edge_agent.home import AgentFolder, Home
from edge_agent.styleeyes.catalog.build import build_catalog
from edge_agent.styleeyes.catalog.feeds.importer import import_feed

Figures = dict[str, dict[str, Any]]
_ROOT = Path(__file__).resolve().parents[2]
_RETAIL = _ROOT.parent / "shared" / "data" / "retail"
_MANY = 20_000
_ROUNDS = 12
_QUERIES = (
    "dark red short sleeve t-shirt", "jumper", "grey trousers for women", "quil", "sweatshrt", "MT01",
    "purple tank top with mesh back", "navy hoodie men", "waterproof jacket", "sports bra", "striped shirt",
    "shorts", "zip up hoody", "blue", "a sort of dark green quilted thing", "What is this jacket?",
)  # fmt: skip


def measure() -> Figures:
    """Flat figures `catalog.…`; None with a reason where the data or the sandbox is missing."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        return {**_retail(home), **_many(home)}


def _retail(home: Path) -> Figures:
    names = ("build_retail", "search_p50", "search_p99", "search_sql_p50", "search_sql_p99")
    if not _RETAIL.is_dir():
        return {f"catalog.{name}": _missing(f"needs {_RETAIL}") for name in names}
    data = home / "agents" / "retail" / "data"
    import_feed(_RETAIL / "google-merchant.xml", data, photos=_RETAIL / "photos")
    began = time.perf_counter()
    report = build_catalog(data, default_catalog(data))
    seconds = time.perf_counter() - began
    rate = _figure(report.photos / seconds, "photos/s", None)
    return {"catalog.build_retail": rate, **_search(home, data, "search", aim=10.0)}


def _many(home: Path) -> Figures:
    data = home / "agents" / "many" / "data"
    _draw_notes(data / "products", _MANY)
    # In a process of its own, so that its peak memory is its own.
    code = (
        "import resource,sys,time;from pathlib import Path;"
        "from edge_agent.styleeyes.catalog.build import build_catalog;"
        "d=Path(sys.argv[1]);t=time.perf_counter();"
        "build_catalog(d,d/'databases'/'catalog.sqlite');"
        "print(time.perf_counter()-t,resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(data)], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    seconds, peak = map(float, done.stdout.split())
    size = default_catalog(data).stat().st_size / _MANY
    return {
        "catalog.build_rate": _figure(_MANY / seconds, "products/s", 20_000.0, more_is_better=True),
        "catalog.build_memory": _figure(peak, "MiB", 300.0),
        "catalog.bytes_per_product": _figure(size, "bytes", None),
        **_search(home, data, "search_20k", aim=None),
    }


def _search(home: Path, data: Path, name: str, *, aim: float | None) -> Figures:
    try:
        whole, in_sql = asyncio.run(_time_searches(home, data))
    except StyleEyesError as error:
        return {f"catalog.{name}_{p}": _missing(str(error)) for p in ("p50", "p99", "sql_p50", "sql_p99")}
    return {
        f"catalog.{name}_p50": _figure(_quantile(whole, 0.5), "ms", None),
        f"catalog.{name}_p99": _figure(_quantile(whole, 0.99), "ms", aim),
        f"catalog.{name}_sql_p50": _figure(_quantile(in_sql, 0.5), "ms", None),
        f"catalog.{name}_sql_p99": _figure(_quantile(in_sql, 0.99), "ms", aim),
    }


async def _time_searches(home: Path, data: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of each warm call: all of it, and the part in database calls."""
    ensure_agent(data)
    agent = AgentFolder(data.parent)
    clock, host, events = SystemClock(), BareHost(), list[Event]()
    spine = Spine(clock)
    spine.subscribe(events.append)
    sandbox = open_sandbox(os.environ)
    engine = ToolEngine(Home(home), sandbox, spine, clock)
    identity = SessionIdentity("bench", "demo", agent.id, agent.id)
    whole: list[float] = []
    in_sql: list[float] = []
    try:
        session = await engine.open_session(agent, EngineHost(identity, host, host, host))
        try:
            await session.warm()
            for turn in range(_ROUNDS + 1):
                for query in _QUERIES:
                    events.clear()
                    began = time.perf_counter()
                    outcome = await session.call(
                        SEARCH_TOOL, {"query": query, "hasPhotos": False}, parent="bench"
                    )
                    spent = (time.perf_counter() - began) * 1000
                    if outcome.error is not None:
                        raise StyleEyesError(outcome.error.code, outcome.error.message)
                    if turn:
                        whole.append(spent)
                        in_sql.append(
                            sum(e.body.ms for e in events if isinstance(e.body, CapabilityFinished))
                        )
        finally:
            await session.aclose()
    finally:
        await engine.aclose()
        await sandbox.aclose()
    return whole, in_sql


def _draw_notes(folder: Path, count: int) -> None:
    """Notes with a realistic vocabulary, the same ones every time."""
    pick = random.Random(7).choice
    kinds = (
        "Jacket",
        "Tee",
        "Hoodie",
        "Jogger",
        "Skirt",
        "Tank",
        "Sweater",
        "Short",
        "Coat",
        "Dress",
        "Legging",
    )
    cuts = ("Slim", "Relaxed", "Cropped", "Oversized", "Fitted", "Classic", "Quilted", "Striped", "Hooded")
    names = (
        "Aero",
        "Juno",
        "Atlas",
        "Nora",
        "Orion",
        "Vega",
        "Luma",
        "Selene",
        "Troy",
        "Iris",
        "Kite",
        "Marlow",
    )
    colors = ("red", "navy", "olive", "charcoal", "white", "mustard", "teal", "black", "burgundy", "beige")
    details = (
        "Full zip with side pockets.", "Ribbed cuffs and hem.", "Moisture-wicking fabric.", "Crew neckline.",
        "Made of organic cotton.", "Water-resistant coating.", "Reflective trim.", "Machine wash cold.",
    )  # fmt: skip
    folder.mkdir(parents=True)
    for number in range(count):
        kind, style = pick(kinds), f"S{number:07}"
        text = (
            f'---\nstyle_id: "{style}"\nname: "{pick(names)} {pick(cuts)} {kind}"\nbrand: "{pick(names)}"\n'
            f'category: "{kind}s"\ncolors: ["{pick(colors)}", "{pick(colors)}"]\n'
            f'gender: "{pick(("men", "women"))}"\n'
            f'price: "{20 + number % 90}.00"\ncurrency: "USD"\nsnapshot_date: "2026-09-14"\n---\n\n'
            f"{pick(details)} {pick(details)} {pick(details)}\n"
        )
        (folder / f"{style}.md").write_text(text, "utf-8")


def _figure(value: float, unit: str, aim: float | None, *, more_is_better: bool = False) -> dict[str, Any]:
    ok = aim is None or (value >= aim if more_is_better else value <= aim)
    return {"value": round(value, 2), "unit": unit, "aim": aim, "ok": ok}


def _missing(reason: str) -> dict[str, Any]:
    return {"value": None, "unit": "ms", "aim": None, "ok": False, "reason": reason}


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
