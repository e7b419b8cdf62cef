#!/usr/bin/env python3
"""Takes the README's pictures of the app from a real run of the demo.

    .venv/bin/python scripts/make_screenshots.py [--to assets/screenshots] [--sizes 120x40 80x24 60x20]

Needs rsvg-convert (Debian: librsvg2-bin) and a monospaced font with half blocks (fonts-dejavu-core).
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from device.clock import SystemClock
from device.opencv import cv2
from edge_agent.events import Event, TurnFinished
from edge_agent.home import DEMO_CLIP, Home
from edge_agent.session.first_start import DEMO_AGENT, prepare_home
from edge_agent.session.session import Session, SessionOptions
from edge_agent.styleeyes.vision.weights import prepare_encoder
from edge_agent.tui.app import StyleEyesApp

_QUESTION = "What is this dress?"
_MOMENT_S = 9.0
_LONGEST_S = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--to", type=Path, default=Path(__file__).resolve().parent.parent / "assets" / "screenshots"
    )
    parser.add_argument("--sizes", nargs="+", default=["120x40", "80x24", "60x20"])
    given = parser.parse_args()
    if shutil.which("rsvg-convert") is None:
        raise SystemExit("rsvg-convert is missing: apt-get install librsvg2-bin fonts-dejavu-core")
    given.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="styleeyes-pictures-") as folder:
        home = Home(Path(folder) / "home")
        prepare_home(home)
        prepare_encoder(home.vision)
        still = _still(Path(folder) / "clip.jpg")
        for size in given.sizes:
            width, height = map(int, size.split("x"))
            svg = asyncio.run(_picture(home, still, width, height))
            target = given.to / f"demo-{size}.png"
            _render(svg, target)
            print(target)


def _still(target: Path) -> Path:
    """One picture of the demo clip: what is asked about then stays in view, however slow the machine."""
    clip = cv2.VideoCapture(str(DEMO_CLIP))
    clip.set(cv2.CAP_PROP_POS_MSEC, _MOMENT_S * 1000)
    found, pixels = clip.read()
    clip.release()
    if not found:
        raise SystemExit(f"{DEMO_CLIP} cannot be read")
    cv2.imwrite(str(target), pixels)
    return target


async def _picture(home: Home, still: Path, width: int, height: int) -> str:
    answered = asyncio.Event()

    def make_session() -> Session:
        options = SessionOptions(
            home=home,
            agent=home.agent(DEMO_AGENT),
            source=str(still),
            model="offline",
            mode="demo",
            tolerant=True,
            wait_for_model=False,
        )
        session = Session(options, {}, SystemClock())

        def look(event: Event) -> None:
            if isinstance(event.body, TurnFinished):
                answered.set()

        session.spine.subscribe(look)
        return session

    app = StyleEyesApp(make_session)
    async with app.run_test(size=(width, height)) as pilot:
        async with asyncio.timeout(_LONGEST_S):
            while not (app.main.ready and app.main.drawn):
                await pilot.pause(0.1)
            await pilot.press(*_QUESTION, "enter")
            await answered.wait()
        await pilot.pause(0.6)
        svg = app.export_screenshot(title="styleeyes demo")
        await app.close_session()
    return svg


def _render(svg: str, target: Path) -> None:
    local = svg.replace("Fira Code", "DejaVu Sans Mono")
    subprocess.run(
        ["rsvg-convert", "--zoom", "1.0", "--output", str(target)], input=local.encode(), check=True
    )


if __name__ == "__main__":
    main()
