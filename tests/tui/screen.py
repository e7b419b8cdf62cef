"""What a test sees of the screen: its rows as text, and bounded waiting for something to be on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.strip import Strip

from edge_agent.tui.app import StyleEyesApp
from tests.tui.scripted_session import ScriptedFrame, ScriptedSession, StillClock, picture

SIZES = [(60, 20), (80, 24), (120, 40)]


def rows(app: StyleEyesApp) -> list[str]:
    """The topmost screen, a string a row."""
    strips: list[Strip] = app.screen._compositor.render_strips()
    return [strip.text for strip in strips]


def text(app: StyleEyesApp) -> str:
    return "\n".join(rows(app))


async def until(pilot: Pilot[Any], true: Callable[[], object], seconds: float = 30.0) -> None:
    """Lets the app work until `true()` holds; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while not true():
            await pilot.pause(0.01)


@asynccontextmanager
async def opened(
    session: ScriptedSession, size: tuple[int, int] = (120, 40), clock: StillClock | None = None
) -> AsyncIterator[tuple[StyleEyesApp, Pilot[Any]]]:
    """The app on `session`, headless, once the session is open and its first frame drawn."""
    if session.camera.frame is None:
        session.camera.frame = ScriptedFrame("f1-1", session.clock.monotonic() - 0.4, picture())
    app = StyleEyesApp(lambda: session, clock=session.clock)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.main.ready or app.failure)
        yield app, pilot


async def ask(app: StyleEyesApp, pilot: Pilot[Any], question: str = "") -> None:
    """Types, sends, and waits for the end of the turn to be drawn."""
    for character in question:
        await pilot.press("space" if character == " " else character)
    turns = len(app.main.spans.turns)
    await pilot.press("enter")
    await until(pilot, lambda: len(app.main.spans.turns) > turns and not app.main.spans.turns[-1].running)
    await until(pilot, lambda: app.main.drawn)
    await pilot.pause()
