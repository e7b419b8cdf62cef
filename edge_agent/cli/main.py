"""The `styleeyes` program: one module a command, loaded when it is used."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from edge_agent import __version__
from edge_agent.cli.failure import EXIT_INTERRUPTED, EXIT_USAGE, exit_status, show_error
from edge_agent.errors import StyleEyesError

_COMMANDS = {
    "demo": "try it now: bundled clip, bundled catalog, offline model",
    "run": "the app on a camera, a video or a stream",
    "ask": "one question, one answer, no screen",
    "tools": "list, check, call, enable and make tools",
    "catalog": "build, import and search the catalog",
    "session": "kept sessions: list and show",
    "camera": "which cameras there are; a health report of one",
    "doctor": "what this machine has, what is missing, and the fix",
}
"""Commands in the order in which help shows them; each is `edge_agent.cli.<name>`."""


class _LazyGroup(click.Group):
    """Imports a command's module only when that command is named, so that start-up stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"edge_agent.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Each command has --help with examples. Without a key and a network, everything works on the "
    "offline model.",
)
@click.version_option(__version__, prog_name="styleeyes")
def cli() -> None:
    """StyleEyes: ask what you are looking at.

    \b
    Examples:
      styleeyes demo
      styleeyes run --source usb
      styleeyes ask "What is this jacket?" --source walk.mp4 --at 15
    """


def main() -> NoReturn:
    """Runs the program and ends the process with the documented exit status."""
    try:
        status = cli.main(standalone_mode=False, prog_name="styleeyes")
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        error.show(sys.stderr)
        sys.exit(EXIT_USAGE)
    except StyleEyesError as error:
        show_error(error)
        sys.exit(exit_status(error))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is left to be said to it.
        sys.stderr.close()
        sys.exit(0)
