"""One protocol for every model behind the agent: Gemini, offline, OpenAI-compatible servers.

The turn loop speaks neutral messages; an adapter may hang its own native content on an assistant
message (`native`) and gets it back verbatim in the next request, so that nothing a provider needs
(thought signatures, ids) is ever lost or reordered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from edge_agent.engine.ports import GenerateReply, GenerateRequest, HostImage
from edge_agent.events import FrameRef, TokenUsage
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.styleeyes.photo_list import CatalogPhoto


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool as a model sees it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for; `id` is the provider's, or made by the adapter."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the wearer said, with the images that go before the text.

    `text` already names the frame and its age for a model that reads; `question` is the wearer's
    own words, and `frame` and `camera` say the same in a form that code can read.
    """

    text: str
    images: Sequence[HostImage] = ()
    question: str = ""
    frame: FrameRef | None = None
    camera: str = ""


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    text: str
    tool_calls: Sequence[ToolCall] = ()
    native: object | None = None
    """The adapter's own content, kept verbatim; opaque to everybody else."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`value` is the tool's JSON result, or `{"error": {...}}`."""

    call_id: str
    name: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class ToolResultsMessage:
    """All results of one assistant message, in call order; none is ever missing."""

    results: Sequence[ToolResult]


Message = UserMessage | AssistantMessage | ToolResultsMessage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step of a turn. `deadline` as in `GenerateRequest`; with `must_answer` the model may no
    longer call tools and has to answer from what it has."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolDeclaration]
    deadline: float | None = None
    must_answer: bool = False


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The last item of a stream."""

    message: AssistantMessage
    finish_reason: str
    usage: TokenUsage = field(default_factory=TokenUsage)


WaitNotice = Callable[[float, str], None]
"""Called with (seconds, reason) when an adapter waits before a retry."""


class ChatModel(Protocol):
    """A model behind the agent. Raises StyleEyesError with MODEL_ERROR, MODEL_BLOCKED,
    MODEL_TRUNCATED or MODEL_UNAVAILABLE. Cancelling the consumer closes the request. Deadlines are
    the caller's (`asyncio.timeout`)."""

    @property
    def id(self) -> str:
        """`gemini-…`, `offline`, `openai:BASE#MODEL`; never holds a credential."""
        ...

    def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]: ...

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        """One toolless call, as `ctx.llm.generate` needs it."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Preparable(Protocol):
    """A model whose first question would wait for something that can be done ahead."""

    async def prepare(self) -> None: ...


@runtime_checkable
class LooksAhead(Protocol):
    """A model that answers sooner about catalog photos that it has looked at before."""

    async def look_ahead(
        self, photos: Sequence[CatalogPhoto], between: Callable[[int], Awaitable[None]]
    ) -> None:
        """Looks at `photos`, at low priority; after each, `between` is awaited with the count so far.
        Cancelling ends it."""
        ...
