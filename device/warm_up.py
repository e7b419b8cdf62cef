"""A live source's first pictures: dark from a cold sensor, or stale from a stream's backlog."""

from __future__ import annotations

from device.quality import Quality
from device.sources.spec import SourceKind

_PICTURES_AT_LEAST = 5
_STEADY = 4.0
_LONGEST_S = 1.5
_BACKLOG_S = 0.5


class WarmUp:
    """Decides when pictures may be offered after a source was opened; such before are dropped.

    A USB camera is warm after five pictures once its automatic exposure has settled (the brightness
    changes by under 4 of 255 from one to the next and is not black), after 1.5 s in any case. A stream
    is warm after half a second: what comes sooner is what the server had kept.
    """

    def __init__(self, kind: SourceKind, opened: float) -> None:
        self._kind = kind
        self._opened = opened
        self._seen = 0
        self._brightness: float | None = None

    def is_over(self, quality: Quality, received: float) -> bool:
        """Looks at one more picture."""
        passed = received - self._opened
        if self._kind is not SourceKind.USB:
            return passed >= _BACKLOG_S
        before, self._brightness = self._brightness, quality.exposure.brightness
        self._seen += 1
        steady = before is not None and abs(self._brightness - before) < _STEADY
        settled = steady and quality.exposure.word != "black" and self._seen >= _PICTURES_AT_LEAST
        return settled or passed >= _LONGEST_S
