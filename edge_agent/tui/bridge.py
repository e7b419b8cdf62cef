"""From events to Textual messages: the only place where the two meet.

Events arrive in whatever thread emitted them. The bridge does nothing there but post; folding and
drawing happen in the app's own loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.message import Message
from textual.message_pump import MessagePump

from edge_agent.events import (
    AnswerDelta,
    CameraChanged,
    ErrorInfo,
    Event,
    Notice,
    Preparing,
    SessionStarted,
    Spine,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)


class Logged(Message):
    """Every event, for the tool log."""

    def __init__(self, event: Event) -> None:
        super().__init__()
        self.event = event


class FactsKnown(Message):
    def __init__(self, facts: SessionStarted) -> None:
        super().__init__()
        self.facts = facts


class CameraMoved(Message):
    def __init__(self, change: CameraChanged) -> None:
        super().__init__()
        self.change = change


class Noticed(Message):
    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.notice = notice


class Asked(Message):
    """A turn began."""

    def __init__(self, turn: str, question: str, at: str) -> None:
        super().__init__()
        self.turn, self.question, self.at = turn, question, at


class Prepared(Message):
    """Work ahead of any question got further."""

    def __init__(self, ahead: Preparing) -> None:
        super().__init__()
        self.ahead = ahead


class AnswerGrew(Message):
    def __init__(self, turn: str, text: str) -> None:
        super().__init__()
        self.turn, self.text = turn, text


class Answered(Message):
    """A turn ended; `answer` is its whole text."""

    def __init__(self, turn: str, answer: str, error: ErrorInfo | None, ms: float) -> None:
        super().__init__()
        self.turn, self.answer, self.error, self.ms = turn, answer, error, ms


class ToolReturned(Message):
    """A tool run ended well."""

    def __init__(self, span: str, body: ToolFinished) -> None:
        super().__init__()
        self.span, self.body = span, body


def messages_of(event: Event) -> Iterator[Message]:
    """The messages an event becomes, in order."""
    yield Logged(event)
    match event.body:
        case SessionStarted() as facts:
            yield FactsKnown(facts)
        case CameraChanged() as change:
            yield CameraMoved(change)
        case Notice() as notice:
            yield Noticed(notice)
        case Preparing() as ahead:
            yield Prepared(ahead)
        case TurnStarted(question=question):
            yield Asked(event.span, question, event.wall)
        case AnswerDelta(text=text):
            yield AnswerGrew(event.span, text)
        case TurnFinished(answer=answer, error=error, ms=ms):
            yield Answered(event.span, answer, error, ms)
        case ToolFinished(ok=True) as body:
            yield ToolReturned(event.span, body)
        case _:
            pass


def connect(spine: Spine, target: MessagePump) -> Callable[[], None]:
    """Posts every event of `spine` to `target`; the returned function stops it."""

    def post(event: Event) -> None:
        for message in messages_of(event):
            target.post_message(message)

    return spine.subscribe(post)
