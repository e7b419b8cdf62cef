"""The tool catalog: every tool file with what it says of itself, or what is wrong with it, by pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge_agent.engine.inspection import InspectedTool, Inspection, Inspector
from edge_agent.engine.sources import ToolSource
from edge_agent.errors import EnvironmentLacksError, StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue

PAGE = 16
"""Winning files of one page (contract, section 1)."""
PAGE_BUDGET_S = 3.0
"""For the whole page, shared by its four workers (contract, section 1)."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One winning file: inspected, or with the error that it has."""

    source: ToolSource
    enabled: bool
    inspected: InspectedTool | None
    error: StyleEyesError | None

    def to_json(self) -> JsonObject:
        """The entry as CLI, MCP and screen show it."""
        entry: dict[str, JsonValue] = {
            "id": self.source.id,
            "kind": "module",
            "enabled": self.enabled,
            "source": self.source.winner.origin,
            "file": self.source.winner.shown_path,
            "overridden": [{"source": f.origin, "file": f.shown_path} for f in self.source.overridden],
        }
        if self.inspected is not None:
            definition = self.inspected.definition
            entry["title"] = definition.title
            entry["description"] = definition.description
            entry["inputSchema"] = definition.input_schema
            entry["capabilities"] = list(definition.capabilities.members)
            entry["timeoutMs"] = definition.timeout_ms
            entry["sha256"] = self.inspected.source.sha256
        if self.error is not None:
            error: dict[str, JsonValue] = {"code": self.error.code, "message": self.error.message}
            if self.error.hint:
                error["hint"] = self.error.hint
            if self.error.at is not None:
                error["at"] = {"line": self.error.at.line, "column": self.error.at.column}
            entry["error"] = error
        return entry


@dataclass(frozen=True, slots=True)
class CatalogPage:
    """Up to 16 entries; `next_offset` is None on the last page. `missing` are enabled ids without a file."""

    entries: tuple[CatalogEntry, ...]
    offset: int
    total: int
    next_offset: int | None
    missing: tuple[str, ...]

    def to_json(self) -> JsonObject:
        pagination: dict[str, JsonValue] = {"offset": self.offset, "total": self.total}
        if self.next_offset is not None:
            pagination["nextOffset"] = self.next_offset
        return {
            "tools": [entry.to_json() for entry in self.entries],
            "missing": list(self.missing),
            "pagination": pagination,
        }


async def catalog_page(
    tools: Mapping[str, ToolSource], enabled: Sequence[str], offset: int, inspector: Inspector
) -> CatalogPage:
    """Inspects one page of winning files: enabled first, then by id; four at a time, 3 s for all.

    A file that is not through in time has the error INSPECTION_BUDGET; the others still answer. Where
    the sandbox cannot run every file has the error SANDBOX_UNAVAILABLE, and the list is still there.
    """
    order = sorted(tools.values(), key=lambda tool: (tool.id not in enabled, tool.id))
    page = order[offset : offset + PAGE]
    files = [tool.winner for tool in page]
    try:
        inspections = await inspector.inspect(files, budget_s=PAGE_BUDGET_S)
    except EnvironmentLacksError as lack:
        inspections = [Inspection(file, error=lack) for file in files]
    end = offset + len(page)
    return CatalogPage(
        entries=tuple(
            CatalogEntry(tool, tool.id in enabled, inspection.tool, inspection.error)
            for tool, inspection in zip(page, inspections, strict=True)
        ),
        offset=offset,
        total=len(order),
        next_offset=end if end < len(order) else None,
        missing=tuple(tool_id for tool_id in enabled if tool_id not in tools),
    )
