"""The catalog: pages, order, overridden files, errors as values."""

from __future__ import annotations

import json
import time

import pytest

from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import UsageError
from edge_agent.home import Home
from tests.engine.workshop import Workshop, source

pytestmark = pytest.mark.asyncio(loop_scope="session")
BUILT_IN = ["match_garment", "search_catalog"]


async def test_pages_of_sixteen_enabled_first_then_by_id(shop: Workshop) -> None:
    ids = [shop.write(f"t{n:02}", source()) for n in range(31)]
    shop.configure("t30", "t07", "gone")
    first = await shop.engine.catalog(shop.agent)
    second = await shop.engine.catalog(shop.agent, 16)
    third = await shop.engine.catalog(shop.agent, 32)
    shown = [entry.source.id for page in (first, second, third) for entry in page.entries]
    rest = sorted({*ids, *BUILT_IN} - {"t07", "t30"})
    assert shown == ["t07", "t30", *rest]
    assert [len(page.entries) for page in (first, second, third)] == [16, 16, 1]
    assert [page.next_offset for page in (first, second, third)] == [16, 32, None]
    assert first.missing == ("gone",)
    assert [entry.enabled for entry in first.entries[:3]] == [True, True, False]
    assert all(entry.error is None for page in (first, second, third) for entry in page.entries)
    assert first.to_json()["pagination"] == {"offset": 0, "total": 33, "nextOffset": 16}
    assert third.to_json()["pagination"] == {"offset": 32, "total": 33}


@pytest.mark.parametrize(("count", "more"), [(14, False), (15, True)])
async def test_next_offset_is_absent_exactly_on_the_last_page(shop: Workshop, count: int, more: bool) -> None:
    for number in range(count):
        shop.write(f"t{number:02}", "export")  # broken, so quick
    assert ((await shop.engine.catalog(shop.agent)).next_offset is not None) == more


async def test_an_offset_past_the_end_is_an_empty_last_page(shop: Workshop) -> None:
    page = await shop.engine.catalog(shop.agent, 99)
    assert (page.entries, page.next_offset, page.total) == ((), None, 2)
    with pytest.raises(UsageError):
        await shop.engine.catalog(shop.agent, -1)


async def test_a_broken_winner_shows_its_error_and_what_it_hides(shop: Workshop) -> None:
    shop.write("search-catalog", source(), shared=True)
    shop.write("search-catalog", source("return {;"))
    entry = {e.source.id: e for e in (await shop.engine.catalog(shop.agent)).entries}["search_catalog"]
    shown = entry.to_json()
    assert shown["source"] == "agent"
    assert [f["source"] for f in shown["overridden"]] == ["shared", "built-in"]  # type: ignore[union-attr, index, call-overload]
    assert shown["error"] == {
        "code": "INVALID_TOOL",
        "message": entry.error.message if entry.error else "",
        "at": {"line": 6, "column": 9},
    }
    assert "title" not in shown


async def test_a_shadowed_file_is_never_evaluated(shop: Workshop) -> None:
    shop.write("a-tool", source(exports="for (;;);"), shared=True)
    shop.write("a-tool", source())
    shop.configure("a_tool")
    began = time.monotonic()
    entry = (await shop.engine.catalog(shop.agent)).entries[0]
    assert (entry.source.id, entry.error) == ("a_tool", None)
    async with shop.session() as session:
        assert [pin.source for pin in session.pinned] == ["agent: a-tool.tool.js"]
    assert time.monotonic() - began < 3


async def test_hung_files_are_over_budget_and_the_rest_still_answer(shop: Workshop) -> None:
    hung = [shop.write(f"a{n}", source(exports="for (;;);")) for n in range(6)]
    began = time.monotonic()
    page = await shop.engine.catalog(shop.agent)
    took = time.monotonic() - began
    errors = {entry.source.id: entry.error.code if entry.error else None for entry in page.entries}
    assert errors == {**dict.fromkeys(hung, "INSPECTION_BUDGET"), **dict.fromkeys(BUILT_IN)}
    assert took < 6  # 3 s of budget, and a busy machine


async def test_a_file_at_fault_is_listed_under_its_own_name(shop: Workshop) -> None:
    shop.write("Bad_Name", source())
    shop.write("binary", b"\xff")
    entries = {e.source.id: e for e in (await shop.engine.catalog(shop.agent)).entries}
    for name in ("Bad_Name.tool.js", "binary"):
        error = entries[name].error
        assert error is not None
        assert error.code == "INVALID_TOOL"


async def test_the_json_form_is_json_whatever_names_files_have(shop: Workshop) -> None:
    (shop.agent.tools / "x\udcff\x1b[2J.tool.js").write_text("")
    shown = json.dumps((await shop.engine.catalog(shop.agent)).to_json(), ensure_ascii=False)
    assert shown.encode()
    assert "\\u001b" not in shown


async def test_without_a_sandbox_the_list_is_still_there_and_says_why(
    tmp_path: object, shop: Workshop
) -> None:
    closed = BubblewrapSandbox()
    await closed.aclose()
    other = Workshop.make(Home(shop.home.root.with_name("other")), closed)
    page = await other.engine.catalog(other.agent)
    assert [entry.error.code if entry.error else None for entry in page.entries] == [
        "SANDBOX_UNAVAILABLE"
    ] * 2


async def test_a_shared_tool_is_found_by_every_agent(shop: Workshop) -> None:
    shop.write("helper", source(), shared=True)
    assert (await shop.engine.tool(shop.agent, "helper")).winner.origin == "shared"
    assert (await shop.engine.tool(shop.home.agent("other"), "helper")).winner.origin == "shared"
