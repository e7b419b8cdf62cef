"""Starting the app on a terminal, for `run` and `demo` alike."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from device.clock import SystemClock
from edge_agent.cli.failure import failures, leave, say
from edge_agent.engine.ports import Mode
from edge_agent.errors import UsageError
from edge_agent.home import Home

if TYPE_CHECKING:
    from edge_agent.session.session import Session


def show_screen(
    *, source: str, loop: bool, home: str | None, agent: str | None, model: str | None, mode: Mode
) -> None:
    """Opens a session behind the app and runs it until it is quit; ends the process."""
    # The screen guards descriptor 2 before OpenCV may be imported, so nothing here imports it.
    from edge_agent.tui.run import run_app

    with failures(json_output=False):
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                "NO_TERMINAL",
                "the app needs a terminal to draw on",
                'run it in a terminal, or ask without a screen: styleeyes ask "What is this?" --source S',
            )
        from edge_agent.session.first_start import choose_agent, prepare_home

        found = Home.find(home)
        prepare_home(found, say)
        chosen = choose_agent(found, agent)

        def make_session() -> Session:
            from edge_agent.session.session import Session, SessionOptions

            return Session(
                SessionOptions(
                    home=found,
                    agent=chosen,
                    source=source,
                    loop=loop,
                    model=model,
                    mode=mode,
                    tolerant=True,
                    wait_for_model=False,
                ),
                os.environ,
                SystemClock(),
            )

        leave(run_app(make_session, log_file=found.logs / "libraries.log"))
