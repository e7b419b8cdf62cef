"""One turn: a question in, an answer out, through model calls and tool calls, all of it as events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from device.clock import Clock
from edge_agent.agent.answer_text import AnswerText
from edge_agent.agent.calls import (
    ToolCaller,
    ToolCallRecord,
    ToolCalls,
    declarations_for_model,
    error_info,
)
from edge_agent.agent.conversation import Conversation, Turn
from edge_agent.agent.model_call import ModelCall
from edge_agent.agent.models.protocol import (
    ChatModel,
    Completed,
    ModelRequest,
    TextDelta,
    ToolResultsMessage,
    UserMessage,
)
from edge_agent.agent.prompts import ANSWER_NOW, system_prompt
from edge_agent.agent.question import read_question
from edge_agent.engine.ports import CameraPort
from edge_agent.errors import StyleEyesError
from edge_agent.events import (
    AnswerDelta,
    ErrorInfo,
    FrameRef,
    Spine,
    TurnFinished,
    TurnStarted,
    new_span,
)
from edge_agent.text import sanitise

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

MOST_MODEL_CALLS = 8
TURN_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to. `error` is None exactly when `ok`; `frame` is the one the model saw."""

    ok: bool
    answer: str
    error: ErrorInfo | None
    tool_calls: tuple[ToolCallRecord, ...]
    frame: FrameRef | None
    model: str


def question_needs_camera(question: str) -> bool:
    """The default for `TurnLoop.needs_camera`: true unless the words clearly do without."""
    return read_question(question).needs_camera


@dataclass(frozen=True, slots=True)
class TurnLoop:
    """Runs the turns of one session, one at a time.

    `deadline_s` bounds a whole turn; `needs_camera` decides from the question whether a frame is
    taken and sent. A failure is a result, never an exception; only cancellation is raised again.
    """

    model: ChatModel
    tools: ToolCaller
    camera: CameraPort
    conversation: Conversation
    spine: Spine
    clock: Clock
    session_span: str
    agent_name: str = "StyleEyes"
    instructions: str = ""
    most_model_calls: int = MOST_MODEL_CALLS
    deadline_s: float = TURN_DEADLINE_S
    needs_camera: Callable[[str], bool] = question_needs_camera

    async def run(self, question: str) -> TurnResult:
        """One turn. Cancelling the task ends the model's request and the tools' work; the
        conversation then holds the question and that it was cancelled."""
        question = sanitise(question).strip() or "What am I looking at?"
        started = self.clock.monotonic()
        snapshot = await self.camera.snapshot() if self.needs_camera(question) else None
        turn = self.conversation.begin(question, snapshot)
        span = new_span("turn")
        camera = snapshot.reason if snapshot else "not needed for this question"
        self.spine.emit(
            TurnStarted(question=question, frame=turn.frame, camera=camera),
            span=span,
            parent=self.session_span,
        )
        steps = _Steps(self, turn, span, started + self.deadline_s)
        error: ErrorInfo | None = None
        try:
            async with asyncio.timeout(self.deadline_s):
                await steps.run()
        except StyleEyesError as failure:
            error = error_info(failure)
        except TimeoutError:
            error = self._too_late()
        except asyncio.CancelledError:
            error = ErrorInfo(code="CANCELLED", message="The turn was cancelled.")
            raise
        except BaseException as fault:
            error = _own_fault(fault)
            raise
        finally:
            answer = steps.text.whole
            remembered = answer if error is None else f"{answer} [{error.message}]".strip()
            self.conversation.finish(turn, remembered, whole=error is None)
            ms = (self.clock.monotonic() - started) * 1000
            self.spine.emit(
                TurnFinished(ok=error is None, answer=answer, ms=ms, error=error),
                span=span,
                parent=self.session_span,
            )
        return TurnResult(
            ok=error is None,
            answer=answer,
            error=error,
            tool_calls=tuple(steps.calls.records),
            frame=turn.frame,
            model=self.model.id,
        )

    def _too_late(self) -> ErrorInfo:
        return ErrorInfo(
            code="TIMEOUT",
            message=f"There was no answer within {self.deadline_s:.0f} s.",
            hint="Ask again, or ask for less at once.",
        )


class _Steps:
    """The model calls and tool calls of one turn."""

    def __init__(self, loop: TurnLoop, turn: Turn, span: str, deadline: float) -> None:
        self._loop = loop
        self._turn = turn
        self._span = span
        self._deadline = deadline
        self._declarations = declarations_for_model(loop.tools)
        self._system = system_prompt(loop.agent_name, self._declarations, loop.instructions)
        self.calls = ToolCalls(loop.tools, loop.clock, span)
        self.text = AnswerText(self._publish)

    async def run(self) -> None:
        """Runs until the model answers; raises StyleEyesError when it does not."""
        for step in range(1, self._loop.most_model_calls + 1):
            last = step == self._loop.most_model_calls
            completed = await self._ask_model(last=last)
            self._turn.steps.append(completed.message)
            if completed.message.tool_calls and last:
                break
            if not completed.message.tool_calls:
                if not self.text.whole.strip():
                    raise StyleEyesError("MODEL_ERROR", "The model gave no answer.", "Ask again.")
                return
            self._turn.steps.append(await self.calls.run(completed.message.tool_calls))
        raise StyleEyesError(
            "MODEL_ERROR",
            f"The model kept calling tools and gave no answer in {self._loop.most_model_calls} steps.",
            "Ask again, more precisely, or choose another model.",
        )

    async def _ask_model(self, *, last: bool) -> Completed:
        loop = self._loop
        request = ModelRequest(
            system=f"{self._system}\n\n{ANSWER_NOW}" if last else self._system,
            messages=loop.conversation.messages(self._turn),
            tools=self._declarations,
            deadline=self._deadline,
            must_answer=last,
        )
        if last or not self._declarations:
            self.text.step_cannot_call()
        sent = [image for m in request.messages if isinstance(m, UserMessage) for image in m.images]
        async with ModelCall(
            loop.spine,
            loop.clock,
            parent=self._span,
            alias="agent",
            model=loop.model.id,
            purpose="turn",
            images=len(sent),
            prompt=self._prompt_words(),
        ) as call:
            # Adapters are async generators; closing one closes its request.
            stream = cast(
                "AsyncGenerator[TextDelta | Completed, None]",
                loop.model.stream(request, on_wait=call.waiting),
            )
            completed: Completed | None = None
            async with aclosing(stream) as items:
                async for item in items:
                    if isinstance(item, TextDelta):
                        self.text.add(item.text)
                    else:
                        completed = item
            if completed is None:
                raise StyleEyesError("MODEL_ERROR", "The model's answer broke off.", "Ask again.")
            said = None
            if completed.message.tool_calls:
                said = self.text.step_called_tools()
            else:
                self.text.step_answered()
            call.finished(completed.finish_reason, completed.usage, said=said)
        return completed

    def _prompt_words(self) -> str:
        """What is new for the model in this step, for the log."""
        newest = self._turn.steps[-1] if self._turn.steps else None
        if isinstance(newest, ToolResultsMessage):
            return "Results of " + ", ".join(result.name for result in newest.results)
        return self._turn.shown_now().text

    def _publish(self, text: str) -> None:
        self._loop.spine.emit(AnswerDelta(text=text), span=self._span, parent=self._loop.session_span)


def _own_fault(fault: BaseException) -> ErrorInfo:
    return ErrorInfo(
        code="INTERNAL",
        message=f"The turn ended by a fault in StyleEyes itself ({type(fault).__name__}).",
        hint="Please report it, with the session's log.",
    )
