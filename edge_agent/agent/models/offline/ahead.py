"""Looking at catalog photos ahead of any question, politely: one thread that yields to all others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from edge_agent.styleeyes.photo_list import CatalogPhoto

NICENESS = 10


class PhotosAhead:
    """The photos that are still to be looked at; those of styles asked about last come first."""

    def __init__(self, photos: Sequence[CatalogPhoto]) -> None:
        self.photos = tuple(photos)
        self._waiting = deque(self.photos)

    def prefer(self, styles: Iterable[str]) -> None:
        """Puts the photos of `styles` first, their own order kept."""
        wanted = set(styles)
        if any(photo.style_id in wanted for photo in self._waiting):
            # `sorted` is stable, so that everything else keeps its order.
            self._waiting = deque(sorted(self._waiting, key=lambda photo: photo.style_id not in wanted))

    async def look(self, look_at: Callable[[bytes], None], between: Callable[[int], Awaitable[None]]) -> None:
        """Hands each photo to `look_at` in the polite thread; a file that cannot be read is passed over.

        After each, `between` is awaited with the count so far: it may hold the work up. Cancelling
        ends it between two photos.
        """
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, "look-ahead", initializer=_be_polite)
        try:
            done = 0
            while self._waiting:
                photo = self._waiting.popleft()
                await loop.run_in_executor(thread, _look, photo, look_at)
                done += 1
                await between(done)
        finally:
            # The photo in hand is finished first, so that nobody closes the eyes while they look.
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)


def _look(photo: CatalogPhoto, look_at: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError):
        look_at(photo.path.read_bytes())


def _be_polite() -> None:
    """Lowers this thread's priority; where the system cannot do that for a thread, nothing happens."""
    with contextlib.suppress(AttributeError, OSError):
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
