"""What a source has delivered: counts, and the times between pictures."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

_RATE_OVER_S = 2.0
_RATE_FROM_AT_MOST = 250
_TIMES_KEPT = 2000


@dataclass(slots=True)
class CaptureFigures:
    """Counted since the source was opened.

    `received` counts pictures that came, `offered` those that could be had, `repeated` exact repeats,
    `lost` those that were due but did not come, could not be decoded or came too late to be shown.
    """

    received: int = 0
    offered: int = 0
    repeated: int = 0
    lost: int = 0
    reconnects: int = 0
    arrivals: deque[float] = field(default_factory=lambda: deque(maxlen=_TIMES_KEPT))

    def arrived(self, at: float, nominal: float | None) -> None:
        """A picture came at `at`; `nominal` is the rate that a live source promised."""
        if nominal and self.arrivals:
            missed = round((at - self.arrivals[-1]) * nominal) - 1
            self.lost += max(0, missed)
        self.received += 1
        self.arrivals.append(at)

    def interrupted(self) -> None:
        """The source was lost and is opened anew: the gap is no sign of single lost frames."""
        self.reconnects += 1
        self.arrivals.clear()

    def rate(self, now: float) -> float:
        """Pictures a second over the last two seconds, 0 where nothing came."""
        recent = [at for at in list(self.arrivals)[-_RATE_FROM_AT_MOST:] if now - at <= _RATE_OVER_S]
        if len(recent) < 2 or recent[-1] <= recent[0]:
            return 0.0
        return (len(recent) - 1) / (recent[-1] - recent[0])

    def intervals(self) -> list[float]:
        """Seconds between neighbouring pictures, the last 2000 at most."""
        return [later - earlier for earlier, later in pairwise(list(self.arrivals))]
