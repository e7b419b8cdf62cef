"""The two tools as the engine runs them, with a host whose camera and model a test decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device.clock import SystemClock
from edge_agent.cli.catalog import ensure_agent
from edge_agent.engine.engine import EngineSession, ToolEngine
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import (
    CameraSnapshot,
    ConversationTurn,
    EngineHost,
    GenerateReply,
    GenerateRequest,
    HostImage,
    SessionIdentity,
)
from edge_agent.engine.sandbox.api import Sandbox
from edge_agent.events import CapabilityStarted, Event, FrameRef, Spine, TokenUsage
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonValue
from tests.styleeyes.catalog.shop import photo_bytes

FRESH = CameraSnapshot(
    state="fresh",
    reason="live",
    age_ms=40.0,
    image=HostImage(photo_bytes(99), "image/jpeg", 64, 80, "camera"),
    ref=FrameRef(
        id="f-7",
        age_ms=42.0,
        width=64,
        height=80,
        sharpness=9.0,
        epoch=1,
        captured_at="2026-09-20T10:00:00.000Z",
    ),
)
DARK = CameraSnapshot(state="none", reason="no camera is open", age_ms=None, image=None, ref=None)

Answer = Callable[[GenerateRequest], JsonValue]


@dataclass
class Host:
    """Camera, model and conversation at their borders."""

    snapshot_now: CameraSnapshot = FRESH
    answer: Answer | None = None
    asked: list[GenerateRequest] = field(default_factory=list)

    async def snapshot(self) -> CameraSnapshot:
        return self.snapshot_now

    def aliases(self) -> frozenset[str]:
        return frozenset({"default"})

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        self.asked.append(request)
        assert self.answer is not None, "this test expects no model call"
        return GenerateReply("", "test-model", "stop", TokenUsage(), json=self.answer(request))

    def recent_turns(self) -> tuple[ConversationTurn, ...]:
        return ()


@dataclass
class ToolBench:
    """An open engine session; `events` holds all that it told."""

    engine: ToolEngine
    session: EngineSession
    host: Host
    events: list[Event]

    @staticmethod
    async def open(data: Path, sandbox: Sandbox) -> ToolBench:
        ensure_agent(data)
        agent = AgentFolder(data.parent)
        clock = SystemClock()
        events: list[Event] = []
        spine, host = Spine(clock), Host()
        spine.subscribe(events.append)
        engine = ToolEngine(Home(data.parents[2]), sandbox, spine, clock)
        identity = SessionIdentity("s-1", "demo", agent.id, agent.id)
        session = await engine.open_session(agent, EngineHost(identity, host, host, host))
        return ToolBench(engine, session, host, events)

    async def outcome(self, tool: str, **arguments: JsonValue) -> ToolOutcome:
        return await self.session.call(tool, arguments, parent="turn")

    async def search(self, query: str, **filters: JsonValue) -> Any:
        """The result of `search_catalog`; a failure fails the test."""
        outcome = await self.outcome("search_catalog", query=query, **filters)
        assert outcome.error is None, outcome.error
        return outcome.value

    async def found(self, query: str, **filters: JsonValue) -> list[str]:
        return [product["styleId"] for product in (await self.search(query, **filters))["products"]]

    def capability_calls(self) -> int:
        return sum(isinstance(event.body, CapabilityStarted) for event in self.events)

    async def aclose(self) -> None:
        await self.session.aclose()
        await self.engine.aclose()
