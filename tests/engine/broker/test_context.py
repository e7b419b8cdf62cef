from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from device.clock import SystemClock
from edge_agent.engine.broker.capabilities import parse_capabilities
from edge_agent.engine.broker.context import open_context
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.limits import MAX_RUN_IMAGE_BYTES
from edge_agent.engine.ports import CameraSnapshot, EngineHost, HostImage
from edge_agent.errors import StyleEyesError
from tests.engine.broker.world import ALL, FRESH, make_host


async def shown(declared: Any, host: EngineHost, images: ImageTable | None = None) -> Any:
    context = await open_context(parse_capabilities(declared), host, images or ImageTable(), SystemClock())
    assert context.json.isascii()
    return json.loads(context.json)


async def test_what_every_tool_sees() -> None:
    context = await shown(None, make_host(turns=3))
    assert context["agent"] == {"id": "demo", "name": "Demo"}
    assert context["session"] == {"id": "s-1", "mode": "demo"}
    assert context["now"].endswith("Z")
    assert (context["camera"], context["recentTurns"], context["capabilities"]) == (None, None, [])


async def test_the_camera_is_not_asked_unless_declared() -> None:
    class Refusing:
        async def snapshot(self) -> CameraSnapshot:
            raise AssertionError("asked")

    host = make_host()
    refusing = EngineHost(host.identity, Refusing(), host.models, host.conversation)
    assert (await shown({"conversation": True}, refusing))["camera"] is None


async def test_a_fresh_frame_is_a_handle_with_its_age() -> None:
    images = ImageTable()
    camera = (await shown(ALL, make_host(), images))["camera"]
    frame = camera["frame"]
    assert camera["status"] == {"state": "fresh", "ageMs": 120, "reason": "live"}
    assert (
        frame.items()
        >= {
            "kind": "image",
            "width": 32,
            "height": 24,
            "mimeType": "image/jpeg",
            "source": "camera",
            "ageMs": 133,
            "capturedAt": "2026-01-02T03:04:05.000Z",
        }.items()
    )
    assert images.find(frame) is FRESH.image


@pytest.mark.parametrize("state", ["stale", "none"])
async def test_no_frame_is_null_with_the_reason(state: Any) -> None:
    gone = CameraSnapshot(state, "the cable is out", 20_000.0 if state == "stale" else None, None, None)
    camera = (await shown(ALL, make_host(camera=gone)))["camera"]
    assert camera["frame"] is None
    assert camera["status"]["state"] == state
    assert camera["status"]["reason"] == "the cable is out"


@pytest.mark.parametrize(
    ("state", "age_ms", "given"),
    [("fresh", 15_000.0, True), ("fresh", 15_000.1, False), ("stale", 100.0, False), ("none", 100.0, False)],
)
async def test_an_old_frame_is_withheld_even_if_the_port_hands_it_over(
    state: Any, age_ms: float, given: bool
) -> None:
    assert FRESH.ref is not None
    ref = dataclasses.replace(FRESH.ref, age_ms=age_ms)
    held = CameraSnapshot(state, "words", age_ms, FRESH.image, ref)
    context = await open_context(parse_capabilities(ALL), make_host(camera=held), ImageTable(), SystemClock())
    assert (json.loads(context.json)["camera"]["frame"] is not None) == given
    assert (context.frame is not None) == given


@pytest.mark.parametrize(("said", "kept"), [(0, 0), (12, 12), (13, 12)])
async def test_at_most_twelve_newest_turns(said: int, kept: int) -> None:
    turns = (await shown(ALL, make_host(turns=said)))["recentTurns"]
    assert len(turns) == kept
    if said:
        assert turns[-1] == {"role": "user", "text": f"turn {said - 1}", "at": "2026-01-02T03:04:05.000Z"}


def test_a_runs_images_are_bounded_together() -> None:
    table = ImageTable()
    half = HostImage(b"x" * (MAX_RUN_IMAGE_BYTES // 2), "image/jpeg", 1, 1, "a")
    table.add(half)
    table.add(half)
    with pytest.raises(StyleEyesError) as caught:
        table.add(HostImage(b"x", "image/jpeg", 1, 1, "a"))
    assert caught.value.code == "FILE_TOO_LARGE"
