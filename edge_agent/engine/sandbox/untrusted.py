"""Checks on what a guest says. Nothing of it is believed; every size is measured again here."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from edge_agent.engine.sandbox.api import GuestError
from edge_agent.engine.sandbox.guest import framing

MAX_RESULT = 262_144
"""Bytes of UTF-8 JSON."""
MAX_WORDS = 2_000
"""Characters of an error's message."""
_MAX_LINE = 10_000_000
_FRAME = re.compile(r"(?:\(|at )(?P<file>[\w.-]{1,120}):(?P<line>\d{1,8}):(?P<column>\d{1,8})\)?")


def checked_result(body: str) -> str:
    """A result's JSON text, in ASCII, without unpaired surrogates.

    Raises GuestError (`INVALID_RESULT`, `RESULT_TOO_LARGE`).
    """
    if framing.too_deep(body):
        raise GuestError(
            "INVALID_RESULT", f"The result nests deeper than {framing.MAX_DEPTH} arrays and objects."
        )
    try:
        value = _parse(body)
    except (ValueError, RecursionError) as error:
        raise GuestError("INVALID_RESULT", "The result is not JSON.") from error
    # Escaped to ASCII, text only grows: a body within the limit needs no second look.
    if len(body) <= MAX_RESULT and "\\ud" not in body.lower():
        return body
    text = well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    size = len(text.encode("utf-8"))
    if size > MAX_RESULT:
        raise GuestError(
            "RESULT_TOO_LARGE", f"The result is {size:,} bytes of JSON; at most {MAX_RESULT:,} are allowed."
        )
    return text.encode("ascii", framing.ESCAPES).decode("ascii")


def checked_arguments(body: str) -> str | None:
    """A call's arguments as JSON text of an array; None where they are not that."""
    if framing.too_deep(body):
        return None
    try:
        value = _parse(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    if "\\ud" not in body.lower():
        return body
    return well_formed(json.dumps(value, ensure_ascii=False, allow_nan=False))


def fault(code: str, body: str, allowed: Collection[str], filename: str, offset: int) -> GuestError:
    """The error that a guest reports: `{"message", "stack"}`, its place in the author's file.

    A code that is not `allowed` becomes `TOOL_ERROR`. `offset` lines of the script come before the
    author's first.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    told = told if isinstance(told, dict) else {}
    message = words(told.get("message")) or "The tool failed without a message."
    line, column = _place(told.get("stack"), filename, offset)
    return GuestError(code if code in allowed else "TOOL_ERROR", message, line, column)


def words(value: object) -> str:
    """Text of at most MAX_WORDS characters; empty where `value` is no text."""
    if not isinstance(value, str):
        return ""
    text = well_formed(value)
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"


def position(value: object) -> tuple[int | None, int | None]:
    """`[line, column]` where it is plausible."""
    match value:
        case [int(line), int(column)] if 0 < line < _MAX_LINE and 0 < column < _MAX_LINE:
            return line, column
        case _:
            return None, None


def _place(stack: object, filename: str, offset: int) -> tuple[int | None, int | None]:
    if isinstance(stack, str):
        for match in _FRAME.finditer(stack[:8_000]):
            line = int(match["line"]) - offset
            if match["file"] == filename and line > 0:
                return line, int(match["column"])
    return None, None


def well_formed(text: str) -> str:
    """Surrogate pairs joined, unpaired surrogates replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text[:40]} is out of range")
    return value


_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).raw_decode


def _parse(text: str) -> object:
    """Strict JSON without white space around it. Raises ValueError or RecursionError."""
    value: object
    value, end = _decode(text)
    if end != len(text):
        raise ValueError("more than one value")
    return value
