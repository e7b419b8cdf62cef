"""The event spine: clean text, whole JSON, the same events out of the log as went in."""

from __future__ import annotations

import json
import threading

from hypothesis import given
from hypothesis import strategies as st

from device.clock import SystemClock
from edge_agent.events import (
    BODY_BY_WIRE_NAME,
    CapabilityFinished,
    ErrorInfo,
    Event,
    FrameRef,
    Notice,
    PinnedTool,
    SessionStarted,
    Spine,
    ToolFinished,
    ToolStarted,
    event_to_json,
)
from edge_agent.json_types import JsonValue
from edge_agent.session.event_reading import event_from_json
from edge_agent.text import SecretMask, sanitise

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)
    ),
    max_leaves=12,
)


def emitted(spine: Spine) -> list[Event]:
    seen: list[Event] = []
    spine.subscribe(seen.append)
    return seen


@given(json_values)
def test_what_a_tool_returns_survives_log_and_reading(value: JsonValue) -> None:
    spine = Spine(SystemClock())
    event = spine.emit(ToolFinished(ok=True, ms=1.5, result=value), span="tool-1", parent="turn-1")
    again = event_from_json(json.loads(json.dumps(event_to_json(event))))
    assert again is not None
    assert again.body == event.body
    assert again.parent == "turn-1"


def test_names_inside_a_tools_own_json_stay_as_they_are() -> None:
    spine = Spine(SystemClock())
    body = ToolStarted(
        call_id="c1",
        tool="match_garment",
        source_hash="ab",
        input={"styleIds": ["MT01"], "ageMs": {"capturedAt": 1}},
        frame=FrameRef(
            id="f1-2",
            age_ms=12.5,
            width=640,
            height=480,
            sharpness=None,
            epoch=1,
            captured_at="2026-01-01T00:00:00Z",
        ),
    )
    again = event_from_json(event_to_json(spine.emit(body, span="s")))
    assert again is not None
    assert again.body == body


def test_every_string_of_an_event_is_clean_and_without_secrets() -> None:
    spine = Spine(SystemClock(), SecretMask(["sk-very-secret-key"]))
    hostile = "a\x1b]0;owned\x07b \x1b[31mred\x1b[0m \u202egnp.exe key=sk-very-secret-key"
    events = (
        spine.emit(Notice(level="warn", code="X", message=hostile, hint=hostile), span="s"),
        spine.emit(ToolFinished(ok=True, ms=1, result={hostile: [hostile, {"k": hostile}]}), span="s"),
        spine.emit(CapabilityFinished(ok=False, ms=1, error=ErrorInfo(code="E", message=hostile)), span="s"),
    )
    for event in events:
        text = json.dumps(event_to_json(event), ensure_ascii=False)
        assert "sk-very-secret-key" not in text
        assert not any(ord(c) < 32 or c in "\x1b\u202e" for c in text)


def test_order_holds_under_many_threads() -> None:
    spine = Spine(SystemClock())
    seen = emitted(spine)

    def emit_some() -> None:
        for _ in range(200):
            spine.emit(Notice(level="info", code="T", message="x"), span="s")

    threads = [threading.Thread(target=emit_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in seen] == list(range(1, 801))


def test_every_body_has_a_wire_name_and_unknown_ones_are_left_alone() -> None:
    assert "capability.started" in BODY_BY_WIRE_NAME
    assert event_from_json({"type": "from.the.future", "seq": 1}) is None
    assert event_from_json({"type": "notice"}) is None


def test_a_session_start_reads_back_whole() -> None:
    spine = Spine(SystemClock())
    body = SessionStarted(
        session_id="1",
        mode="demo",
        agent_id="a",
        agent_name="A",
        model="offline",
        model_reason="r",
        source="s",
        sandbox="b",
        tools=(PinnedTool(id="t", source="agent", sha256="0"),),
        app_version="0",
    )
    again = event_from_json(json.loads(json.dumps(event_to_json(spine.emit(body, span="s")))))
    assert again is not None
    assert again.body == body


@given(st.text())
def test_sanitised_text_is_printable_utf8_and_stays_the_same_when_cleaned_again(text: str) -> None:
    clean = sanitise(text)
    clean.encode("utf-8")
    assert sanitise(clean) == clean
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in clean)
