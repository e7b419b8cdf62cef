"""`styleeyes ask`: one question, one answer, no screen."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click

from device.clock import SystemClock
from edge_agent.cli.failure import (
    EXIT_DONE,
    EXIT_FAILED,
    failure_json,
    failures,
    leave,
    say,
    show_failure,
    write_json_line,
)
from edge_agent.cli.interrupt import run_interruptibly
from edge_agent.cli.options import agent_option, home_option, model_option, source_option
from edge_agent.errors import UsageError
from edge_agent.home import Home
from edge_agent.json_types import JsonObject, JsonValue

if TYPE_CHECKING:
    from edge_agent.agent.loop import TurnResult


@click.command(
    epilog="The answer goes to stdout, everything else to stderr. With --json stdout holds one event a line "
    'and last {"type": "result", "ok": …}. Exit status: 0 answered, 1 the model or a tool failed, '
    "2 wrong usage, 3 something is missing (see `styleeyes doctor`), 130 interrupted."
)
@click.argument("question")
@source_option
@click.option(
    "--at", type=click.FloatRange(min=0), metavar="SECONDS", help="Look at this second of a recorded video."
)
@home_option
@agent_option
@model_option
@click.option("--json", "json_output", is_flag=True, help="Events and result as JSON lines.")
def ask(
    question: str,
    source: str | None,
    at: float | None,
    home: str | None,
    agent: str | None,
    model: str | None,
    json_output: bool,
) -> None:
    """Asks QUESTION about what SOURCE shows and prints the answer.

    \b
    Examples:
      styleeyes ask "What is this jacket?" --source usb
      styleeyes ask "What is this jacket?" --source walk.mp4 --at 15 --json
      styleeyes ask "Do you have green jackets?" --source synthetic --model offline
    """
    with failures(json_output=json_output):
        if not question.strip():
            raise UsageError(
                "INVALID_INPUT", "the question is empty", 'for example: styleeyes ask "What is this?"'
            )
        if source is None:
            raise UsageError(
                "INVALID_INPUT",
                "no source was given",
                "say where to look, for example --source usb or --source walk.mp4",
            )
        leave(
            run_interruptibly(
                _ask(question, source, at, Home.find(home), agent, model, json_output=json_output)
            )
        )


async def _ask(
    question: str,
    source: str,
    at: float | None,
    home: Home,
    agent: str | None,
    model: str | None,
    *,
    json_output: bool,
) -> int:
    from edge_agent.cli.event_output import EventOutput
    from edge_agent.session.first_start import choose_agent, prepare_home
    from edge_agent.session.session import Session, SessionOptions

    await asyncio.to_thread(prepare_home, home, say)
    options = SessionOptions(
        home=home, agent=choose_agent(home, agent), source=source, at=at, model=model, mode="wearer"
    )
    session = Session(options, os.environ, SystemClock())
    session.spine.subscribe(EventOutput(json_output=json_output))
    try:
        await session.open()
        await session.wait_for_frame()
        turn = await session.ask(question)
    finally:
        await session.aclose()
    if json_output:
        write_json_line(_result(session.id, turn))
    else:
        click.echo(turn.answer)
    if turn.error is not None:
        show_failure(turn.error)
    return EXIT_DONE if turn.ok else EXIT_FAILED


def _result(session_id: str, turn: TurnResult) -> JsonObject:
    result: dict[str, JsonValue] = {
        "type": "result",
        "ok": turn.ok,
        "answer": turn.answer,
        "toolCalls": [
            {"id": c.id, "tool": c.tool, "ok": c.ok, "ms": round(c.ms, 1)} for c in turn.tool_calls
        ],
        "frame": {"id": turn.frame.id, "ageMs": turn.frame.age_ms} if turn.frame else None,
        "model": turn.model,
        "sessionId": session_id,
    }
    if turn.error is not None:
        result["error"] = failure_json(turn.error)
    return result
