"""The model's tool calls of one step: run side by side, answered in call order, every one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from device.clock import Clock
from edge_agent.agent.models.protocol import ToolCall, ToolDeclaration, ToolResult, ToolResultsMessage
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.errors import StyleEyesError
from edge_agent.events import ErrorInfo
from edge_agent.json_types import JsonObject, JsonValue

AT_ONCE = 4
"""Tool runs side by side; further calls of the same step wait their turn."""


class DeclaredTool(Protocol):
    """An enabled tool as the engine declares it."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> JsonObject: ...


class ToolCaller(Protocol):
    """What the loop needs of an engine session."""

    @property
    def declarations(self) -> Sequence[DeclaredTool]: ...

    async def call(self, tool_id: str, input: JsonValue, *, call_id: str, parent: str) -> ToolOutcome:
        """Runs a tool; emits its events under the span `parent`. A failure is an outcome."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """One tool call of a turn, as results and `--json` show it."""

    id: str
    tool: str
    ok: bool
    ms: float


class ToolCalls:
    """Runs the calls of a turn. `records` grows step by step, in call order."""

    def __init__(self, caller: ToolCaller, clock: Clock, turn_span: str) -> None:
        self._caller = caller
        self._clock = clock
        self._turn_span = turn_span
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._enabled = frozenset(tool.name for tool in caller.declarations)
        self.records: list[ToolCallRecord] = []

    async def run(self, calls: Sequence[ToolCall]) -> ToolResultsMessage:
        """The results of `calls`. When the turn is cancelled, every running call is too."""
        tasks = [asyncio.create_task(self._run_one(call)) for call in calls]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        results = []
        for call, task in zip(calls, tasks, strict=True):
            outcome, ms = (_CANCELLED, 0.0) if task.cancelled() else task.result()
            self.records.append(ToolCallRecord(id=call.id, tool=call.name, ok=outcome.ok, ms=ms))
            results.append(ToolResult(call_id=call.id, name=call.name, value=outcome.for_model()))
        return ToolResultsMessage(results)

    async def _run_one(self, call: ToolCall) -> tuple[ToolOutcome, float]:
        async with self._slots:
            started = self._clock.monotonic()
            outcome = await self._outcome(call)
            return outcome, (self._clock.monotonic() - started) * 1000

    async def _outcome(self, call: ToolCall) -> ToolOutcome:
        if call.name not in self._enabled:
            known = ", ".join(sorted(self._enabled)) or "none"
            message = f"There is no tool {call.name!r}; enabled are: {known}."
            return ToolOutcome(error=ErrorInfo(code="TOOL_NOT_ENABLED", message=message))
        try:
            return await self._caller.call(call.name, call.arguments, call_id=call.id, parent=self._turn_span)
        except StyleEyesError as error:
            return ToolOutcome(error=error_info(error))


_CANCELLED = ToolOutcome(error=ErrorInfo(code="CANCELLED", message="The call was cancelled."))


def error_info(error: StyleEyesError) -> ErrorInfo:
    """The error as events carry it."""
    return ErrorInfo(
        code=error.code,
        message=error.message,
        hint=error.hint,
        line=error.at.line if error.at else None,
        column=error.at.column if error.at else None,
    )


def declarations_for_model(caller: ToolCaller) -> tuple[ToolDeclaration, ...]:
    """The enabled tools as a model is told of them."""
    return tuple(
        ToolDeclaration(name=tool.name, description=tool.description, parameters=tool.input_schema)
        for tool in caller.declarations
    )
