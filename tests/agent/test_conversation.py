"""What of the conversation a model is shown, and what tools may see."""

from __future__ import annotations

from edge_agent.agent.conversation import Conversation, tokens_of
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    ToolResultsMessage,
    UserMessage,
)
from edge_agent.engine.ports import CameraSnapshot
from tests.agent.fakes import FakeClock, frame_ref, picture

BIG = "x" * 4000


def talked(turns: int, *, budget: int = 24_000, result: str = "r") -> tuple[Conversation, list[Message]]:
    """A conversation of `turns` whole turns with a tool call each, and what a further one is shown."""
    clock = FakeClock()
    conversation = Conversation(clock, budget)
    for number in range(turns):
        snapshot = CameraSnapshot("fresh", "fresh", 400, picture(), frame_ref())
        turn = conversation.begin(f"question {number}", snapshot)
        turn.steps += [
            AssistantMessage("", [ToolCall("1", "t", {})]),
            ToolResultsMessage([ToolResult("1", "t", result)]),
            AssistantMessage(f"answer {number}"),
        ]
        conversation.finish(turn, f"answer {number}", whole=True)
        clock.now += 10
    return conversation, conversation.messages(conversation.begin("now", None))


def calls_are_answered(messages: list[Message]) -> bool:
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultsMessage):
            if [r.call_id for r in message.results] != open_calls:
                return False
            open_calls = []
        elif open_calls:
            return False
        elif isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.tool_calls]
    return not open_calls


def test_older_turns_shrink_to_question_and_answer() -> None:
    _, shown = talked(5)
    kinds = [type(m).__name__[0] for m in shown]
    assert "".join(kinds) == "UA" * 2 + "UATA" * 3 + "U"
    assert calls_are_answered(shown)


def test_old_frames_are_never_sent_and_their_age_is_told() -> None:
    _, shown = talked(2)
    asked = [m for m in shown if isinstance(m, UserMessage)]
    assert all(not m.images for m in asked)
    assert "of 20 s ago" in asked[0].text
    assert "of 10 s ago" in asked[1].text


def test_turns_beyond_the_token_budget_leave_and_what_stays_is_valid() -> None:
    for budget in (100, 1500, 3000, 6000):
        _, shown = talked(9, budget=budget, result=BIG)
        assert calls_are_answered(shown)
        assert tokens_of(shown) <= budget
        last = shown[-1]
        assert isinstance(last, UserMessage)
        assert last.question == "now"
    _, shown = talked(9, budget=3000, result=BIG)
    assert any(isinstance(m, ToolResultsMessage) for m in shown)
    assert len(shown) > 5


def test_the_newest_question_is_shown_even_when_it_alone_exceeds_the_budget() -> None:
    conversation = Conversation(FakeClock(), token_budget=10)
    [only] = conversation.messages(conversation.begin("q" * 400, None))
    assert isinstance(only, UserMessage)


def test_a_turn_that_failed_stays_as_text_only() -> None:
    conversation = Conversation(FakeClock())
    turn = conversation.begin("first", None)
    turn.steps.append(AssistantMessage("", [ToolCall("1", "t", {})]))
    conversation.finish(turn, "[The turn was cancelled.]", whole=False)
    shown = conversation.messages(conversation.begin("second", None))
    assert [type(m).__name__ for m in shown] == ["UserMessage", "AssistantMessage", "UserMessage"]


def test_tools_see_at_most_twelve_messages_oldest_first_with_the_open_question_last() -> None:
    conversation, _ = talked(9)
    recent = conversation.recent_turns()
    assert len(recent) == 12
    assert recent[-1].text == "now"
    assert [t.role for t in recent[-3:]] == ["user", "assistant", "user"]
    assert [t.at for t in recent] == sorted(t.at for t in recent)
    assert recent[-1].at.endswith("Z")


def test_pixels_are_dropped_when_a_turn_ends() -> None:
    conversation = Conversation(FakeClock())
    turn = conversation.begin("q", CameraSnapshot("fresh", "fresh", 400, picture(), frame_ref()))
    conversation.finish(turn, "a", whole=True)
    assert turn.image is None
