"""The descriptor guard and the real terminal: noise, quitting, signals, hanging sessions.

The guard is tried in a process of its own, the app in tmux, where escape and descriptor faults show.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.real_terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
APP = Path(__file__).with_name("terminal_app.py")


def run_python(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "logs" / "screen.log")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_noise_from_below_goes_to_the_log_and_the_screens_stream_to_the_terminal(tmp_path: Path) -> None:
    done = run_python(
        """
        import os, sys
        from pathlib import Path
        from edge_agent.tui.terminal import TerminalGuard
        with TerminalGuard(Path(sys.argv[1])):
            os.write(1, b"noise 1\\n"); os.write(2, b"noise 2\\n")
            sys.__stderr__.write("screen\\n"); sys.__stderr__.flush()
            os.system("echo child noise; echo child noise >&2")
        os.write(1, b"after 1\\n"); os.write(2, b"after 2\\n")
        print("python again", file=sys.stderr)
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "after 1\n"
    assert done.stderr == "screen\nafter 2\npython again\n"
    log = (tmp_path / "logs" / "screen.log").read_text()
    assert log == "noise 1\nnoise 2\nchild noise\nchild noise\n"
    assert (tmp_path / "logs" / "screen.log").stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_written_does_not_stop_the_app(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    done = run_python(
        """
        import os, sys
        from pathlib import Path
        from edge_agent.tui.terminal import TerminalGuard
        with TerminalGuard(Path(sys.argv[1])):
            os.write(2, b"noise\\n")
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_opencv_is_not_loaded_before_the_guard(tmp_path: Path) -> None:
    done = run_python(
        "import edge_agent.tui.run, sys; print('cv2' in sys.modules, 'textual' in sys.modules)", tmp_path
    )
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_a_vanished_terminal_is_told_once_and_never_raises(tmp_path: Path) -> None:
    done = run_python(
        """
        import os
        from edge_agent.tui.terminal import TerminalStream
        read, write = os.pipe()
        told = []
        stream = TerminalStream(write, lambda: told.append(1))
        os.close(read)
        for _ in range(5):
            stream.write("x" * 100_000); stream.flush()
        stream.close()
        print(len(told), stream.gone)
        """,
        tmp_path,
    )
    assert done.stdout.split() == ["1", "True"], done.stderr


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    log = tmp_path / "screen.log"
    # The shell waits on after the app, so that what it left of the terminal can be seen.
    opened = Terminal(80, 24, f"stty -a > {tmp_path}/before; {sys.executable} {APP} {log}; "
                      f"echo status=$?; stty -a > {tmp_path}/after; echo looked; exec cat")  # fmt: skip
    yield opened
    opened.close()


def left_as_found(tmp_path: Path, shown: str) -> bool:
    same = (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    return same and "Conversation" not in shown and "\x1b" not in shown


def test_a_whole_visit_in_a_real_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until(lambda shown: "● live" in shown and "▀▀▀▀" in shown)
    terminal.keys("Enter")
    shown = terminal.until(lambda shown: "MT01 Atlas Fleece Jacket" in shown and "388 ms" in shown)
    assert "noise" not in shown
    assert (tmp_path / "screen.log").read_text().count("noise from a C library") == 2
    terminal.keys("w", "a", "i", "t", "Enter")
    terminal.until(lambda shown: "thinking" in shown)
    terminal.keys("Escape")
    terminal.until(lambda shown: "⊘ stopped" in shown)
    app = terminal.app()
    terminal.keys("C-q")
    shown = terminal.until(lambda shown: "status=0" in shown and "looked" in shown)
    assert not app.is_running()
    assert left_as_found(tmp_path, shown)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_order(terminal: Terminal, tmp_path: Path, number: signal.Signals) -> None:
    terminal.until(lambda shown: "● live" in shown)
    os.kill(terminal.app().pid, number)
    shown = terminal.until(lambda shown: f"status={128 + number}" in shown and "looked" in shown)
    assert left_as_found(tmp_path, shown)


def test_a_session_that_hangs_in_closing_cannot_keep_the_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until(lambda shown: "● live" in shown)
    terminal.keys("h", "a", "n", "g", "Enter")
    terminal.until(lambda shown: "388 ms" in shown)
    terminal.keys("C-q")
    shown = terminal.until(lambda shown: "status=1" in shown and "looked" in shown)
    assert "Closing camera and tools…" in shown
    assert "would not end by itself" in shown
    assert left_as_found(tmp_path, shown)


def test_a_closed_window_ends_the_app(terminal: Terminal) -> None:
    terminal.until(lambda shown: "● live" in shown)
    app = terminal.app()
    terminal.close()
    app.wait(timeout=20)
