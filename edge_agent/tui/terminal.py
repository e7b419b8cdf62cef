"""Keeps the terminal to Textual alone, and gives it back whatever happens.

FFmpeg, libjpeg and V8 print to descriptors 1 and 2 from C, over whatever is on the screen. Textual's
Linux driver writes to `sys.__stderr__` and its web driver to `sys.__stdout__`. So both streams are
moved to duplicates of their descriptors, and descriptors 1 and 2 then lead to a log file. This must
happen before OpenCV is first imported, since FFmpeg keeps what it finds.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_RESTORE = (
    "\x1b[?2004l\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[?7h"
)
"""Leaves the alternate screen and undoes every mode that Textual sets (its `stop_application_mode`)."""


class TerminalStream(io.TextIOWrapper):
    """A text stream to a terminal that may vanish: a closed window must not hang the writer thread."""

    def __init__(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        super().__init__(
            os.fdopen(descriptor, "wb", buffering=io.DEFAULT_BUFFER_SIZE), encoding="utf-8", errors="replace"
        )
        self._on_gone = on_gone
        self.gone = False

    def write(self, text: str) -> int:
        self._attempt(lambda: super(TerminalStream, self).write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(super().flush)

    def close(self) -> None:
        self._attempt(super().close)

    def _attempt(self, work: Callable[[], object]) -> None:
        if self.gone:
            return
        try:
            work()
        except (OSError, ValueError):
            self.gone = True
            self._on_gone()


class TerminalGuard:
    """While entered, only Textual can write on the terminal; see the module's text.

    `on_gone` is called once, in the writing thread, when the terminal has vanished. Where the log
    cannot be opened (a full or read-only disk) the noise goes to /dev/null.
    """

    def __init__(self, log_file: Path, on_gone: Callable[[], None] = lambda: None) -> None:
        self._log_file = log_file
        self._on_gone = on_gone
        self._attributes: list[Any] | None = None
        self._saved: tuple[int, int] | None = None

    def __enter__(self) -> TerminalGuard:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        with contextlib.suppress(termios.error, OSError):
            self._attributes = termios.tcgetattr(0)
        self._saved = os.dup(1), os.dup(2)
        self._streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
        out = self._saved[0]
        if not os.isatty(out) and os.isatty(self._saved[1]) and "TEXTUAL_DRIVER" not in os.environ:
            out = self._saved[1]  # the terminal's size is asked of __stdout__
        log = self._open_log()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        stdout = TerminalStream(os.dup(out), self._on_gone)
        stderr = TerminalStream(os.dup(self._saved[1]), self._on_gone)
        sys.stdout, sys.stderr = stdout, stderr
        sys.__stdout__, sys.__stderr__ = stdout, stderr  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._saved is not None
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.close()
        sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]
        for saved, descriptor in zip(self._saved, (1, 2), strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)
        self._saved = None
        self._reset_line()

    def restore_by_force(self, words: str, *, screen_up: bool) -> None:
        """For the moment before a hard exit: line settings back, modes off, `words` on the terminal."""
        self._reset_line()
        if self._saved is not None and os.isatty(self._saved[1]):
            with contextlib.suppress(OSError):
                os.write(self._saved[1], f"{_RESTORE if screen_up else ''}{words}\r\n".encode())

    def _reset_line(self) -> None:
        if self._attributes is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSANOW, self._attributes)

    def _open_log(self) -> int:
        try:
            self._log_file.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def deadline(seconds: float, last_act: Callable[[], None]) -> Iterator[threading.Event]:
    """Runs `last_act` in a thread when the block has not ended `seconds` after the event was set."""
    begin, over = threading.Event(), threading.Event()

    def watch() -> None:
        begin.wait()
        if not over.wait(seconds):
            last_act()

    threading.Thread(target=watch, name="quit-deadline", daemon=True).start()
    try:
        yield begin
    finally:
        over.set()
        begin.set()
