"""The whole app: start to the first painted camera frame, memory, and offline questions end to end."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from edge_agent.home import DEMO_CLIP, Home
from edge_agent.session.first_start import prepare_home
from edge_agent.styleeyes.vision.weights import prepare_encoder

_REPO = Path(__file__).resolve().parents[2]
_HALF_BLOCK = "▀".encode()
_CELLS_OF_A_FRAME = 100
"""The preview is drawn in half blocks; a logo or a border holds none, a picture has hundreds."""
_QUESTION_SECONDS = (9.0, 1.5, 25.5)
_LONGEST_S = 90.0


def measure() -> dict[str, dict[str, Any]]:
    """Figures of the demo agent; the encoder is prepared before, as after a first start."""
    with tempfile.TemporaryDirectory(prefix="styleeyes-bench-") as folder:
        home = Home(Path(folder) / "home")
        prepare_home(home)
        prepare_encoder(home.vision)
        return _screen(home) | _questions(home)


def _screen(home: Home) -> dict[str, dict[str, Any]]:
    with _app(home) as (process, terminal, started):
        if not _frame_is_painted(terminal, started + _LONGEST_S):
            reason = "the app painted no frame"
            return {name: _unmeasured(reason) for name in ("app.first_frame_s", "app.memory_mib")}
        first_frame = time.monotonic() - started
        _drain(terminal, 3.0)
        os.write(terminal, b"\r")
        _drain(terminal, 20.0)
        memory = _memory_mib(process)
    return {
        "app.first_frame_s": {
            "value": round(first_frame, 2),
            "unit": "s",
            "aim": 2.0,
            "ok": first_frame <= 2.0,
        },
        "app.memory_mib": {"value": round(memory), "unit": "MiB", "aim": 400, "ok": memory <= 400},
    }


def _questions(home: Home) -> dict[str, dict[str, Any]]:
    """Each question twice: photos never looked at before, and looked at."""
    first = [_ask(home, at) for at in _QUESTION_SECONDS]
    again = [_ask(home, at) for at in _QUESTION_SECONDS]
    figures: dict[str, dict[str, Any]] = {}
    for name, seconds, aim in (("ask_offline_s", again, 1.5), ("ask_offline_new_photos_s", first, None)):
        measured = [value for value in seconds if value is not None]
        if len(measured) < len(seconds):
            figures[f"app.{name}"] = _unmeasured("a question was not answered")
            continue
        value = round(statistics.median(measured), 2)
        figures[f"app.{name}"] = {
            "value": value,
            "unit": "s",
            "aim": aim,
            "ok": aim is None or value <= aim,
            "worst": round(max(measured), 2),
        }
    return figures


def _ask(home: Home, at: float) -> float | None:
    """Seconds from the question to its answer, without the program's start."""
    command = [sys.executable, "-m", "edge_agent", "ask", "What am I looking at?", "--json"]
    command += ["--source", str(DEMO_CLIP), "--at", str(at), "--model", "offline", "--home", str(home.root)]
    done = subprocess.run(command, cwd=_REPO, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    times = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        if event["type"] in ("turn.started", "turn.finished"):
            times[event["type"]] = event["mono"]
    if len(times) < 2:
        return None
    return float(times["turn.finished"] - times["turn.started"])


@contextmanager
def _app(home: Home) -> Iterator[tuple[psutil.Process, int, float]]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    started = time.monotonic()
    command = [sys.executable, "-m", "edge_agent", "demo", "--home", str(home.root)]
    child = subprocess.Popen(
        command, cwd=_REPO, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield psutil.Process(child.pid), master, started
    finally:
        child.terminate()
        _drain(master, 1.0)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        os.close(master)


def _frame_is_painted(terminal: int, deadline: float) -> bool:
    seen = b""
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.05)[0]:
            continue
        seen = (seen + os.read(terminal, 65536))[-1_000_000:]
        # every half block has a colour of its own, so the glyphs never stand side by side in the stream
        if seen.count(_HALF_BLOCK) >= _CELLS_OF_A_FRAME:
            return True
    return False


def _drain(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                if not os.read(terminal, 65536):
                    return
            except OSError:
                return


def _memory_mib(process: psutil.Process) -> float:
    """Memory of the app and all its processes, shared pages counted once (proportional set size)."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**20


def _unmeasured(reason: str) -> dict[str, Any]:
    return {"value": None, "unit": "", "aim": None, "ok": False, "reason": reason}
