"""One run of a tool: from checked input to an outcome, within one deadline that covers everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from device.clock import Clock
from edge_agent.engine.broker.broker import Broker
from edge_agent.engine.broker.context import open_context
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.limits import MAX_ARGUMENT_DEPTH, MAX_JSON_BYTES
from edge_agent.engine.broker.requests import depth_exceeds
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.inspection import InspectedTool, load
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.run_input import checked_input
from edge_agent.engine.sandbox.api import Guest, GuestError, GuestNote, Sandbox
from edge_agent.engine.sources import read_source
from edge_agent.errors import SourcePosition, StyleEyesError
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

StartTold = Callable[[FrameRef | None], None]
"""Called once the run's camera frame is known; tells the log that the run began."""

_LEVELS: dict[str, Level] = {
    "debug": "debug",
    "info": "info",
    "warn": "warn",
    "error": "error",
    "log": "info",
}


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a session's runs happen."""

    agent: AgentFolder
    host: EngineHost
    sandbox: Sandbox
    sql: SqlPool
    spine: Spine
    clock: Clock


class PinnedGuest:
    """The process of one tool revision in one session: loaded once, kept between calls.

    Calls of the same tool wait for each other, because a module's own variables are shared by its
    calls and two at once would see each other's.
    """

    def __init__(self, tool: InspectedTool, sandbox: Sandbox) -> None:
        self.tool = tool
        self.turn = asyncio.Lock()
        self._sandbox = sandbox
        self._guest: Guest | None = None

    async def ready(self, timeout_s: float) -> Guest:
        """The loaded guest; a new one where the last has ended. Hold `turn`."""
        if self._guest is None or not self._guest.alive:
            guest = await self._sandbox.guest()
            try:
                await load(guest, self.tool.source, self.tool.file, timeout_s)
            except BaseException:
                await guest.kill()
                raise
            self._guest = guest
        return self._guest

    async def end(self) -> None:
        guest, self._guest = self._guest, None
        if guest is not None:
            await guest.kill()


class ToolRun:
    """One call of one tool."""

    def __init__(self, pinned: PinnedGuest, place: RunPlace, *, call_id: str, parent: str) -> None:
        self._pinned = pinned
        self._tool = pinned.tool
        self._place = place
        self._call_id = call_id
        self._parent = parent
        self._span = new_span("tool")

    async def outcome(self, value: JsonValue) -> ToolOutcome:
        """Runs the tool with `value`. A failure is an outcome; cancellation is told and raised again."""
        clock = self._place.clock
        began = clock.monotonic()
        timeout_s = self._tool.definition.timeout_ms / 1000
        started = False

        def start(frame: FrameRef | None) -> None:
            nonlocal started
            if not started:
                started = True
                self._emit_start(value, frame)

        outcome = ToolOutcome(
            error=ErrorInfo(code="CANCELLED", message="The call was cancelled before it was done.")
        )
        try:
            async with asyncio.timeout(timeout_s):
                outcome = ToolOutcome(value=await self._result(value, began + timeout_s, start))
        except TimeoutError:
            outcome = ToolOutcome(
                error=ErrorInfo(
                    code="TIMEOUT",
                    message=f"The tool did not finish within {self._tool.definition.timeout_ms:,} ms.",
                    hint="Its timeoutMs covers everything: waiting, SQL and model calls too.",
                )
            )
        except GuestError as failure:
            outcome = ToolOutcome(
                error=ErrorInfo(
                    code=failure.code, message=failure.message, line=failure.line, column=failure.column
                )
            )
        except StyleEyesError as error:
            at: SourcePosition | None = error.at
            outcome = ToolOutcome(
                error=ErrorInfo(
                    code=error.code,
                    message=error.message,
                    hint=error.hint,
                    line=at.line if at else None,
                    column=at.column if at else None,
                )
            )
        finally:
            start(None)
            self._place.spine.emit(
                ToolFinished(
                    ok=outcome.ok,
                    ms=(clock.monotonic() - began) * 1000,
                    result=outcome.value,
                    error=outcome.error,
                ),
                span=self._span,
                parent=self._parent,
            )
        return outcome

    async def _result(self, value: JsonValue, deadline: float, start: StartTold) -> JsonValue:
        place, definition = self._place, self._tool.definition
        await self._check_source()
        input_json = await asyncio.to_thread(checked_input, value, definition.check_input)
        async with self._pinned.turn:
            images = ImageTable()
            context = await open_context(definition.capabilities, place.host, images, place.clock)
            start(context.frame)
            broker = Broker(
                definition.capabilities,
                place.agent.data,
                place.host,
                images,
                place.sql,
                place.spine,
                place.clock,
                self._span,
                deadline=deadline,
            )
            guest = await self._pinned.ready(deadline - place.clock.monotonic())
            result = await guest.run(
                self._span,
                context.json,
                input_json,
                timeout_s=max(0.001, deadline - place.clock.monotonic()),
                on_request=broker.handle,
                on_note=self._note,
            )
        return _parse_result(result)

    async def _check_source(self) -> None:
        """The file must still be the one that the session pinned."""
        try:
            now = await asyncio.to_thread(read_source, self._tool.file)
            unchanged = now.sha256 == self._tool.source.sha256
        except StyleEyesError:
            unchanged = False
        if not unchanged:
            raise StyleEyesError(
                "SOURCE_CHANGED",
                f"{self._tool.file.path.name} was changed after this session started.",
                "Start a new session to use the new version.",
            )

    def _emit_start(self, value: JsonValue, frame: FrameRef | None) -> None:
        self._place.spine.emit(
            ToolStarted(
                call_id=self._call_id,
                tool=self._tool.file.id,
                source_hash=self._tool.source.sha256,
                input=_for_log(value),
                frame=frame,
            ),
            span=self._span,
            parent=self._parent,
        )

    def _note(self, note: GuestNote) -> None:
        body: ToolLogged | ToolProgressed
        if note.kind == "progress":
            body = ToolProgressed(fraction=note.fraction or 0.0, message=note.text or None)
        else:
            data = _loads(note.data_json) if note.data_json is not None else None
            body = ToolLogged(level=_LEVELS.get(note.level, "info"), text=note.text, data=data)
        self._place.spine.emit(body, span=self._span, parent=self._parent)


def _parse_result(text: str) -> JsonValue:
    """The sandbox's result text, which is untrusted: bounded again on this side."""
    if len(text) > MAX_JSON_BYTES * 6:
        raise _too_large()
    value = _loads(text)
    if depth_exceeds(value, MAX_ARGUMENT_DEPTH):
        raise StyleEyesError("INVALID_RESULT", f"The result is nested deeper than {MAX_ARGUMENT_DEPTH}.")
    if (
        len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
        > MAX_JSON_BYTES
    ):
        raise _too_large()
    return value


def _too_large() -> StyleEyesError:
    return StyleEyesError(
        "RESULT_TOO_LARGE",
        f"The result is over {MAX_JSON_BYTES:,} bytes of JSON.",
        "Return less: fewer rows, or only the fields that matter.",
    )


def _loads(text: str) -> JsonValue:
    try:
        return cast(JsonValue, json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        raise StyleEyesError(
            "INVALID_RESULT", "The tool's process sent something that is not JSON."
        ) from None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _for_log(value: JsonValue) -> JsonValue:
    """The input as the log keeps it; what is refused for its size or depth is not written down."""
    if depth_exceeds(value, MAX_ARGUMENT_DEPTH):
        return "(nested too deeply to be shown)"
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (ValueError, TypeError):
        return "(not JSON)"
    return value if size <= MAX_JSON_BYTES else f"(too large to be shown: {size:,} characters)"
