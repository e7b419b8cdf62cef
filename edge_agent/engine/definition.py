"""What a tool module says of itself, checked: the exports of the contract's section 2."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from edge_agent.engine.broker.bounded_schema import BoundedSchema
from edge_agent.engine.broker.capabilities import Capabilities, parse_capabilities
from edge_agent.engine.broker.limits import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import sanitise

SCHEMA_VERSION = "worldagents.tool.v1"
_EXPORTS = ("schemaVersion", "metadata", "inputSchema", "execute", "capabilities", "timeoutMs")
_SLIP = 0.75
"""Likeness from which an unknown export counts as a misspelt one; others are the author's own business."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A valid module tool. `title` and `description` are safe for a screen."""

    title: str
    description: str
    input_schema: JsonObject
    capabilities: Capabilities
    timeout_ms: int
    check_input: BoundedSchema = field(repr=False, compare=False)


def parse_definition(exports_json: str) -> ToolDefinition:
    """The definition in a module's exports (JSON text from the sandbox, untrusted).

    Raises StyleEyesError INVALID_TOOL that names the export and what it must be.
    """
    try:
        exports = json.loads(exports_json)
    except (ValueError, RecursionError):
        raise _wrong("its exports are not JSON") from None
    if not isinstance(exports, dict):
        raise _wrong("its exports are not an object")
    _check_names(exports)
    if exports.get("schemaVersion") != SCHEMA_VERSION:
        raise _wrong(
            f"`schemaVersion` must be exactly {SCHEMA_VERSION!r}",
            f'write: export const schemaVersion = "{SCHEMA_VERSION}";',
        )
    if exports.get("execute") is not True:
        raise _wrong(
            "`execute` must be an exported function",
            "write: export async function execute(ctx, input) { … }",
        )
    title, description = _metadata(exports.get("metadata"))
    schema, check = _input_schema(exports.get("inputSchema"))
    return ToolDefinition(
        title=title,
        description=description,
        input_schema=schema,
        capabilities=parse_capabilities(exports.get("capabilities")),
        timeout_ms=_timeout(exports.get("timeoutMs", DEFAULT_TIMEOUT_MS)),
        check_input=check,
    )


def _check_names(exports: Mapping[str, JsonValue]) -> None:
    """A misspelt optional export would be ignored in silence, and a tool then runs with the default."""
    absent = [name for name in _EXPORTS if name not in exports or exports[name] is False]
    for name in exports:
        near = difflib.get_close_matches(name, absent, 1, _SLIP) if name not in _EXPORTS else []
        if near:
            raise _wrong(f"`{name}` is no export that a tool has", f"did you mean `{near[0]}`?")


def _metadata(value: JsonValue) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise _wrong("`metadata` must be {title, description}")
    for key in value:
        if key not in ("title", "description"):
            raise _wrong(f"`metadata.{key}` is not allowed", "metadata holds title and description only")
    texts: list[str] = []
    for key in ("title", "description"):
        text = value.get(key)
        shown = sanitise(text).strip() if isinstance(text, str) else ""
        if not shown:
            raise _wrong(f"`metadata.{key}` must be a non-blank string")
        texts.append(shown)
    return texts[0], texts[1]


def _input_schema(value: JsonValue) -> tuple[JsonObject, BoundedSchema]:
    if not isinstance(value, dict):
        raise _wrong("`inputSchema` must be a JSON Schema object")
    if value.get("type") != "object":
        raise _wrong('`inputSchema.type` must be "object"')
    if value.get("additionalProperties") is not False:
        raise _wrong("`inputSchema.additionalProperties` must be false", "unknown arguments are then refused")
    schema = cast(JsonObject, value)
    return schema, BoundedSchema(schema, code="INVALID_TOOL", name="`inputSchema`")


def _timeout(value: JsonValue) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TIMEOUT_MS:
        raise _wrong(f"`timeoutMs` must be an integer from 1 to {MAX_TIMEOUT_MS}")
    return value


def _wrong(what: str, hint: str | None = None) -> StyleEyesError:
    return StyleEyesError("INVALID_TOOL", what, hint)
