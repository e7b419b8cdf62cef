"""Runs the app on a scripted session in a real terminal: `python terminal_app.py LOG`.

While a turn runs it prints on descriptors 1 and 2 from below Python, as FFmpeg does. The questions
`wait` (a turn that only Esc ends) and `hang` (a session that never closes) try the ways out.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from edge_agent.tui.run import run_app

if TYPE_CHECKING:
    from tests.tui.scripted_session import ScriptedSession


def make_session() -> ScriptedSession:
    from device.clock import SystemClock
    from tests.tui import scripted_session as scripted

    clock = SystemClock()

    class FilmingSession(scripted.ScriptedSession):
        """Its camera gives ten pictures a second."""

        film: asyncio.Task[Any] | None = None
        hangs = False

        async def open(self) -> None:
            self.film = asyncio.create_task(self._film())
            await super().open()

        async def _film(self) -> None:
            step = 0
            while True:
                step += 1
                self.camera.frame = scripted.ScriptedFrame(
                    f"f1-{step}", clock.monotonic(), scripted.picture(step)
                )
                await asyncio.sleep(0.1)

        async def aclose(self) -> None:
            while self.hangs:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    continue
            if self.film is not None:
                self.film.cancel()

    async def turn(session: scripted.ScriptedSession, span: str, question: str) -> None:
        os.write(1, b"noise from a C library on 1\n")
        os.write(2, b"noise from a C library on 2\n")
        if question == "wait":
            await asyncio.Event().wait()
        if question == "hang" and isinstance(session, FilmingSession):
            session.hangs = True
        scripted.play_match(session.spine, span)

    return FilmingSession(clock, turn)


if __name__ == "__main__":
    sys.exit(run_app(make_session, log_file=Path(sys.argv[1])))
