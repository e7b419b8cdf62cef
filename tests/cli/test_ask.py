"""`styleeyes ask` as a program: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edge_agent.home import DEMO_CLIP, Home
from tests.agent.gemini_server import call, calls, gemini_server, says

REPO = Path(__file__).resolve().parents[2]


def program(home: Home, *arguments: str, **env: str) -> list[Any]:
    return [
        [sys.executable, "-m", "edge_agent", *arguments],
        {**os.environ, "STYLEEYES_HOME": str(home.root), **env},
    ]


def run(home: Home, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv, environment = program(home, *arguments, **env)
    return subprocess.run(
        argv, env=environment, cwd=REPO, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL
    )


def test_json_is_events_and_last_the_result_and_nothing_else(demo_home: Home) -> None:
    done = run(demo_home, "ask", "What is this dress?", "--source", str(DEMO_CLIP), "--at", "9", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    result = lines[-1]
    assert done.returncode == 0
    assert result["type"] == "result"
    assert result["ok"] is True
    assert set(result) == {"type", "ok", "answer", "toolCalls", "frame", "model", "sessionId"}
    assert {"id", "tool", "ok", "ms"} == set(result["toolCalls"][0])
    assert result["model"] == "offline"
    assert "DR-701" in result["answer"]
    assert [line["type"] for line in lines].count("result") == 1
    kept = (demo_home.sessions / result["sessionId"] / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in kept] == lines[:-1]


def test_people_get_the_answer_on_stdout_and_the_rest_on_stderr(demo_home: Home) -> None:
    done = run(demo_home, "ask", "Do you have green jackets?", "--source", "synthetic")
    assert done.returncode == 0
    assert "Fern Quilted Jacket" in done.stdout
    assert "search_catalog" in done.stderr
    assert len(done.stdout.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["ask", "What?", "--source", "missing.mp4"], 2, "missing.mp4"),
        (["ask", "What?", "--source", "README.md"], 2, "README.md"),
        (["ask", "What?", "--source", "usb:7"], 3, "camera"),
        (["ask", "  ", "--source", "synthetic"], 2, "empty"),
        (["ask", "What?"], 2, "--source"),
        (["ask", "What?", "--source", "synthetic", "--agent", "nobody"], 2, "nobody"),
        (["ask", "What?", "--source", "synthetic", "--model", "gemini-x"], 3, "GEMINI_API_KEY"),
        (["ask", "What?", "--source", "synthetic", "--nonsense"], 2, "--nonsense"),
        (["no-such-command"], 2, "no-such-command"),
        (["session", "show", "nope"], 2, "nope"),
    ],
)
def test_each_failure_is_one_clear_sentence_and_its_exit_status(
    demo_home: Home, arguments: list[str], status: int, words: str
) -> None:
    done = run(demo_home, *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_failure_in_json_has_code_message_and_hint(demo_home: Home) -> None:
    done = run(demo_home, "ask", "What?", "--source", "missing.mp4", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 2
    assert result["ok"] is False
    assert result["error"]["code"] == "SOURCE_NOT_FOUND"
    assert result["error"]["hint"]


def test_ctrl_c_ends_clean_with_130_and_leaves_no_process(demo_home: Home) -> None:
    argv, environment = program(demo_home, "ask", "What is this dress?", "--source", "synthetic", "--json")
    with subprocess.Popen(
        argv, env=environment, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        lines = []
        for line in child.stdout:
            lines.append(json.loads(line))
            if lines[-1]["type"] == "turn.started":
                child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 130
    assert lines[-1]["type"] == "result"
    assert lines[-1]["ok"] is False
    kept = (next(demo_home.sessions.iterdir()) / "log.jsonl").read_text()
    assert '"type":"session.ended"' in kept


async def test_gemini_answers_over_its_wire_format_with_two_tool_calls_and_one_match_call(
    demo_home: Home,
) -> None:
    import asyncio

    async with gemini_server() as server:
        server.script(
            calls(call("search_catalog", {"query": "red dotted dress", "hasPhotos": True}, id="a")),
            calls(call("match_garment", {"styleIds": ["DR-701", "DR-716"]}, id="b")),
            says(
                json.dumps(
                    {
                        "best": None,
                        "confidence": 0.4,
                        "candidates": [],
                        "askToSeeTag": True,
                        "reason": "blurred",
                    }
                )
            ),
            says("It looks like the Poppy Sundress, but show me the tag."),
        )
        done = await asyncio.to_thread(
            run,
            demo_home,
            *("ask", "What is this dress?", "--source", str(DEMO_CLIP), "--at", "9", "--json"),
            GEMINI_API_KEY="test-key-not-real",
            GOOGLE_GEMINI_BASE_URL=server.url,
        )
    result = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert [made["tool"] for made in result["toolCalls"]] == ["search_catalog", "match_garment"]
    assert result["answer"].startswith("It looks like")
    turn, _, match, _ = server.requests
    assert turn.image_parts == 1
    assert match.image_parts >= 3  # the frame and at least a photo of each candidate
    assert "tools" not in match.body
    assert "test-key-not-real" not in done.stdout + done.stderr
