"""The event spine: one frozen union that screen, log file, `--json`, replay and tests all read.

An `Event` is an envelope (sequence, span, parent, times) around one frozen body. A *span* is a thing
that starts and ends: the session, a turn, a model call, a tool run, a capability call. Every body
says which span it speaks of through its envelope; nested spans carry their parent's id, so a tree
can be made from the stream alone. No secret and no pixels are ever in an event.
"""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from device.clock import Clock, iso_utc
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import SecretMask, sanitise

Level = Literal["debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """A failure as log and model see it; `line` and `column` are those of the author's file."""

    code: str
    message: str
    hint: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRef:
    """Which camera frame was used: never the pixels. Ages in ms at the moment of the snapshot."""

    id: str
    age_ms: float
    width: int
    height: int
    sharpness: float | None
    epoch: int
    captured_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTool:
    """A tool as a session pinned it."""

    id: str
    source: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one model call; None where the provider does not say.

    `images` is the part of `input` that pictures took; `image_bytes` is what was sent of them.
    """

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    images: int | None = None
    image_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    session_id: str
    mode: str
    agent_id: str
    agent_name: str
    model: str
    model_reason: str
    source: str
    sandbox: str
    tools: tuple[PinnedTool, ...]
    app_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something a person should know that belongs to no run: a missing catalog, a broken log."""

    level: Level
    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CameraChanged:
    """The camera went from one named state to another; `words` is what a person reads."""

    state: str
    words: str
    source: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """Work ahead of any question goes on: `what` in words, `done` of `total`. All of it has one span."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    question: str
    frame: FrameRef | None
    camera: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDelta:
    """A further piece of the answer's text, under the turn's span."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    ok: bool
    answer: str
    ms: float
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted:
    """A model call began; `purpose` is `turn` for the agent loop, `tool` for `ctx.llm.generate`."""

    alias: str
    model: str
    purpose: Literal["turn", "tool"]
    images: int
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWaiting:
    """The adapter waits before it tries again, under the model call's span."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFinished:
    """`said` is what the model said before it called tools: thinking aloud, not the answer."""

    ok: bool
    ms: float
    finish_reason: str | None
    usage: TokenUsage
    error: ErrorInfo | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    call_id: str
    tool: str
    source_hash: str
    input: JsonValue
    frame: FrameRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    ok: bool
    ms: float
    result: JsonValue = None
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityStarted:
    """A capability call: `kind` such as `db.query`, `target` the alias, `detail` the SQL or name."""

    kind: str
    target: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityFinished:
    ok: bool
    ms: float
    bytes: int | None = None
    rows: int | None = None
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLogged:
    level: Level
    text: str
    data: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    fraction: float
    message: str | None = None


EventBody = (
    SessionStarted
    | SessionEnded
    | Notice
    | CameraChanged
    | Preparing
    | TurnStarted
    | AnswerDelta
    | TurnFinished
    | ModelStarted
    | ModelWaiting
    | ModelFinished
    | ToolStarted
    | ToolFinished
    | CapabilityStarted
    | CapabilityFinished
    | ToolLogged
    | ToolProgressed
)


def _wire_name(body: type[object]) -> str:
    return "".join("." + c.lower() if c.isupper() else c for c in body.__name__)[1:]


BODY_BY_WIRE_NAME: dict[str, type[EventBody]] = {_wire_name(body): body for body in get_args(EventBody)}
"""`tool.started` → `ToolStarted` …; the names of the log's `type` field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of a session. `mono` is monotonic seconds of this process, `wall` ISO 8601 UTC."""

    seq: int
    span: str
    parent: str | None
    mono: float
    wall: str
    body: EventBody

    @property
    def type(self) -> str:
        return _wire_name(type(self.body))


Subscriber = Callable[[Event], None]


class Spine:
    """Makes events in order and hands each to every subscriber, in the emitting thread.

    Every string of a body is sanitised and stripped of known secrets here, so nothing that reads
    events has to. Subscribers must be quick and must not raise; the durable log subscribes first.
    """

    def __init__(self, clock: Clock, mask: SecretMask | None = None) -> None:
        self._clock = clock
        self._mask = mask or SecretMask()
        self._lock = threading.Lock()
        self._seq = 0
        self._subscribers: tuple[Subscriber, ...] = ()

    def subscribe(self, subscriber: Subscriber, *, first: bool = False) -> Callable[[], None]:
        """Adds `subscriber`, behind the others unless `first`; the result takes it away again."""
        if first:
            self._subscribers = (subscriber, *self._subscribers)
        else:
            self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)

        return unsubscribe

    def emit(self, body: EventBody, *, span: str, parent: str | None = None) -> Event:
        """Stamps `body`, publishes it and returns the event."""
        clean = self._clean(body)
        with self._lock:
            self._seq += 1
            event = Event(
                seq=self._seq,
                span=span,
                parent=parent,
                mono=self._clock.monotonic(),
                wall=iso_utc(self._clock.wall()),
                body=clean,
            )
            for subscriber in self._subscribers:
                subscriber(event)
        return event

    def _clean(self, body: EventBody) -> EventBody:
        changes = {
            field.name: _map_strings(getattr(body, field.name), self._safe)
            for field in dataclasses.fields(body)
        }
        return dataclasses.replace(body, **changes)

    def _safe(self, text: str) -> str:
        return self._mask(sanitise(text))


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with `change` applied to every string in it: dataclasses, mappings, sequences."""
    if isinstance(value, str):
        return change(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {change(str(k)): _map_strings(v, change) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_map_strings(v, change) for v in value)
    if isinstance(value, list):
        return [_map_strings(v, change) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: _map_strings(getattr(value, f.name), change) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    raise TypeError(f"{type(value).__name__} cannot be part of an event")


def new_span(kind: str) -> str:
    """A fresh span id such as `tool-3f2a9c01d4`; unique across sessions."""
    return f"{kind}-{uuid.uuid4().hex[:10]}"


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def _plain(value: Any) -> JsonValue:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(f.name): _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return cast(JsonValue, value)


def event_to_json(event: Event) -> JsonObject:
    """The event as the log line holds it: envelope first, then the body's fields in camel case."""
    fields = cast(JsonObject, _plain(event.body))
    return {
        "type": event.type,
        "seq": event.seq,
        "span": event.span,
        "parent": event.parent,
        "mono": round(event.mono, 6),
        "wall": event.wall,
        **{k: v for k, v in fields.items() if v is not None or k == "result"},
    }
