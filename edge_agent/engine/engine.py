"""The engine: which tools an agent has, sessions that pin them, calls that run them."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from device.clock import Clock
from edge_agent.engine.agent_config import (
    MAX_FILE_TOOLS,
    AgentConfig,
    changing,
    read_agent_config,
    write_tools,
)
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.catalog import CatalogPage, catalog_page
from edge_agent.engine.inspection import InspectedTool, Inspection, Inspector, close
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.pinned_guest import PinnedGuest
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.run import RunPlace, ToolRun
from edge_agent.engine.run_input import for_log
from edge_agent.engine.sandbox.api import GuestError, Sandbox
from edge_agent.engine.sources import ToolFile, ToolSource, file_name, find_tools
from edge_agent.errors import EnvironmentLacksError, StyleEyesError, UsageError
from edge_agent.events import ErrorInfo, PinnedTool, Spine, ToolFinished, ToolStarted, new_span
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonObject, JsonValue

SESSION_BUDGET_S = 8.0
"""For all enabled files when a session starts, and for a file that is checked by itself: module top
levels are quick, and a hung one must end."""


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """An enabled tool as a model is told of it."""

    name: str
    description: str
    input_schema: JsonObject


class BrokenToolError(UsageError):
    """An enabled tool that cannot be used stops a session. `file` is where to mend it."""

    def __init__(self, tool: ToolSource, error: StyleEyesError) -> None:
        file = tool.winner
        place = file.shown_path + (f":{error.at.line}:{error.at.column}" if error.at else "")
        super().__init__(
            error.code,
            f"the enabled tool {tool.id} cannot be used ({place}): {error.message}",
            error.hint or f"mend the file, or take it out: styleeyes tools disable {tool.id}",
            error.at,
        )
        self.file = file
        self.reason = error


class ToolEngine:
    """One an application. Everything about tools goes through here; nothing runs before a call."""

    def __init__(self, home: Home, sandbox: Sandbox, spine: Spine, clock: Clock) -> None:
        self._home = home
        self._sandbox = sandbox
        self._spine = spine
        self._clock = clock
        self._sql: SqlPool | None = None
        self._inspector = Inspector(sandbox, clock)

    async def catalog(self, agent: AgentFolder, offset: int = 0) -> CatalogPage:
        """One page of all tools that the agent could enable. Raises UsageError for a negative offset."""
        if offset < 0:
            raise UsageError("INVALID_INPUT", f"the offset {offset} is negative", "the first page is at 0")
        config = await asyncio.to_thread(read_agent_config, agent)
        tools = await asyncio.to_thread(find_tools, self._home, agent)
        return await catalog_page(tools, config.tools, offset, self._inspector)

    async def inspect(self, file: ToolFile) -> InspectedTool:
        """Inspects one file, wherever it is; raises what is wrong with it."""
        [inspection] = await self._inspector.inspect([file], budget_s=SESSION_BUDGET_S)
        if inspection.tool is None:
            raise inspection.error or AssertionError("an inspection has a tool or an error")
        return inspection.tool

    async def tool(self, agent: AgentFolder, tool_id: str) -> ToolSource:
        """The tool of that id. Raises UsageError with the nearest names."""
        tools = await asyncio.to_thread(find_tools, self._home, agent)
        if tool_id not in tools:
            raise UsageError("NOT_FOUND", f"there is no tool {tool_id!r}", _near(tool_id, tools))
        return tools[tool_id]

    async def enable(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        """Adds a tool to `agent.json`. Refuses a missing or invalid one, and a 17th."""
        await self.inspect((await self.tool(agent, tool_id)).winner)
        return await asyncio.to_thread(self._add, agent, tool_id)

    async def disable(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        """Takes a tool out of `agent.json`, whether its file exists or not."""
        return await asyncio.to_thread(self._remove, agent, tool_id)

    async def open_session(
        self, agent: AgentFolder, host: EngineHost, *, public: bool = False
    ) -> EngineSession:
        """Inspects and pins the enabled tools; their processes are then loaded and ready.

        A public session has built-in tools only, and none without a real sandbox. Raises UsageError that
        names the file and the reason where an enabled tool is missing or invalid, EnvironmentLacksError
        where the sandbox cannot run.
        """
        status = await asyncio.to_thread(lambda: self._sandbox.status)
        if status.kind == "unavailable":
            raise EnvironmentLacksError(
                "SANDBOX_UNAVAILABLE", f"tools cannot run: {status.reason or status.label}", status.fix
            )
        if public and status.kind != "bubblewrap":
            raise EnvironmentLacksError(
                "SANDBOX_UNAVAILABLE", "a public session runs no tools outside a sandbox", status.fix
            )
        if self._sql is None:
            self._sql = SqlPool(sandboxed=status.kind != "process")
        sql = self._sql
        tools = await asyncio.to_thread(self._enabled, agent, public=public)
        inspections = await self._inspector.open([tool.winner for tool in tools], budget_s=SESSION_BUDGET_S)
        for tool, inspection in zip(tools, inspections, strict=True):
            if inspection.error is not None:
                await close(inspections)
                raise BrokenToolError(tool, inspection.error)
        place = RunPlace(agent, host, self._sandbox, sql, self._spine, self._clock)
        return EngineSession(inspections, place)

    async def aclose(self) -> None:
        """Ends the database processes; the sandbox is its owner's to close."""
        if self._sql is not None:
            await self._sql.aclose()

    def _add(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        with changing(agent):
            config = read_agent_config(agent)
            if tool_id in config.tools:
                return config
            wanted = [*config.tools, tool_id]
            tools = find_tools(self._home, agent)
            if _is_file_tool(tool_id, tools) and _file_tools(wanted, tools) > MAX_FILE_TOOLS:
                raise UsageError(
                    "TOO_MANY_TOOLS",
                    f"{MAX_FILE_TOOLS} file tools are enabled, which is the most",
                    "disable one first: styleeyes tools disable ID",
                )
            return write_tools(agent, wanted)

    def _remove(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        with changing(agent):
            config = read_agent_config(agent)
            if tool_id not in config.tools:
                raise UsageError(
                    "TOOL_NOT_ENABLED",
                    f"{tool_id} is not enabled",
                    f"enabled are: {', '.join(config.tools) or 'none'}",
                )
            return write_tools(agent, [tool for tool in config.tools if tool != tool_id])

    def _enabled(self, agent: AgentFolder, *, public: bool) -> list[ToolSource]:
        """The enabled tools in the order of `agent.json`. No file is opened."""
        config = read_agent_config(agent)
        tools = find_tools(self._home, agent)
        if public:
            return [tools[i] for i in config.tools if i in tools and not _is_file_tool(i, tools)]
        count = _file_tools(config.tools, tools)
        if count > MAX_FILE_TOOLS:
            raise UsageError(
                "TOO_MANY_TOOLS",
                f"agent.json enables {count} file tools; the most is {MAX_FILE_TOOLS}",
                "disable some: styleeyes tools disable ID",
            )
        for tool_id in config.tools:
            if tool_id not in tools:
                raise UsageError(
                    "INVALID_TOOL",
                    f"agent.json enables {tool_id}, but there is no file for it: "
                    f"{agent.tools / file_name(tool_id)} does not exist",
                    f"{_near(tool_id, tools)}, or take it out: styleeyes tools disable {tool_id}",
                )
        return [tools[tool_id] for tool_id in config.tools]


class EngineSession:
    """The tools of one session, as they were when it started."""

    def __init__(self, inspections: Sequence[Inspection], place: RunPlace) -> None:
        """Takes over the guests that `inspections` left open; every one has a tool."""
        inspected = [inspection.tool for inspection in inspections if inspection.tool is not None]
        self._place = place
        self._guests = {
            inspection.tool.file.id: PinnedGuest(inspection.tool, place.sandbox, inspection.guest)
            for inspection in inspections
            if inspection.tool is not None
        }
        self.pinned = tuple(
            PinnedTool(id=tool.file.id, source=tool.file.label, sha256=tool.source.sha256)
            for tool in inspected
        )
        self.declarations = tuple(
            ToolDeclaration(
                tool.file.id,
                f"{tool.definition.title}. {tool.definition.description}",
                tool.definition.input_schema,
            )
            for tool in inspected
        )

    async def call(
        self, tool_id: str, input: JsonValue, *, call_id: str | None = None, parent: str
    ) -> ToolOutcome:
        """Runs an enabled tool once. Every failure is an outcome; only cancellation is raised."""
        call_id = call_id or f"call-{uuid.uuid4().hex[:10]}"
        pinned = self._guests.get(tool_id)
        if pinned is None:
            return self._refuse(tool_id, input, call_id, parent)
        return await ToolRun(pinned, self._place, call_id=call_id, parent=parent).outcome(input)

    async def warm(self) -> None:
        """Has a database worker ready, and again each tool's process, so that no first call waits.

        What fails here fails again, with words, in the call that needs it.
        """
        place = self._place
        folder = place.agent.databases.resolve()
        reads = any(guest.tool.definition.capabilities.databases for guest in self._guests.values())
        with contextlib.suppress(StyleEyesError, GuestError):
            if reads and folder.is_dir():
                await place.sql.warm(folder, writable=False)
            for guest in self._guests.values():
                async with guest.turn:
                    await guest.ready(SESSION_BUDGET_S)

    async def aclose(self) -> None:
        """Ends the session's tool processes."""
        await asyncio.gather(*(guest.end() for guest in self._guests.values()))

    def _refuse(self, tool_id: str, input: JsonValue, call_id: str, parent: str) -> ToolOutcome:
        near = difflib.get_close_matches(tool_id, self._guests, 1)
        hint = f"Did you mean {near[0]}?" if near else f"Enabled are: {', '.join(self._guests) or 'none'}."
        error = ErrorInfo(code="TOOL_NOT_ENABLED", message=f"The tool {tool_id!r} is not enabled.", hint=hint)
        span = new_span("tool")
        spine = self._place.spine
        spine.emit(
            ToolStarted(call_id=call_id, tool=tool_id, source_hash="", input=for_log(input), frame=None),
            span=span,
            parent=parent,
        )
        spine.emit(ToolFinished(ok=False, ms=0.0, error=error), span=span, parent=parent)
        return ToolOutcome(error=error)


def _is_file_tool(tool_id: str, tools: Mapping[str, ToolSource]) -> bool:
    return tool_id not in tools or tools[tool_id].winner.origin != "built-in"


def _file_tools(ids: Iterable[str], tools: Mapping[str, ToolSource]) -> int:
    return sum(_is_file_tool(tool_id, tools) for tool_id in ids)


def _near(tool_id: str, tools: Iterable[str]) -> str:
    near = difflib.get_close_matches(tool_id, list(tools), 1)
    return f"did you mean {near[0]}?" if near else "`styleeyes tools list` shows all tools"
