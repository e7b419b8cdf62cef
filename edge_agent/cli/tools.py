"""`styleeyes tools`: list, check, call, enable, disable and make tools."""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from device.clock import SystemClock
from edge_agent.cli.failure import (
    EXIT_DONE,
    EXIT_ENVIRONMENT,
    EXIT_USAGE,
    error_json,
    failures,
    leave,
    say,
    show_error,
    write_json_line,
)
from edge_agent.cli.interrupt import run_interruptibly
from edge_agent.cli.options import agent_option, home_option, model_option, source_option
from edge_agent.cli.source_report import fault_report
from edge_agent.cli.tool_call import CallRequest, read_input
from edge_agent.cli.tool_call import call as call_tool
from edge_agent.engine.catalog import CatalogEntry, CatalogPage
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.sandbox.sandbox import ProcessSandbox, open_sandbox
from edge_agent.engine.sources import NAME_RULE, SUFFIX, ToolFile, ToolSource, find_tools, lone_file
from edge_agent.engine.template import MODULE_TEMPLATE
from edge_agent.errors import EnvironmentLacksError, StyleEyesError, UsageError
from edge_agent.events import Spine
from edge_agent.files import write_new
from edge_agent.home import AgentFolder, Home
from edge_agent.json_types import JsonObject
from edge_agent.session.first_start import choose_agent, prepare_home
from edge_agent.text import sanitise

json_option = click.option("--json", "json_output", is_flag=True, help="JSON on stdout, one object a line.")
_FILE_ERRORS = ("INVALID_TOOL", "INSPECTION_BUDGET")
"""Errors that a file has, and not the machine or the command."""


@click.group()
def tools() -> None:
    """Tools that the agent may call: yours, shared ones, and the built-in examples.

    \b
    Examples:
      styleeyes tools new count-buttons
      styleeyes tools check count_buttons
      styleeyes tools enable count_buttons
      styleeyes tools call count_buttons --input '{"question": "how many?"}' --source usb
    """


@tools.command("list")
@home_option
@agent_option
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Start at this tool; pages hold 16.")
@json_option
def list_command(home: str | None, agent: str | None, offset: int, json_output: bool) -> None:
    """All tools with source, overridden files, enabled or not, and errors. `execute` is never run.

    \b
    Examples:
      styleeyes tools list
      styleeyes tools list --offset 16 --json
    """
    with failures(json_output=json_output):
        folder = _agent(home, agent)

        async def work() -> int:
            async with _engine(home) as engine:
                page = await engine.catalog(folder, offset)
            lack = next((e.error for e in page.entries if isinstance(e.error, EnvironmentLacksError)), None)
            if json_output:
                write_json_line({"type": "result", "ok": lack is None, **page.to_json()})
            else:
                _print_page(page)
            if lack is not None:
                show_error(lack)
                return EXIT_ENVIRONMENT
            return EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("target", metavar="[ID|FILE]", required=False)
@home_option
@agent_option
@json_option
def check(target: str | None, home: str | None, agent: str | None, json_output: bool) -> None:
    """Evaluates a tool in the sandbox and says what is wrong with it, as a compiler would.

    Without ID or FILE every tool of the agent is checked. Exit status 2 when a file is wrong.

    \b
    Examples:
      styleeyes tools check
      styleeyes tools check count_buttons
      styleeyes tools check drafts/count-buttons.tool.js --json
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
            return EXIT_USAGE if faults else EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("tool_id", metavar="ID")
@click.option(
    "--input", "input_text", metavar="JSON", default="{}", help="The arguments; @FILE reads a file, - stdin."
)
@source_option
@click.option("--at", type=click.FloatRange(min=0), metavar="SECONDS", help="Second of a recorded video.")
@model_option
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
        value = read_input(input_text)
        request = CallRequest(
            home=Home.find(home),
            agent=_agent(home, agent),
            tool_id=tool_id,
            value=value,
            source=source,
            at=at,
            model=model,
        )
        _tell_of_process_sandbox()
        leave(run_interruptibly(call_tool(request, json_output=json_output)))


@tools.command()
@click.argument("tool_id", metavar="ID")
@home_option
@agent_option
def enable(tool_id: str, home: str | None, agent: str | None) -> None:
    """Lets the agent call a tool: adds its id to agent.json once it is found valid.

    \b
    Examples:
      styleeyes tools enable count_buttons
      styleeyes tools enable count_buttons --agent stylist
    """
    with failures(json_output=False):
        folder = _agent(home, agent)

        async def work() -> int:
            async with _engine(home) as engine:
                tool = await engine.tool(folder, tool_id)
                try:
                    await engine.enable(folder, tool_id)
                except StyleEyesError as error:
                    if error.code not in _FILE_ERRORS:
                        raise
                    say(fault_report(tool.winner.path, error))
                    say(f"{tool_id} was not enabled")
                    return EXIT_USAGE
            say(f"{tool_id} is enabled; it takes effect in a new session")
            return EXIT_DONE

        leave(run_interruptibly(work()))


@tools.command()
@click.argument("tool_id", metavar="ID")
@home_option
@agent_option
def disable(tool_id: str, home: str | None, agent: str | None) -> None:
    """Takes a tool away from the agent; its file stays.

    \b
    Examples:
      styleeyes tools disable count_buttons
    """
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
    """Writes a small working tool NAME.tool.js to start from; never overwrites a file.

    \b
    Examples:
      styleeyes tools new count-buttons
      styleeyes tools new read-label --shared
    """
    with failures(json_output=False):
        folder = _agent(home, agent)
        stem = name.removesuffix(SUFFIX).replace("_", "-")
        tools_folder = Home.find(home).shared_tools if shared else folder.tools
        file = lone_file(tools_folder / f"{stem}{SUFFIX}")
        if file.fault is not None or "/" in name:
            raise UsageError("INVALID_TOOL", f"{name!r} is no name for a tool", NAME_RULE)
        hidden = find_tools(Home.find(home), folder).get(file.id)
        title = stem.replace("-", " ").capitalize()
        try:
            write_new(file.path, MODULE_TEMPLATE.replace("{{title}}", title).encode())
        except FileExistsError:
            raise UsageError(
                "EXISTS", f"{file.path} exists already", "choose another name or edit that file"
            ) from None
        except OSError as error:
            raise EnvironmentLacksError(
                "HOME_NOT_WRITABLE", f"{file.path} cannot be written: {error.strerror or error}"
            ) from error
        click.echo(file.shown_path)
        _tell_of_override(file, hidden, shared=shared)
        say(f"next: edit it, then `styleeyes tools check {file.id}` and `styleeyes tools enable {file.id}`")


def _agent(home: str | None, agent: str | None) -> AgentFolder:
    found = Home.find(home)
    prepare_home(found, say)
    return choose_agent(found, agent)


@asynccontextmanager
async def _engine(home: str | None) -> AsyncIterator[ToolEngine]:
    """An engine for authors' work: no session, no capabilities, events to nobody."""
    _tell_of_process_sandbox()
    clock = SystemClock()
    sandbox = open_sandbox(os.environ)
    engine = ToolEngine(Home.find(home), sandbox, Spine(clock), clock)
    try:
        yield engine
    finally:
        await engine.aclose()
        await sandbox.aclose()


