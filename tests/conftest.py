"""What every test gets: no keys, no HOME of the user's, no network by construction of each test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from edge_agent.home import Home

_VARIABLES = (
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "WORLDAGENTS_TOOL_MODELS",
    "WORLDAGENTS_TOOL_SANDBOX",
)
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The developer's keys and files are out of reach of every test."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STYLEEYES_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def _seeded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from edge_agent.session.first_start import prepare_home
    from edge_agent.styleeyes.vision.weights import prepare_encoder

    home = Home(tmp_path_factory.mktemp("seeded") / "home")
    prepare_home(home)
    prepare_encoder(home.vision)
    return home.root


def _link_or_copy(source: str, target: str) -> None:
    if source.endswith(".onnx"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


@pytest.fixture
def demo_home(_seeded_home: Path, tmp_path: Path) -> Home:
    """A HOME of this test's own with the demo agent and its catalog in it."""
    # the prepared weights are large and never changed in place: links will do
    shutil.copytree(_seeded_home, tmp_path / "home", copy_function=_link_or_copy)
    return Home(tmp_path / "home")
