"""The durable session log: one JSON object a line, flushed event by event.

A `kill -9` loses at most the line being written. While a session lives its process holds a lock on
the file, so that a later start can tell a log in use from one whose process died. When the disk is
full the lines wait in memory (bounded) and are written, in order, once there is room again.
"""

from __future__ import annotations

import collections
import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from edge_agent.events import Event, SessionEnded, TurnFinished, event_to_json
from edge_agent.json_types import JsonObject

LOG_NAME = "log.jsonl"
_MOST_PENDING = 10_000
"""Lines kept while nothing can be written: some hours of a busy session, at most a few MB."""


def event_line(event: Event) -> bytes:
    """The event as one line of the log, newline included."""
    return json.dumps(event_to_json(event), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class SessionLog:
    """Appends events to `folder/log.jsonl`. Use `append` as the spine's first subscriber.

    `on_trouble(message)` is called once when writing fails and once, with None, when all that
    waited has been written. It is called on the emitting thread and must not emit events.
    """

    def __init__(self, folder: Path, on_trouble: Callable[[str | None], None] = lambda _: None) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.path = folder / LOG_NAME
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._on_trouble = on_trouble
        self._pending: collections.deque[bytes] = collections.deque()
        self._dropped = 0
        self._lock = threading.Lock()

    def append(self, event: Event) -> None:
        """Writes the event, after all that still waits. Never raises for a full or failing disk."""
        with self._lock:
            was_in_trouble = bool(self._pending)
            self._pending.append(event_line(event))
            if len(self._pending) > _MOST_PENDING:
                self._pending.popleft()
                self._dropped += 1
            trouble = self._write_pending()
            if trouble is None and isinstance(event.body, TurnFinished | SessionEnded):
                self._sync()
        if trouble is not None and not was_in_trouble:
            self._on_trouble(trouble)
        elif trouble is None and was_in_trouble:
            self._on_trouble(None)

    def _write_pending(self) -> str | None:
        while self._pending:
            line = self._pending[0]
            try:
                written = os.write(self._fd, line)
            except OSError as error:
                return error.strerror or str(error)
            if written < len(line):
                self._pending[0] = line[written:]
            else:
                self._pending.popleft()
        return None

    def _sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError:
            # The line is in the page cache; a disk that cannot sync fails at the next write too.
            return

    @property
    def waiting(self) -> int:
        """Lines that could not be written yet."""
        return len(self._pending)

    def close(self) -> None:
        """Writes what waits, syncs, and releases the lock; safe to call twice."""
        with self._lock:
            if self._fd < 0:
                return
            self._write_pending()
            self._sync()
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> SessionLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class LogContent:
    """What could be read of a log. `damaged` counts lines that are not whole JSON objects."""

    lines: tuple[JsonObject, ...]
    damaged: int

    @property
    def ended(self) -> bool:
        return any(line.get("type") == "session.ended" for line in self.lines)


def read_log(path: Path) -> LogContent:
    """Reads a log, skipping damaged lines. Raises OSError."""
    lines: list[JsonObject] = []
    damaged = 0
    for raw in _raw_lines(path):
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            damaged += 1
            continue
        if isinstance(line, dict) and isinstance(line.get("type"), str):
            lines.append(line)
        else:
            damaged += 1
    return LogContent(tuple(lines), damaged)


def _raw_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as source:
        yield from source


def in_use(path: Path) -> bool:
    """Whether a living process still writes this log."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
