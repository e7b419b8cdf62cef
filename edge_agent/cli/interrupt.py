"""Running a command's coroutine so that Ctrl-C and SIGTERM end it cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work`; the first SIGINT or SIGTERM cancels it, so that its `finally` blocks close all.

    Raises KeyboardInterrupt after such an end. A second signal ends the process at once.
    """

    async def live() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)
        interrupted = False

        def interrupt(number: int) -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, interrupt, number)
        try:
            return await task
        except asyncio.CancelledError:
            if interrupted:
                raise KeyboardInterrupt from None
            raise
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    return asyncio.run(live())
