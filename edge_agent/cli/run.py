"""`styleeyes run`: the app on a camera, a video or a stream."""

from __future__ import annotations

from typing import cast

import click

from edge_agent.cli.options import agent_option, home_option, model_option, source_option
from edge_agent.cli.screen import show_screen
from edge_agent.engine.ports import Mode


@click.command(
    epilog="Quit with Ctrl+Q. Without --source the first USB camera is used. Without --model: Gemini if "
    "GEMINI_API_KEY or GOOGLE_API_KEY is set, else the offline model."
)
@source_option
@click.option("--loop/--no-loop", default=False, help="Start a recorded video again when it ends.")
@home_option
@agent_option
@model_option
@click.option(
    "--mode",
    type=click.Choice(["wearer", "field", "demo"]),
    default="wearer",
    show_default=True,
    help="Shown to tools and kept in the session log.",
)
def run(
    source: str | None, loop: bool, home: str | None, agent: str | None, model: str | None, mode: str
) -> None:
    """Starts the app.

    \b
    Examples:
      styleeyes run
      styleeyes run --source usb:1
      styleeyes run --source walk.mp4 --loop --model offline
      styleeyes run --source rtsp://cam.local/live --agent shop
    """
    show_screen(
        source=source or "usb",
        loop=loop,
        home=home,
        agent=agent,
        model=model,
        mode=cast(Mode, mode),
    )
