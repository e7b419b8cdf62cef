"""Options that several commands share."""

from __future__ import annotations

import click

home_option = click.option(
    "--home",
    metavar="DIR",
    help="Where StyleEyes keeps its files (default: STYLEEYES_HOME, else the user data folder).",
)
agent_option = click.option(
    "--agent", metavar="ID", help="Which agent (default: your only one beside the demo, else the demo)."
)
source_option = click.option(
    "--source",
    "source",
    metavar="S",
    help="usb, usb:N, a /dev/… path, a video file, an rtsp:// or http(s):// stream, images:DIR or synthetic.",
)
model_option = click.option(
    "--model",
    metavar="M",
    help="A Gemini model id, `offline`, or openai:BASE_URL#MODEL "
    "(default: Gemini if a key is set, else offline).",
)
