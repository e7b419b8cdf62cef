"""`styleeyes tools`: list, check, call, enable, disable and make tools."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from device.clock import SystemClock
from edge_agent.cli.failure import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    error_json,
    failure_json,
    failures,
    leave,
    say,
    show_failure,
    write_json_line,
)
from edge_agent.cli.interrupt import run_interruptibly
from edge_agent.cli.options import agent_option, home_option, source_option
from edge_agent.cli.source_report import fault_report
from edge_agent.engine.catalog import CatalogEntry
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.sandbox.sandbox import open_sandbox
from edge_agent.engine.sources import NAME_RULE, SUFFIX, ToolFile, find_tools, lone_file
from edge_agent.engine.template import MODULE_TEMPLATE
from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.events import Spine
from edge_agent.files import write_new
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.session.first_start import choose_agent, prepare_home

json_option = click.option("--json", "json_output", is_flag=True, help="JSON on stdout, one object a line.")


@click.group()
def tools() -> None:
    """Tools that the agent may call: yours, shared ones, and the built-in examples.

    \b
    Examples:
      styleeyes tools new count-buttons
      styleeyes tools check count_buttons
      styleeyes tools call count_buttons --input '{"question": "how many?"}' --source usb
      styleeyes tools enable count_buttons
    """


@tools.command("list")
@home_option
@agent_option
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Start at this tool; pages hold 16.")
@json_option
def list_command(home: str | None, agent: str | None, offset: int, json_output: bool) -> None:
    """All tools with source, overridden files, enabled or not, and errors. Nothing is executed."""
    with failures(json_output=json_output):
        folder = _agent(home, agent)

        async def work() -> int:
            async with _engine(home) as engine:
                page = await engine.catalog(folder, offset)
            if json_output:
                write_json_line({"type": "result", "ok": True, **page.to_json()})
                return EXIT_DONE
            for entry in page.entries:
                _print_entry(entry)
            for tool_id in page.missing:
                click.echo(f"✗ {tool_id:<24} enabled in agent.json, but there is no file for it")
            if page.next_offset is not None:
                say(
                    f"{page.total} tools: the next page is `styleeyes tools list --offset {page.next_offset}`"
                )
            return EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("target", metavar="[ID|FILE]", required=False)
@home_option
@agent_option
@json_option
def check(target: str | None, home: str | None, agent: str | None, json_output: bool) -> None:
    """Evaluates a tool in the sandbox and says what is wrong with it, as a compiler would.

    Without ID or FILE every tool of the agent is checked. Exit status 1 when something is wrong.
    """
    with failures(json_output=json_output):
        folder = _agent(home, agent)
        files = _files_to_check(target, Home.find(home), folder)

        async def work() -> int:
            faults = 0
            async with _engine(home) as engine:
                for file in files:
                    faults += await _check_one(engine, file, json_output=json_output)
            if json_output:
                write_json_line(
                    {"type": "result", "ok": faults == 0, "checked": len(files), "faulty": faults}
                )
            return EXIT_FAILED if faults else EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("tool_id", metavar="ID")
@click.option(
    "--input", "input_text", metavar="JSON", default="{}", help="The arguments; @FILE reads a file, - stdin."
)
@source_option
@click.option("--at", type=click.FloatRange(min=0), metavar="SECONDS", help="Second of a recorded video.")
@click.option("--model", metavar="M", help="The model behind ctx.llm (default as for `ask`).")
@home_option
@agent_option
@json_option
def call(
    tool_id: str,
    input_text: str,
    source: str | None,
    at: float | None,
    model: str | None,
    home: str | None,
    agent: str | None,
    json_output: bool,
) -> None:
    """Runs an enabled tool once, in a session of its own, and prints its value.

    \b
    Examples:
      styleeyes tools call search_catalog --input '{"query": "green jacket"}'
      styleeyes tools call match_garment --input '{"styleIds": ["FJ-201"]}' --source walk.mp4 --at 3
    """
    with failures(json_output=json_output):
        value = _read_input(input_text)
        folder = _agent(home, agent)
        leave(
            run_interruptibly(
                _call(Home.find(home), folder, tool_id, value, source, at, model, json_output=json_output)
            )
        )


@tools.command()
@click.argument("tool_id", metavar="ID")
@home_option
@agent_option
def enable(tool_id: str, home: str | None, agent: str | None) -> None:
    """Lets the agent call a tool: adds its id to agent.json once it is found valid."""
    with failures(json_output=False):
        folder = _agent(home, agent)

        async def work() -> int:
            async with _engine(home) as engine:
                tool = await engine.tool(folder, tool_id)
                try:
                    config = await engine.enable(folder, tool_id)
                except StyleEyesError as error:
                    if error.code not in ("INVALID_TOOL", "INSPECTION_BUDGET"):
                        raise
                    say(fault_report(tool.winner.path, error))
                    say(f"{tool_id} was not enabled")
                    return EXIT_FAILED
            say(f"{tool_id} is enabled ({len(config.tools)} of 16); it takes effect in a new session")
            return EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("tool_id", metavar="ID")
@home_option
@agent_option
def disable(tool_id: str, home: str | None, agent: str | None) -> None:
    """Takes a tool away from the agent; its file stays."""
    with failures(json_output=False):
        folder = _agent(home, agent)

        async def work() -> int:
            async with _engine(home) as engine:
                await engine.disable(folder, tool_id)
            say(f"{tool_id} is disabled; it takes effect in a new session")
            return EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["module"]), default="module", show_default=True, help="What kind of tool."
)
@click.option("--shared", is_flag=True, help="For all agents instead of one.")
@home_option
@agent_option
def new(name: str, kind: str, shared: bool, home: str | None, agent: str | None) -> None:
    """Writes a small working tool NAME.tool.js to start from; never overwrites a file."""
    with failures(json_output=False):
        folder = _agent(home, agent)
        stem = name.removesuffix(SUFFIX).replace("_", "-")
        target = (Home.find(home).shared_tools if shared else folder.tools) / f"{stem}{SUFFIX}"
        file = lone_file(target)
        if file.name_error is not None:
            raise UsageError("INVALID_TOOL", f"{name!r} is no name for a tool", NAME_RULE)
        title = stem.replace("-", " ").capitalize()
        try:
            write_new(target, MODULE_TEMPLATE.replace("{{title}}", title).encode())
        except FileExistsError:
            raise UsageError(
                "EXISTS", f"{target} exists already", "choose another name or edit that file"
            ) from None
        click.echo(target)
        say(f"next: edit it, then `styleeyes tools check {file.id}` and `styleeyes tools enable {file.id}`")


def _agent(home: str | None, agent: str | None) -> AgentFolder:
    found = Home.find(home)
    prepare_home(found, say)
    return choose_agent(found, agent)


@asynccontextmanager
async def _engine(home: str | None) -> AsyncIterator[ToolEngine]:
    """An engine for authors' work: no session, no capabilities, events to nobody."""
    clock = SystemClock()
    sandbox = open_sandbox(os.environ)
    engine = ToolEngine(Home.find(home), sandbox, Spine(clock), clock)
    try:
        yield engine
    finally:
        await engine.aclose()
        await sandbox.aclose()


