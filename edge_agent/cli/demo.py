"""`styleeyes demo`: everything bundled, nothing needed."""

from __future__ import annotations

import click

from edge_agent.cli.options import home_option
from edge_agent.cli.screen import show_screen
from edge_agent.home import DEMO_CLIP


@click.command(epilog="Press space in the tool log, or Enter on an empty prompt, to ask. Quit with Ctrl+Q.")
@home_option
def demo(home: str | None) -> None:
    """The app on the bundled clip and catalog with the offline model: no key, no network, no camera.

    \b
    Examples:
      styleeyes demo
      styleeyes demo --home /tmp/try-it
    """
    from edge_agent.session.first_start import DEMO_AGENT

    show_screen(source=str(DEMO_CLIP), loop=True, home=home, agent=DEMO_AGENT, model="offline", mode="demo")
