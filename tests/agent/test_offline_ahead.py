"""Catalog photos looked at ahead: politely, held up by questions, and then used to choose candidates."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edge_agent.agent.models.offline import OfflineModel
from edge_agent.agent.models.offline.ahead import NICENESS
from edge_agent.agent.models.offline.sight import Alike, Seen
from edge_agent.agent.models.protocol import LooksAhead
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.styleeyes.photo_list import CatalogPhoto
from tests.agent.fakes import Bench, FakeClock, FakeTools, bench, fresh_camera, gives
from tests.agent.test_offline import FakeSight, ask, catalog, claims_exact, product, verdict

STYLES = [product(f"MJ0{n}", f"Jacket {n}", "Black") for n in range(1, 10)]


def photos(folder: Path, *names: str) -> list[CatalogPhoto]:
    """`MJ01.jpg`: the file holds its own name, where it exists."""
    made = []
    for name in names:
        path = folder / name
        if "missing" not in name:
            path.write_bytes(name.encode())
        made.append(CatalogPhoto(path.stem.split("-")[0], "Jacket", "black", path, name))
    return made


async def nothing(done: int) -> None:
    del done


async def test_photos_are_looked_at_one_by_one_and_a_missing_one_is_passed_over(tmp_path: Path) -> None:
    sight, counts = FakeSight(), list[int]()
    model = OfflineModel(lambda: sight, FakeClock())
    assert isinstance(model, LooksAhead)

    async def between(done: int) -> None:
        counts.append(done)

    await model.look_ahead(photos(tmp_path, "A.jpg", "missing.jpg", "C.jpg"), between)
    assert (sight.looked_ahead, counts) == ([b"A.jpg", b"C.jpg"], [1, 2, 3])
    await model.aclose()
    await model.aclose()
    assert sight.closed == 1


@dataclass
class SlowSight(FakeSight):
    """Looks at a photo until it is let go."""

    looking: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    niceness: int | None = None

    def look_ahead(self, photo: bytes) -> None:
        self.niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        self.looking.set()
        assert self.go.wait(10)
        super().look_ahead(photo)


async def test_a_question_does_not_wait_for_the_photo_in_hand_and_closing_does(tmp_path: Path) -> None:
    sight = SlowSight(seen=Seen(kind=None, found=False))
    clock = FakeClock()
    model = OfflineModel(lambda: sight, clock)
    ahead = asyncio.create_task(model.look_ahead(photos(tmp_path, "A.jpg", "B.jpg"), nothing))
    await asyncio.to_thread(sight.looking.wait, 10)
    try:
        rig = bench(model, FakeTools(), fresh_camera(), clock)
        assert "no garment" in (await ask(rig)).answer
        ahead.cancel()
        await asyncio.sleep(0)
        assert not ahead.done()
    finally:
        sight.go.set()
    with pytest.raises(asyncio.CancelledError):
        await ahead
    assert sight.looked_ahead == [b"A.jpg"]
    assert sight.niceness == max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
    await model.aclose()


async def test_what_the_last_question_found_is_looked_at_next(tmp_path: Path) -> None:
    sight, clock, held = FakeSight(), FakeClock(), asyncio.Event()
    model = OfflineModel(lambda: sight, clock)
    first = asyncio.Event()

    async def between(done: int) -> None:
        first.set()
        await held.wait()

    listed = photos(tmp_path, "A.jpg", "B.jpg", "MJ09-1.jpg", "C.jpg", "MJ09-2.jpg")
    ahead = asyncio.create_task(model.look_ahead(listed, between))
    await first.wait()
    tools = catalog(STYLES[8], match=gives(verdict(None, 0.9, tag=True)))
    await ask(bench(model, tools, fresh_camera(), clock))
    held.set()
    await ahead
    assert sight.looked_ahead == [b"A.jpg", b"MJ09-1.jpg", b"MJ09-2.jpg", b"B.jpg", b"C.jpg"]
    await model.aclose()


# --- candidates by what is known of the photos ------------------------------------------------------


async def warmed(tools: FakeTools, sight: FakeSight, folder: Path) -> Bench:
    clock = FakeClock()
    model = OfflineModel(lambda: sight, clock)
    await model.look_ahead(photos(folder, "A.jpg"), nothing)
    return bench(model, tools, fresh_camera(), clock)


def groups(tools: FakeTools) -> list[JsonValue]:
    return [v["styleIds"] for name, v in tools.calls if name == "match_garment" and isinstance(v, Mapping)]


def unsure() -> JsonObject:
    return verdict(None, 0.6, tag=True, MJ07=0.3)


async def test_the_styles_whose_photos_agree_best_are_searched_by_code_and_compared_first(
    tmp_path: Path,
) -> None:
    alike = tuple(
        Alike(style, score, color, "top")
        for style, score, color in [("MJ07", 2.9, "blue"), ("MJ03", 1.1, "black"), ("MJ05", 1.0, "blue")]
    )
    tools = catalog(*STYLES, match=gives(verdict("MJ07", 0.93, tag=False)))
    sight = FakeSight(Seen(kind="jacket", colors=("black",), part="top"), alike=alike)
    result = await ask(await warmed(tools, sight, tmp_path))
    queries = [v["query"] for name, v in tools.calls if name == "search_catalog" and isinstance(v, Mapping)]
    assert queries[:2] == ["black jacket", "MJ07 MJ03 MJ05"]
    [group] = groups(tools)
    assert isinstance(group, list)
    assert group[:3] == ["MJ07", "MJ03", "MJ05"]
    assert claims_exact(result.answer)


async def test_colours_of_the_best_photos_are_what_the_group_is_compared_in(tmp_path: Path) -> None:
    alike = (Alike("MJ07", 2.9, "blue", "top"), Alike("MJ03", 1.1, "purple", "top"))
    tools = catalog(STYLES[6], STYLES[2], match=gives(verdict("MJ07", 0.93, tag=False)))
    sight = FakeSight(Seen(kind="jacket", colors=("black",), part="top"), alike=alike)
    await ask(await warmed(tools, sight, tmp_path))
    assert tools.calls[-1] == ("match_garment", {"styleIds": ["MJ07", "MJ03"], "color": "blue or purple"})


@pytest.mark.parametrize(("fifth", "rounds"), [(2.2, 2), (1.4, 1)], ids=["near", "far"])
async def test_a_further_group_is_compared_only_where_its_photos_come_near(
    tmp_path: Path, fifth: float, rounds: int
) -> None:
    scores = [2.5, 2.4, 2.3, 2.2, fifth, 0.1, 0.0, -0.1, -0.2]
    alike = tuple(Alike(f"MJ0{n}", s, "black", "top") for n, s in enumerate(scores, 1))
    tools = catalog(*STYLES, match=gives(unsure()))
    sight = FakeSight(Seen(kind="jacket", colors=("black",), part="top"), alike=alike)
    await ask(await warmed(tools, sight, tmp_path))
    compared = groups(tools)
    assert compared[0] == ["MJ01", "MJ02", "MJ03", "MJ04"]
    assert len(compared) == rounds
    assert compared[1:] == [["MJ05"]][: rounds - 1]


async def test_what_is_spoken_of_is_the_part_of_the_outfit_that_the_catalog_knows(tmp_path: Path) -> None:
    alike = (Alike("MJ07", 2.9, "black", "top"),)
    tools = catalog(*STYLES, match=gives(unsure()))
    sight = FakeSight(Seen(kind="leggings", colors=("black",), part="trousers"), alike=alike)
    await ask(await warmed(tools, sight, tmp_path), "What am I looking at?")
    assert sight.asked == ["What am I looking at?", "top"]