def _tell_of_process_sandbox() -> None:
    """The trusted-development override is never silent."""
    sandbox = open_sandbox(os.environ)
    if isinstance(sandbox, ProcessSandbox):
        say(f"warning: {sandbox.status.label} ({sandbox.status.reason})")


def _tell_of_override(file: ToolFile, hidden: ToolSource | None, *, shared: bool) -> None:
    if hidden is None:
        return
    other = hidden.winner
    if shared and other.origin == "agent":
        say(f"note: this agent has its own {file.id} ({other.shown_path}), which overrides it")
    else:
        say(f"note: it overrides the {other.origin} tool {other.shown_path}")


def _print_page(page: CatalogPage) -> None:
    for entry in page.entries:
        _print_entry(entry)
    for tool_id in page.missing:
        click.echo(f"✗ {sanitise(tool_id):<24} enabled in agent.json, but there is no file for it")
    if not page.entries and page.total:
        say(f"there are only {page.total} tools; the first page is `styleeyes tools list`")
    if page.next_offset is not None:
        say(f"{page.total} tools: the next page is `styleeyes tools list --offset {page.next_offset}`")


def _print_entry(entry: CatalogEntry) -> None:
    lacking = isinstance(entry.error, EnvironmentLacksError)
    mark = "●" if entry.enabled else "○"
    if entry.error is not None:
        mark = "?" if lacking else "✗"
    title = entry.inspected.definition.title if entry.inspected else ""
    enabled = "enabled" if entry.enabled else ""
    click.echo(f"{mark} {entry.source.id:<24} {entry.source.winner.origin:<9} {enabled:<8} {title}".rstrip())
    if entry.error is not None and not lacking:
        click.echo("    " + fault_report(entry.source.winner.path, entry.error).replace("\n", "\n    "))
    for file in entry.source.overridden:
        click.echo(f"    overrides {file.origin}: {file.shown_path}")


def _files_to_check(target: str | None, home: Home, agent: AgentFolder) -> list[ToolFile]:
    found = find_tools(home, agent)
    if target is None:
        return [tool.winner for tool in found.values()]
    if target in found:
        return [found[target].winner]
    path = Path(target)
    if os.path.lexists(path):  # unlike Path.exists, it takes a name of any length
        return [lone_file(path)]
    near = difflib.get_close_matches(target, list(found), 1)
    hint = f"did you mean {near[0]}?" if near else "`styleeyes tools list` shows all ids"
    raise UsageError("NOT_FOUND", f"{target!r} is neither a tool's id nor a file", hint)


async def _check_one(engine: ToolEngine, file: ToolFile, *, json_output: bool) -> bool:
    """Whether the file is faulty; says so."""
    told: JsonObject = {"type": "check", "id": file.id, "file": file.shown_path}
    try:
        inspected = await engine.inspect(file)
    except StyleEyesError as error:
        if error.code not in _FILE_ERRORS:
            raise
        if json_output:
            write_json_line({**told, "ok": False, "error": error_json(error)})
        say(fault_report(file.path, error))
        return True
    if json_output:
        write_json_line({**told, "ok": True})
    else:
        members = ", ".join(inspected.definition.capabilities.members) or "nothing outside itself"
        click.echo(f"✓ {file.id}: {inspected.definition.title} (may use: {members})")
    return False
