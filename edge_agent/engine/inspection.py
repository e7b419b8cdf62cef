"""Inspection: a tool file evaluated in the sandbox, without capabilities, to learn what it exports."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from device.clock import Clock
from edge_agent.engine.definition import ToolDefinition, parse_definition
from edge_agent.engine.sandbox.api import Guest, GuestError, Sandbox
from edge_agent.engine.source_places import path_in, place_of
from edge_agent.engine.sources import SourceText, ToolFile, read_source
from edge_agent.errors import EnvironmentLacksError, SourcePosition, StyleEyesError

WORKERS = 4
"""Files inspected at once (contract, section 1): a hostile one may take 128 MiB while it lasts."""
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True)
class InspectedTool:
    """A file that passed: what it says of itself, and the source that said so."""

    file: ToolFile
    source: SourceText = field(repr=False)
    definition: ToolDefinition


@dataclass(frozen=True, slots=True)
class Inspection:
    """What came of one file. `guest` holds its loaded source; whoever inspected owns it."""

    file: ToolFile
    tool: InspectedTool | None = None
    guest: Guest | None = None
    error: StyleEyesError | None = None


class Inspector:
    """Inspects files, each in a guest of its own."""

    def __init__(self, sandbox: Sandbox, clock: Clock) -> None:
        self._sandbox = sandbox
        self._clock = clock

    async def inspect(self, files: Sequence[ToolFile], *, budget_s: float) -> list[Inspection]:
        """Inspects `files` in order, four at a time, all within `budget_s`; ends every guest.

        A file's error is a value: INVALID_TOOL with its place, INSPECTION_BUDGET. Raises
        EnvironmentLacksError where the sandbox cannot run.
        """
        inspections = await self.open(files, budget_s=budget_s)
        await close(inspections)
        return inspections

    async def open(self, files: Sequence[ToolFile], *, budget_s: float) -> list[Inspection]:
        """As `inspect`, but the guests of the tools that passed live on, loaded and ready to run.

        Each file has an equal share of the time that is left when its turn comes, so that those which
        never end cannot take the time of those that do.
        """
        if not files:
            return []
        # The sandbox's own start is no file's fault: it is over before the time begins to run.
        spare: list[Guest] = [await self._sandbox.guest()]
        deadline = self._clock.monotonic() + budget_s
        results: list[Inspection] = [Inspection(file) for file in files]
        waiting = list(reversed(range(len(files))))

        async def work() -> None:
            while waiting:
                share = (deadline - self._clock.monotonic()) / math.ceil(len(waiting) / WORKERS)
                number = waiting.pop()
                guest = spare.pop() if spare else None
                results[number] = await self._one(files[number], max(_SHORTEST_S, share), guest)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(WORKERS, len(files))):
                    group.create_task(work())
        except BaseExceptionGroup as failures:
            await close(results)
            raise failures.exceptions[0] from None
        except BaseException:
            await close(results)
            raise
        return results

    async def _one(self, file: ToolFile, share_s: float, guest: Guest | None) -> Inspection:
        try:
            async with asyncio.timeout(share_s):
                source = await asyncio.to_thread(read_source, file)
                exports, guest = await self._loaded(file, source, guest, share_s)
                definition = await asyncio.to_thread(_definition, exports, source)
        except EnvironmentLacksError:
            await _end(guest)
            raise
        except StyleEyesError as error:
            await _end(guest)
            return Inspection(file, error=error)
        except TimeoutError:
            await _end(guest)
            return Inspection(file, error=_over_budget())
        except BaseException:
            await _end(guest)
            raise
        return Inspection(file, InspectedTool(file, source, definition), guest)

    async def _loaded(
        self, file: ToolFile, source: SourceText, guest: Guest | None, share_s: float
    ) -> tuple[str, Guest]:
        """The source's exports and the guest that holds it: `guest`, or a new one.

        Where the process died it is tried once more: another's fault may have taken it along.
        """
        for last in (False, True):
            guest = guest or await self._sandbox.guest()
            try:
                return await guest.load(source.data, file.path.name, timeout_s=share_s), guest
            except GuestError as failure:
                await guest.kill()
                if last or failure.code != "SANDBOX_CRASHED":
                    raise _file_error(failure, source) from None
                guest = None
            except BaseException:
                await guest.kill()
                raise
        raise AssertionError("two attempts either return or raise")


async def close(inspections: Sequence[Inspection]) -> None:
    """Ends the guests that inspections left open."""
    await asyncio.gather(*(_end(inspection.guest) for inspection in inspections))


async def _end(guest: Guest | None) -> None:
    if guest is not None:
        await guest.kill()


def _definition(exports: str, source: SourceText) -> ToolDefinition:
    try:
        return parse_definition(exports)
    except StyleEyesError as error:
        raise StyleEyesError(error.code, error.message, error.hint, _place(error.message, source)) from None


def _file_error(failure: GuestError, source: SourceText) -> StyleEyesError:
    """The sandbox's failure while loading, as what is wrong with the file."""
    if failure.code == "TIMEOUT":
        return _over_budget()
    if failure.line is not None:
        at: SourcePosition | None = SourcePosition(failure.line, failure.column or 1)
    else:
        at = _place(failure.message, source)
    return StyleEyesError("INVALID_TOOL", failure.message, at=at)


def _place(message: str, source: SourceText) -> SourcePosition | None:
    return place_of(path_in(message), source.data.decode("utf-8", "replace"))


def _over_budget() -> StyleEyesError:
    return StyleEyesError(
        "INSPECTION_BUDGET",
        "the file's top level did not finish in the time that inspection has",
        "keep loops and heavy work inside execute",
    )
