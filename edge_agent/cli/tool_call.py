"""`styleeyes tools call`: one run of an enabled tool, in a session of its own."""

from __future__ import annotations

import difflib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from device.clock import SystemClock
from edge_agent.cli.failure import (
    EXIT_DONE,
    EXIT_FAILED,
    failure_json,
    json_text,
    say,
    show_failure,
    write_json_line,
)
from edge_agent.cli.source_report import fault_report
from edge_agent.engine.agent_config import read_agent_config
from edge_agent.engine.engine import BrokenToolError
from edge_agent.engine.sources import find_tools
from edge_agent.errors import SourcePosition, StyleEyesError, UsageError
from edge_agent.events import ErrorInfo
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonValue

_MOST_INPUT = 16 * 1024 * 1024
"""Bytes that are read of a file or of stdin: enough for any input to be judged by the engine's own limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """What the command line asks for."""

    home: Home
    agent: AgentFolder
    tool_id: str
    value: JsonValue
    source: str | None = None
    at: float | None = None
    model: str | None = None


def read_input(text: str) -> JsonValue:
    """The value of `--input`: JSON, `@FILE`, or `-` for stdin. Raises UsageError."""
    if text == "-":
        text = _decoded(sys.stdin.buffer.read(_MOST_INPUT + 1), "stdin")
    elif text.startswith("@"):
        try:
            with Path(text[1:]).open("rb") as file:
                text = _decoded(file.read(_MOST_INPUT + 1), text[1:])
        except OSError as error:
            raise UsageError(
                "INVALID_INPUT", f"{text[1:]} cannot be read: {error.strerror or error}"
            ) from error
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            "INVALID_INPUT",
            f"--input is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            """for example: --input '{"query": "green jacket"}'""",
        ) from error
    except RecursionError:
        raise UsageError("INVALID_INPUT", "--input is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise UsageError("INVALID_INPUT", f"--input cannot be read: {error}") from None
    return value


async def call(request: CallRequest, *, json_output: bool) -> int:
    """Opens a session, runs the tool, closes all; returns the exit status."""
    from edge_agent.cli.event_output import EventOutput
    from edge_agent.session.session import Session, SessionOptions

    _require_enabled(request)
    options = SessionOptions(
        home=request.home,
        agent=request.agent,
        source=request.source,
        at=request.at,
        model=request.model,
        wait_for_model=False,
        look_ahead=False,
    )
    session = Session(options, os.environ, SystemClock())
    session.spine.subscribe(EventOutput(json_output=json_output))
    try:
        await session.open()
        await session.wait_for_frame()
        outcome = await session.tools.call(request.tool_id, request.value, parent=session.span)
    except BrokenToolError as broken:
        say(fault_report(broken.file.path, broken.reason))
        raise
    finally:
        await session.aclose()
    if outcome.error is not None:
        if json_output:
            write_json_line({"type": "result", "ok": False, "error": failure_json(outcome.error)})
        _show(request, outcome.error)
        return EXIT_FAILED
    if json_output:
        write_json_line({"type": "result", "ok": True, "value": outcome.value})
    else:
        click.echo(json_text(outcome.value, indent=2))
    return EXIT_DONE


def _require_enabled(request: CallRequest) -> None:
    """Said before a camera or a model is opened for nothing."""
    enabled = read_agent_config(request.agent).tools
    if request.tool_id in enabled:
        return
    if request.tool_id in find_tools(request.home, request.agent):
        hint = f"enable it first: styleeyes tools enable {request.tool_id}"
    else:
        near = difflib.get_close_matches(request.tool_id, enabled, 1)
        hint = f"did you mean {near[0]}?" if near else f"enabled are: {', '.join(enabled) or 'none'}"
    raise UsageError("TOOL_NOT_ENABLED", f"the tool {request.tool_id!r} is not enabled", hint)


def _show(request: CallRequest, error: ErrorInfo) -> None:
    if error.line is None:
        show_failure(error)
        return
    file = find_tools(request.home, request.agent)[request.tool_id].winner.path
    at = SourcePosition(error.line, error.column or 1)
    say(fault_report(file, StyleEyesError(error.code, error.message, error.hint, at)))


def _decoded(data: bytes, name: str) -> str:
    if len(data) > _MOST_INPUT:
        raise UsageError("INPUT_TOO_LARGE", f"{name} is over {_MOST_INPUT:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("INVALID_INPUT", f"{name} is not UTF-8 (byte {error.start})") from None
