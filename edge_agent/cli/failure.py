"""How a command fails: the exit statuses, the sentence on stderr, the JSON result line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from device.errors import DeviceError
from edge_agent.errors import EnvironmentLacksError, StyleEyesError, UsageError
from edge_agent.events import ErrorInfo
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import sanitise

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 3
EXIT_INTERRUPTED = 130

_BAD_INPUT_DEVICE_CODES = frozenset({"SOURCE_NOT_FOUND", "SOURCE_UNREADABLE", "SOURCE_INVALID"})
"""Device errors that speak of what was typed, not of what the machine lacks."""


_UNSAFE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff\ud800-\udfff]"
)
"""What JSON may hold as it is, but a terminal should not: C1 and bidirectional controls, half pairs."""


def exit_status(error: StyleEyesError | DeviceError) -> int:
    """The documented exit status of a failure."""
    if isinstance(error, DeviceError):
        return EXIT_USAGE if error.code in _BAD_INPUT_DEVICE_CODES else EXIT_ENVIRONMENT
    if isinstance(error, UsageError):
        return EXIT_USAGE
    return EXIT_ENVIRONMENT if isinstance(error, EnvironmentLacksError) else EXIT_FAILED


def show_error(error: StyleEyesError | DeviceError) -> None:
    """The failure as a person reads it, on stderr: what happened, and what to do."""
    print(f"error: {sanitise(error.message)}", file=sys.stderr)  # noqa: T201 - the program's own voice
    if error.hint:
        print(f"  → {sanitise(error.hint)}", file=sys.stderr)  # noqa: T201


def show_failure(error: ErrorInfo) -> None:
    """A failure that an event told of, as `show_error` shows one that was raised."""
    show_error(StyleEyesError(error.code, error.message, error.hint))


def say(text: str) -> None:
    """A line for people: stderr, so that stdout stays the result."""
    print(sanitise(text), file=sys.stderr, flush=True)  # noqa: T201


def write_json_line(value: JsonObject) -> None:
    """One JSON object on a line of stdout."""
    sys.stdout.write(json_text(value) + "\n")
    sys.stdout.flush()


def json_text(value: JsonValue, *, indent: int | None = None) -> str:
    """JSON that is safe on a terminal and loses nothing: what `sanitise` would remove is escaped."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def error_json(error: StyleEyesError | DeviceError) -> JsonObject:
    """`{code, message, hint?, at?}` as results show it."""
    at = error.at if isinstance(error, StyleEyesError) else None
    return failure_json(
        ErrorInfo(
            code=error.code,
            message=error.message,
            hint=error.hint,
            line=at.line if at else None,
            column=at.column if at else None,
        )
    )


def failure_json(error: ErrorInfo) -> JsonObject:
    """The same of a failure that an event told of."""
    shown: dict[str, JsonValue] = {"code": error.code, "message": error.message}
    if error.hint:
        shown["hint"] = error.hint
    if error.line is not None:
        shown["at"] = {"line": error.line, "column": error.column}
    return shown


@contextmanager
def failures(*, json_output: bool) -> Iterator[None]:
    """Turns a failure inside into words on stderr, the last JSON line and the exit status."""
    try:
        yield
    except (StyleEyesError, DeviceError) as error:
        if json_output:
            write_json_line({"type": "result", "ok": False, "error": error_json(error)})
        show_error(error)
        leave(exit_status(error))
    except KeyboardInterrupt:
        if json_output:
            interrupted: JsonObject = {"code": "CANCELLED", "message": "interrupted"}
            write_json_line({"type": "result", "ok": False, "error": interrupted})
        leave(EXIT_INTERRUPTED)


def leave(status: int) -> NoReturn:
    """Ends the process with `status`, output flushed."""
    sys.stdout.flush()
    raise SystemExit(status)
