"""`search-catalog.tool.js`, run by the engine in the real sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from tests.styleeyes.catalog.conftest import OpenTools
from tests.styleeyes.catalog.shop import Shop, note

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = (
    "POL-358", "don't", "38.101", "AND", "OR NOT", "(", ")", '"', "*", "a*", "NEAR(", "name:", "{name}:",
    "^a", "-", "--", ";", "'; DROP TABLE products; --", "%", "_", "\x00", "a\x00b", "\u202eabc", "\n\t",
    "😀", "👩\u200d👩\u200d👧", "赤いシャツ", "シャツ", "赤", "สีแดง", "빨간", "𝓙𝓪𝓬𝓴𝓮𝓽",
    "1/4 zip", "x" * 5000, "a " * 3000, "jacket" * 40,
)  # fmt: skip


@pytest.fixture
def stocked(shop: Shop) -> Shop:
    common: dict[str, Any] = {"brand": "Luma", "snapshot_date": "2026-09-14", "currency": "USD"}
    tee = "Red short-sleeve t-shirt for running."
    shop.add(
        note("MT01", "Atomic Tee (V-neck)", category="Tops > Tees", gender="male", photos=("mt01-red.jpg",),
             colors=("red", "navy"), description=tee, **common)
    )  # fmt: skip
    shop.add(
        note("WH03", "Autumn Pullie", category="Tops > Hoodies & Sweatshirts", gender="female",
             colors=("grey",), description="Warm under a jacket.", **common)
    )  # fmt: skip
    shop.add(
        note("MJ06", "Jupiter Shell", category="Tops > Jackets", gender="male", photos=("mj06-blue.jpg",),
             colors=("navy blue",), description="Quilted, waterproof.", **common)
    )  # fmt: skip
    shop.add(note("WP03", "Ida Yoga Pant", category="Bottoms > Pants", gender="female", colors=("olive",)))
    shop.add(note("POL-358", "赤いシャツ", category="トップス", colors=("赤",), description="夏の半袖シャツ"))
    shop.build()
    return shop


async def test_description_of_a_garment_finds_it_first(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    result = await tools.search("dark red short sleeve t-shirt", hasPhotos=True)
    first = result["products"][0]
    assert first["styleId"] == "MT01"
    assert first["why"] == ["color: red", "mentions red", "detail: short sleeve", "kind: t shirt"]
    assert (first["photos"], first["colors"], first["gender"]) == (1, ["red", "navy"], "men")
    assert result["snapshotNote"] == "Catalog snapshot of 2026-09-14; not live stock or price"


@pytest.mark.parametrize(
    ("query", "style"),
    [
        ("jumper", "WH03"),  # British for what the catalog calls otherwise
        ("sweatshirts", "WH03"),
        ("trousers", "WP03"),
        ("leggings", "WP03"),
        ("jakcet", "MJ06"),  # two letters swapped
        ("sweatshrt", "WH03"),
        ("quil", "MJ06"),  # still typing
        ("blue jacket", "MJ06"),  # navy is blue
        ("gray", "WH03"),
        ("green pants", "WP03"),  # olive is green
        ("pol358", "POL-358"),
        ("POL-358", "POL-358"),
        ("mj06", "MJ06"),
        ("シャツ", "POL-358"),
        ("赤い", "POL-358"),
        ("半袖", "POL-358"),
    ],
)  # fmt: skip
async def test_words_of_people_find_the_style(
    stocked: Shop, open_tools: OpenTools, query: str, style: str
) -> None:
    tools = await open_tools(stocked.data)
    assert (await tools.found(query))[:1] == [style]


async def test_a_kind_of_garment_counts_more_than_a_mention(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    assert await tools.found("jacket") == ["MJ06", "WH03"]


async def test_no_text_raises_in_fts(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    for query in HOSTILE:
        outcome = await tools.outcome("search_catalog", query=query, color=query[:100], category=query[:100])
        assert outcome.ok, (query, outcome.error)


async def test_blank_query_is_an_empty_result_with_a_note(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    for query in ("", "  ", "***", "the"):
        result = await tools.search(query)
        assert (result["products"], result["total"]) == ([], 0)
        assert "Describe the garment" in result["note"]


async def test_filters(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    assert await tools.found("tops", hasPhotos=True) == ["MJ06", "MT01"]
    assert await tools.found("top", color="navy") == ["MJ06", "MT01"]
    assert await tools.found("top", color="burgundy") == ["MT01"]
    assert await tools.found("", category="jacket") == ["MJ06"]
    assert await tools.found("warm", gender="women") == ["WH03"]
    nothing = await tools.search("jacket", color="pink", hasPhotos=True)
    assert nothing["note"] == (
        'Nothing fits with color "pink", hasPhotos. Search again without one of them, or with other words.'
    )


async def test_limit_and_total_and_stable_order(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    every = await tools.search("luma", limit=50)
    one = await tools.search("luma", limit=1)
    assert one["total"] == every["total"] == 3
    assert one["products"] == every["products"][:1]
    assert every == await tools.search("luma", limit=50)


async def test_undated_products_are_said_to_be_undated(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    result = await tools.search("yoga")
    assert result["products"][0]["snapshotDate"] is None
    assert result["snapshotNote"] == "Catalog snapshot of unknown date; not live stock or price"


async def test_few_capability_calls(stocked: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(stocked.data)
    await tools.search("dark red short sleeve t-shirt with a zip and long slevees", color="red")
    assert tools.capability_calls() <= 3


async def test_missing_catalog_is_one_clear_error(shop: Shop, open_tools: OpenTools) -> None:
    tools = await open_tools(shop.data)
    outcome = await tools.outcome("search_catalog", query="jacket")
    assert outcome.error is not None
    assert outcome.error.code == "NOT_FOUND"
