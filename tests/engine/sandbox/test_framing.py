"""Frames survive any cut and any text; what is no frame is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.engine.sandbox import untrusted
from edge_agent.engine.sandbox.api import GuestError
from edge_agent.engine.sandbox.guest import framing

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_frames_come_out_as_they_went_in_however_they_are_cut(bodies: list[object], cuts: list[int]) -> None:
    stream = b"".join(
        framing.pack({"t": "x", "n": i}, json.dumps(body, ensure_ascii=False))
        for i, body in enumerate(bodies)
    )
    buffer = framing.FrameBuffer()
    payloads: list[bytes] = []
    at = step = 0
    while at < len(stream):
        size = cuts[step % len(cuts)]
        payloads += buffer.feed(stream[at : at + size])
        at, step = at + size, step + 1
    parsed = [framing.parse(payload) for payload in payloads]
    assert [header["n"] for header, _body in parsed] == list(range(len(bodies)))
    assert [json.loads(body) for _header, body in parsed] == bodies


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_a_frame_error(payload: bytes) -> None:
    try:
        header, body = framing.parse(payload)
    except framing.FrameError:
        return
    assert isinstance(header, dict)
    assert body.isascii()


@given(json_values)
def test_a_result_is_unchanged_by_its_check(value: object) -> None:
    text = json.dumps(value)
    assert json.loads(untrusted.checked_result(text)) == value


@given(st.text(st.characters(categories=["Cs", "Lu", "So"])))
def test_unpaired_surrogates_are_replaced_and_pairs_kept(text: str) -> None:
    got = json.loads(untrusted.checked_result(json.dumps([text])))[0]
    assert got == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    got.encode("utf-8")


@given(st.text(max_size=300))
def test_no_guests_words_break_a_fault(text: str) -> None:
    error = untrusted.fault("TOOL_ERROR", text, {"TOOL_ERROR"}, "t.tool.js", 1)
    assert error.code == "TOOL_ERROR"
    assert error.message


def test_an_oversized_length_is_refused_before_it_is_held() -> None:
    with pytest.raises(framing.FrameError):
        framing.FrameBuffer().feed(b"\xff\xff\xff\xff")


def test_a_frame_over_the_limit_is_not_packed() -> None:
    with pytest.raises(framing.FrameError):
        framing.pack({"t": "x"}, '"' + "x" * framing.MAX_FRAME + '"')


@pytest.mark.parametrize("depth", [framing.MAX_DEPTH, framing.MAX_DEPTH + 1, 50_000])
def test_depth_is_measured_without_recursion(depth: int) -> None:
    assert framing.too_deep("[" * depth + "]" * depth) is (depth > framing.MAX_DEPTH)


def test_brackets_in_strings_and_siblings_do_not_count_as_depth() -> None:
    assert not framing.too_deep(json.dumps(["[" * 1000, "\\" + '"' + "{" * 1000]))
    assert not framing.too_deep("[" + ",".join(["[]"] * 1000) + "]")


@pytest.mark.parametrize(
    ("characters", "fits"), [(untrusted.MAX_RESULT - 2, True), (untrusted.MAX_RESULT - 1, False)]
)
def test_a_result_is_measured_in_bytes_of_utf8(characters: int, fits: bool) -> None:
    plain = json.dumps("x" * characters)
    wide = json.dumps("é" * (characters // 2) + "x" * (characters % 2))
    for body in (plain, wide):
        if fits:
            assert len(json.loads(untrusted.checked_result(body)).encode()) == characters
        else:
            with pytest.raises(GuestError, match="262,145 bytes"):
                untrusted.checked_result(body)


@pytest.mark.parametrize("body", ["", "{", "NaN", "[Infinity]", "1 2", "[" * 300])
def test_what_is_no_json_is_no_result(body: str) -> None:
    with pytest.raises(GuestError) as caught:
        untrusted.checked_result(body)
    assert caught.value.code == "INVALID_RESULT"


@pytest.mark.parametrize("text", ["1e999", "[-1E+999]", "1" + "0" * 400 + ".0", '{"a":[1e309]}'])
def test_numbers_that_no_number_can_hold_are_refused(text: str) -> None:
    with pytest.raises(GuestError) as caught:
        untrusted.checked_result(text)
    assert caught.value.code == "INVALID_RESULT"
    assert untrusted.checked_arguments(f"[{text}]") is None


@pytest.mark.parametrize("text", ["1e308", "1e-999", '"1e999"', "[0.1e+100]"])
def test_large_numbers_and_words_like_them_pass(text: str) -> None:
    assert untrusted.checked_result(text) == text
    assert untrusted.checked_arguments(f"[{text}]") == f"[{text}]"
