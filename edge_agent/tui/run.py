"""`run_app`: the screen's whole life in a real terminal, from the first paint to the restored line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from device.clock import Clock
from edge_agent.tui.session_port import SessionFactory
from edge_agent.tui.terminal import TerminalGuard, deadline

QUIT_SECONDS = 6.0
"""From the wish to quit to the end of the process, at the very most."""
SILENT_SECONDS = 0.7
"""Closing that takes longer is said, since the screen is gone by then."""
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def run_app(session_factory: SessionFactory, *, log_file: Path, clock: Clock | None = None) -> int:
    """Runs the app until it is quit; the exit status of the program.

    0 after a wished end, 1 after a fault of ours, 128 + signal after SIGTERM, SIGHUP or SIGINT. When
    the session could not be opened, its StyleEyesError or DeviceError is raised once the terminal is
    back, so that it is not lost with the screen. What libraries print goes to `log_file`. Call it
    before anything imports OpenCV.
    """
    loop_holder: list[asyncio.AbstractEventLoop] = []
    stop: list[int] = []
    screen_left = threading.Event()

    def terminal_gone() -> None:
        if loop_holder:
            with contextlib.suppress(RuntimeError):
                loop_holder[0].call_soon_threadsafe(signal.raise_signal, signal.SIGHUP)

    guard = TerminalGuard(log_file, terminal_gone)

    def last_act() -> None:
        words = "StyleEyes would not end by itself and was stopped."
        guard.restore_by_force(words, screen_up=not screen_left.is_set())
        os._exit(128 + stop[0] if stop else 1)

    # Exported sizes (readline does it to its children) are those of another moment, and Textual would
    # believe them over the terminal: the screen would not follow a resized window.
    for stale in ("COLUMNS", "LINES"):
        os.environ.pop(stale, None)
    with deadline(QUIT_SECONDS, last_act) as quitting, guard:
        from edge_agent.tui.app import StyleEyesApp

        app = StyleEyesApp(session_factory, clock=clock, on_exit=quitting.set)

        async def live() -> None:
            loop = asyncio.get_running_loop()
            loop_holder.append(loop)

            def on_signal(number: int) -> None:
                if not stop:
                    stop.append(number)
                    app.exit(128 + number, return_code=128 + number)

            for number in _SIGNALS:
                loop.add_signal_handler(number, on_signal, number)
            try:
                await app.run_async()
            finally:
                quitting.set()
                screen_left.set()
                patience = loop.call_later(SILENT_SECONDS, _say, "Closing camera and tools…")
                with contextlib.suppress(TimeoutError):
                    await app.close_session()
                patience.cancel()
                loop_holder.clear()
                for number in _SIGNALS:
                    loop.remove_signal_handler(number)

        asyncio.run(live())
    if stop:
        return 128 + stop[0]
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


def _say(words: str) -> None:
    """A line for the person, once the screen is gone."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
