"""Turns through the loop: events, tool calls, frames, failures, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

import pytest

from edge_agent.agent.loop import TurnLoop
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolResultsMessage,
    UserMessage,
    WaitNotice,
)
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.errors import StyleEyesError
from edge_agent.events import (
    AnswerDelta,
    ErrorInfo,
    ModelFinished,
    ModelStarted,
    ModelWaiting,
    TokenUsage,
    TurnFinished,
    TurnStarted,
)
from edge_agent.json_types import JsonValue
from tests.agent.fakes import FakeTools, bench, fresh_camera, gives, no_camera

Step = list[str | ToolCall] | StyleEyesError


@dataclass
class ScriptedModel:
    """A model that says what a script says and keeps what it was asked."""

    steps: list[Step]
    asked: list[ModelRequest] = field(default_factory=list)
    wait: asyncio.Event | None = None
    closed: bool = False

    @property
    def id(self) -> str:
        return "scripted"

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        self.asked.append(replace(request, messages=list(request.messages)))
        step = self.steps.pop(0)
        if isinstance(step, StyleEyesError):
            on_wait(12.04, "rate limit")
            raise step
        try:
            for item in step:
                if isinstance(item, str):
                    yield TextDelta(item)
            if self.wait is not None:
                await self.wait.wait()
        finally:
            self.closed = True
        text = "".join(item for item in step if isinstance(item, str))
        made = [item for item in step if isinstance(item, ToolCall)]
        yield Completed(AssistantMessage(text, made, native="kept"), "STOP", TokenUsage(input=10, output=2))

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass


def search(query: str, id: str = "c1") -> ToolCall:
    return ToolCall(id, "search_catalog", {"query": query})


async def test_a_turn_runs_tools_and_answers_and_every_step_is_an_event() -> None:
    model = ScriptedModel([[search("red")], ["It is ", "a tee."]])
    tools = FakeTools(search_catalog=gives({"products": []}))
    rig = bench(model, tools, fresh_camera())
    result = await rig.loop.run("What is this?")
    assert (result.ok, result.answer, result.error, result.model) == (True, "It is a tee.", None, "scripted")
    assert result.frame is not None
    assert [(r.id, r.tool, r.ok) for r in result.tool_calls] == [("c1", "search_catalog", True)]
    assert [event.type for event in rig.recorder.events] == [
        "turn.started",
        "model.started",
        "model.finished",
        "model.started",
        "answer.delta",
        "model.finished",
        "turn.finished",
    ]
    turn_span = rig.recorder.events[0].span
    assert rig.recorder.events[0].parent == "session-1"
    assert all(e.parent == turn_span for e in rig.recorder.events if e.type.startswith("model"))
    [finished] = rig.recorder.bodies(TurnFinished)
    assert (finished.ok, finished.answer) == (True, "It is a tee.")


async def test_the_frame_goes_to_the_model_with_its_age_and_once_a_request() -> None:
    model = ScriptedModel([[search("red")], ["Red."], ["Blue."]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera(age_ms=400))
    await rig.loop.run("What is this?")
    rig.clock.now += 40
    await rig.loop.run("And what is that?")
    for request in model.asked:
        assert sum(len(m.images) for m in request.messages if isinstance(m, UserMessage)) == 1
    first, later = model.asked[0].messages[0], model.asked[2].messages[0]
    assert isinstance(first, UserMessage)
    assert isinstance(later, UserMessage)
    assert "taken 0.4 s before the question" in first.text
    assert "of 40 s ago, no longer shown" in later.text
    assert [s.images for s in rig.recorder.bodies(ModelStarted)] == [1, 1, 1]


async def test_a_question_that_needs_no_camera_takes_no_frame() -> None:
    camera = fresh_camera()
    model = ScriptedModel([["Yes."]])
    rig = bench(model, FakeTools(), camera)
    result = await rig.loop.run("Do you have green jackets?")
    assert (camera.taken, result.frame) == (0, None)
    [started] = rig.recorder.bodies(TurnStarted)
    assert "not needed" in started.camera
    [asked] = model.asked[0].messages
    assert isinstance(asked, UserMessage)
    assert asked.images == ()


async def test_no_camera_is_said_to_the_model() -> None:
    model = ScriptedModel([["I see nothing."]])
    rig = bench(model, FakeTools(), no_camera("the last frame is 22 s old"))
    result = await rig.loop.run("What is this?")
    assert result.frame is None
    [asked] = model.asked[0].messages
    assert isinstance(asked, UserMessage)
    assert "No camera frame: the last frame is 22 s old." in asked.text


async def test_parallel_calls_run_side_by_side_and_are_answered_in_call_order() -> None:
    both_run = asyncio.Barrier(2)

    async def meet(value: JsonValue, parent: str) -> ToolOutcome:
        await asyncio.wait_for(both_run.wait(), 5)
        return ToolOutcome(value=value)

    model = ScriptedModel([[search("a", "1"), search("b", "2")], ["Done."]])
    rig = bench(model, FakeTools(search_catalog=meet), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert [r.id for r in result.tool_calls] == ["1", "2"]
    results = model.asked[1].messages[-1]
    assert isinstance(results, ToolResultsMessage)
    assert [(r.call_id, r.value) for r in results.results] == [("1", {"query": "a"}), ("2", {"query": "b"})]


async def test_an_unknown_a_failing_and_a_cancelled_call_all_answer() -> None:
    async def cancelled(value: JsonValue, parent: str) -> ToolOutcome:
        raise asyncio.CancelledError

    async def raises(value: JsonValue, parent: str) -> ToolOutcome:
        raise StyleEyesError("SANDBOX_UNAVAILABLE", "No sandbox.", "Install bubblewrap.")

    async def errs(value: JsonValue, parent: str) -> ToolOutcome:
        return ToolOutcome(error=ErrorInfo(code="TIMEOUT", message="Too slow."))

    wanted = [ToolCall(str(n), name, {}) for n, name in enumerate(["nope", "a", "b", "c"])]
    model = ScriptedModel([[*wanted], ["None worked."]])
    rig = bench(model, FakeTools(a=cancelled, b=raises, c=errs), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert result.ok
    results = model.asked[1].messages[-1]
    assert isinstance(results, ToolResultsMessage)
    codes = [r.value["error"]["code"] for r in results.results]  # type: ignore[index,call-overload]
    assert codes == ["TOOL_NOT_ENABLED", "CANCELLED", "SANDBOX_UNAVAILABLE", "TIMEOUT"]
    assert [r.ok for r in result.tool_calls] == [False] * 4


async def test_words_before_a_call_are_thinking_aloud_not_the_answer() -> None:
    model = ScriptedModel([["I see a red tee. ", "Let me look.", search("red")], ["It is a tee."]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert result.answer == "It is a tee."
    assert [d.text for d in rig.recorder.bodies(AnswerDelta)] == ["It is a tee."]
    assert [f.said for f in rig.recorder.bodies(ModelFinished)] == ["I see a red tee. Let me look.", None]


async def test_a_long_answer_streams_and_what_was_shown_stays_part_of_the_answer() -> None:
    long = ["word " * 30, "word " * 30, "end."]
    model = ScriptedModel([[*long, search("red")], ["And so."]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    result = await rig.loop.run("What is this?")
    deltas = [d.text for d in rig.recorder.bodies(AnswerDelta)]
    assert len(deltas) == 3
    assert "".join(deltas) == result.answer
    assert result.answer.endswith("end.\n\nAnd so.")


async def test_after_tools_have_run_the_answer_streams_early() -> None:
    words = [
        "In the frame from 0.4 s ago I see a red tee with a round neck and short sleeves. ",
        "It is ",
        "MT01.",
    ]
    model = ScriptedModel([[search("red")], [*words]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert [d.text for d in rig.recorder.bodies(AnswerDelta)] == words
    assert result.answer == "".join(words)


async def test_without_tools_every_letter_streams() -> None:
    rig = bench(ScriptedModel([["A", " red", " tee."]]), FakeTools(), fresh_camera())
    await rig.loop.run("What is this?")
    assert [d.text for d in rig.recorder.bodies(AnswerDelta)] == ["A", " red", " tee."]


async def test_a_model_error_is_a_result_and_the_next_turn_is_valid() -> None:
    blocked = StyleEyesError("MODEL_BLOCKED", "Held back.", "Ask in other words.")
    model = ScriptedModel([[search("red")], blocked, ["Red."]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert not result.ok
    assert result.error == ErrorInfo(code="MODEL_BLOCKED", message="Held back.", hint="Ask in other words.")
    assert [(w.seconds, w.reason) for w in rig.recorder.bodies(ModelWaiting)] == [(12.0, "rate limit")]
    assert [f.ok for f in rig.recorder.bodies(ModelFinished)] == [True, False]
    await rig.loop.run("What is this?")
    history = model.asked[-1].messages
    assert [type(m).__name__ for m in history] == ["UserMessage", "AssistantMessage", "UserMessage"]
    assert isinstance(history[1], AssistantMessage)
    assert "Held back." in history[1].text


async def test_history_keeps_native_content_and_results_of_whole_turns() -> None:
    model = ScriptedModel([[search("red")], ["Red."], ["Yes."]])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    await rig.loop.run("What is this?")
    await rig.loop.run("Is that this one?")
    kinds = [type(m).__name__ for m in model.asked[2].messages]
    assert kinds == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultsMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    said = [m for m in model.asked[2].messages if isinstance(m, AssistantMessage)]
    assert [m.native for m in said] == ["kept", "kept"]


async def test_a_model_that_only_calls_tools_is_told_to_answer_and_then_stopped() -> None:
    model = ScriptedModel([[search("red", str(n))] for n in range(8)])
    rig = bench(model, FakeTools(search_catalog=gives([])), fresh_camera())
    result = await rig.loop.run("What is this?")
    assert [request.must_answer for request in model.asked] == [False] * 7 + [True]
    assert "No more tool calls" in model.asked[-1].system
    assert result.error is not None
    assert (result.error.code, len(result.tool_calls)) == ("MODEL_ERROR", 7)


async def test_a_turn_past_its_deadline_ends_as_a_result() -> None:
    model = ScriptedModel([["It"]], wait=asyncio.Event())
    rig = bench(model, FakeTools(), fresh_camera())
    result = await replace(rig.loop, deadline_s=0.05).run("What is this?")
    assert result.error is not None
    assert result.error.code == "TIMEOUT"
    assert model.closed
    assert rig.recorder.events[-1].type == "turn.finished"


@pytest.mark.parametrize("during", ["model", "tool"])
async def test_cancelling_a_turn_ends_its_work_and_leaves_a_valid_history(during: str) -> None:
    started, forever, tool_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(value: JsonValue, parent: str) -> ToolOutcome:
        started.set()
        try:
            await forever.wait()
        finally:
            tool_ended.set()
        return ToolOutcome()

    first: Step = ["It"] if during == "model" else [search("red")]
    model = ScriptedModel([first, ["Red."]], wait=asyncio.Event() if during == "model" else None)
    rig = bench(model, FakeTools(search_catalog=slow), fresh_camera())
    turn = asyncio.create_task(rig.loop.run("What is this?"))
    await _until(lambda: bool(model.asked) if during == "model" else started.is_set())
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert model.closed
    assert during == "model" or tool_ended.is_set()
    [finished] = rig.recorder.bodies(TurnFinished)
    assert finished.error is not None
    assert finished.error.code == "CANCELLED"
    model.wait = None
    assert (await rig.loop.run("What is this?")).ok
    kinds = [type(m).__name__ for m in model.asked[-1].messages]
    assert kinds == ["UserMessage", "AssistantMessage", "UserMessage"]


async def test_a_fault_of_our_own_still_ends_the_turn_in_the_log() -> None:
    async def breaks(value: JsonValue, parent: str) -> ToolOutcome:
        raise ZeroDivisionError

    rig = bench(ScriptedModel([[search("x")]]), FakeTools(search_catalog=breaks), fresh_camera())
    with pytest.raises(ZeroDivisionError):
        await rig.loop.run("What is this?")
    [finished] = rig.recorder.bodies(TurnFinished)
    assert finished.error is not None
    assert finished.error.code == "INTERNAL"


async def test_the_agents_instructions_follow_the_rules_and_tools_shape_the_flow() -> None:
    model = ScriptedModel([["Hi."], ["Hi."]])
    rig = bench(model, FakeTools(search_catalog=gives([]), match_garment=gives([])), fresh_camera())
    loop: TurnLoop = replace(rig.loop, instructions="Always mention the fabric.")
    await loop.run("What is this?")
    system = model.asked[0].system
    assert system.index("Rules that nothing overrides") < system.index("Always mention the fabric.")
    assert "hasPhotos: true" in system
    bare = bench(model, FakeTools(), fresh_camera())
    await bare.loop.run("What is this?")
    assert "No catalog tool is enabled" in model.asked[1].system


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the condition is a plain function of a fake
            await asyncio.sleep(0)
