"""Names, ids, precedence, links and sizes of tool files. No file is evaluated here."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.engine.sources import (
    MAX_SOURCE_BYTES,
    NAME_RULE,
    ToolSource,
    file_name,
    find_tools,
    lone_file,
    read_source,
)
from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.home import AgentFolder, Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "h")
    made.shared_tools.mkdir(parents=True)
    made.agent("desk").tools.mkdir(parents=True)
    return made


@pytest.fixture
def agent(home: Home) -> AgentFolder:
    return home.agent("desk")


def own(found: dict[str, ToolSource]) -> dict[str, ToolSource]:
    """Without the built-in ones."""
    return {tool_id: tool for tool_id, tool in found.items() if tool.winner.origin != "built-in"}


@pytest.mark.parametrize(
    ("stem", "tool_id"),
    [
        ("a", "a"),
        ("search-catalog", "search_catalog"),
        ("a1-2b", "a1_2b"),
        ("x" * 64, "x" * 64),
        ("a-" * 31 + "bb", "a_" * 31 + "bb"),
    ],
)
def test_a_good_name_gives_the_id(home: Home, agent: AgentFolder, stem: str, tool_id: str) -> None:
    (agent.tools / f"{stem}.tool.js").write_text("")
    tool = own(find_tools(home, agent))[tool_id]
    assert (tool.id, tool.winner.fault, file_name(tool_id)) == (tool_id, None, f"{stem}.tool.js")


@pytest.mark.parametrize(
    "stem",
    [
        "",
        "1a",
        "A",
        "a_b",
        "a--b",
        "-a",
        "a-",
        "a.b",
        "é",
        "a b",
        "x" * 65,
        "a\n",
        "a\x1b[2Jb",
        "aй",
        "a\udcff",
    ],
)
def test_a_bad_name_is_a_file_error_that_names_the_rule(home: Home, agent: AgentFolder, stem: str) -> None:
    (agent.tools / f"{stem}.tool.js").write_text("")
    [tool] = own(find_tools(home, agent)).values()
    with pytest.raises(StyleEyesError) as caught:
        read_source(tool.winner)
    assert caught.value.code == "INVALID_TOOL"
    assert caught.value.hint == NAME_RULE
    # It is shown, as text that any terminal and any JSON can hold.
    for shown in (tool.id, tool.winner.label, tool.winner.shown_path, caught.value.message):
        assert shown.encode()
        assert "\x1b" not in shown


STEMS = st.text(max_size=70) | st.from_regex(r"[a-z0-9_-]{1,66}", fullmatch=True)


@given(STEMS.filter(lambda s: "/" not in s and "\0" not in s))
def test_any_name_is_an_id_that_gemini_takes_or_a_fault(stem: str) -> None:
    file = lone_file(Path("folder") / f"{stem}.tool.js")
    assert (file.fault is None) == bool(re.fullmatch(r"[a-z][a-z0-9_]{0,63}", file.id))


@pytest.mark.parametrize("stem", ["mine\x9d", "mine\x1b]0;", "mine\u202e", "mine\udcff"])
def test_a_name_that_a_screen_would_cut_short_is_told_apart(
    home: Home, agent: AgentFolder, stem: str
) -> None:
    (home.shared_tools / "mine.tool.js").write_text("")
    (agent.tools / f"{stem}.tool.js").write_text("")
    found = own(find_tools(home, agent))
    assert found["mine"].winner.origin == "shared"
    [other] = [tool for tool in found.values() if tool.id != "mine"]
    assert re.fullmatch(r"mine\\(x|u)[0-9a-f]{2,4}.*\.tool\.js", other.id)


def test_a_misnamed_file_overrides_nothing(home: Home, agent: AgentFolder) -> None:
    (agent.tools / "search_catalog.tool.js").write_text("")
    found = find_tools(home, agent)
    assert found["search_catalog"].winner.origin == "built-in"
    assert found["search_catalog.tool.js"].winner.fault is not None


def test_agent_wins_over_shared_wins_over_built_in_and_all_are_shown(home: Home, agent: AgentFolder) -> None:
    name = "search-catalog.tool.js"
    assert [f.origin for f in find_tools(home, agent)["search_catalog"].overridden] == []
    (home.shared_tools / name).write_text("shared")
    tool = find_tools(home, agent)["search_catalog"]
    assert (tool.winner.origin, [f.origin for f in tool.overridden]) == ("shared", ["built-in"])
    (agent.tools / name).write_text("agent")
    tool = find_tools(home, agent)["search_catalog"]
    assert (tool.winner.path, [f.origin for f in tool.overridden]) == (
        agent.tools / name,
        ["shared", "built-in"],
    )


def test_other_files_are_no_tools(home: Home, agent: AgentFolder) -> None:
    for name in ("a.js", "a.tool.ts", "a.tool.js.bak", "tool.js", "README.md"):
        (agent.tools / name).write_text("")
    (agent.tools / "deep").mkdir()
    (agent.tools / "deep" / "b.tool.js").write_text("")
    assert own(find_tools(home, agent)) == {}


def test_missing_folders_are_empty(tmp_path: Path) -> None:
    home = Home(tmp_path / "nothing")
    assert set(find_tools(home, home.agent("desk"))) == {"match_garment", "search_catalog"}


def test_a_folder_that_cannot_be_read_is_an_error_and_lets_nothing_else_win(
    home: Home, agent: AgentFolder
) -> None:
    (home.shared_tools / "a.tool.js").write_text("")
    agent.tools.rmdir()
    agent.tools.write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="cannot be read"):
        find_tools(home, agent)


class TestLinks:
    def test_a_link_within_the_folder_is_followed(self, home: Home, agent: AgentFolder) -> None:
        (agent.tools / "real.tool.js").write_text("x")
        (agent.tools / "alias.tool.js").symlink_to("real.tool.js")
        assert read_source(own(find_tools(home, agent))["alias"].winner).data == b"x"

    @pytest.mark.parametrize("target", ["../../outside.tool.js", "../outside.tool.js", "/etc/hostname"])
    def test_a_link_out_of_the_folder_is_refused(self, home: Home, agent: AgentFolder, target: str) -> None:
        (agent.root / "outside.tool.js").write_text("x")
        (agent.data / "outside.tool.js").write_text("x")
        (agent.tools / "a.tool.js").symlink_to(target)
        with pytest.raises(StyleEyesError, match="leads out of its folder"):
            read_source(own(find_tools(home, agent))["a"].winner)

    def test_a_refused_link_still_wins_over_what_it_shadows(self, home: Home, agent: AgentFolder) -> None:
        (home.shared_tools / "a.tool.js").write_text("x")
        (agent.tools / "a.tool.js").symlink_to("/etc/hostname")
        tool = find_tools(home, agent)["a"]
        assert (tool.winner.origin, tool.winner.fault is None) == ("agent", False)

    def test_a_circle_of_links_is_a_file_error(self, home: Home, agent: AgentFolder) -> None:
        (agent.tools / "a.tool.js").symlink_to("b.tool.js")
        (agent.tools / "b.tool.js").symlink_to("a.tool.js")
        (agent.tools / "c.tool.js").write_text("")
        found = own(find_tools(home, agent))
        assert [found[i].winner.fault is None for i in "abc"] == [False, False, True]

    def test_a_link_to_nothing_is_a_file_error(self, home: Home, agent: AgentFolder) -> None:
        (agent.tools / "a.tool.js").symlink_to("gone.tool.js")
        with pytest.raises(StyleEyesError, match="does not exist"):
            read_source(own(find_tools(home, agent))["a"].winner)

    def test_a_folder_that_is_a_link_is_refused(self, home: Home, agent: AgentFolder, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "a.tool.js").write_text("x")
        agent.tools.rmdir()
        agent.tools.symlink_to(elsewhere)
        with pytest.raises(StyleEyesError, match="leads out of its folder"):
            read_source(own(find_tools(home, agent))["a"].winner)


class TestReading:
    def write(self, folder: Path, data: bytes) -> Path:
        path = folder / "a.tool.js"
        path.write_bytes(data)
        return path

    def test_bytes_and_their_hash(self, tmp_path: Path) -> None:
        data = "// ✓\r\n\tx".encode()
        read = read_source(lone_file(self.write(tmp_path, data)))
        assert (read.data, read.sha256) == (data, hashlib.sha256(data).hexdigest())

    def test_the_size_limit_is_exact(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, b" " * MAX_SOURCE_BYTES)
        assert len(read_source(lone_file(path)).data) == MAX_SOURCE_BYTES
        self.write(tmp_path, b" " * (MAX_SOURCE_BYTES + 1))
        with pytest.raises(StyleEyesError, match="262,144"):
            read_source(lone_file(path))

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"ok \xff", "not UTF-8 (byte 3)"),
            (b"\xed\xa0\x80", "not UTF-8"),
            ("caf\xe9".encode("latin-1"), "not UTF-8"),
            (b"a\0b", "NUL byte (byte 1)"),
            ("a".encode("utf-16-le"), "NUL byte"),
        ],
    )
    def test_what_is_not_utf8_text_is_refused(self, tmp_path: Path, data: bytes, words: str) -> None:
        with pytest.raises(StyleEyesError, match=re.escape(words)):
            read_source(lone_file(self.write(tmp_path, data)))

    def test_a_fifo_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.tool.js")
        with pytest.raises(StyleEyesError, match="not a regular file"):
            read_source(lone_file(tmp_path / "a.tool.js"))

    def test_a_folder_with_a_tools_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.tool.js").mkdir()
        with pytest.raises(StyleEyesError, match="not a regular file"):
            read_source(lone_file(tmp_path / "a.tool.js"))
