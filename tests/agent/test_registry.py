"""Choosing and opening a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.agent.models.registry import DEFAULT_GEMINI, choose_model, gemini_key, open_model
from edge_agent.errors import EnvironmentLacksError, UsageError
from tests.agent.fakes import FakeClock

KEY = {"GEMINI_API_KEY": "k-123456"}


@pytest.mark.parametrize(
    ("flag", "env", "agent", "spec", "reason"),
    [
        ("gemini-9-ultra", {}, "offline", "gemini-9-ultra", "--model"),
        (None, KEY, None, DEFAULT_GEMINI, "key is set"),
        (None, {"GOOGLE_API_KEY": "k-123456"}, "", DEFAULT_GEMINI, "key is set"),
        (None, {}, None, "offline", "no GEMINI_API_KEY"),
        (None, {"GEMINI_API_KEY": "  "}, None, "offline", "no GEMINI_API_KEY"),
        (None, KEY, "gemini-3-pro", "gemini-3-pro", "agent.json"),
        (None, {}, "gemini-3-pro", "offline", "gemini-3-pro of agent.json needs"),
        (None, KEY, "offline", "offline", "agent.json"),
    ],
)
def test_the_choice_and_its_reason(
    flag: str | None, env: dict[str, str], agent: str | None, spec: str, reason: str
) -> None:
    choice = choose_model(flag, env, agent)
    assert choice.spec == spec
    assert reason in choice.reason
    assert "k-123456" not in choice.reason


def test_gemini_api_key_goes_first() -> None:
    assert gemini_key({"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}) == "a"


@pytest.mark.parametrize("spec", ["openai:localhost#x", "openai:http://h/v1", "two words", "a\x1bb"])
def test_a_spec_that_is_none_is_wrong_usage(spec: str) -> None:
    with pytest.raises(UsageError):
        choose_model(spec, {}, None)


async def test_a_gemini_model_without_a_key_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError) as caught:
        await open_model("gemini-3-pro", env={}, clock=FakeClock(), vision_folder=tmp_path)
    assert "GEMINI_API_KEY" in (caught.value.hint or "")


async def test_any_gemini_id_opens_without_a_request(tmp_path: Path) -> None:
    model = await open_model("gemini-99-new", env=KEY, clock=FakeClock(), vision_folder=tmp_path)
    assert model.id == "gemini-99-new"
    assert "k-123456" not in repr(model)
    await model.aclose()


async def test_offline_opens_without_loading_anything(tmp_path: Path) -> None:
    model = await open_model("offline", env={}, clock=FakeClock(), vision_folder=tmp_path)
    assert model.id == "offline"
    await model.aclose()


@pytest.mark.parametrize(
    ("spec", "name"), [("gemini-x", "GEMINI_API_KEY"), ("openai:http://h/v1#m", "OPENAI_API_KEY")]
)
async def test_a_miscopied_key_is_told_before_any_request_and_not_repeated(
    spec: str, name: str, tmp_path: Path
) -> None:
    for key in ("“AIza-quoted”", "AIza two", "AIza\nline"):
        with pytest.raises(EnvironmentLacksError) as caught:
            await open_model(spec, env={name: key}, clock=FakeClock(), vision_folder=tmp_path)
        assert "AIza" not in str(caught.value)
