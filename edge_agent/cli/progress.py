"""Progress of long work on stderr: silent for the first second, then a line that renews itself."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from edge_agent.styleeyes.catalog.snapshot import Progress

_SILENT_S = 1.0
_TERMINAL_S = 0.1
_LOG_S = 5.0
"""Seconds between lines where stderr is a file: a log should not fill with them."""


class ProgressLine:
    """Shows `Progress` reports; used as a context manager, it leaves no half line behind."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = 0
        self._stage = ""
        self._stage_began = 0.0
        self._next = time.monotonic() + _SILENT_S

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._stage_began = progress.stage, now
        if now < self._next:
            return
        self._next = now + (_TERMINAL_S if self._terminal else _LOG_S)
        line = _words(progress, now - self._stage_began)
        if self._terminal:
            sys.stderr.write("\r" + line.ljust(self._shown))
            self._shown = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _words(progress: Progress, seconds: float) -> str:
    if progress.total is None:
        return f"{progress.stage}: {progress.done:,}"
    share = progress.done / progress.total if progress.total else 1.0
    line = f"{progress.stage}: {progress.done:,} of {progress.total:,} ({share:.0%})"
    if 0.02 < share < 1.0 and seconds > 1.0:
        line += f", about {_duration(seconds * (1 - share) / share)} left"
    return line


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
