"""The words of log rows and details."""

from __future__ import annotations

import pytest

from edge_agent.events import (
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    Event,
    EventBody,
    FrameRef,
    ModelFinished,
    ModelStarted,
    ModelWaiting,
    TokenUsage,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    TurnStarted,
)
from edge_agent.session.span_text import age, bar, details, duration, row, size
from edge_agent.session.span_tree import SpanNode, SpanTree

FRAME = FrameRef(
    id="f1-9",
    age_ms=420.0,
    width=1280,
    height=720,
    sharpness=0.131,
    epoch=1,
    captured_at="2026-05-28T20:28:20Z",
)
TOOL = ToolStarted(
    call_id="c1", tool="match_garment", source_hash="ab" * 32, input={"ids": ["a"]}, frame=FRAME
)


def folded(*bodies: EventBody) -> SpanNode:
    """One entry from its events, all of one span."""
    tree = SpanTree()
    for n, body in enumerate(bodies):
        tree.apply(
            Event(seq=n, span="x", parent=None, mono=float(n), wall="2026-05-28T20:28:20.000Z", body=body)
        )
    node = tree.node("x")
    assert node is not None
    return node


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0.4, "0 ms"),
        (412.0, "412 ms"),
        (999.6, "1.0 s"),
        (1234.0, "1.2 s"),
        (59_960.0, "0 min 59 s"),
        (65_000.0, "1 min 05 s"),
    ],
)
def test_duration(ms: float, words: str) -> None:
    assert duration(ms) == words


def test_age_and_size() -> None:
    assert age(420.0) == "0.4 s old"
    assert [size(412), size(40_960), size(3 * 1024**2)] == ["412 B", "40.0 KiB", "3.0 MiB"]


@pytest.mark.parametrize(("fraction", "shown"), [(-1.0, "▱▱▱▱"), (0.5, "▰▰▱▱"), (9.0, "▰▰▰▰")])
def test_bar_never_leaves_its_width(fraction: float, shown: str) -> None:
    assert bar(fraction, 4) == shown


def test_a_tool_row_names_its_frame_and_age() -> None:
    words = row(folded(TOOL), now=1.5)
    assert (words.glyph, words.name, words.right) == ("…", "match_garment", "1.5 s")
    assert "frame 0.4 s old" in words.note


def test_a_tool_without_a_frame_says_so() -> None:
    node = folded(ToolStarted(call_id="c", tool="t", source_hash="", input=None, frame=None))
    assert "no frame" in row(node, 0).note


def test_progress_is_shown_while_running_only() -> None:
    progress = ToolProgressed(fraction=0.25, message="photo 1 of 4")
    assert "▰▰▱▱▱▱▱▱ 25 % photo 1 of 4" in row(folded(TOOL, progress), 0).note
    assert "25 %" not in row(folded(TOOL, progress, ToolFinished(ok=True, ms=1.0)), 0).note


def test_a_failure_says_code_and_sentence_in_the_row_and_place_and_hint_in_the_details() -> None:
    error = ErrorInfo(code="TOOL_ERROR", message="x is not defined", hint="Define it.", line=12, column=4)
    node = folded(TOOL, ToolFinished(ok=False, ms=3.0, error=error))
    words = row(node, 0)
    assert words.glyph == "✗"
    assert words.note.startswith("TOOL_ERROR: x is not defined")
    first = details(node)[0]
    assert first.title == "Error"
    assert first.text == "TOOL_ERROR: x is not defined (line 12, column 4)\nDefine it."


def test_a_query_shows_rows_in_the_row_and_its_sql_whole_in_the_details() -> None:
    sql = "SELECT *\nFROM products"
    node = folded(
        CapabilityStarted(kind="db.query", target="catalog", detail=sql),
        CapabilityFinished(ok=True, ms=4, rows=1),
    )
    assert row(node, 0).note == "1 row · catalog · SELECT * FROM products"
    assert ("SQL", sql, "sql") in [(s.title, s.text, s.language) for s in details(node)]


def test_a_model_call_shows_images_tokens_and_reason_and_its_prompt() -> None:
    started = ModelStarted(
        alias="default", model="m-1", purpose="tool", images=4, prompt="Image 1: camera frame"
    )
    usage = TokenUsage(input=1834, output=90, thinking=6)
    node = folded(started, ModelFinished(ok=True, ms=388.0, finish_reason="stop", usage=usage))
    assert row(node, 0).note == "m-1 · 4 images · 1834→96 tokens · stop"
    sections = {section.title: section.text for section in details(node)}
    assert sections["Prompt"] == "Image 1: camera frame"
    assert sections["Usage"] == "tokens: input 1834, output 90, thinking 6\nfinished: stop"


def test_a_waiting_model_says_how_long_and_why() -> None:
    started = ModelStarted(alias="default", model="m", purpose="turn", images=0, prompt="")
    assert (
        "waiting 12 s: rate limit"
        in row(folded(started, ModelWaiting(seconds=12.0, reason="rate limit")), 0).note
    )


def test_a_falsy_result_is_shown_as_it_is() -> None:
    node = folded(TOOL, ToolFinished(ok=True, ms=1.0, result=None))
    assert ("Result", "null") in [(s.title, s.text) for s in details(node)]


def test_a_long_question_is_one_line() -> None:
    node = folded(TurnStarted(question="one\ntwo\n" + "x" * 500, frame=None, camera="none"))
    name = row(node, 0).name
    assert name.startswith("one two x") and len(name) <= 160
