"""`styleeyes session`: kept sessions."""

from __future__ import annotations

import click

from edge_agent.cli.failure import failures, say, write_json_line
from edge_agent.cli.options import home_option
from edge_agent.events import TurnFinished
from edge_agent.home import Home
from edge_agent.json_types import JsonObject
from edge_agent.session.event_reading import event_from_json
from edge_agent.session.log import LOG_NAME, read_log
from edge_agent.session.span_text import row
from edge_agent.session.span_tree import SpanTree
from edge_agent.session.store import list_sessions, session_folder
from edge_agent.text import one_line


@click.group()
def session() -> None:
    """Lists and shows kept sessions.

    \b
    Examples:
      styleeyes session list
      styleeyes session show 20261201-093012-4fa1
    """


@session.command("list")
@home_option
@click.option("--json", "json_output", is_flag=True, help="One JSON object a session.")
def list_command(home: str | None, json_output: bool) -> None:
    """Kept sessions, newest first."""
    with failures(json_output=json_output):
        found = list_sessions(Home.find(home))
        for kept in found:
            if json_output:
                write_json_line(
                    {
                        "type": "session",
                        "id": kept.id,
                        "started": kept.started,
                        "agent": kept.agent,
                        "model": kept.model,
                        "turns": kept.turns,
                        "events": kept.events,
                        "state": kept.state,
                    }
                )
            else:
                turns = "1 turn" if kept.turns == 1 else f"{kept.turns} turns"
                click.echo(f"{kept.id}  {kept.state:<10} {turns:<9} {kept.agent:<12} {kept.model}")
        if json_output:
            write_json_line({"type": "result", "ok": True, "sessions": len(found)})
        elif not found:
            say("no session is kept yet: `styleeyes demo` makes one")


@session.command()
@click.argument("session_id", metavar="ID")
@home_option
@click.option("--json", "json_output", is_flag=True, help="The log's lines as they are kept.")
def show(session_id: str, home: str | None, json_output: bool) -> None:
    """The turns of one session as a tree, with tools, models, times and errors."""
    with failures(json_output=json_output):
        content = read_log(session_folder(Home.find(home), session_id) / LOG_NAME)
        if json_output:
            for line in content.lines:
                write_json_line(line)
            write_json_line({"type": "result", "ok": True, "damagedLines": content.damaged})
            return
        _print_tree(content.lines)
        if content.damaged:
            lines = "1 damaged line was" if content.damaged == 1 else f"{content.damaged} damaged lines were"
            say(f"{lines} left out")


def _print_tree(lines: tuple[JsonObject, ...]) -> None:
    tree = SpanTree(max_nodes=1_000_000)
    last = 0.0
    for line in lines:
        event = event_from_json(line)
        if event is not None:
            tree.apply(event)
            last = event.mono
    for node in tree.root.walk():
        if node is tree.root:
            continue
        shown = row(node, last)
        words = " ".join(part for part in (shown.glyph, shown.name, shown.note, shown.right) if part)
        click.echo("  " * (node.depth - 1) + words)
        if isinstance(node.finish, TurnFinished) and node.finish.answer:
            click.echo("  " * node.depth + f"» {one_line(node.finish.answer, 400)}")
