"""agent.json: read strictly, written so that nothing in it is lost."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from edge_agent.engine.agent_config import changing, read_agent_config, write_tools
from edge_agent.errors import UsageError
from edge_agent.home import AgentFolder

GOOD = {"id": "desk", "name": "Desk"}


@pytest.fixture
def agent(tmp_path: Path) -> AgentFolder:
    folder = AgentFolder(tmp_path / "desk")
    folder.root.mkdir()
    return folder


def write(agent: AgentFolder, value: Any) -> None:
    agent.config.write_text(json.dumps(value))


def test_what_is_left_out_has_defaults(agent: AgentFolder) -> None:
    write(agent, GOOD)
    config = read_agent_config(agent)
    assert (config.instructions, config.model, config.tools) == ("", None, [])


def test_a_tool_named_twice_counts_once_and_order_stays(agent: AgentFolder) -> None:
    write(agent, {**GOOD, "tools": ["b", "a", "b"]})
    assert read_agent_config(agent).tools == ["b", "a"]


def test_a_byte_order_mark_is_no_fault(agent: AgentFolder) -> None:
    agent.config.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert read_agent_config(agent).name == "Desk"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "desk", "name": "D",}', "line 1, column 28"),
        ("", "is not JSON"),
        ("[]", "the file: "),
        ("null", "the file: "),
        ('{"name": "D"}', "id: Field required"),
        ('{"id": "desk", "name": 5}', "name: "),
        ('{"id": "other", "name": "D"}', "'other', but its folder is 'desk'"),
        ('{"id": "desk", "name": "D", "tools": "a"}', "tools: Input should be a valid list"),
        ('{"id": "desk", "name": "D", "tools": null}', "tools: Input should be a valid list"),
        ('{"id": "desk", "name": "D", "tools": ["a", 1]}', "tools.1: Input should be a valid string"),
        ('{"id": "desk", "name": "D", "model": 3}', "model: "),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "1" * 5_000 + "}", "cannot be read"),
    ],
)
def test_every_fault_is_told_with_the_file_and_the_key(agent: AgentFolder, text: str, words: str) -> None:
    agent.config.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_agent_config(agent)
    assert words in caught.value.message
    assert str(agent.config) in caught.value.message
    assert caught.value.code == "INVALID_AGENT"


def test_a_missing_file_says_what_to_write(agent: AgentFolder) -> None:
    with pytest.raises(UsageError) as caught:
        read_agent_config(agent)
    assert caught.value.code == "NOT_FOUND"
    assert '"id": "desk"' in (caught.value.hint or "")


def test_bytes_that_are_not_text(agent: AgentFolder) -> None:
    agent.config.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(UsageError, match="not UTF-8"):
        read_agent_config(agent)


def test_a_file_of_any_size_is_bounded(agent: AgentFolder) -> None:
    agent.config.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(UsageError, match="1,048,576"):
        read_agent_config(agent)


def test_writing_changes_the_tools_and_nothing_else(agent: AgentFolder) -> None:
    raw = {"future": {"ü": [1, 2.5, None]}, "tools": ["a"], "name": "Désk", "id": "desk", "model": "offline"}
    write(agent, raw)
    agent.config.chmod(0o600)
    with changing(agent):
        config = write_tools(agent, ["a", "b"])
    assert config.tools == ["a", "b"]
    text = agent.config.read_text("utf-8")
    assert list(json.loads(text)) == list(raw)
    assert json.loads(text) == {**raw, "tools": ["a", "b"]}
    assert "Désk" in text
    assert agent.config.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in agent.root.iterdir()] == ["agent.json"]


def test_an_agent_that_is_gone_cannot_be_changed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be changed"), changing(AgentFolder(tmp_path / "gone")):
        raise AssertionError


def test_half_a_surrogate_pair_survives_a_write(agent: AgentFolder) -> None:
    agent.config.write_text('{"id": "desk", "name": "\\ud800"}')
    write_tools(agent, ["a"])
    assert json.loads(agent.config.read_text())["name"] == "\ud800"


def test_a_full_disk_leaves_the_old_file(agent: AgentFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    write(agent, GOOD)
    before = agent.config.read_bytes()

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        write_tools(agent, ["a"])
    assert agent.config.read_bytes() == before
    assert [p.name for p in agent.root.iterdir()] == ["agent.json"]


def _add(root: Path, name: str) -> None:
    agent = AgentFolder(root)
    with changing(agent):
        write_tools(agent, [*read_agent_config(agent).tools, name])


def test_writers_at_once_lose_nothing(agent: AgentFolder) -> None:
    write(agent, GOOD)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add, args=(agent.root, f"t{n}")) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert sorted(read_agent_config(agent).tools) == ["t0", "t1", "t2", "t3"]
