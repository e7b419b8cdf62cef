"""The span tree: what events fold into, its bounds, and logs with gaps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.events import (
    AnswerDelta,
    CameraChanged,
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    Event,
    EventBody,
    ModelFinished,
    ModelStarted,
    ModelWaiting,
    Notice,
    Preparing,
    SessionEnded,
    TokenUsage,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from edge_agent.session.span_text import row
from edge_agent.session.span_tree import Change, SpanTree


class Feed:
    """Stamps bodies a tenth of a second apart and feeds them to a tree."""

    def __init__(self, tree: SpanTree) -> None:
        self.tree = tree
        self.seq = 0

    def __call__(self, body: EventBody, span: str, parent: str | None = None) -> Change:
        self.seq += 1
        event = Event(
            seq=self.seq,
            span=span,
            parent=parent,
            mono=self.seq / 10,
            wall="2026-05-28T20:28:20.000Z",
            body=body,
        )
        return self.tree.apply(event)


def turn_started(question: str = "What is this?") -> TurnStarted:
    return TurnStarted(question=question, frame=None, camera="fresh")


def tool_started(tool: str = "search_catalog") -> ToolStarted:
    return ToolStarted(call_id="c", tool=tool, source_hash="ab", input={}, frame=None)


CANCELLED = ErrorInfo(code="CANCELLED", message="Stopped.")
BROKEN = ErrorInfo(code="TOOL_ERROR", message="x is not defined", line=3, column=7)


@pytest.fixture
def tree() -> SpanTree:
    return SpanTree()


@pytest.fixture
def feed(tree: SpanTree) -> Feed:
    return Feed(tree)


def test_nesting_follows_parents(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t", "s")
    feed(tool_started(), "tool", "t")
    feed(CapabilityStarted(kind="llm.generate", target="default"), "cap", "tool")
    feed(ModelStarted(alias="default", model="m", purpose="tool", images=2, prompt="p"), "model", "cap")
    model = tree.node("model")
    assert model is not None
    assert [model.depth, model.kind] == [4, "model"]
    assert model.turn is tree.turns[0]
    assert [node.id for node in tree.root.walk()][1:] == ["t", "tool", "cap", "model"]


def test_ends_give_state_error_and_the_events_own_duration(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(tool_started(), "good", "t")
    feed(tool_started(), "bad", "t")
    feed(ToolFinished(ok=True, ms=12.5, result=0), "good")
    feed(ToolFinished(ok=False, ms=3.0, error=BROKEN), "bad")
    good, bad = tree.node("good"), tree.node("bad")
    assert good is not None and bad is not None
    assert (good.state, good.elapsed_ms(99.0), good.error) == ("ok", 12.5, None)
    assert (bad.state, bad.error) == ("failed", BROKEN)


def test_a_running_entry_has_been_taking_time_since_it_began(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    assert tree.turns[0].elapsed_ms(1.6) == pytest.approx(1500)


def test_a_cancelled_turn_takes_its_running_work_with_it(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(tool_started(), "tool", "t")
    change = feed(TurnFinished(ok=False, answer="", ms=1.0, error=CANCELLED), "t")
    tool = tree.node("tool")
    assert tool is not None and tool in change.changed
    assert (tree.turns[0].state, tool.state) == ("cancelled", "cancelled")


def test_work_without_an_end_is_cut_off_when_the_session_ends(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(tool_started(), "tool", "t")
    feed(SessionEnded(reason="killed"), "s")
    assert [node.state for node in tree.root.walk()] == ["ok", "cut off", "cut off"]


def test_progress_waiting_lines_and_notes(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(tool_started(), "tool", "t")
    feed(ToolProgressed(fraction=0.5, message="half"), "tool")
    feed(ToolLogged(level="warn", text="slow"), "tool")
    feed(ModelStarted(alias="a", model="m", purpose="turn", images=0, prompt=""), "m", "t")
    feed(ModelWaiting(seconds=12.0, reason="rate limit"), "m")
    feed(Notice(level="warn", code="NO_CATALOG", message="No catalog."), "s")
    feed(CameraChanged(state="live", words="Live.", source="usb", epoch=1), "s")
    tool, model = tree.node("tool"), tree.node("m")
    assert tool is not None and model is not None
    assert tool.progress is not None and tool.progress.fraction == 0.5
    assert model.waiting is not None and model.waiting.seconds == 12.0
    assert [child.kind for child in tool.children] == ["line"]
    assert [child.kind for child in tree.root.children] == ["turn", "line", "line"]
    feed(ModelFinished(ok=True, ms=1.0, finish_reason="stop", usage=TokenUsage()), "m")
    assert model.waiting is None


def test_capability_calls_are_counted_without_log_lines(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(tool_started(), "tool", "t")
    for n in range(3):
        feed(CapabilityStarted(kind="db.query", target="catalog"), f"c{n}", "tool")
        feed(ToolLogged(level="info", text="line"), "tool")
    tool = tree.node("tool")
    assert tool is not None and tool.capability_calls == 3


def test_an_end_without_a_beginning_is_still_shown(tree: SpanTree, feed: Feed) -> None:
    feed(turn_started(), "t")
    feed(CapabilityFinished(ok=True, ms=4.0, rows=2), "lost", "t")
    lost = tree.node("lost")
    assert lost is not None
    assert (lost.state, lost.start, lost.parent) == ("ok", None, tree.turns[0])


def test_500_turns_stay_within_the_bound_and_old_ones_go_whole() -> None:
    tree = SpanTree(max_nodes=300)
    feed = Feed(tree)
    removed: list[str] = []
    for turn in range(500):
        feed(turn_started(), f"t{turn}")
        for call in range(10):
            change = feed(tool_started(), f"t{turn}-{call}", f"t{turn}")
            removed += [node.id for node in change.removed]
            feed(ToolFinished(ok=True, ms=1.0), f"t{turn}-{call}")
        feed(TurnFinished(ok=True, answer="a", ms=9.0), f"t{turn}")
    assert len(tree) <= 300
    assert tree.turns[-1].id == "t499" and len(tree.turns[-1].children) == 10
    assert all(len(turn.children) == 10 for turn in tree.turns)
    assert "t0" in removed and "t0-9" in removed
    assert tree.removed_entries + len(tree.turns) == 500


def test_one_turn_that_alone_is_too_big_stops_growing_and_says_so() -> None:
    tree = SpanTree(max_nodes=50)
    feed = Feed(tree)
    feed(turn_started(), "t")
    for n in range(200):
        feed(tool_started(), f"tool{n}", "t")
        feed(ToolFinished(ok=True, ms=1.0), f"tool{n}", "t")
    assert len(tree) == 50
    assert tree.turns[0].left_out == 151


BODIES = st.sampled_from(
    [
        turn_started(),
        TurnFinished(ok=True, answer="", ms=1.0),
        TurnFinished(ok=False, answer="", ms=1.0, error=CANCELLED),
        tool_started(),
        ToolFinished(ok=False, ms=1.0, error=BROKEN),
        CapabilityStarted(kind="db.query", target="catalog"),
        CapabilityFinished(ok=True, ms=1.0),
        ModelStarted(alias="a", model="m", purpose="turn", images=0, prompt=""),
        ModelFinished(ok=True, ms=1.0, finish_reason=None, usage=TokenUsage()),
        ModelWaiting(seconds=1.0, reason="r"),
        ToolLogged(level="info", text="x"),
        ToolProgressed(fraction=0.2),
        AnswerDelta(text="x"),
        SessionEnded(reason="r"),
    ]
)
SPANS = st.sampled_from(["a", "b", "c", "d", "e"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(BODIES, SPANS, st.none() | SPANS), max_size=40))
def test_any_order_of_events_gives_a_bounded_tree(steps: list[tuple[EventBody, str, str | None]]) -> None:
    tree = SpanTree(max_nodes=8)
    feed = Feed(tree)
    for body, span, parent in steps:
        feed(body, span, parent)
        nodes = list(tree.root.walk())
        assert len({id(node) for node in nodes}) == len(nodes)
        assert all(child.parent is node for node in nodes for child in node.children)
        assert len(tree) <= 8 + sum(node.kind == "turn" for node in nodes)


def test_work_ahead_is_one_line_that_renews_itself() -> None:
    tree = SpanTree()
    feed = Feed(tree)
    for done in (0, 40, 73):
        change = feed(Preparing(what="catalog photos", done=done, total=73), "ahead-1")
    [line] = tree.root.children
    assert line.start == Preparing(what="catalog photos", done=73, total=73)
    assert change.changed == (line,)
    assert row(line, now=1.0).note == "looked at all 73 catalog photos"