def _print_entry(entry: CatalogEntry) -> None:
    mark = "✗" if entry.error else "●" if entry.enabled else "○"
    title = entry.inspected.definition.title if entry.inspected else ""
    click.echo(f"{mark} {entry.source.id:<24} {entry.source.winner.origin:<9} {title}")
    if entry.error is not None:
        click.echo("    " + fault_report(entry.source.winner.path, entry.error).replace("\n", "\n    "))
    for file in entry.source.overridden:
        click.echo(f"    overrides {file.origin}: {file.path}")


def _files_to_check(target: str | None, home: Home, agent: AgentFolder) -> list[ToolFile]:
    found = find_tools(home, agent)
    if target is None:
        return [tool.winner for tool in found.values()]
    if target in found:
        return [found[target].winner]
    path = Path(target)
    if path.exists():
        return [lone_file(path)]
    raise UsageError(
        "NOT_FOUND", f"{target!r} is neither a tool's id nor a file", "`styleeyes tools list` shows all ids"
    )


async def _check_one(engine: ToolEngine, file: ToolFile, *, json_output: bool) -> bool:
    """Whether the file is faulty; says so."""
    try:
        inspected = await engine.inspect_file(file)
    except StyleEyesError as error:
        if error.code not in ("INVALID_TOOL", "INSPECTION_BUDGET"):
            raise
        if json_output:
            found: JsonObject = {"id": file.id, "file": str(file.path)}
            write_json_line({"type": "check", **found, "ok": False, "error": error_json(error)})
        say(fault_report(file.path, error))
        return True
    if json_output:
        write_json_line({"type": "check", "id": file.id, "file": str(file.path), "ok": True})
    else:
        members = ", ".join(inspected.definition.capabilities.members) or "nothing outside itself"
        click.echo(f"✓ {file.id}: {inspected.definition.title} (may use: {members})")
    return False


def _read_input(text: str) -> JsonValue:
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("INVALID_INPUT", f"{text[1:]} cannot be read: {error}") from error
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
    return value


async def _call(
    home: Home,
    agent: AgentFolder,
    tool_id: str,
    value: JsonValue,
    source: str | None,
    at: float | None,
    model: str | None,
    *,
    json_output: bool,
) -> int:
    from edge_agent.cli.event_output import EventOutput
    from edge_agent.session.session import Session, SessionOptions

    options = SessionOptions(home=home, agent=agent, source=source, at=at, model=model)
    session = Session(options, os.environ, SystemClock())
    session.spine.subscribe(EventOutput(json_output=json_output))
    try:
        await session.open()
        await session.wait_for_frame()
        outcome = await session.tools.call(tool_id, value, parent=session.span)
    finally:
        await session.aclose()
    if outcome.error is not None:
        if json_output:
            write_json_line({"type": "result", "ok": False, "error": failure_json(outcome.error)})
        show_failure(outcome.error)
        return EXIT_USAGE if outcome.error.code == "TOOL_NOT_ENABLED" else EXIT_FAILED
    if json_output:
        write_json_line({"type": "result", "ok": True, "value": outcome.value})
    else:
        click.echo(json.dumps(outcome.value, ensure_ascii=False, indent=2))
    return EXIT_DONE
