"""When a recorded picture is due: by the recording's own timestamps, held monotonic."""

from __future__ import annotations

_GAP_AT_MOST_S = 5.0
"""Longer holds are taken for a broken timestamp; nobody would wait for them."""

_RACING_S = 2.0
"""So far behind (the machine slept), going on from here is better than racing after the clock."""

_LATE_S = 0.2
_SKIPS_IN_A_ROW = 5
"""While late, this many pictures are passed over for one that is shown."""


class Pacer:
    """Turns positions in a recording into due times on the monotonic clock.

    Variable frame rates come out right, since positions are what the file says of each picture, not
    its index times a rate. A position that goes back or stands still counts as one nominal interval on.
    """

    def __init__(self, fps: float | None) -> None:
        self._interval = 1.0 / (fps or 30.0)
        self._due: float | None = None
        self._position = 0.0
        self._skipped = 0

    def due(self, position: float, now: float) -> float:
        """When the picture at `position` (seconds) is to be shown."""
        if self._due is None:
            self._due = now
        else:
            step = position - self._position
            self._due += step if 0 < step <= _GAP_AT_MOST_S else self._interval
            if now - self._due > _RACING_S:
                self._due = now
        self._position = position
        return self._due

    def restart(self) -> None:
        """The recording begins again: its next picture is due one interval after the last."""
        self._position = float("inf")

    def skips(self, now: float) -> bool:
        """Whether the picture that `due` was asked for last is too late to be worth showing."""
        late = self._due is not None and now - self._due > _LATE_S
        self._skipped = self._skipped + 1 if late and self._skipped < _SKIPS_IN_A_ROW else 0
        return self._skipped > 0
