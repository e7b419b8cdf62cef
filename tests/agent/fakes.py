"""Fakes at the agent's true borders: time, the camera and tools; and a recorder of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import cv2
import numpy as np

from edge_agent.agent.conversation import Conversation
from edge_agent.agent.loop import TurnLoop
from edge_agent.agent.models.protocol import ChatModel
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import CameraSnapshot, HostImage
from edge_agent.events import Event, FrameRef, Spine
from edge_agent.home import DEMO_CLIP
from edge_agent.json_types import JsonObject, JsonValue

Body = TypeVar("Body")


class FakeClock:
    """Time that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 5, 4, 12, 0, tzinfo=UTC) + timedelta(seconds=self.now - 1000.0)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class Recorder:
    """Keeps every event of a spine."""

    def __init__(self, spine: Spine) -> None:
        self.events: list[Event] = []
        spine.subscribe(self.events.append)

    def bodies(self, kind: type[Body]) -> list[Body]:
        return [event.body for event in self.events if isinstance(event.body, kind)]


def picture(
    width: int = 320, height: int = 240, *, colour: tuple[int, int, int] = (40, 60, 200)
) -> HostImage:
    """A JPEG of noise around one colour, so that its size is like a photo's."""
    rng = np.random.default_rng(width * 31 + height)
    pixels = np.clip(np.array(colour) + rng.normal(0, 12, (height, width, 3)), 0, 255).astype(np.uint8)
    data = cv2.imencode(".jpg", pixels)[1].tobytes()
    return HostImage(data=data, mime_type="image/jpeg", width=width, height=height, source="camera")


def demo_frame() -> HostImage:
    """A frame of the bundled clip."""
    clip = cv2.VideoCapture(str(DEMO_CLIP))
    clip.set(cv2.CAP_PROP_POS_MSEC, 1500)
    ok, pixels = clip.read()
    clip.release()
    assert ok
    data = cv2.imencode(".jpg", pixels)[1].tobytes()
    return HostImage(data, "image/jpeg", pixels.shape[1], pixels.shape[0], "camera")


def frame_ref(age_ms: float = 400.0, *, width: int = 320, height: int = 240) -> FrameRef:
    return FrameRef(
        id="f-17",
        age_ms=age_ms,
        width=width,
        height=height,
        sharpness=120.0,
        epoch=1,
        captured_at="2026-05-04T12:00:00.000Z",
    )


@dataclass
class FakeCamera:
    """A camera that always gives the same snapshot."""

    snapshot_given: CameraSnapshot
    taken: int = 0

    async def snapshot(self) -> CameraSnapshot:
        self.taken += 1
        return self.snapshot_given


def fresh_camera(image: HostImage | None = None, age_ms: float = 400.0) -> FakeCamera:
    shown = image or picture()
    ref = frame_ref(age_ms, width=shown.width, height=shown.height)
    return FakeCamera(CameraSnapshot("fresh", "fresh, 0.4 s old", age_ms, shown, ref))


def no_camera(reason: str = "no camera is connected") -> FakeCamera:
    return FakeCamera(CameraSnapshot("none", reason, None, None, None))


@dataclass(frozen=True)
class Declared:
    name: str
    description: str
    input_schema: JsonObject


SEARCH_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "hasPhotos": {"type": "boolean"},
        "color": {"type": "string"},
        "category": {"type": "string"},
        "limit": {"type": "integer"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
MATCH_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "styleIds": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4},
        "color": {"type": "string"},
    },
    "required": ["styleIds"],
    "additionalProperties": False,
}

Behaviour = Callable[[JsonValue, str], Awaitable[ToolOutcome] | ToolOutcome]


class FakeTools:
    """Tools that are Python functions of (input, parent span)."""

    def __init__(self, **behaviours: Behaviour) -> None:
        self.behaviours = behaviours
        self.calls: list[tuple[str, JsonValue]] = []

    @property
    def declarations(self) -> Sequence[Declared]:
        schemas = {"search_catalog": SEARCH_SCHEMA, "match_garment": MATCH_SCHEMA}
        anything: JsonObject = {"type": "object", "additionalProperties": False}
        return [Declared(name, f"The tool {name}.", schemas.get(name, anything)) for name in self.behaviours]

    async def call(self, tool_id: str, input: JsonValue, *, call_id: str, parent: str) -> ToolOutcome:
        self.calls.append((tool_id, input))
        outcome = self.behaviours[tool_id](input, parent)
        return outcome if isinstance(outcome, ToolOutcome) else await outcome


def gives(value: JsonValue) -> Behaviour:
    return lambda _input, _parent: ToolOutcome(value=value)


@dataclass
class Bench:
    """A turn loop with everything around it."""

    loop: TurnLoop
    conversation: Conversation
    recorder: Recorder
    clock: FakeClock


def bench(model: ChatModel, tools: FakeTools, camera: FakeCamera, clock: FakeClock | None = None) -> Bench:
    clock = clock or FakeClock()
    spine = Spine(clock)
    recorder = Recorder(spine)
    conversation = Conversation(clock)
    loop = TurnLoop(
        model=model,
        tools=tools,
        camera=camera,
        conversation=conversation,
        spine=spine,
        clock=clock,
        session_span="session-1",
    )
    return Bench(loop, conversation, recorder, clock)
