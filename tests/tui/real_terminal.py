"""A real terminal for tests: tmux, where escape and descriptor faults show."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable

import psutil


class Terminal:
    """A tmux server of its own with one window that runs a command."""

    def __init__(self, width: int, height: int, command: str) -> None:
        self._tmux = ["tmux", "-L", f"styleeyes-{uuid.uuid4().hex[:8]}", "-f", "/dev/null"]
        size = ["-x", str(width), "-y", str(height)]
        self._run("new-session", "-d", "-s", "s", *size, command)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, timeout=20)
        return done.stdout

    def keys(self, *keys: str) -> None:
        self._run("send-keys", "-t", "s", *keys)

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", "s")

    def until(self, true: Callable[[str], object], seconds: float = 30.0) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if true(shown := self.screen()):
                return shown
            time.sleep(0.05)  # tmux has no event to wait for
        raise AssertionError(f"not seen within {seconds} s; the screen shows:\n{self.screen()}")

    def app(self) -> psutil.Process:
        """The Python program in the window."""
        pane = psutil.Process(int(self._run("list-panes", "-F", "#{pane_pid}").split()[0]))
        # the shell that started it has the program's words on its command line too
        return next(p for p in [pane, *pane.children(recursive=True)] if p.name().startswith("python"))

    def resize(self, width: int, height: int) -> None:
        self._run("resize-window", "-t", "s", "-x", str(width), "-y", str(height))

    def close(self) -> None:
        self._run("kill-server")
