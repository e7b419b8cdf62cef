"""What is where on the main screen at each size, and that no text breaks a border."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from edge_agent.events import AnswerDelta, ToolFinished, ToolLogged, ToolStarted, TurnFinished, TurnStarted
from edge_agent.tui.widgets.camera_panel import CameraPanel
from edge_agent.tui.widgets.conversation import KEPT_ENTRIES, Conversation, Entry
from edge_agent.tui.widgets.detail import DetailPane
from edge_agent.tui.widgets.preview import Preview
from edge_agent.tui.widgets.prompt import Prompt
from edge_agent.tui.widgets.span_log import SpanLog
from tests.tui.screen import SIZES, ask, opened, rows, text, until
from tests.tui.scripted_session import FRAME, ScriptedSession, StillClock

HOSTILE = {
    "markup": "[bold red]not bold[/] [@click=app.quit]press[/] [unclosed \\[",
    "escapes": "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\x1bc",
    "bidi": "abc\u202etxt.exe\u2066 \u200f",
    "wide": "这是一件红色的羊毛夹克" * 8,
    "emoji": "👩🏽‍🚀🏳️‍🌈❤️ 👨‍👩‍👧‍👦" * 6,
    "thai": "เสื้อแจ็คเก็ตสีแดง" * 8,
    "one long word": "x" * 400,
}


@pytest.mark.parametrize("size", SIZES)
async def test_everything_has_its_place(size: tuple[int, int]) -> None:
    async with opened(ScriptedSession(StillClock()), size) as (app, pilot):
        await ask(app, pilot)
        shown = rows(app)
        main = app.main
        least = {(60, 20): (24, 7), (80, 24): (28, 8), (120, 40): (56, 16)}[size]
        preview, talk, log = main.query_one(Preview), main.query_one(Conversation), main.query_one(SpanLog)
        assert (preview.size.width, preview.size.height) >= least
        assert talk.size.height >= least[1]
        assert log.size.height >= {20: 6, 24: 6, 40: 12}[size[1]]
        assert main.query_one(DetailPane).display is (size[0] == 120)
        assert main.query_one(Prompt).region.bottom == size[1] - 1
    assert len(shown) == size[1]
    assert all(cell_len(row) == size[0] for row in shown)
    for words in (
        "✓ ready",
        "Camera",
        "Conversation",
        "Tool log",
        "● live",
        "0.4 s old",
        "match_garment",
        "412 ms",
    ):
        assert any(words in row for row in shown), words
    for key in ("Enter", "Esc", "F1 Help", "Quit"):
        assert key in shown[-1]


@pytest.mark.parametrize("size", [(40, 10), (120, 10), (30, 40), (1, 1)])
async def test_too_small_a_terminal_gets_one_sentence(size: tuple[int, int]) -> None:
    async with opened(ScriptedSession(StillClock()), size) as (app, pilot):
        shown = " ".join(text(app).split())
        if size != (1, 1):
            assert shown == "StyleEyes needs at least 50 columns and 15 rows: please enlarge this window."
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Conversation" in text(app))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_text_stays_text_and_inside_its_border(kind: str, size: tuple[int, int]) -> None:
    hostile = HOSTILE[kind]

    async def turn(session: ScriptedSession, span: str, question: str) -> None:
        emit = session.spine.emit
        started = ToolStarted(
            call_id="c", tool=hostile, source_hash="ab", input={hostile: hostile}, frame=FRAME
        )
        emit(started, span="tool", parent=span)
        emit(ToolLogged(level="warn", text=hostile, data=[hostile]), span="tool")
        emit(ToolFinished(ok=True, ms=1.0, result={hostile: [hostile]}), span="tool")
        emit(AnswerDelta(text=hostile), span=span)
        emit(TurnFinished(ok=True, answer=hostile, ms=2.0), span=span)

    session = ScriptedSession(StillClock(), turn)
    session.camera.status.words = hostile
    async with opened(session, size) as (app, pilot):
        await ask(app, pilot)
        shown = rows(app)
        if size[0] >= 80:
            frame_rows = [row for row in shown if row.startswith("│")]
            assert all(row.rstrip().endswith("│") for row in frame_rows)
        assert all(cell_len(row) == size[0] for row in shown)
        everything = "\n".join(shown)
        assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 for c in everything)
        assert not any(c in everything for c in "\u202e\u2066\u200f")
        if kind == "markup":
            assert "[bold red]not bold[/]" in everything


async def test_an_old_frame_is_never_drawn() -> None:
    clock = StillClock()
    session = ScriptedSession(clock)
    async with opened(session, (80, 24)) as (app, pilot):
        preview = app.main.query_one(Preview)
        await until(pilot, lambda: preview.has_picture)
        session.camera.status.words = "No picture for 15 s."
        clock.now += 15.0 - 0.4 - app.main.query_one(CameraPanel).period + 0.01
        await until(pilot, lambda: not preview.has_picture)
        assert "No picture for 15 s." in text(app)
        assert "▀" not in text(app)


async def test_a_new_source_empties_the_preview_until_its_first_frame() -> None:
    session = ScriptedSession(StillClock())
    async with opened(session, (80, 24)) as (app, pilot):
        preview = app.main.query_one(Preview)
        await until(pilot, lambda: preview.has_picture)
        session.camera.frame = None
        session.camera.status.epoch, session.camera.status.words = 2, "Opening walk.mp4…"
        await until(pilot, lambda: not preview.has_picture)
        assert "Opening walk.mp4…" in text(app)


async def test_every_state_has_a_word_and_an_unknown_one_looks_like_trouble() -> None:
    session = ScriptedSession(StillClock())
    async with opened(session, (80, 24)) as (app, pilot):
        for state, glyph in (("stalled", "◐"), ("ended", "■"), ("lost", "✗"), ("of the future", "✗")):
            session.camera.status.state = state
            await until(pilot, lambda s=state, g=glyph: f"{g} {s}" in text(app))  # type: ignore[misc]


async def test_500_turns_keep_rows_and_widgets_bounded_and_the_newest_in_view() -> None:
    session = ScriptedSession(StillClock())
    async with opened(session, (80, 24)) as (app, pilot):
        for n in range(1, 501):
            started = TurnStarted(question=f"question {n}", frame=FRAME, camera="fresh")
            session.spine.emit(started, span=f"turn-{n}")
            for tool in range(3):
                body = ToolStarted(call_id="c", tool=f"tool_{tool}", source_hash="", input={}, frame=FRAME)
                session.spine.emit(body, span=f"tool-{n}-{tool}", parent=f"turn-{n}")
                session.spine.emit(ToolFinished(ok=True, ms=1.0, result=tool), span=f"tool-{n}-{tool}")
            session.spine.emit(TurnFinished(ok=True, answer=f"answer {n}", ms=9.0), span=f"turn-{n}")
        await until(pilot, lambda: "turn-500" in [turn.id for turn in app.main.spans.turns], 60)
        await until(pilot, lambda: app.main.drawn and not app.main.spans.turns[-1].running, 60)
        log = app.main.query_one(SpanLog)
        assert log.entries == len(app.main.spans) == 1500
        assert len(app.main.query(Entry)) <= KEPT_ENTRIES
        await until(pilot, lambda: "tool_2" in text(app) and "answer 500" in text(app) and log.following)
        assert log.last_line < 500, "older turns are folded"


async def test_a_reader_who_moved_up_is_left_alone() -> None:
    session = ScriptedSession(StillClock())
    async with opened(session, (80, 24)) as (app, pilot):
        await ask(app, pilot, "first")
        log = app.main.query_one(SpanLog)
        log.focus()
        await pilot.press("up", "up", "up", "up", "up", "up", "up", "up")
        chosen, top = log.cursor_node, log.scroll_offset.y
        assert chosen is not None and chosen.data is not None
        await session.ask("second")
        await until(pilot, lambda: len(app.main.spans.turns) == 2 and app.main.drawn)
        await pilot.pause()
        assert (log.cursor_node, log.scroll_offset.y) == (chosen, top)
        assert log.subject is chosen.data
        await pilot.press("end")
        await until(pilot, lambda: log.following and log.scroll_offset.y > top)


async def test_jumps_to_the_failure() -> None:
    from edge_agent.events import ErrorInfo

    async def turn(session: ScriptedSession, span: str, question: str) -> None:
        emit = session.spine.emit
        for n in range(30):
            started = ToolStarted(call_id=f"c{n}", tool=f"tool_{n}", source_hash="ab", input={}, frame=None)
            emit(started, span=f"tool-{n}", parent=span)
            error = ErrorInfo(code="TOOL_ERROR", message="broke", line=3, column=9) if n == 4 else None
            emit(ToolFinished(ok=error is None, ms=1.0, error=error), span=f"tool-{n}")
        emit(TurnFinished(ok=True, answer="done", ms=2.0), span=span)

    async with opened(ScriptedSession(StillClock(), turn), (120, 40)) as (app, pilot):
        await ask(app, pilot)
        log = app.main.query_one(SpanLog)
        log.focus()
        await pilot.press("f")
        assert log.subject is not None and log.subject.id == "tool-4"
        await until(pilot, lambda: "TOOL_ERROR: broke (line 3, column 9)" in text(app))
        await pilot.press("y")
        assert "TOOL_ERROR: broke" in app.clipboard


async def test_without_colour_the_states_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(ScriptedSession(StillClock()), (80, 24)) as (app, pilot):
        await ask(app, pilot)
        assert app.no_color
        colours = {
            segment.style.color.triplet
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app.get_line_filters()[-1], app.screen.background_colors[1])
            if segment.style and segment.style.color and segment.style.color.triplet
        }
        assert colours and all(max(c) - min(c) <= 2 for c in colours)
        assert "● live" in text(app) and "✓ match_garment" in text(app)
