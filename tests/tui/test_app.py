"""The app's flows with a scripted session: ask, look, cancel, fail, empty states, leave."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from device.errors import DeviceError
from edge_agent.errors import EnvironmentLacksError
from edge_agent.events import AnswerDelta, CameraChanged, Notice, ToolFinished, ToolStarted, TurnFinished
from edge_agent.json_types import JsonObject
from edge_agent.tui.app import StyleEyesApp
from edge_agent.tui.screens.detail import DetailScreen
from edge_agent.tui.screens.help import HelpScreen
from edge_agent.tui.widgets.preview import Preview
from edge_agent.tui.widgets.prompt import Prompt
from edge_agent.tui.widgets.span_log import SpanLog
from tests.tui.screen import ask, opened, rows, text, until
from tests.tui.scripted_session import FACTS, ScriptedFrame, ScriptedSession, StillClock, picture


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession(StillClock())


async def test_a_question_is_answered_with_every_step_in_the_log(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        await ask(app, pilot, "is it red")
        shown = text(app)
    assert session.questions == ["is it red"]
    for piece in (
        "is it red",
        "That looks like the Atlas Fleece Jacket",
        "◆ MT01 Atlas Fleece Jacket  confidence 87 %",
        "89.00 USD on 2026-03-02",
        "✓ search_catalog",
        "✓ db.query  2 rows",
        "frame 0.2 s old",
        "✓ llm.generate",
        "412 ms",
        '"best": "MT01"',
    ):
        assert piece in shown, f"{piece!r} is not on the screen:\n{shown}"


async def test_enter_with_nothing_typed_asks_what_is_seen(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        await ask(app, pilot)
    assert session.questions == ["What am I looking at?"]


async def test_space_in_the_log_asks_what_is_seen_and_in_the_prompt_types(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        await pilot.press("a", "space", "b")
        assert app.main.query_one(Prompt).text == "a b"
        app.main.query_one(SpanLog).focus()
        await pilot.press("space")
        await until(pilot, lambda: session.questions)
    assert session.questions == ["What am I looking at?"]


async def test_escape_stops_the_turn_and_its_work(session: ScriptedSession) -> None:
    async def endless(session: ScriptedSession, turn: str, question: str) -> None:
        session.spine.emit(AnswerDelta(text="I see a"), span=turn)
        await asyncio.Event().wait()

    session._script = endless
    async with opened(session) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "I see a" in text(app))
        assert "Still answering" not in text(app)
        await pilot.press("enter")  # a second question has to wait
        await until(pilot, lambda: "Still answering" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "⊘ stopped after 900 ms" in text(app))
        assert session.cancelled.is_set()
        assert "I see a" in text(app), "what had been said stays"
    assert len(session.questions) == 1


async def test_a_failed_turn_says_what_to_do(session: ScriptedSession) -> None:
    async def failing(session: ScriptedSession, turn: str, question: str) -> None:
        raise EnvironmentLacksError("MODEL_UNAVAILABLE", "The model cannot be reached.", "Check the network.")

    session._script = failing
    async with opened(session) as (app, pilot):
        await ask(app, pilot)
        await until(pilot, lambda: "Check the network." in text(app))
        assert "MODEL_UNAVAILABLE: The model cannot be reached." in " ".join(text(app).split())


async def test_a_fault_in_the_session_is_said_and_the_screen_lives_on(session: ScriptedSession) -> None:
    async def broken(question: str, /) -> None:
        raise ZeroDivisionError("a fault of ours")

    session.ask = broken  # type: ignore[method-assign]
    async with opened(session) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: "ZeroDivisionError" in text(app))
        assert app.is_running


async def test_shift_enter_and_a_paste_keep_their_lines(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        from textual import events

        prompt = app.main.query_one(Prompt)
        app.post_message(events.Paste("one\r\ntwo\x1b]0;owned\x07"))
        await until(pilot, lambda: "two" in prompt.text)
        await pilot.press("ctrl+j", "x")
        assert prompt.text == "one\ntwo\nx"
        await pilot.press("enter")
        await until(pilot, lambda: session.questions)
    assert session.questions == ["one\ntwo\nx"]


async def test_up_in_an_empty_prompt_brings_questions_back(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        await ask(app, pilot, "one")
        await ask(app, pilot, "two")
        prompt = app.main.query_one(Prompt)
        await pilot.press("up")
        assert prompt.text == "two"
        await pilot.press("up", "up")
        assert prompt.text == "one"


async def test_events_from_other_threads_arrive(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        notice = Notice(
            level="warn", code="LOG_BROKEN", message="The log cannot be written.", hint="Free some space."
        )
        thread = threading.Thread(target=lambda: session.spine.emit(notice, span="session-1"))
        thread.start()
        thread.join(5)
        await until(
            pilot, lambda: "The log cannot be written." in text(app) and "Free some space." in text(app)
        )


async def test_while_opening_the_screen_says_so_and_does_not_ask() -> None:
    gate = asyncio.Event()

    async def slow() -> None:
        starting.spine.emit(
            CameraChanged(state="opening", words="Opening camera 0…", source="usb", epoch=1), span="session-1"
        )
        await gate.wait()

    starting = ScriptedSession(StillClock(), opening=slow)
    app = StyleEyesApp(lambda: starting, clock=starting.clock)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "Opening camera 0…" in text(app))
        assert "Starting…" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "Still starting" in text(app))
        gate.set()
        await until(pilot, lambda: "Ask about what the camera sees." in text(app))
    assert starting.questions == []


async def test_a_session_that_cannot_open_says_why_and_what_to_do() -> None:
    async def failing() -> None:
        raise EnvironmentLacksError("SANDBOX_UNAVAILABLE", "Bubblewrap is missing.", "Install bubblewrap.")

    session = ScriptedSession(StillClock(), opening=failing)
    async with opened(session, (60, 20)) as (app, pilot):
        await until(pilot, lambda: "Install bubblewrap." in text(app))
        assert "SANDBOX_UNAVAILABLE" in text(app)
        assert "✗ not started" in text(app)
        assert app.failure is not None and app.failure.code == "SANDBOX_UNAVAILABLE"


async def test_no_camera_and_no_key_are_said_with_what_to_do(session: ScriptedSession) -> None:
    words = "No camera found: plug one in, or start with --source FILE."
    session.camera.status = replace(session.camera.status, state="lost", words=words)
    session.camera.newest = lambda: None  # type: ignore[method-assign]
    async with opened(session) as (app, pilot):
        await until(pilot, lambda: "✗ lost" in text(app) and "No picture yet" in text(app))
        shown = " ".join(text(app).replace("│", " ").split())
    assert "--source FILE" in shown
    assert "The offline model answers: no GEMINI_API_KEY is set" in shown


async def test_the_unsafe_sandbox_is_said_in_words_at_every_size() -> None:
    for size in ((60, 20), (80, 24), (120, 40)):
        facts = replace(FACTS, sandbox="process (NOT isolated)", model="gemini-2.5-flash-long-name")
        session = ScriptedSession(StillClock(), facts=facts)
        async with opened(session, size) as (app, _pilot):
            assert "process (NOT isolated)" in rows(app)[0]


async def test_details_open_over_a_small_screen_and_close(session: ScriptedSession) -> None:
    async with opened(session, (60, 20)) as (app, pilot):
        await ask(app, pilot)
        app.main.query_one(SpanLog).focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen))
        await until(pilot, lambda: '"best": "MT01"' in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)


async def test_f1_shows_the_keys_of_where_you_are_first(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        app.main.query_one(SpanLog).focus()
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await until(pilot, lambda: "In the tool log" in text(app))
        shown = text(app)
        assert shown.index("In the tool log") < shown.index("While typing")
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is app.main)


async def test_f4_enlarges_the_log_and_escape_puts_it_back(session: ScriptedSession) -> None:
    async with opened(session, (60, 20)) as (app, pilot):
        await ask(app, pilot)
        await pilot.press("f4")
        await until(pilot, lambda: app.main.query_one(SpanLog).size.height >= 14)
        assert "What am I looking at?" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.main.query_one(SpanLog).size.height < 8)


async def test_ctrl_c_twice_quits_and_once_stops_the_turn(session: ScriptedSession) -> None:
    async def endless(session: ScriptedSession, turn: str, question: str) -> None:
        await asyncio.Event().wait()

    session._script = endless
    async with opened(session) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: session.questions)
        await pilot.press("ctrl+c")
        await until(pilot, session.cancelled.is_set)
        assert app.is_running
        session.clock.now += 5.0
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.is_running, "the first one was too long ago"
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)
    await app.close_session()
    assert session.closed


async def test_ctrl_c_copies_what_is_selected_in_the_prompt(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        await pilot.press("a", "b", "shift+left", "ctrl+c")
        assert app.clipboard == "b"
        assert app.is_running


async def test_the_palette_offers_the_key_tables_commands(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        commands = {command.title: command for command in app.get_system_commands(app.main)}
        assert {"Look", "Stop", "Camera", "Talk", "Log", "Help", "Theme", "Quit"} <= set(commands)
        commands["Look"].callback()
        await until(pilot, lambda: session.questions)


async def test_themes_go_round(session: ScriptedSession) -> None:
    async with opened(session) as (app, pilot):
        seen = [app.theme]
        for _ in range(3):
            await pilot.press("ctrl+t")
            seen.append(app.theme)
    assert seen == ["styleeyes-ink", "styleeyes-paper", "styleeyes-contrast", "styleeyes-ink"]


async def test_an_answer_that_was_not_streamed_is_shown_whole(session: ScriptedSession) -> None:
    async def silent(session: ScriptedSession, turn: str, question: str) -> None:
        session.spine.emit(TurnFinished(ok=True, answer="A red jacket.", ms=5.0), span=turn)

    session._script = silent
    async with opened(session) as (app, pilot):
        await ask(app, pilot)
        await until(pilot, lambda: "A red jacket." in text(app))


async def test_several_rounds_of_matching_give_one_card_with_the_best(session: ScriptedSession) -> None:
    async def rounds(session: ScriptedSession, turn: str, question: str) -> None:
        emit = session.spine.emit
        verdicts: list[JsonObject] = [
            {"best": None, "confidence": 0.9, "candidates": []},
            {"best": "A1", "confidence": 0.4, "candidates": [], "askToSeeTag": True},
            {"best": "B2", "confidence": 0.3, "candidates": []},
        ]
        for n, verdict in enumerate(verdicts):
            emit(
                ToolStarted(call_id="c", tool="match_garment", source_hash="", input={}, frame=None),
                span=f"t{n}",
                parent=turn,
            )
            emit(ToolFinished(ok=True, ms=1.0, result=verdict), span=f"t{n}")
        emit(TurnFinished(ok=True, answer="Perhaps A1.", ms=5.0), span=turn)

    session._script = rounds
    async with opened(session) as (app, pilot):
        await ask(app, pilot)
        await until(pilot, lambda: "◇ closest: A1  confidence 40 %" in text(app))
        assert "B2" not in text(app).split("Tool log")[0]
        assert "no style matched" not in text(app)


async def test_the_camera_says_more_than_its_state_when_there_is_more_to_say() -> None:
    for size in ((60, 20), (80, 24), (120, 40)):
        session = ScriptedSession(StillClock())
        session.camera.status.words = "live, but the picture is very dark"
        async with opened(session, size) as (app, pilot):
            preview = app.main.query_one(Preview)
            await until(pilot, lambda preview=preview: preview.has_picture)  # type: ignore[misc]
            await until(
                pilot,
                lambda app=app: "the picture is" in text(app) and "● live" in text(app),  # type: ignore[misc]
            )


async def test_after_a_failed_start_the_error_is_kept_for_the_program() -> None:
    async def failing() -> None:
        raise DeviceError("CAMERA_BUSY", "Camera 0 is in use by another program.", "Close that program.")

    session = ScriptedSession(StillClock(), opening=failing)
    async with opened(session, (80, 24)) as (app, pilot):
        await until(pilot, lambda: "Close that program." in text(app))
    assert isinstance(app.failure, DeviceError)


async def test_the_welcome_forgets_the_camera_trouble_once_there_is_a_picture() -> None:
    session = ScriptedSession(StillClock())
    frame = ScriptedFrame("f1-1", session.clock.monotonic(), picture())
    shown: list[ScriptedFrame] = []
    session.camera.status.words = "opening clip.mp4"
    session.camera.newest = lambda: shown[0] if shown else None  # type: ignore[method-assign]
    async with opened(session, (80, 24)) as (app, pilot):
        await until(pilot, lambda: "No picture yet: opening clip.mp4" in text(app))
        shown.append(frame)
        await until(pilot, lambda: "No picture yet" not in text(app))
        await until(pilot, lambda: "Ask about what the camera sees." in text(app))


async def test_a_streams_password_is_never_in_the_status_bar() -> None:
    facts = replace(FACTS, source="rtsp://me:hunter2@10.0.0.7/live")
    session = ScriptedSession(StillClock(), facts=facts)
    session.camera.status.source = "rtsp://10.0.0.7/live"
    async with opened(session, (120, 40)) as (app, pilot):
        await until(pilot, lambda: "rtsp://10.0.0.7/live" in text(app))
        assert "hunter2" not in text(app)
