"""Events made again from their JSON lines, for showing and replaying kept sessions."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from edge_agent.events import BODY_BY_WIRE_NAME, Event
from edge_agent.json_types import JsonObject, JsonValue

_ENVELOPE = frozenset({"type", "seq", "span", "parent", "mono", "wall"})
_FREE_FORM = frozenset({"input", "result", "data"})
"""Fields that hold a tool's own JSON: the names in it are the tool's and stay as they are."""


@cache
def _adapter(wire_name: str) -> TypeAdapter[Any]:
    return TypeAdapter(BODY_BY_WIRE_NAME[wire_name])


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m.group(1).lower(), name)


def _snake_keys(value: JsonValue) -> Any:
    if isinstance(value, dict):
        return {_snake(k): v if k in _FREE_FORM else _snake_keys(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_snake_keys(v) for v in value]
    return value


def event_from_json(line: JsonObject) -> Event | None:
    """The event of one log line, or None where this version does not know its type or shape."""
    body_type = BODY_BY_WIRE_NAME.get(str(line.get("type")))
    if body_type is None:
        return None
    known = {f.name for f in dataclasses.fields(body_type)}
    fields = _snake_keys({k: v for k, v in line.items() if k not in _ENVELOPE})
    try:
        body = _adapter(str(line["type"])).validate_python({k: v for k, v in fields.items() if k in known})
        return Event(
            seq=int(str(line["seq"])),
            span=str(line["span"]),
            parent=None if line.get("parent") is None else str(line["parent"]),
            mono=float(str(line["mono"])),
            wall=str(line["wall"]),
            body=body,
        )
    except (ValidationError, KeyError, ValueError):
        return None
