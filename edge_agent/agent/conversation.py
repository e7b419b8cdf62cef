"""The conversation: what was said, what the model is shown of it, and what tools may see.

A turn is either whole or a pair of texts, so the history a model gets is always valid: every tool
call in it is answered. Older turns shrink to question and answer, then leave altogether, when the
token budget asks for it; only the newest turn's frame is ever sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from device.clock import Clock, iso_utc
from edge_agent.agent.models.protocol import AssistantMessage, Message, ToolResultsMessage, UserMessage
from edge_agent.agent.prompts import past_question_text, question_text
from edge_agent.engine.ports import CameraSnapshot, ConversationTurn, HostImage
from edge_agent.events import FrameRef

TOKEN_BUDGET = 24_000
WHOLE_TURNS = 3
"""How many past turns keep their tool calls and results; older ones are question and answer."""
_MOST_RECENT = 12
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_100
"""An upper figure for a picture of 1024×768 (Gemini: 258 tokens for each 768-pixel tile)."""


@dataclass(slots=True)
class Turn:
    """One question and what came of it. Open until `Conversation.finish`."""

    question: str
    asked_mono: float
    asked_at: str
    image: HostImage | None
    frame: FrameRef | None
    camera: str
    steps: list[AssistantMessage | ToolResultsMessage] = field(default_factory=list)
    answer: str | None = None
    answered_at: str = ""
    whole: bool = True
    """Whether `steps` are a valid sequence that ends in the answer; else only the texts count."""

    def shown_now(self) -> UserMessage:
        """The open turn's question with its frame."""
        return UserMessage(
            text=question_text(self.question, self.frame, self.camera),
            images=() if self.image is None else (self.image,),
            question=self.question,
            frame=self.frame,
            camera=self.camera,
        )

    def shown_later(self, now: float, *, with_steps: bool) -> list[Message]:
        """The turn as a part of history: never pixels, and steps only if whole."""
        age = now - self.asked_mono + (self.frame.age_ms / 1000 if self.frame else 0.0)
        text = past_question_text(self.question, self.frame, age)
        asked = UserMessage(text=text, question=self.question, camera=self.camera)
        if with_steps and self.whole:
            return [asked, *self.steps]
        return [asked, AssistantMessage(text=self.answer or "(no answer)")]


class Conversation:
    """The turns of one session, newest last; implements the engine's ConversationPort."""

    def __init__(self, clock: Clock, token_budget: int = TOKEN_BUDGET) -> None:
        self._clock = clock
        self._budget = token_budget
        self._turns: list[Turn] = []

    def begin(self, question: str, snapshot: CameraSnapshot | None) -> Turn:
        """Opens a turn. `snapshot` None means that the question does not need the camera."""
        turn = Turn(
            question=question,
            asked_mono=self._clock.monotonic(),
            asked_at=iso_utc(self._clock.wall()),
            image=snapshot.image if snapshot else None,
            frame=snapshot.ref if snapshot else None,
            camera=snapshot.reason if snapshot and snapshot.image is None else "",
        )
        self._turns.append(turn)
        return turn

    def finish(self, turn: Turn, answer: str, *, whole: bool) -> None:
        """Closes a turn. Not `whole` (failed, cancelled): its steps are dropped, its texts stay."""
        turn.answer = answer
        turn.answered_at = iso_utc(self._clock.wall())
        turn.whole = whole
        turn.image = None
        if not whole:
            turn.steps.clear()

    def messages(self, turn: Turn) -> list[Message]:
        """What the model is shown for `turn`: history within the budget, then the turn itself."""
        current: list[Message] = [turn.shown_now(), *turn.steps]
        left = self._budget - tokens_of(current)
        now = self._clock.monotonic()
        past = [t for t in self._turns if t is not turn and t.answer is not None]
        history: list[Message] = []
        for back, earlier in enumerate(reversed(past)):
            shown = earlier.shown_later(now, with_steps=back < WHOLE_TURNS)
            if tokens_of(shown) > left:
                shown = earlier.shown_later(now, with_steps=False)
            cost = tokens_of(shown)
            if cost > left:
                break
            left -= cost
            history[:0] = shown
        return [*history, *current]

    def recent_turns(self) -> Sequence[ConversationTurn]:
        """Up to twelve newest messages, oldest first; the open question is the last of them."""
        said: list[ConversationTurn] = []
        for turn in self._turns[-_MOST_RECENT:]:
            said.append(ConversationTurn(role="user", text=turn.question, at=turn.asked_at))
            if turn.answer is not None:
                said.append(ConversationTurn(role="assistant", text=turn.answer, at=turn.answered_at))
        return said[-_MOST_RECENT:]


def tokens_of(messages: Sequence[Message]) -> int:
    """A rough count of tokens: four characters each, a fixed figure for a picture."""
    total = 0
    for message in messages:
        match message:
            case UserMessage():
                total += len(message.text) // _CHARACTERS_PER_TOKEN + len(message.images) * _TOKENS_PER_IMAGE
            case AssistantMessage():
                calls = sum(len(json.dumps(call.arguments)) for call in message.tool_calls)
                total += (len(message.text) + calls) // _CHARACTERS_PER_TOKEN
            case ToolResultsMessage():
                results = sum(len(json.dumps(result.value)) for result in message.results)
                total += results // _CHARACTERS_PER_TOKEN
    return total
