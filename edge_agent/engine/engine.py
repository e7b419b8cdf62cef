"""The engine: which tools an agent has, sessions that pin them, calls that run them."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import uuid
from collections.abc import Sequence
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
from edge_agent.engine.inspection import SESSION_BUDGET_S, InspectedTool, Inspector
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import EngineHost
from edge_agent.engine.run import PinnedGuest, RunPlace, ToolRun
from edge_agent.engine.sandbox.api import Sandbox
from edge_agent.engine.sources import ToolFile, ToolSource, find_tools
from edge_agent.errors import EnvironmentLacksError, StyleEyesError, UsageError
from edge_agent.events import ErrorInfo, PinnedTool, Spine, ToolFinished, ToolStarted, new_span
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """An enabled tool as a model is told of it."""

    name: str
    description: str
    input_schema: JsonObject


class ToolEngine:
    """One an application. Everything about tools goes through here; nothing runs before a call."""

    def __init__(self, home: Home, sandbox: Sandbox, spine: Spine, clock: Clock) -> None:
        self._home = home
        self._sandbox = sandbox
        self._spine = spine
        self._clock = clock
        self._sql = SqlPool(sandboxed=sandbox.status.kind != "process")
        self._inspector = Inspector(sandbox, clock)

    async def catalog(self, agent: AgentFolder, offset: int = 0) -> CatalogPage:
        """One page of all tools that the agent could enable."""
        config = await asyncio.to_thread(read_agent_config, agent)
        tools = await asyncio.to_thread(find_tools, self._home, agent)
        return await catalog_page(tools, config.tools, offset, self._inspector, self._clock)

    async def inspect(self, tool: ToolSource) -> InspectedTool:
        """Inspects the winning file of an id; raises what is wrong with it."""
        return await self.inspect_file(tool.winner)

    async def inspect_file(self, file: ToolFile) -> InspectedTool:
        """Inspects one file, wherever it is; raises what is wrong with it."""
        return await self._inspector.inspect(file, deadline=self._clock.monotonic() + SESSION_BUDGET_S)

    async def tool(self, agent: AgentFolder, tool_id: str) -> ToolSource:
        """The tool of that id. Raises UsageError with the nearest names."""
        tools = await asyncio.to_thread(find_tools, self._home, agent)
        if tool_id not in tools:
            raise _no_such_tool(tool_id, tools)
        return tools[tool_id]

    async def enable(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        """Adds a tool to `agent.json`. Refuses a missing or invalid one, and a 17th."""
        inspected = await self.inspect(await self.tool(agent, tool_id))
        with changing(agent):
            config = read_agent_config(agent)
            if tool_id in config.tools:
                return config
            if len(config.tools) >= MAX_FILE_TOOLS:
                raise UsageError(
                    "TOO_MANY_TOOLS",
                    f"{MAX_FILE_TOOLS} tools are enabled, which is the most",
                    "disable one first: styleeyes tools disable ID",
                )
            return write_tools(agent, config, (*config.tools, inspected.file.id))

    async def disable(self, agent: AgentFolder, tool_id: str) -> AgentConfig:
        """Takes a tool out of `agent.json`, whether its file exists or not."""
        with changing(agent):
            config = read_agent_config(agent)
            if tool_id not in config.tools:
                raise UsageError(
                    "TOOL_NOT_ENABLED",
                    f"{tool_id} is not enabled",
                    f"enabled are: {', '.join(config.tools) or 'none'}",
                )
            return write_tools(agent, config, tuple(t for t in config.tools if t != tool_id))

    async def open_session(
        self, agent: AgentFolder, host: EngineHost, *, public: bool = False
    ) -> EngineSession:
        """Inspects and pins the enabled tools.

        A public session has none. Raises StyleEyesError that names the file and the reason where an
        enabled tool is missing or invalid, EnvironmentLacksError where the sandbox cannot run.
        """
        inspected: list[InspectedTool] = []
        if not public:
            status = await asyncio.to_thread(lambda: self._sandbox.status)
            if status.kind == "unavailable":
                raise EnvironmentLacksError(
                    "SANDBOX_UNAVAILABLE", f"tools cannot run: {status.reason or status.label}", status.fix
                )
            inspected = await self._inspect_enabled(agent)
        place = RunPlace(agent, host, self._sandbox, self._sql, self._spine, self._clock)
        return EngineSession(inspected, place)

    async def aclose(self) -> None:
        """Ends the database processes; the sandbox is its owner's to close."""
        await self._sql.aclose()

    async def _inspect_enabled(self, agent: AgentFolder) -> list[InspectedTool]:
        config = await asyncio.to_thread(read_agent_config, agent)
        if len(config.tools) > MAX_FILE_TOOLS:
            raise UsageError(
                "TOO_MANY_TOOLS",
                f"agent.json enables {len(config.tools)} tools; the most is {MAX_FILE_TOOLS}",
                "disable some: styleeyes tools disable ID",
            )
        tools = await asyncio.to_thread(find_tools, self._home, agent)
        for tool_id in config.tools:
            if tool_id not in tools:
                raise _no_such_tool(tool_id, tools, enabled=True)
        results = await asyncio.gather(
            *(self.inspect(tools[tool_id]) for tool_id in config.tools), return_exceptions=True
        )
        inspected: list[InspectedTool] = []
        for tool_id, result in zip(config.tools, results, strict=True):
            if isinstance(result, EnvironmentLacksError):
                raise result
            if isinstance(result, StyleEyesError):
                raise _broken(tools[tool_id], result)
            if isinstance(result, BaseException):
                raise result
            inspected.append(result)
        return inspected


class EngineSession:
    """The tools of one session, as they were when it started."""

    def __init__(self, inspected: Sequence[InspectedTool], place: RunPlace) -> None:
        self._place = place
        self._guests = {tool.file.id: PinnedGuest(tool, place.sandbox) for tool in inspected}
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
        """Has each tool's process loaded and a database worker ready, so that no first call waits.

        What fails here fails again, with words, in the call that needs it.
        """
        place = self._place
        folder = place.agent.databases
        reads = any(guest.tool.definition.capabilities.databases for guest in self._guests.values())
        with contextlib.suppress(StyleEyesError):
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
            ToolStarted(call_id=call_id, tool=tool_id, source_hash="", input=None, frame=None),
            span=span,
            parent=parent,
        )
        spine.emit(ToolFinished(ok=False, ms=0.0, error=error), span=span, parent=parent)
        return ToolOutcome(error=error)


def _no_such_tool(tool_id: str, tools: dict[str, ToolSource], *, enabled: bool = False) -> UsageError:
    near = difflib.get_close_matches(tool_id, tools, 1)
    hint = f"did you mean {near[0]}?" if near else "`styleeyes tools list` shows all tools"
    if enabled:
        return UsageError(
            "INVALID_TOOL",
            f"agent.json enables {tool_id}, but there is no file for it",
            f"{hint}, or take it out: styleeyes tools disable {tool_id}",
        )
    return UsageError("NOT_FOUND", f"there is no tool {tool_id!r}", hint)


def _broken(tool: ToolSource, error: StyleEyesError) -> UsageError:
    place = f"{tool.winner.path}" + (f":{error.at.line}:{error.at.column}" if error.at else "")
    return UsageError(
        error.code,
        f"the enabled tool {tool.id} cannot be used ({place}): {error.message}",
        error.hint or f"mend the file, or take it out: styleeyes tools disable {tool.id}",
        error.at,
    )
