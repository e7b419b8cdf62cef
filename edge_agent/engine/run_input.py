"""A tool's input on its way in: bounded, JSON, and as the tool's schema wants it."""

from __future__ import annotations

import json

from edge_agent.engine.broker.bounded_schema import BoundedSchema
from edge_agent.engine.broker.limits import MAX_ARGUMENT_DEPTH, MAX_JSON_BYTES
from edge_agent.engine.broker.requests import depth_exceeds, to_json
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonValue

_MOST_FAULTS = 8


def checked_input(value: JsonValue, schema: BoundedSchema) -> str:
    """`value` as compact ASCII JSON, once it is found right.

    Raises StyleEyesError INPUT_TOO_LARGE past 262,144 bytes of UTF-8, INVALID_INPUT that names each
    property that is wrong.
    """
    if depth_exceeds(value, MAX_ARGUMENT_DEPTH):
        raise StyleEyesError("INVALID_INPUT", f"The input is nested deeper than {MAX_ARGUMENT_DEPTH}.")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    except (ValueError, TypeError, UnicodeEncodeError):
        raise StyleEyesError(
            "INVALID_INPUT", "The input is not JSON: NaN, infinities and unpaired surrogates are not allowed."
        ) from None
    if size > MAX_JSON_BYTES:
        raise StyleEyesError(
            "INPUT_TOO_LARGE", f"The input is {size:,} bytes; at most {MAX_JSON_BYTES:,} are allowed."
        )
    faults = schema.faults(value, _MOST_FAULTS)
    if faults:
        raise StyleEyesError("INVALID_INPUT", "; ".join(faults) + ".")
    return to_json(value)
