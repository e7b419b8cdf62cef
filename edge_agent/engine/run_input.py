"""A tool's input on its way in: bounded, JSON, and as the tool's schema wants it."""

from __future__ import annotations

import json

from edge_agent.engine.broker.bounded_schema import BoundedSchema
from edge_agent.engine.broker.limits import MAX_ARGUMENT_DEPTH, MAX_JSON_BYTES
from edge_agent.engine.broker.requests import depth_exceeds, to_json
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonValue

_MOST_FAULTS = 8


def check_form(value: JsonValue) -> None:
    """Raises StyleEyesError INPUT_TOO_LARGE past 262,144 bytes of UTF-8, INVALID_INPUT for what is no JSON.

    The work is bounded by the limits, however large `value` is.
    """
    if least_size(value) > MAX_JSON_BYTES:
        raise _too_large()
    if depth_exceeds(value, MAX_ARGUMENT_DEPTH):
        raise StyleEyesError("INVALID_INPUT", f"The input is nested deeper than {MAX_ARGUMENT_DEPTH}.")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (ValueError, TypeError):  # UnicodeEncodeError, of half a surrogate pair, is a ValueError
        raise StyleEyesError(
            "INVALID_INPUT", "The input is not JSON: NaN, infinities and unpaired surrogates are not allowed."
        ) from None
    if size > MAX_JSON_BYTES:
        raise _too_large(size)


async def checked_input(value: JsonValue, schema: BoundedSchema) -> str:
    """`value`, whose form is checked, as compact ASCII JSON, once it is as the tool's schema wants it.

    Raises StyleEyesError INVALID_INPUT that names each property that is wrong.
    """
    faults = await schema.faults(value, _MOST_FAULTS)
    if faults:
        raise StyleEyesError("INVALID_INPUT", "; ".join(faults) + ".")
    return to_json(value)


def for_log(value: JsonValue) -> JsonValue:
    """The input as the log keeps it; what is refused for its size or form is only described."""
    if least_size(value) > MAX_JSON_BYTES:
        return "(too large to be shown)"
    if depth_exceeds(value, MAX_ARGUMENT_DEPTH):
        return "(nested too deeply to be shown)"
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError):
        return "(not JSON)"
    return value


def least_size(value: object, enough: int = MAX_JSON_BYTES) -> int:
    """A lower bound of the bytes that `value` takes as JSON; stops counting once past `enough`."""
    size, waiting = 0, [value]
    while waiting and size <= enough:
        node = waiting.pop()
        if isinstance(node, str):
            size += len(node) + 2
        elif isinstance(node, dict):
            size += 1 + sum(len(key) + 4 for key in node if isinstance(key, str))
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            size += 1 + len(node)
            waiting.extend(node)
        else:
            size += 1
    return size


def _too_large(size: int | None = None) -> StyleEyesError:
    shown = "far too large" if size is None else f"{size:,} bytes"
    return StyleEyesError(
        "INPUT_TOO_LARGE",
        f"The input is {shown}; at most {MAX_JSON_BYTES:,} bytes of JSON are allowed.",
        "Pass less, or put the data into a file or a database.",
    )
