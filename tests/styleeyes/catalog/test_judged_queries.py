"""What people would type, and what they would expect: searched in the real catalog by the real tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge_agent.styleeyes.catalog.build import build_catalog
from edge_agent.styleeyes.catalog.feeds.importer import import_feed
from tests.styleeyes.catalog.conftest import OpenTools

pytestmark = [pytest.mark.needs_data, pytest.mark.asyncio(loop_scope="session")]

JUDGED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("judged_queries.json").read_text("utf-8"))
SHOWN = 4


async def test_recall_at_four_and_reciprocal_rank(
    retail: Path, tmp_path: Path, open_tools: OpenTools
) -> None:
    data = tmp_path / "home" / "agents" / "shop" / "data"
    import_feed(retail / "google-merchant.xml", data)
    build_catalog(data, data / "databases" / "catalog.sqlite")
    tools = await open_tools(data)
    recalls: dict[str, float] = {}
    ranks: list[float] = []
    for judged in JUDGED:
        found = await tools.found(judged["query"], **judged.get("filters", {}))
        right = set(judged["expect"])
        recalls[judged["query"]] = len(right & set(found[:SHOWN])) / min(SHOWN, len(right))
        ranks.append(next((1 / place for place, style in enumerate(found, 1) if style in right), 0.0))
    assert len(JUDGED) >= 60
    missed = {query: recall for query, recall in recalls.items() if recall < 1}
    assert sum(recalls.values()) / len(recalls) >= 0.95, missed
    assert sum(ranks) / len(ranks) >= 0.9
