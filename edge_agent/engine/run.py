"""One run of a tool: from a value to an outcome, within one deadline that covers everything."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import cast

from device.clock import Clock
from edge_agent.engine.broker.broker import Broker
from edge_agent.engine.broker.context import open_context
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.pinned_guest import PinnedGuest
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.run_input import check_form, checked_input, for_log
from edge_agent.engine.sandbox.api import GuestError, GuestNote, Sandbox
from edge_agent.engine.sources import read_source
from edge_agent.errors import StyleEyesError
from edge_agent.events import (
    ErrorInfo,
    FrameRef,
    Level,
    Spine,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
    new_span,
)
from edge_agent.home import AgentFolder
from edge_agent.json_types import JsonValue

_CANCELLED = ToolOutcome(
    error=ErrorInfo(code="CANCELLED", message="The call was cancelled before it was done.")
)
_LEVELS: dict[str, Level] = {"debug": "debug", "info": "info", "warn": "warn", "error": "error"}
_HINTS = {
    "MEMORY_LIMIT": "Work on less at a time; the next call starts with a fresh process.",
    "SANDBOX_CRASHED": "The next call starts with a fresh process.",
}
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a session's runs happen."""

    agent: AgentFolder
    host: EngineHost
    sandbox: Sandbox
    sql: SqlPool
    spine: Spine
    clock: Clock


class ToolRun:
    """One call of one tool. Emits ToolStarted and ToolFinished, in any case and once."""

    def __init__(self, pinned: PinnedGuest, place: RunPlace, *, call_id: str, parent: str) -> None:
        self._pinned = pinned
        self._tool = pinned.tool
        self._place = place
        self._call_id = call_id
        self._parent = parent
        self._span = new_span("tool")
        self._began = place.clock.monotonic()
        self._started = False

    async def outcome(self, value: JsonValue) -> ToolOutcome:
        """Runs the tool with `value`. A failure is an outcome; cancellation is told and raised again."""
        outcome = _CANCELLED
        try:
            outcome = ToolOutcome(value=await self._result(value))
        except TimeoutError:
            outcome = self._timed_out()
        except GuestError as failure:
            outcome = self._guest_failed(failure)
        except StyleEyesError as error:
            outcome = _failed(error)
        except Exception as error:  # the runner's border: a fault of ours must not end the session
            _LOGGER.exception("the run of %s failed", self._tool.file.id)
            message = f"The host failed while it ran the tool ({type(error).__name__})."
            outcome = ToolOutcome(error=ErrorInfo(code="TOOL_ERROR", message=message))
        finally:
            self._tell_start(value, None)
            self._tell_end(outcome)
        return outcome

    async def _result(self, value: JsonValue) -> JsonValue:
        """The tool's value. All of it is within the tool's time but for waiting until other calls of the
        same tool are done, each of which has a deadline of its own."""
        place, loop = self._place, asyncio.get_running_loop()
        left_s = self._tool.definition.timeout_ms / 1000
        async with asyncio.timeout(left_s) as limit:
            await asyncio.to_thread(self._check, value)
            input_json = await checked_input(value, self._tool.definition.check_input)
            left_s -= place.clock.monotonic() - self._began
            limit.reschedule(None)
            async with self._pinned.turn:
                limit.reschedule(loop.time() + left_s)
                self._began = place.clock.monotonic()
                text = await self._run(value, input_json, self._began + left_s)
        return cast(JsonValue, json.loads(text))

    def _check(self, value: JsonValue) -> None:
        """The file must still be the one that the session pinned, and the value JSON."""
        try:
            changed = read_source(self._tool.file).sha256 != self._tool.source.sha256
        except StyleEyesError:
            changed = True
        if changed:
            raise StyleEyesError(
                "SOURCE_CHANGED",
                f"{self._tool.file.path.name} was changed after this session started.",
                "Start a new session to use the new version.",
            )
        check_form(value)

    async def _run(self, value: JsonValue, input_json: str, deadline: float) -> str:
        place, capabilities = self._place, self._tool.definition.capabilities
        images = ImageTable()
        context = await open_context(capabilities, place.host, images, place.clock)
        self._tell_start(value, context.frame)
        broker = Broker(
            capabilities,
            place.agent.data,
            place.host,
            images,
            place.sql,
            place.spine,
            place.clock,
            self._span,
            deadline=deadline,
        )
        guest = await self._pinned.ready(self._until(deadline))
        return await guest.run(
            self._span,
            context.json,
            input_json,
            timeout_s=self._until(deadline),
            on_request=broker.handle,
            on_note=self._note,
        )

    def _until(self, deadline: float) -> float:
        return max(0.001, deadline - self._place.clock.monotonic())

    def _tell_start(self, value: JsonValue, frame: FrameRef | None) -> None:
        """Once the frame is known, or the run has ended before that."""
        if self._started:
            return
        self._started = True
        self._place.spine.emit(
            ToolStarted(
                call_id=self._call_id,
                tool=self._tool.file.id,
                source_hash=self._tool.source.sha256,
                input=for_log(value),
                frame=frame,
            ),
            span=self._span,
            parent=self._parent,
        )

    def _tell_end(self, outcome: ToolOutcome) -> None:
        ms = (self._place.clock.monotonic() - self._began) * 1000
        body = ToolFinished(ok=outcome.ok, ms=ms, result=outcome.value, error=outcome.error)
        self._place.spine.emit(body, span=self._span, parent=self._parent)

    def _note(self, note: GuestNote) -> None:
        body: ToolLogged | ToolProgressed
        if note.kind == "progress":
            body = ToolProgressed(fraction=note.fraction or 0.0, message=note.text or None)
        else:
            level = _LEVELS.get(note.level, "info")
            body = ToolLogged(level=level, text=note.text, data=_note_data(note.data_json))
        self._place.spine.emit(body, span=self._span, parent=self._parent)

    def _timed_out(self) -> ToolOutcome:
        return ToolOutcome(
            error=ErrorInfo(
                code="TIMEOUT",
                message=f"The tool did not finish within {self._tool.definition.timeout_ms:,} ms.",
                hint="Its timeoutMs covers everything: waiting, SQL and model calls too.",
            )
        )

    def _guest_failed(self, failure: GuestError) -> ToolOutcome:
        if failure.code == "TIMEOUT":
            return self._timed_out()
        return ToolOutcome(
            error=ErrorInfo(
                code=failure.code,
                message=failure.message,
                hint=_HINTS.get(failure.code),
                line=failure.line,
                column=failure.column,
            )
        )


def _failed(error: StyleEyesError) -> ToolOutcome:
    return ToolOutcome(
        error=ErrorInfo(
            code=error.code,
            message=error.message,
            hint=error.hint,
            line=error.at.line if error.at else None,
            column=error.at.column if error.at else None,
        )
    )


def _note_data(text: str | None) -> JsonValue:
    """A log line's data; a guest may send what only looks like JSON, and a line is not worth a failure."""
    try:
        return None if text is None else cast(JsonValue, json.loads(text, parse_constant=str))
    except (ValueError, RecursionError):
        return None
