"""The span tree: a session's events folded into turns, model calls, tool runs and capability calls.

Pure: no clock, no screen. The live tool log, `session show` and replay all fold the same events
through here, so they cannot disagree. The tree is bounded: when it grows past `max_nodes`, whole
old entries under the root go first (`Change.removed`), and a single turn that alone is too big
stops growing and counts what it left out (`SpanNode.left_out`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from edge_agent.events import (
    AnswerDelta,
    CameraChanged,
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    Event,
    EventBody,
    FrameRef,
    ModelFinished,
    ModelStarted,
    ModelWaiting,
    Notice,
    Preparing,
    SessionEnded,
    SessionStarted,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)

Kind = Literal["session", "turn", "model", "tool", "capability", "line"]
State = Literal["running", "ok", "failed", "cancelled", "cut off"]
"""`cut off`: its parent ended, and it never said how it ended itself (a crash, a killed session)."""

Finish = TurnFinished | ModelFinished | ToolFinished | CapabilityFinished | SessionEnded

DEFAULT_MAX_NODES = 1500


@dataclass(slots=True, eq=False, kw_only=True)
class SpanNode:
    """One entry of the log. `began` and `ended` are monotonic seconds of the process that wrote it."""

    id: str
    kind: Kind
    parent: SpanNode | None
    start: EventBody | None
    """The body that opened it; None when the log holds only its end. For a line, the line itself."""
    began: float
    wall: str
    state: State = "running"
    finish: Finish | None = None
    ended: float | None = None
    progress: ToolProgressed | None = None
    waiting: ModelWaiting | None = None
    children: list[SpanNode] = field(default_factory=list)
    left_out: int = 0
    revision: int = 0
    """Grows with every change, so that a reader knows when to draw anew."""

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def depth(self) -> int:
        """0 for the session itself, 1 for a turn."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def turn(self) -> SpanNode | None:
        """The turn it belongs to, itself included."""
        node: SpanNode | None = self
        while node is not None and node.kind != "turn":
            node = node.parent
        return node

    @property
    def error(self) -> ErrorInfo | None:
        return None if self.finish is None or isinstance(self.finish, SessionEnded) else self.finish.error

    @property
    def frame(self) -> FrameRef | None:
        """The camera frame it used, where it says so."""
        return self.start.frame if isinstance(self.start, TurnStarted | ToolStarted) else None

    @property
    def capability_calls(self) -> int:
        """Calls made so far that count towards a tool run's 32."""
        return sum(1 for child in self.children if child.kind == "capability")

    def elapsed_ms(self, now: float) -> float:
        """How long it took, or has been taking at monotonic `now`; the finished event's figure wins."""
        if self.finish is not None and not isinstance(self.finish, SessionEnded):
            return self.finish.ms
        return max(0.0, (now if self.ended is None else self.ended) - self.began) * 1000

    def walk(self) -> Iterator[SpanNode]:
        """Itself and all below it, in log order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Change:
    """What one event did: the entries that look different now, and those that left the tree."""

    changed: tuple[SpanNode, ...] = ()
    removed: tuple[SpanNode, ...] = ()


class SpanTree:
    """Folds events, in order, into a bounded tree. Tolerates logs with gaps; never raises on one."""

    def __init__(self, max_nodes: int = DEFAULT_MAX_NODES) -> None:
        self._max_nodes = max_nodes
        self._nodes: dict[str, SpanNode] = {}
        self.root = SpanNode(
            id="session", kind="session", parent=None, start=None, began=0.0, wall="", state="running"
        )
        self.removed_entries = 0
        """Old entries under the root that made room for new ones."""

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, span: str) -> SpanNode | None:
        """The entry of a span id, while the tree still holds it."""
        return self._nodes.get(span)

    @property
    def facts(self) -> SessionStarted | None:
        """What the session said of itself when it started."""
        return self.root.start if isinstance(self.root.start, SessionStarted) else None

    @property
    def turns(self) -> tuple[SpanNode, ...]:
        return tuple(node for node in self.root.children if node.kind == "turn")

    def apply(self, event: Event) -> Change:
        """Takes in the next event and says what changed."""
        match event.body:
            case SessionStarted():
                self.root.id, self.root.start = event.span, event.body
                self.root.began, self.root.wall = event.mono, event.wall
                return self._touched(self.root)
            case SessionEnded():
                return self._end(self.root, event, event.body, "ok")
            case TurnStarted():
                return self._open(event, "turn")
            case ModelStarted():
                return self._open(event, "model")
            case ToolStarted():
                return self._open(event, "tool")
            case CapabilityStarted():
                return self._open(event, "capability")
            case TurnFinished():
                return self._finish(event, event.body, "turn")
            case ModelFinished():
                return self._finish(event, event.body, "model")
            case ToolFinished():
                return self._finish(event, event.body, "tool")
            case CapabilityFinished():
                return self._finish(event, event.body, "capability")
            case ToolLogged():
                return self._line(event, self._nodes.get(event.span, self.root))
            case Notice() | CameraChanged():
                return self._line(event, self.root)
            case Preparing():
                if (node := self._nodes.get(event.span)) is None:
                    return self._line(event, self.root, event.span)
                node.start = event.body
                return self._touched(node)
            case ToolProgressed():
                if (node := self._nodes.get(event.span)) is not None and node.running:
                    node.progress = event.body
                    return self._touched(node)
            case ModelWaiting():
                if (node := self._nodes.get(event.span)) is not None and node.running:
                    node.waiting = event.body
                    return self._touched(node)
            case AnswerDelta():
                pass
        return Change()

    def _open(self, event: Event, kind: Kind) -> Change:
        parent = self.root if kind == "turn" else self._parent_of(event)
        node = SpanNode(
            id=event.span, kind=kind, parent=parent, start=event.body, began=event.mono, wall=event.wall
        )
        return self._add(node)

    def _line(self, event: Event, parent: SpanNode, id: str | None = None) -> Change:
        node = SpanNode(
            id=id or f"{event.span}#{event.seq}",
            kind="line",
            parent=parent,
            start=event.body,
            began=event.mono,
            wall=event.wall,
            state="ok",
            ended=event.mono,
        )
        return self._add(node)

    def _finish(self, event: Event, body: Finish, kind: Kind) -> Change:
        node = self._nodes.get(event.span)
        if node is None:
            parent = self._parent_of(event)
            if parent.left_out:
                return Change()
            node = SpanNode(
                id=event.span, kind=kind, parent=parent, start=None, began=event.mono, wall=event.wall
            )
            self._add(node)
        error = None if isinstance(body, SessionEnded) else body.error
        failed: State = "cancelled" if error is not None and error.code == "CANCELLED" else "failed"
        ok = isinstance(body, SessionEnded) or body.ok
        return self._end(node, event, body, "ok" if ok else failed)

    def _end(self, node: SpanNode, event: Event, body: Finish, state: State) -> Change:
        node.finish, node.state, node.ended, node.waiting = body, state, event.mono, None
        changed = [node]
        for below in node.walk():
            if below is not node and below.running:
                below.state, below.ended = ("cancelled" if state == "cancelled" else "cut off"), event.mono
                changed.append(below)
        return self._touched(*changed)

    def _parent_of(self, event: Event) -> SpanNode:
        return self._nodes.get(event.parent or "", self.root)

    def _add(self, node: SpanNode) -> Change:
        assert node.parent is not None
        removed = self._make_room(node.turn)
        if len(self._nodes) >= self._max_nodes and node.kind != "turn":
            node.parent.left_out += 1
            return Change(self._touched(node.parent).changed, removed)
        self._nodes[node.id] = node
        node.parent.children.append(node)
        return Change(self._touched(node, node.parent).changed, removed)

    def _make_room(self, keep: SpanNode | None) -> tuple[SpanNode, ...]:
        removed: list[SpanNode] = []
        while len(self._nodes) >= self._max_nodes:
            oldest = next((n for n in self.root.children if n is not keep and not n.running), None)
            if oldest is None:
                break
            self.root.children.remove(oldest)
            self.removed_entries += 1
            for gone in oldest.walk():
                self._nodes.pop(gone.id, None)
                removed.append(gone)
        return tuple(removed)

    @staticmethod
    def _touched(*nodes: SpanNode) -> Change:
        for node in nodes:
            node.revision += 1
        return Change(changed=nodes)
