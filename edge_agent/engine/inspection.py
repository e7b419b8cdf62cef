"""Inspection: a tool file evaluated in the sandbox, without capabilities, to learn what it exports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from device.clock import Clock
from edge_agent.engine.definition import ToolDefinition, parse_definition
from edge_agent.engine.sandbox.api import Guest, GuestError, Sandbox
from edge_agent.engine.sources import SourceText, ToolFile, read_source
from edge_agent.errors import SourcePosition, StyleEyesError

SESSION_BUDGET_S = 5.0
"""For one enabled file when a session starts: module top levels are quick, and a hung one must end."""


@dataclass(frozen=True, slots=True)
class InspectedTool:
    """A file that passed: what it says of itself, and the source that said so."""

    file: ToolFile
    source: SourceText = field(repr=False)
    definition: ToolDefinition


class Inspector:
    """Inspects files, each in a fresh guest that ends afterwards."""

    def __init__(self, sandbox: Sandbox, clock: Clock) -> None:
        self._sandbox = sandbox
        self._clock = clock

    async def inspect(self, file: ToolFile, *, deadline: float) -> InspectedTool:
        """Reads, evaluates and checks one file by `deadline` (monotonic seconds).

        Raises StyleEyesError: INVALID_TOOL with a place in the source where there is one,
        INSPECTION_BUDGET past the deadline; EnvironmentLacksError where the sandbox cannot run.
        """
        source = await asyncio.to_thread(read_source, file)
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise over_budget()
        try:
            async with asyncio.timeout(left):
                guest = await self._sandbox.guest()
        except TimeoutError:
            raise over_budget() from None
        try:
            exports = await load(guest, source, file, deadline - self._clock.monotonic())
        finally:
            await guest.kill()
        definition = await asyncio.to_thread(parse_definition, exports)
        return InspectedTool(file, source, definition)


async def load(guest: Guest, source: SourceText, file: ToolFile, timeout_s: float) -> str:
    """Loads a source into a guest; the sandbox's failure becomes the contract's error."""
    try:
        return await guest.load(source.data, file.path.name, timeout_s=max(0.001, timeout_s))
    except GuestError as failure:
        if failure.code == "TIMEOUT":
            raise over_budget() from None
        code = failure.code if failure.code == "SANDBOX_UNAVAILABLE" else "INVALID_TOOL"
        at = None
        if failure.line is not None:
            at = SourcePosition(failure.line, failure.column or 1)
        raise StyleEyesError(code, failure.message, at=at) from None


def over_budget() -> StyleEyesError:
    return StyleEyesError(
        "INSPECTION_BUDGET",
        "the file's top level did not finish in the time that inspection has",
        "keep loops and heavy work inside execute",
    )
