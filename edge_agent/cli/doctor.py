"""`styleeyes doctor`: what this machine has, what is missing, and the fix."""

from __future__ import annotations

import os

import click

from edge_agent.cli.failure import EXIT_DONE, EXIT_ENVIRONMENT, failures, leave, say, write_json_line
from edge_agent.cli.options import home_option
from edge_agent.home import Home
from edge_agent.json_types import JsonObject

_GLYPHS = {"ok": "✓", "warn": "!", "fail": "✗"}


@click.command(
    epilog="Exit status: 0 when nothing failed, 3 when something did. Warnings do not count as failures."
)
@home_option
@click.option("--json", "json_output", is_flag=True, help="One JSON object a finding, then the result.")
def doctor(home: str | None, json_output: bool) -> None:
    """Looks at Python, OpenCV, SQLite, the sandbox, cameras, keys, weights and the disk.

    \b
    Examples:
      styleeyes doctor
      styleeyes doctor --json | jq 'select(.verdict != "ok")'
    """
    from edge_agent.doctor.checks import examine

    failed = 0
    with failures(json_output=json_output):
        for finding in examine(Home.find(home), os.environ):
            failed += finding.verdict == "fail"
            if json_output:
                line: JsonObject = {
                    "type": "finding",
                    "name": finding.name,
                    "verdict": finding.verdict,
                    "detail": finding.detail,
                    "fix": finding.fix,
                }
                write_json_line(line)
            else:
                click.echo(
                    f"{_GLYPHS[finding.verdict]} {finding.verdict:<4} {finding.name:<12} {finding.detail}"
                )
                if finding.fix and finding.verdict != "ok":
                    click.echo(f"{'':20}→ {finding.fix}")
    if json_output:
        write_json_line({"type": "result", "ok": failed == 0, "failed": failed})
    elif failed:
        say(f"{failed} thing{'s' if failed > 1 else ''} to mend: see the arrows above")
    leave(EXIT_ENVIRONMENT if failed else EXIT_DONE)
