"""The sandbox may import nothing of the broker, so it has its own copy of what it counts: they agree."""

from __future__ import annotations

from edge_agent.engine.broker import limits
from edge_agent.engine.sandbox import run, untrusted
from edge_agent.engine.sandbox.guest import framing


def test_both_sides_hold_the_same_limits() -> None:
    assert run.MAX_CALLS == limits.MAX_CALLS
    assert run.MAX_AT_ONCE == limits.MAX_CALLS_AT_ONCE
    assert (run.MAX_LOG_LINES, run.MAX_LOG_BYTES) == (limits.MAX_LOG_LINES, limits.MAX_LOG_BYTES)
    assert untrusted.MAX_RESULT == limits.MAX_JSON_BYTES
    assert framing.MAX_FRAME == limits.MAX_ARGUMENT_BYTES
    assert framing.MAX_DEPTH == limits.MAX_ARGUMENT_DEPTH


def test_a_text_file_fits_its_frame_even_with_every_byte_escaped() -> None:
    assert 6 * limits.MAX_TEXT_BYTES + 4096 < framing.MAX_FRAME
