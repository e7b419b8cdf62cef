"""The durable log: whole lines, whatever happens to disk and process."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from device.clock import SystemClock
from edge_agent.events import AnswerDelta, Notice, SessionEnded, Spine
from edge_agent.home import Home
from edge_agent.session.log import LOG_NAME, SessionLog, in_use, read_log
from edge_agent.session.store import close_crashed_sessions, list_sessions


def notice(text: str) -> Notice:
    return Notice(level="info", code="TEST", message=text)


def messages(path: Path) -> list[object]:
    return [line["message"] for line in read_log(path).lines if line["type"] == "notice"]


def test_each_event_is_a_whole_line_at_once(tmp_path: Path) -> None:
    spine = Spine(SystemClock())
    with SessionLog(tmp_path) as log:
        spine.subscribe(log.append)
        spine.emit(notice("one\ntwo · 三"), span="s")
        line = (tmp_path / LOG_NAME).read_bytes()
        assert line.endswith(b"\n")
        assert json.loads(line)["message"] == "one\ntwo · 三"


def test_a_full_disk_loses_nothing_and_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str | None] = []
    spine = Spine(SystemClock())
    log = SessionLog(tmp_path, told.append)
    spine.subscribe(log.append)
    real_write = os.write
    full = True

    def write(fd: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(fd, data)

    monkeypatch.setattr(os, "write", write)
    for text in ("a", "b", "c"):
        spine.emit(notice(text), span="s")
    assert told == ["No space left on device"]
    assert log.waiting == 3
    full = False
    spine.emit(notice("d"), span="s")
    log.close()
    assert told == ["No space left on device", None]
    assert messages(log.path) == ["a", "b", "c", "d"]


def test_a_short_write_is_completed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spine = Spine(SystemClock())
    log = SessionLog(tmp_path)
    spine.subscribe(log.append)
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:7]))
    spine.emit(notice("in many pieces"), span="s")
    log.close()
    assert messages(log.path) == ["in many pieces"]


_WRITER = """
import sys
from pathlib import Path
from device.clock import SystemClock
from edge_agent.events import Notice, Spine
from edge_agent.session.log import SessionLog
spine = Spine(SystemClock())
spine.subscribe(SessionLog(Path(sys.argv[1])).append)
number = 0
while True:
    spine.emit(Notice(level="info", code="TEST", message=str(number)), span="s")
    number += 1
    if number == 200:
        print("going", flush=True)
"""


def test_kill_9_loses_at_most_the_line_being_written_and_the_next_start_says_so(tmp_path: Path) -> None:
    home = Home(tmp_path)
    folder = home.sessions / "20260101-000000-dead"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        assert in_use(folder / LOG_NAME)
        assert list_sessions(home)[0].state == "running"
        writer.send_signal(signal.SIGKILL)
    written = messages(folder / LOG_NAME)
    assert written == [str(n) for n in range(len(written))]
    assert len(written) >= 200

    with (folder / LOG_NAME).open("ab") as log:
        log.write(b'{"type":"notice","seq":9')
    clock = SystemClock()
    crashed = close_crashed_sessions(home, clock)
    assert [(c.id, c.damaged) for c in crashed] == [("20260101-000000-dead", 1)]
    content = read_log(folder / LOG_NAME)
    assert content.ended
    assert content.damaged == 1
    assert close_crashed_sessions(home, clock) == ()


def test_damaged_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / LOG_NAME
    path.write_bytes(b'{"type":"notice"}\n\xff\xfe\nnull\n[1]\n{"a":1}\n' + b"[" * 100_000 + b"\n")
    content = read_log(path)
    assert len(content.lines) == 1
    assert content.damaged == 5


def test_a_closed_log_is_no_longer_in_use_and_has_its_end(tmp_path: Path) -> None:
    spine = Spine(SystemClock())
    with SessionLog(tmp_path) as log:
        spine.subscribe(log.append)
        spine.emit(AnswerDelta(text="x"), span="t")
        spine.emit(SessionEnded(reason="quit"), span="s")
        assert in_use(log.path)
    assert not in_use(log.path)
    assert read_log(log.path).ended
