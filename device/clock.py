"""Injected time: monotonic seconds for ages and deadlines, wall time only to show.

This module imports the standard library alone, so every room may use it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...

    def wall(self) -> datetime:
        """The present moment in UTC, timezone-aware; for showing, never for measuring."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        # Where the system has it, the clock that also counts while the machine sleeps: a frame from
        # before the lid was closed must not look fresh when it opens.
        return time.clock_gettime(_BOOT_TIME) if _BOOT_TIME is not None else time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)


def iso_utc(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z, as the tool contract shows times."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
