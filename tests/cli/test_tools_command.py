"""`styleeyes tools`: an author's work from the first file to a call, and every way it can go wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edge_agent.cli.main import cli
from edge_agent.cli.source_report import fault_report
from edge_agent.engine.sandbox import bubblewrap
from edge_agent.errors import EnvironmentLacksError, SourcePosition, StyleEyesError
from edge_agent.home import AgentFolder, Home
from tests.engine.workshop import source

REPO = Path(__file__).resolve().parents[2]
NO_MODEL = ("--model", "openai:http://127.0.0.1:9/v1#none")
"""A model that is opened without a network and never asked."""


@pytest.fixture(scope="module", autouse=True)
def needs_bubblewrap() -> None:
    try:
        bubblewrap.executable()
    except EnvironmentLacksError as lack:
        pytest.skip(str(lack))


@dataclass
class Done:
    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


@dataclass
class Desk:
    """A home with the agent `desk`, and the program."""

    home: Home
    agent: AgentFolder

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Done:
        done = CliRunner().invoke(
            cli, ["tools", *arguments], input=stdin, env={"STYLEEYES_HOME": str(self.home.root)}
        )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def write(self, stem: str, text: str) -> Path:
        path = self.agent.tools / f"{stem}.tool.js"
        path.write_text(text)
        return path

    def configure(self, *tools: str) -> None:
        self.agent.config.write_text(json.dumps({"id": "desk", "name": "Desk", "tools": tools}))

    @property
    def enabled(self) -> list[str]:
        tools: list[str] = json.loads(self.agent.config.read_text())["tools"]
        return tools


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = Home(tmp_path / "home")
    made = Desk(home, home.agent("desk"))
    home.agent("demo").root.mkdir(parents=True)  # a first start is another test's
    home.shared_tools.mkdir(parents=True)
    made.agent.tools.mkdir(parents=True)
    made.configure()
    return made


def test_from_a_new_file_to_a_call(desk: Desk) -> None:
    made = desk.run("new", "count-buttons")
    path = desk.agent.tools / "count-buttons.tool.js"
    assert (made.status, made.stdout) == (0, f"{path}\n")
    assert "styleeyes tools enable count_buttons" in made.stderr
    checked = desk.run("check", "count_buttons")
    assert (checked.status, checked.stderr) == (0, "")
    assert "✓ count_buttons: Count buttons (may use: camera)" in checked.stdout
    assert desk.run("enable", "count_buttons").status == 0
    assert desk.enabled == ["count_buttons"]
    called = desk.run("call", "count_buttons", "--input", '{"question": "how many?"}', *NO_MODEL)
    assert called.status == 0
    assert json.loads(called.stdout)["seen"] is False
    assert "count_buttons done in" in called.stderr
    assert desk.run("disable", "count_buttons").status == 0
    assert desk.enabled == []


class TestNew:
    def test_an_underscored_name_is_the_same_tool(self, desk: Desk) -> None:
        assert desk.run("new", "count_buttons").stdout.endswith("/count-buttons.tool.js\n")

    def test_a_file_is_never_overwritten(self, desk: Desk) -> None:
        path = desk.write("mine", "precious")
        done = desk.run("new", "mine")
        assert (done.status, done.stdout) == (2, "")
        assert "exists already" in done.stderr
        assert path.read_text() == "precious"

    @pytest.mark.parametrize("name", ["", "1a", "Ab", "../a", "a/b", "/tmp/a", "a--b", "a b", "x" * 65, "é"])
    def test_a_bad_name_writes_nothing_anywhere(self, desk: Desk, name: str) -> None:
        done = desk.run("new", name)
        assert done.status == 2
        assert "starting with a letter" in done.stderr
        written = [path for path in desk.home.root.rglob("*") if path.is_file()]
        assert written == [desk.agent.config]

    def test_overriding_is_told(self, desk: Desk) -> None:
        assert "overrides the built-in tool" in desk.run("new", "search-catalog").stderr
        assert "overrides it" in desk.run("new", "search-catalog", "--shared").stderr

    def test_only_kinds_that_exist_are_offered(self, desk: Desk) -> None:
        done = desk.run("new", "a", "--kind", "script")
        assert done.status == 2
        assert "'script' is not" in done.stderr


class TestList:
    def test_winners_overridden_files_and_errors(self, desk: Desk) -> None:
        (desk.home.shared_tools / "search-catalog.tool.js").write_text(source())
        desk.write("broken", source("return {;"))
        desk.write("Bad_Name", source())
        desk.configure("search_catalog", "gone")
        done = desk.run("list")
        assert done.status == 0
        lines = done.stdout.splitlines()
        assert lines[0].split() == ["●", "search_catalog", "shared", "enabled", "A", "tool"]
        assert lines[1].strip().startswith("overrides built-in: ")
        assert any("broken.tool.js:6:9: INVALID_TOOL: SyntaxError" in line for line in lines)
        assert any(line.startswith("✗ Bad_Name.tool.js") for line in lines)
        assert "✗ gone" in done.stdout

    def test_json_is_one_object_and_nothing_else(self, desk: Desk) -> None:
        for number in range(16):
            desk.write(f"t{number:02}", "export")
        first, second = desk.run("list", "--json"), desk.run("list", "--json", "--offset", "16")
        [page], [rest] = first.lines, second.lines
        assert (page["type"], page["ok"], len(page["tools"])) == ("result", True, 16)
        assert page["pagination"] == {"offset": 0, "total": 18, "nextOffset": 16}
        assert rest["pagination"] == {"offset": 16, "total": 18}
        assert {"id", "kind", "enabled", "source", "file", "overridden", "error"} == set(page["tools"][2])
        assert first.stderr == ""

    def test_the_next_page_is_told(self, desk: Desk) -> None:
        for number in range(16):
            desk.write(f"t{number:02}", "export")
        assert "--offset 16" in desk.run("list").stderr

    def test_an_offset_past_the_end(self, desk: Desk) -> None:
        done = desk.run("list", "--offset", "99")
        assert (done.status, done.stdout, "only 2 tools" in done.stderr) == (0, "", True)
        assert desk.run("list", "--offset", "-1").status == 2

    def test_no_escape_sequence_of_a_tool_reaches_the_terminal(self, desk: Desk) -> None:
        desk.write("a-tool", source().replace('"A tool"', '"\\u001b]0;owned\\u0007Nice\\u202e\\u009b31m"'))
        for form in ((), ("--json",)):
            text = desk.run("list", *form).stdout
            assert "Nice" in text
            assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}

    def test_without_bubblewrap_it_says_what_to_install_and_lists_all_the_same(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        done = desk.run("list")
        assert done.status == 3
        assert "search_catalog" in done.stdout
        assert "bubblewrap" in done.stderr.lower()
        assert desk.run("check").status == 3

    def test_the_trusted_override_is_loud(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLDAGENTS_TOOL_SANDBOX", "process")
        assert "NOT SANDBOXED" in desk.run("list", "--json").stderr


class TestCheck:
    def test_an_error_is_shown_as_a_compiler_shows_it(self, desk: Desk) -> None:
        path = desk.write("bad", source("\treturn 日本 +;"))
        done = desk.run("check", "bad")
        assert (done.status, done.stdout) == (2, "")
        head, line, caret = done.stderr.splitlines()
        assert head.startswith(f"{path}:6:")
        assert "SyntaxError" in head
        assert line == "    6 |  return 日本 +;"
        column = int(head.split(":")[2])
        wide = sum(2 if c in "日本" else 1 for c in "\treturn 日本 +;"[: column - 1])
        assert caret.index("^") == len("    6 | ") + wide

    def test_a_hint_follows_where_there_is_one(self, desk: Desk) -> None:
        desk.write("bad", source(exports="export const timeoutMS = 5;"))
        done = desk.run("check", "bad")
        assert done.stderr.splitlines()[-1] == "  hint: did you mean `timeoutMs`?"
        assert "bad.tool.js:4:14: " in done.stderr

    def test_all_tools_without_an_argument(self, desk: Desk) -> None:
        desk.write("bad", "export")
        desk.write("good", source())
        done = desk.run("check", "--json")
        assert done.status == 2
        *each, result = done.lines
        assert {(line["id"], line["ok"]) for line in each} == {
            ("bad", False),
            ("good", True),
            ("match_garment", True),
            ("search_catalog", True),
        }
        assert result == {"type": "result", "ok": False, "checked": 4, "faulty": 1}
        [bad] = [line for line in each if not line["ok"]]
        assert bad["error"]["at"] == {"line": 1, "column": 1}

    def test_a_file_anywhere(self, desk: Desk, tmp_path: Path) -> None:
        path = tmp_path / "draft.tool.js"
        path.write_text(source())
        assert "✓ draft" in desk.run("check", str(path)).stdout
        other = tmp_path / "draft.js"
        other.write_text(source())
        assert "does not end in .tool.js" in desk.run("check", str(other)).stderr

    def test_what_is_neither(self, desk: Desk) -> None:
        done = desk.run("check", "serch_catalog")
        assert (done.status, "did you mean search_catalog?" in done.stderr) == (2, True)
        assert "neither a tool's id nor a file" in desk.run("check", "a" * 5_000).stderr

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).symlink_to("gone")])
    def test_what_has_a_tools_name_and_is_no_file(self, desk: Desk, make: Callable[[str], None]) -> None:
        make(str(desk.agent.tools / "odd.tool.js"))
        done = desk.run("check", "odd")
        assert (done.status, "odd.tool.js: INVALID_TOOL: " in done.stderr) == (2, True)
        assert desk.run("list").status == 0


class TestEnable:
    def test_a_missing_and_an_invalid_tool(self, desk: Desk) -> None:
        path = desk.write("bad", source("return {;"))
        missing, invalid = desk.run("enable", "bat"), desk.run("enable", "bad")
        assert (missing.status, "did you mean bad?" in missing.stderr) == (2, True)
        assert invalid.status == 2
        assert f"{path}:6:9: " in invalid.stderr
        assert "^" in invalid.stderr
        assert desk.enabled == []

    def test_a_seventeenth(self, desk: Desk) -> None:
        for number in range(17):
            desk.write(f"t{number:02}", source())
        desk.configure(*(f"t{number:02}" for number in range(16)))
        done = desk.run("enable", "t16")
        assert (done.status, "16 file tools" in done.stderr) == (2, True)

    def test_disabling_what_is_not_enabled(self, desk: Desk) -> None:
        desk.configure("a_tool")
        done = desk.run("disable", "b_tool")
        assert (done.status, "enabled are: a_tool" in done.stderr) == (2, True)


class TestCall:
    @pytest.fixture
    def echo(self, desk: Desk) -> Desk:
        schema = '{ value: {}, fail: { type: "boolean" } }'
        desk.write(
            "echo",
            source(
                "if (input.fail) {\n  throw new Error('on purpose');\n}\nreturn input.value;", schema=schema
            ),
        )
        desk.configure("echo")
        return desk

    def test_json_is_the_events_and_last_the_result(self, echo: Desk) -> None:
        done = echo.run("call", "echo", "--input", '{"value": [0, null, "é"]}', "--json", *NO_MODEL)
        *events, result = done.lines
        assert done.status == 0
        assert result == {"type": "result", "ok": True, "value": [0, None, "é"]}
        kinds = [event["type"] for event in events]
        assert [kind for kind in kinds if kind.startswith("tool.")] == ["tool.started", "tool.finished"]
        assert kinds[0] == "session.started"
        assert kinds[-1] == "session.ended"
        [log] = echo.home.sessions.rglob("log.jsonl")
        assert [json.loads(line) for line in log.read_text().splitlines()] == events

    @pytest.mark.parametrize("value", ["null", "0", "false", '""', "[]"])
    def test_falsy_values_are_shown(self, echo: Desk, value: str) -> None:
        done = echo.run("call", "echo", "--input", f'{{"value": {value}}}', "--json", *NO_MODEL)
        assert done.lines[-1] == {"type": "result", "ok": True, "value": json.loads(value)}

    def test_input_from_a_file_and_from_stdin(self, echo: Desk, tmp_path: Path) -> None:
        path = tmp_path / "in.json"
        path.write_text('\ufeff{"value": "from a file"}')
        assert echo.run("call", "echo", "--input", f"@{path}", *NO_MODEL).stdout == '"from a file"\n'
        done = echo.run("call", "echo", "--input", "-", *NO_MODEL, stdin='{"value": "from stdin"}')
        assert done.stdout == '"from stdin"\n'

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ("{value: 1}", "line 1, column 2"),
            ("", "not JSON"),
            ("@/nowhere/x.json", "No such file"),
            ("[" * 100_000, "nested too deeply"),
            ('{"value": ' + "1" * 5_000 + "}", "cannot be read"),
        ],
    )
    def test_input_that_is_no_json(self, echo: Desk, given: str, words: str) -> None:
        done = echo.run("call", "echo", "--input", given, "--json")
        assert done.status == 2
        assert words in done.stderr
        assert done.lines[-1]["error"]["code"] == "INVALID_INPUT"

    def test_stdin_that_is_no_text(self, echo: Desk) -> None:
        done = echo.run("call", "echo", "--input", "-", stdin=b"\xff")
        assert (done.status, "not UTF-8" in done.stderr) == (2, True)

    def test_a_tool_that_throws_is_shown_at_its_line(self, echo: Desk) -> None:
        done = echo.run("call", "echo", "--input", '{"fail": true}', "--json", *NO_MODEL)
        assert done.status == 1
        assert done.lines[-1]["ok"] is False
        assert done.lines[-1]["error"] == {
            "code": "TOOL_ERROR",
            "message": "on purpose",
            "at": {"line": 7, "column": 9},
        }
        assert f"{echo.agent.tools / 'echo.tool.js'}:7:9: TOOL_ERROR: on purpose" in done.stderr
        assert "    7 |   throw new Error('on purpose');\n                ^" in done.stderr

    def test_input_that_does_not_fit_names_the_property(self, echo: Desk) -> None:
        done = echo.run("call", "echo", "--input", '{"valeu": 1}', *NO_MODEL)
        assert (done.status, done.stdout) == (1, "")
        assert "did you mean 'value'?" in done.stderr

    def test_a_tool_that_is_not_enabled(self, echo: Desk) -> None:
        echo.write("other", source())
        done = echo.run("call", "other", "--json")
        assert (done.status, done.lines[-1]["error"]["code"]) == (2, "TOOL_NOT_ENABLED")
        assert "styleeyes tools enable other" in done.stderr
        assert "did you mean echo?" in echo.run("call", "ecko").stderr
        assert "enabled are: echo" in echo.run("call", "something_else").stderr

    def test_another_enabled_tool_that_is_broken_stops_the_session(self, echo: Desk) -> None:
        echo.write("bad", source("return {;"))
        echo.configure("echo", "bad")
        done = echo.run("call", "echo", "--json", *NO_MODEL)
        assert (done.status, done.lines[-1]["error"]["at"]) == (2, {"line": 6, "column": 9})
        assert "    6 | return {;\n                ^" in done.stderr

    def test_ctrl_c_cancels_the_run_and_ends_with_130(self, desk: Desk) -> None:
        desk.write("hung", source("await ctx.log('begun');\nfor (;;);"))
        desk.configure("hung")
        argv = [sys.executable, "-m", "edge_agent", "tools", "call", "hung", "--json", *NO_MODEL]
        env = {**os.environ, "STYLEEYES_HOME": str(desk.home.root)}
        with subprocess.Popen(
            argv, env=env, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            lines = []
            for line in child.stdout:
                lines.append(json.loads(line))
                if lines[-1]["type"] == "tool.started":
                    child.send_signal(signal.SIGINT)
            assert child.wait(timeout=30) == 130
        finished = [line for line in lines if line["type"] == "tool.finished"]
        assert [line["error"]["code"] for line in finished] == ["CANCELLED"]
        assert lines[-1]["ok"] is False


def test_a_long_line_is_cut_around_the_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tool.js"
    path.write_text("x" * 5_000 + "HERE" + "y" * 5_000)
    _head, line, caret = fault_report(
        path, StyleEyesError("INVALID_TOOL", "m", at=SourcePosition(1, 5_001))
    ).splitlines()
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("HERE")


@pytest.mark.parametrize("place", [(9, 1), (1, 99)])
def test_a_place_that_is_not_there_is_no_fault(tmp_path: Path, place: tuple[int, int]) -> None:
    path = tmp_path / "a.tool.js"
    path.write_text("one line\n")
    report = fault_report(path, StyleEyesError("INVALID_TOOL", "m", "h", SourcePosition(*place)))
    assert report.startswith(f"{path}:{place[0]}:{place[1]}: INVALID_TOOL: m")
    assert report.endswith("hint: h")


@pytest.mark.parametrize("command", ["", "list", "check", "call", "enable", "disable", "new"])
def test_help_says_how(desk: Desk, command: str) -> None:
    done = desk.run(*command.split(), "--help")
    assert done.status == 0
    assert "Examples:\n    styleeyes tools " in done.stdout
