"""What the broker's tests share: a host at its true borders, pictures, operations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from device.clock import Clock
from edge_agent.engine.broker.broker import Broker
from edge_agent.engine.broker.capabilities import Capabilities
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.sql_pool import SqlOperation
from edge_agent.engine.ports import (
    CameraSnapshot,
    ConversationTurn,
    EngineHost,
    GenerateReply,
    GenerateRequest,
    HostImage,
    SessionIdentity,
)
from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest
from edge_agent.errors import StyleEyesError
from edge_agent.events import Event, FrameRef, TokenUsage
from edge_agent.json_types import JsonObject, JsonValue

ALL: JsonObject = {
    "databases": {
        "catalog": {"path": "databases/catalog.sqlite", "mode": "read"},
        "notes": {"path": "databases/notes.sqlite", "mode": "write"},
        "missing": {"path": "databases/none.sqlite", "mode": "read"},
    },
    "images": {"photos": {"path": "photos"}},
    "files": {"diary": {"path": "diary", "mode": "write"}, "guide": {"path": "guide", "mode": "read"}},
    "llm": {"models": ["default", "unknown"]},
    "camera": True,
    "conversation": True,
}


def picture(width: int, height: int, kind: str = ".jpg") -> bytes:
    """An encoded picture that is not one flat colour."""
    pixels = np.random.default_rng(1).integers(0, 255, (height, width, 3), dtype=np.uint8)
    done, encoded = cv2.imencode(kind, pixels)
    assert done
    return encoded.tobytes()


@dataclass
class Camera:
    """The camera's border: what a test says it sees."""

    snapshot_now: CameraSnapshot

    async def snapshot(self) -> CameraSnapshot:
        return self.snapshot_now


@dataclass
class Models:
    """The model's border: answers what a test gives it, and keeps what it was asked."""

    reply: GenerateReply | StyleEyesError = field(
        default_factory=lambda: GenerateReply("a coat", "test-model", "stop", TokenUsage(input=3, output=2))
    )
    asked: list[tuple[str, GenerateRequest, str]] = field(default_factory=list)
    waits: asyncio.Event | None = None
    called: asyncio.Event = field(default_factory=asyncio.Event)

    def aliases(self) -> frozenset[str]:
        return frozenset({"default", "spare"})

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        self.asked.append((alias, request, parent))
        self.called.set()
        if self.waits is not None:
            await self.waits.wait()
        if isinstance(self.reply, StyleEyesError):
            raise self.reply
        return self.reply


@dataclass
class Conversation:
    turns: Sequence[ConversationTurn] = ()

    def recent_turns(self) -> Sequence[ConversationTurn]:
        return self.turns


FRESH = CameraSnapshot(
    state="fresh",
    reason="live",
    age_ms=120.4,
    image=HostImage(picture(32, 24), "image/jpeg", 32, 24, "camera"),
    ref=FrameRef(
        id="f-1",
        age_ms=133.3,
        width=32,
        height=24,
        sharpness=5.0,
        epoch=1,
        captured_at="2026-01-02T03:04:05.000Z",
    ),
)


@dataclass
class Run:
    """One run's broker with its ends in reach."""

    broker: Broker
    images: ImageTable
    models: Models
    events: list[Event]
    capabilities: Capabilities
    clock: Clock

    async def call(self, method: str, *args: Any) -> CapabilityReply:
        return await self.broker.handle(CapabilityRequest(method, json.dumps(args)))

    async def value(self, method: str, *args: Any) -> Any:
        reply = await self.call(method, *args)
        assert reply.ok, f"{reply.code}: {reply.message}"
        assert reply.value_json is not None
        return json.loads(reply.value_json)

    async def code(self, method: str, *args: Any) -> str | None:
        reply = await self.call(method, *args)
        assert not reply.ok, reply.value_json
        assert reply.message
        return reply.code


MakeRun = Callable[..., Run]


def make_host(models: Models | None = None, camera: CameraSnapshot = FRESH, turns: int = 0) -> EngineHost:
    said = [ConversationTurn("user", f"turn {n}", "2026-01-02T03:04:05.000Z") for n in range(turns)]
    return EngineHost(
        identity=SessionIdentity("s-1", "demo", "demo", "Demo"),
        camera=Camera(camera),
        models=models or Models(),
        conversation=Conversation(said),
    )


def query(data: Path, sql: str, params: JsonValue = (), **options: Any) -> SqlOperation:
    """A reading query on the catalog, or what `options` make of it."""
    fields: dict[str, Any] = {
        "kind": "query",
        "folder": (data / "databases").resolve(),
        "name": "catalog.sqlite",
        "writable": False,
        "sql": sql,
        "params": list(params) if isinstance(params, tuple) else params,
    }
    return SqlOperation(**{**fields, **options})


def change(data: Path, sql: str, params: JsonValue = (), **options: Any) -> SqlOperation:
    """A change of the notes."""
    return query(
        data, sql, params, **{"kind": "execute", "name": "notes.sqlite", "writable": True, **options}
    )
