"""Reading what a question asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.agent.question import read_question


@pytest.mark.parametrize(
    "text",
    [
        "What am I looking at?",
        "what is this jacket",
        "Which style is she wearing?",
        "How much is this?",
        "read the tag",
        "find this jacket",
        "do you see a hoodie here",
        "",
    ],
)
def test_about_what_is_in_view(text: str) -> None:
    assert read_question(text).kind == "look"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("do you have green jackets?", "green jackets"),
        ("Search the catalog for MH01.", "MH01"),
        ("show me some black shorts please", "black shorts"),
        ("What jackets do you have?", "jackets"),
        ("are there any hoodies?", "hoodies"),
        ("I'm looking for a rain coat", "rain coat"),
    ],
)
def test_a_search_by_words(text: str, terms: str) -> None:
    question = read_question(text)
    assert (question.kind, question.terms, question.needs_camera) == ("search", terms, False)


@pytest.mark.parametrize("text", ["and in blue?", "cheaper?", "what about the trousers?", "tell me more"])
def test_a_follow_up_needs_no_camera(text: str) -> None:
    question = read_question(text)
    assert (question.kind, question.needs_camera) == ("follow_up", False)


@pytest.mark.parametrize(
    "text", ["Do you have this in blue?", "is there a cheaper one like this?", "show me what you see"]
)
def test_pointing_at_something_is_never_a_search_without_the_camera(text: str) -> None:
    assert read_question(text).needs_camera


@pytest.mark.parametrize("text", ["thanks!", "Hello", "what can you do?"])
def test_small_talk(text: str) -> None:
    assert read_question(text).kind == "talk"


def test_what_the_words_do_not_tell_gets_the_camera_to_be_safe() -> None:
    question = read_question("Passt das zu einer blauen Hose?")
    assert (question.kind, question.needs_camera) == ("other", True)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert read_question(text).kind in {"look", "search", "follow_up", "talk", "other"}
