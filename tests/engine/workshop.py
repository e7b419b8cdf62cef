"""What the engine's tests share: a home with one agent, tools written by a test, a real engine over both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from device.clock import SystemClock
from edge_agent.engine.engine import EngineSession, ToolEngine
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import (
    CameraPort,
    CameraSnapshot,
    ConversationTurn,
    EngineHost,
    GenerateReply,
    GenerateRequest,
    HostImage,
    SessionIdentity,
    ToolModelPort,
)
from edge_agent.engine.sandbox.api import Guest, Sandbox, SandboxStatus
from edge_agent.errors import StyleEyesError
from edge_agent.events import Event, FrameRef, Spine, TokenUsage
from edge_agent.home import AgentFolder, Home

Body = TypeVar("Body")
TURN = "turn-1"
FRAME = FrameRef(
    id="f-1", age_ms=90.0, width=4, height=3, sharpness=1.0, epoch=1, captured_at="2026-12-01T00:00:00Z"
)
LIVE = CameraSnapshot("fresh", "live", 90.0, HostImage(b"jpeg", "image/jpeg", 4, 3, "camera"), FRAME)


def source(body: str = "return input;", *, schema: str = "{}", before: str = "", exports: str = "") -> str:
    """A tool of eight lines or more: `execute` with this body on line 6, `schema` is `properties`."""
    return f"""export const schemaVersion = "worldagents.tool.v1";{before}
export const metadata = {{ title: "A tool", description: "For a test." }};
export const inputSchema = {{ type: "object", additionalProperties: false, properties: {schema} }};
{exports}
export async function execute(ctx, input) {{
{body}
}}
"""


@dataclass
class Camera:
    """The camera's border. It may also refuse to answer."""

    now: CameraSnapshot = LIVE
    failure: BaseException | None = None

    async def snapshot(self) -> CameraSnapshot:
        if self.failure is not None:
            raise self.failure
        return self.now


@dataclass
class Models:
    """The model's border."""

    asked: list[GenerateRequest] = field(default_factory=list)

    def aliases(self) -> frozenset[str]:
        return frozenset({"default"})

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        self.asked.append(request)
        return GenerateReply(f"an answer to {request.prompt}", "test-model", "stop", TokenUsage())


@dataclass
class Conversation:
    turns: Sequence[ConversationTurn] = ()

    def recent_turns(self) -> Sequence[ConversationTurn]:
        return self.turns


def host(
    *,
    session: str = "s-1",
    camera: CameraPort | None = None,
    models: ToolModelPort | None = None,
    said: Sequence[str] = (),
) -> EngineHost:
    return EngineHost(
        identity=SessionIdentity(session, "demo", "desk", "Desk"),
        camera=camera or Camera(),
        models=models or Models(),
        conversation=Conversation([ConversationTurn("user", text, "2026-12-01T00:00:00Z") for text in said]),
    )


class Watched:
    """A sandbox that remembers the guests it gave."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.given: list[Guest] = []

    @property
    def status(self) -> SandboxStatus:
        return self._sandbox.status

    async def guest(self) -> Guest:
        guest = await self._sandbox.guest()
        self.given.append(guest)
        return guest

    async def aclose(self) -> None:
        await self._sandbox.aclose()


def is_process(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@dataclass
class Workshop:
    """One home with the agent `desk`, and an engine; `events` is all that its spine told."""

    home: Home
    agent: AgentFolder
    engine: ToolEngine
    spine: Spine
    events: list[Event]

    @staticmethod
    def make(home: Home, sandbox: Sandbox) -> Workshop:
        clock = SystemClock()
        spine = Spine(clock)
        events: list[Event] = []
        spine.subscribe(events.append)
        agent = home.agent("desk")
        for folder in (agent.tools, agent.databases, home.shared_tools):
            folder.mkdir(parents=True)
        shop = Workshop(home, agent, ToolEngine(home, sandbox, spine, clock), spine, events)
        shop.configure()
        return shop

    def configure(self, *tools: str, **more: Any) -> None:
        """Writes agent.json by hand, as a person would."""
        config = {"id": "desk", "name": "Desk", "tools": list(tools), **more}
        self.agent.config.write_text(json.dumps(config))

    def write(self, stem: str, text: str | bytes, *, shared: bool = False) -> str:
        """Writes a tool file; returns its id."""
        folder = self.home.shared_tools if shared else self.agent.tools
        data = text.encode() if isinstance(text, str) else text
        (folder / f"{stem}.tool.js").write_bytes(data)
        return stem.replace("-", "_")

    def write_enabled(self, stem: str, text: str) -> str:
        """The same, and it becomes the one tool that is enabled."""
        tool_id = self.write(stem, text)
        self.configure(tool_id)
        return tool_id

    @asynccontextmanager
    async def session(self, given: EngineHost | None = None, **options: Any) -> AsyncIterator[EngineSession]:
        session = await self.engine.open_session(self.agent, given or host(), **options)
        try:
            yield session
        finally:
            await session.aclose()

    async def outcome(
        self, text: str, value: Any = None, *, given: EngineHost | None = None, stem: str = "one-tool"
    ) -> ToolOutcome:
        """One call of a tool with this source, in a session of its own."""
        tool_id = self.write_enabled(stem, text)
        async with self.session(given) as session:
            return await session.call(tool_id, {} if value is None else value, parent=TURN)

    async def refusal(self, **options: Any) -> StyleEyesError:
        """Why no session can be opened."""
        try:
            async with self.session(**options):
                raise AssertionError("the session was opened")
        except StyleEyesError as error:
            return error

    async def told(self, kind: type[Body]) -> None:
        """Returns once an event of that kind has been emitted."""
        seen = asyncio.Event()

        def look(event: Event) -> None:
            if isinstance(event.body, kind):
                seen.set()

        unsubscribe = self.spine.subscribe(look)
        if not self.bodies(kind):
            await asyncio.wait_for(seen.wait(), 20)
        unsubscribe()

    def bodies(self, kind: type[Body]) -> list[Body]:
        return [event.body for event in self.events if isinstance(event.body, kind)]
