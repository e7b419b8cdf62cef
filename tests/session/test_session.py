"""A whole session on real parts: recorded video, real sandbox, real SQLite, the offline model."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from device.clock import SystemClock
from device.errors import DeviceError
from edge_agent.errors import EnvironmentLacksError, StyleEyesError
from edge_agent.events import (
    CapabilityStarted,
    Event,
    ModelStarted,
    Notice,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from edge_agent.home import DEMO_CLIP, Home
from edge_agent.session.first_start import DEMO_AGENT
from edge_agent.session.log import LOG_NAME, read_log
from edge_agent.session.session import Session, SessionOptions

T = TypeVar("T")
OFFLINE: Mapping[str, str] = {}


@asynccontextmanager
async def opened(
    home: Home, *, source: str | None = str(DEMO_CLIP), env: Mapping[str, str] = OFFLINE, **options: object
) -> AsyncIterator[tuple[Session, list[Event]]]:
    session = Session(
        SessionOptions(home=home, agent=home.agent(DEMO_AGENT), source=source, **options),  # type: ignore[arg-type]
        env,
        SystemClock(),
    )
    events: list[Event] = []
    session.spine.subscribe(events.append)
    try:
        await session.open()
        yield session, events
    finally:
        await session.aclose()


def of(events: list[Event], kind: type[T]) -> list[T]:
    return [event.body for event in events if isinstance(event.body, kind)]


async def test_a_wearer_asks_and_is_answered_from_a_fresh_frame_through_real_tools(demo_home: Home) -> None:
    async with opened(demo_home, at=9.0) as (session, events):
        assert await session.wait_for_frame()
        turn = await session.ask("What is this dress?")
    assert turn.ok
    assert "offline model" in turn.answer
    assert turn.frame is not None
    assert turn.frame.age_ms <= 15_000
    tools = of(events, ToolStarted)
    assert [tool.tool for tool in tools if tool.tool == "match_garment"]
    assert {call.tool for call in turn.tool_calls} == {"search_catalog", "match_garment"}
    # every tool of the turn looked at the picture that the question was about
    assert {tool.frame.id for tool in tools if tool.frame is not None} == {turn.frame.id}
    kinds = {capability.kind for capability in of(events, CapabilityStarted)}
    assert {"db.query", "images.open", "llm.generate"} <= kinds
    matches = [tool for tool in tools if tool.tool == "match_garment"]
    assert len([m for m in of(events, ModelStarted) if m.purpose == "tool"]) == len(matches)
    assert all(finished.ok for finished in of(events, ToolFinished))


async def test_the_log_holds_what_was_emitted_and_ends(demo_home: Home) -> None:
    async with opened(demo_home, source="synthetic") as (session, events):
        await session.ask("What can you do?")
    content = read_log(demo_home.sessions / session.id / LOG_NAME)
    assert [line["seq"] for line in content.lines] == [event.seq for event in events]
    assert content.ended
    assert content.lines[-1]["type"] == "session.ended"


async def test_nothing_lives_on_after_a_session(demo_home: Home) -> None:
    before = set(psutil.Process().children(recursive=True))
    async with opened(demo_home, at=9.0) as (session, _):
        await session.wait_for_frame()
        await session.ask("What is this dress?")
        assert set(psutil.Process().children(recursive=True)) > before
    assert set(psutil.Process().children(recursive=True)) <= before


async def test_cancelling_stops_the_host_work_and_the_next_question_works(demo_home: Home) -> None:
    async with opened(demo_home, at=9.0) as (session, events):
        await session.wait_for_frame()
        started = asyncio.Event()
        session.spine.subscribe(lambda event: started.set() if isinstance(event.body, TurnStarted) else None)
        asking = asyncio.create_task(session.ask("What is this dress?"))
        await started.wait()
        session.cancel_turn()
        cancelled = await asking
        again = await session.ask("What can you do?")
    assert not cancelled.ok
    assert cancelled.error is not None
    assert cancelled.error.code == "CANCELLED"
    assert again.ok
    assert [(turn.ok, turn.error.code if turn.error else None) for turn in of(events, TurnFinished)] == [
        (False, "CANCELLED"),
        (True, None),
    ]


async def test_a_second_question_at_once_is_refused_in_words(demo_home: Home) -> None:
    async with opened(demo_home, at=9.0) as (session, _):
        await session.wait_for_frame()
        first = asyncio.create_task(session.ask("What is this dress?"))
        await asyncio.sleep(0)
        with pytest.raises(StyleEyesError) as caught:
            await session.ask("And this?")
        assert caught.value.code == "BUSY"
        session.cancel_turn()
        await first


async def test_without_a_camera_the_app_opens_and_says_so_but_a_question_fails(demo_home: Home) -> None:
    missing = str(demo_home.root / "no-such.mp4")
    async with opened(demo_home, source=missing, tolerant=True) as (_, events):
        pass
    assert "SOURCE_NOT_FOUND" in [notice.code for notice in of(events, Notice)]
    with pytest.raises(DeviceError) as caught:
        async with opened(demo_home, source=missing):
            pass
    assert caught.value.code == "SOURCE_NOT_FOUND"
    assert caught.value.hint


async def test_without_bubblewrap_tools_are_unavailable_and_nothing_runs_unsandboxed(
    demo_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(EnvironmentLacksError) as caught:
        async with opened(demo_home, source="synthetic"):
            pass
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    assert caught.value.hint
    async with opened(demo_home, source="synthetic", tolerant=True) as (session, events):
        turn = await session.ask("Do you have green jackets?")
        assert session.facts.tools == ()
    assert of(events, ToolStarted) == []
    assert turn.tool_calls == ()
    assert "SANDBOX_UNAVAILABLE" in [notice.code for notice in of(events, Notice)]


async def test_a_missing_catalog_is_said_with_what_to_do(demo_home: Home) -> None:
    demo_home.agent(DEMO_AGENT).catalog.unlink()
    async with opened(demo_home, source="synthetic") as (session, events):
        await session.ask("Do you have green jackets?")
    failed = [finished.error for finished in of(events, ToolFinished) if finished.error is not None]
    assert failed
    assert failed[0].code == "NOT_FOUND"
    assert any(notice.code == "NO_CATALOG" and notice.hint for notice in of(events, Notice))


async def test_a_broken_enabled_tool_stops_the_session_with_file_line_and_reason(demo_home: Home) -> None:
    agent = demo_home.agent(DEMO_AGENT)
    (agent.tools / "match-garment.tool.js").write_text("export const schemaVersion = 1;\nexport const = 2;\n")
    with pytest.raises(StyleEyesError) as caught:
        async with opened(demo_home, source="synthetic"):
            pass
    assert caught.value.code == "INVALID_TOOL"
    assert "match-garment.tool.js:2" in caught.value.message


async def test_a_key_is_in_no_log_line_and_no_childs_environment(demo_home: Home) -> None:
    secret = "AIzaSy-a-key-that-must-not-be-seen"
    env = {"GEMINI_API_KEY": secret}
    async with opened(demo_home, source="synthetic", env=env, model="offline") as (session, _):
        await session.ask(f"Do you have jackets {secret}?")
        for child in psutil.Process().children(recursive=True):
            assert secret not in json.dumps(child.environ())
    log = (demo_home.sessions / session.id / LOG_NAME).read_text()
    assert secret not in log


async def test_a_streams_password_is_in_no_event(demo_home: Home) -> None:
    source = "rtsp://someone:hunter2-secret@127.0.0.1:9/live"
    async with opened(demo_home, source=source, tolerant=True) as (session, events):
        pass
    assert "hunter2-secret" not in (demo_home.sessions / session.id / LOG_NAME).read_text()
    assert "127.0.0.1" in of(events, SessionStarted)[0].source


async def test_a_crashed_session_is_told_of_at_the_next_start(demo_home: Home) -> None:
    async with opened(demo_home, source="synthetic") as (first, _):
        pass
    log = demo_home.sessions / first.id / LOG_NAME
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:10])
    async with opened(demo_home, source="synthetic") as (_, events):
        pass
    crashed = [notice for notice in of(events, Notice) if notice.code == "SESSION_CRASHED"]
    assert len(crashed) == 1
    assert first.id in crashed[0].message


async def test_what_was_opened_is_in_the_first_words_of_a_session(demo_home: Home) -> None:
    async with opened(demo_home, source="synthetic", mode="field") as (session, events):
        pass
    (start,) = of(events, SessionStarted)
    assert start == session.facts
    assert start.mode == "field"
    assert start.model == "offline"
    assert "GEMINI_API_KEY" in start.model_reason
    assert [tool.id for tool in start.tools] == ["search_catalog", "match_garment"]
    assert all(len(tool.sha256) == 64 for tool in start.tools)


def test_the_first_start_leaves_no_half_agent_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from edge_agent.session import first_start

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    home = Home(tmp_path / "h")
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(EnvironmentLacksError) as caught:
        first_start.prepare_home(home)
    assert "No space left" in caught.value.message
    assert list((home.root / "agents").iterdir()) == []
