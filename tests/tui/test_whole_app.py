"""The whole app in a real terminal: the demo from start to the restored prompt, on real parts."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from edge_agent.home import Home
from tests.tui.real_terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(demo_home: Home, tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    program = f"COLUMNS=120 LINES=40 {sys.executable} -m edge_agent demo --home {demo_home.root}"
    before, after = f"stty -a > {tmp_path}/before", f"stty -a > {tmp_path}/after"
    terminal = Terminal(120, 40, f"cd {ROOT}; {before}; {program}; echo status=$?; {after}; exec cat")
    yield terminal
    terminal.close()


def log_lines(home: Home) -> list[dict[str, object]]:
    return [
        json.loads(line) for log in home.sessions.glob("*/log.jsonl") for line in log.read_text().splitlines()
    ]


def test_demo_ask_cancel_quit_and_nothing_is_left(demo: Terminal, demo_home: Home, tmp_path: Path) -> None:
    demo.until(lambda shown: "● live" in shown and "▀▀▀▀" in shown)
    app = demo.app()
    demo.keys("Enter")
    shown = demo.until(lambda shown: "(offline model)" in shown, seconds=90)
    assert "images.open" in shown
    # the size of another moment is exported, as readline does it: the screen follows the window all the same
    demo.resize(60, 20)
    demo.until(lambda shown: len(shown.splitlines()) <= 20 and "● live" in shown)
    demo.resize(40, 10)
    demo.until(lambda shown: "enlarge this" in shown)
    demo.resize(80, 24)
    demo.until(lambda shown: "● live" in shown)
    demo.keys("Enter")
    demo.until(lambda shown: "Esc" in shown)
    demo.keys("Escape")
    family = [app, *app.children(recursive=True)]
    demo.keys("C-q")
    shown = demo.until(lambda shown: "status=0" in shown and (tmp_path / "after").exists())
    # but for the size, which is the window's now, the terminal is as it was
    before, after = ((tmp_path / name).read_text().splitlines()[1:] for name in ("before", "after"))
    assert before == after
    assert "Conversation" not in shown
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    lines = log_lines(demo_home)
    assert lines[-1]["type"] == "session.ended"
    assert {line["tool"] for line in lines if line["type"] == "tool.started"} == {
        "search_catalog",
        "match_garment",
    }


def test_a_killed_app_is_told_of_at_the_next_start(demo: Terminal, demo_home: Home) -> None:
    demo.until(lambda shown: "● live" in shown)
    app = demo.app()
    family = app.children(recursive=True)
    app.kill()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    second = Terminal(120, 40, f"cd {ROOT}; {sys.executable} -m edge_agent demo --home {demo_home.root}")
    try:
        second.until(lambda shown: "was not closed" in shown)
        second.keys("C-q")
    finally:
        second.close()
