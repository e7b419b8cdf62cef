"""The least search tool that the documentation shows, as an author would copy it, on a real database."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import pytest

from edge_agent.json_types import JsonObject
from tests.engine.workshop import TURN, Workshop

pytestmark = pytest.mark.asyncio(loop_scope="session")

SEED = Path(__file__).resolve().parents[3] / "shared" / "seeds" / "000_e9161afaea3b5ec7.txt"
OURS = """\
export const schemaVersion = "worldagents.tool.v1";
export const metadata = { title: "Find by name", description: "Products whose name holds the words." };
export const inputSchema = {
  type: "object",
  properties: { query: { type: "string", minLength: 1 } },
  required: ["query"],
  additionalProperties: false,
};
export const capabilities = {
  databases: { catalog: { path: "databases/catalog.sqlite", mode: "read" } },
};
export async function execute(ctx, { query }) {
  return ctx.db.query("catalog", "SELECT name FROM products WHERE name LIKE ? LIMIT 5", [`%${query}%`]);
}
"""


def seeds_example() -> str:
    if not SEED.is_file():
        pytest.skip(f"{SEED} is not there")
    text = SEED.read_text("utf-8")
    found = re.search(r"^\s*export const schemaVersion.*?^}$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found.group()


def make_catalog(shop: Workshop) -> None:
    with contextlib.closing(sqlite3.connect(shop.agent.databases / "catalog.sqlite")) as made, made:
        made.execute("CREATE TABLE products(name TEXT)")
        names = ["Blue rain coat", "Coat, green", "Hat", "100% wool scarf", *(f"coat {n}" for n in range(9))]
        made.executemany("INSERT INTO products VALUES (?)", [(name,) for name in names])


@pytest.mark.parametrize("origin", ["ours", "seed"])
@pytest.mark.parametrize("shared", [False, True])
async def test_the_minimal_search_runs_unmodified(shop: Workshop, origin: str, shared: bool) -> None:
    make_catalog(shop)
    tool_id = shop.write("search-catalog", OURS if origin == "ours" else seeds_example(), shared=shared)
    await shop.engine.enable(shop.agent, tool_id)
    async with shop.session() as session:
        found = await session.call(tool_id, {"query": "rain"}, parent=TURN)
        assert found.value == {
            "columns": ["name"],
            "rows": [{"name": "Blue rain coat"}],
            "rowCount": 1,
            "truncated": False,
        }
        many = await session.call(tool_id, {"query": "coat"}, parent=TURN)
        assert isinstance(many.value, dict)
        assert many.value["rowCount"] == 5
        nothing = await session.call(tool_id, {"query": "'; DROP TABLE products; --"}, parent=TURN)
        assert isinstance(nothing.value, dict)
        assert nothing.value["rows"] == []
        refused: tuple[JsonObject, ...] = ({}, {"query": ""}, {"query": 1}, {"query": "a", "limit": 1})
        for wrong in refused:
            outcome = await session.call(tool_id, wrong, parent=TURN)
            assert outcome.error is not None
            assert outcome.error.code == "INVALID_INPUT"
