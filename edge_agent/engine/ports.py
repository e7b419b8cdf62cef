"""What the engine asks of its host: the camera, models, the conversation, pixels.

The engine imports nothing of the device or the agent; whoever opens an engine session hands these
in. Shapes of the values that tools see are those of the tool contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from edge_agent.events import FrameRef, TokenUsage
from edge_agent.json_types import JsonObject, JsonValue

CameraState = Literal["fresh", "stale", "none"]
Mode = Literal["wearer", "field", "demo"]


@dataclass(frozen=True, slots=True)
class HostImage:
    """An encoded image on the host side. Pixels never enter the sandbox; only handles do."""

    data: bytes
    mime_type: str
    width: int
    height: int
    source: str
    """Where it came from, as a tool and the log may see it: `camera` or `photos/mh01.jpg`."""


@dataclass(frozen=True, slots=True)
class CameraSnapshot:
    """The camera as one tool run sees it: taken once, at its start.

    `image` and `ref` are None together. `age_ms` is that of the newest frame, where there was one.
    """

    state: CameraState
    reason: str
    age_ms: float | None
    image: HostImage | None
    ref: FrameRef | None


class CameraPort(Protocol):
    """The live camera session; nothing received over 15.0 s ago can be had through it."""

    async def snapshot(self) -> CameraSnapshot:
        """The sharpest well-exposed frame of the last moments, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One toolless model call. `images` go before `prompt`, in order.

    `deadline` is the caller's, in seconds of the session's monotonic clock: an adapter does not
    wait for a retry that cannot be over by then. Enforcing it stays the caller's part.
    """

    prompt: str
    system: str | None = None
    images: Sequence[HostImage] = ()
    schema: JsonObject | None = None
    max_output_tokens: int = 2048
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class GenerateReply:
    """What a model answered. `json` is parsed and checked where a schema was given."""

    text: str
    model: str
    finish_reason: str
    usage: TokenUsage
    json: JsonValue = None


class ToolModelPort(Protocol):
    """`ctx.llm` on the host side. Raises StyleEyesError with the contract's MODEL_* codes.

    Implementations emit ModelStarted/ModelWaiting/ModelFinished on the session's spine under
    `parent`. Cancelling the awaiting task closes the request.
    """

    def aliases(self) -> frozenset[str]:
        """The aliases that exist; `default` is always one."""
        ...

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply: ...


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One message of the conversation, as `ctx.conversation.recentTurns` shows it."""

    role: Literal["user", "assistant"]
    text: str
    at: str


class ConversationPort(Protocol):
    def recent_turns(self) -> Sequence[ConversationTurn]:
        """Up to twelve newest, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """Nonsecret identity that tools may see."""

    session_id: str
    mode: Mode
    agent_id: str
    agent_name: str


@dataclass(frozen=True, slots=True)
class EngineHost:
    """All that an engine session needs of the world around it."""

    identity: SessionIdentity
    camera: CameraPort
    models: ToolModelPort
    conversation: ConversationPort
