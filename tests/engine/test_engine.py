"""Enabling, session start, pinning, isolation between sessions and tools."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
from pathlib import Path

import pytest

from edge_agent.engine.engine import BrokenToolError
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox, ProcessSandbox
from edge_agent.errors import EnvironmentLacksError, SourcePosition, StyleEyesError, UsageError
from edge_agent.events import ToolFinished, ToolStarted
from edge_agent.home import Home
from tests.engine.workshop import TURN, Watched, Workshop, host, is_process, source

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNTER = source("counter += 1; return { counter, session: ctx.session.id };", before="let counter = 0;")


class TestEnabling:
    async def test_enable_and_disable_write_agent_json(self, shop: Workshop) -> None:
        shop.write("a-tool", source())
        shop.configure("search_catalog", note="kept")
        assert (await shop.engine.enable(shop.agent, "a_tool")).tools == ["search_catalog", "a_tool"]
        assert (await shop.engine.enable(shop.agent, "a_tool")).tools == ["search_catalog", "a_tool"]
        assert (await shop.engine.disable(shop.agent, "search_catalog")).tools == ["a_tool"]
        assert json.loads(shop.agent.config.read_text()) == {
            "id": "desk",
            "name": "Desk",
            "tools": ["a_tool"],
            "note": "kept",
        }

    async def test_a_missing_tool_is_refused_with_the_nearest_name(self, shop: Workshop) -> None:
        shop.write("count-buttons", source())
        before = shop.agent.config.read_bytes()
        with pytest.raises(UsageError) as caught:
            await shop.engine.enable(shop.agent, "count_button")
        assert (caught.value.code, caught.value.hint) == ("NOT_FOUND", "did you mean count_buttons?")
        assert shop.agent.config.read_bytes() == before

    @pytest.mark.parametrize(
        "text", [source("return {;"), source(exports="throw 1"), "", "export const x = 1;"]
    )
    async def test_an_invalid_tool_is_refused(self, shop: Workshop, text: str) -> None:
        shop.write("a-tool", text)
        before = shop.agent.config.read_bytes()
        with pytest.raises(StyleEyesError) as caught:
            await shop.engine.enable(shop.agent, "a_tool")
        assert caught.value.code == "INVALID_TOOL"
        assert shop.agent.config.read_bytes() == before

    async def test_a_misnamed_file_is_refused(self, shop: Workshop) -> None:
        shop.write("A_Tool", source())
        with pytest.raises(StyleEyesError, match="no name for a tool"):
            await shop.engine.enable(shop.agent, "A_Tool.tool.js")

    async def test_sixteen_file_tools_and_no_more_while_built_ins_do_not_count(self, shop: Workshop) -> None:
        ids = [shop.write(f"t{n:02}", source()) for n in range(17)]
        shop.configure("search_catalog", *ids[:15])
        await shop.engine.enable(shop.agent, ids[15])
        with pytest.raises(UsageError) as caught:
            await shop.engine.enable(shop.agent, ids[16])
        assert caught.value.code == "TOO_MANY_TOOLS"
        assert len((await shop.engine.enable(shop.agent, "match_garment")).tools) == 18
        async with shop.session() as session:
            assert len(session.pinned) == 18
        shop.configure(*ids)
        assert (await shop.refusal()).code == "TOO_MANY_TOOLS"

    async def test_what_is_not_enabled_cannot_be_disabled(self, shop: Workshop) -> None:
        with pytest.raises(UsageError, match="not enabled"):
            await shop.engine.disable(shop.agent, "a_tool")

    async def test_a_tool_whose_file_is_gone_can_be_disabled(self, shop: Workshop) -> None:
        shop.configure("gone")
        assert (await shop.engine.disable(shop.agent, "gone")).tools == []


class TestSessionStart:
    async def test_only_enabled_files_are_looked_at(self, shop: Workshop) -> None:
        shop.write("a-broken", "export")
        shop.write("hung", source(exports="for (;;);"))
        shop.write("a-tool", source(schema='{ x: { type: "string" } }'))
        shop.configure("a_tool")
        async with shop.session() as session:
            [pin], [declared] = session.pinned, session.declarations
        assert (pin.id, pin.source, len(pin.sha256)) == ("a_tool", "agent: a-tool.tool.js", 64)
        assert (declared.name, declared.description) == ("a_tool", "A tool. For a test.")
        assert declared.input_schema["properties"] == {"x": {"type": "string"}}

    async def test_declarations_are_in_the_order_of_agent_json(self, shop: Workshop) -> None:
        ids = [shop.write(stem, source()) for stem in ("b", "c", "a")]
        shop.configure(*ids)
        async with shop.session() as session:
            assert [tool.name for tool in session.declarations] == ids

    async def test_a_missing_tool_stops_the_session_and_names_the_file(self, shop: Workshop) -> None:
        shop.write("a-tool", source())
        shop.configure("a_tool", "not_there")
        error = await shop.refusal()
        assert str(shop.agent.tools / "not-there.tool.js") in error.message
        assert "styleeyes tools disable not_there" in (error.hint or "")

    async def test_an_invalid_tool_stops_the_session_with_file_place_and_reason(self, shop: Workshop) -> None:
        shop.write("good", source())
        shop.write("bad", source("return {;"))
        shop.configure("good", "bad")
        error = await shop.refusal()
        assert isinstance(error, BrokenToolError)
        assert f"{shop.agent.tools / 'bad.tool.js'}:6:9" in error.message
        assert "SyntaxError" in error.message
        assert error.at == SourcePosition(6, 9)

    async def test_a_broken_winner_does_not_fall_back(self, shop: Workshop) -> None:
        shop.write("search-catalog", "export")
        shop.configure("search_catalog")
        assert str(shop.agent.tools / "search-catalog.tool.js") in (await shop.refusal()).message

    async def test_a_refused_session_leaves_no_process(
        self, engine_sandbox: BubblewrapSandbox, tmp_path: Path
    ) -> None:
        watched = Watched(engine_sandbox)
        shop = Workshop.make(Home(tmp_path / "other"), watched)
        shop.write("good", source())
        shop.write("bad", "export")
        shop.configure("good", "bad")
        await shop.refusal()
        assert [is_process(guest.pid) for guest in watched.given] == [False, False]

    async def test_a_sessions_start_makes_one_process_a_tool(
        self, engine_sandbox: BubblewrapSandbox, tmp_path: Path
    ) -> None:
        watched = Watched(engine_sandbox)
        shop = Workshop.make(Home(tmp_path / "other"), watched)
        shop.configure(*(shop.write(stem, source()) for stem in "abc"))
        async with shop.session() as session:
            await session.warm()
            for tool_id in "abcabc":
                assert (await session.call(tool_id, {}, parent=TURN)).ok
        assert len(watched.given) == 3

    async def test_an_agent_without_tools_has_a_session(self, shop: Workshop) -> None:
        async with shop.session() as session:
            assert session.pinned == ()

    async def test_a_closed_sandbox_is_the_environments_lack(self, shop: Workshop, tmp_path: Path) -> None:
        closed = BubblewrapSandbox()
        await closed.aclose()
        other = Workshop.make(Home(tmp_path / "other"), closed)
        other.write_enabled("a-tool", source())
        with pytest.raises(EnvironmentLacksError):
            await other.engine.open_session(other.agent, host())


class TestPublic:
    async def test_a_public_session_has_no_custom_tools(self, shop: Workshop) -> None:
        shop.write("mine", source())
        shop.write("search-catalog", source())
        shop.configure("mine", "gone", "search_catalog", "match_garment")
        async with shop.session(public=True) as session:
            assert [pin.id for pin in session.pinned] == ["match_garment"]
            outcome = await session.call("mine", {}, parent=TURN)
        assert outcome.error is not None
        assert outcome.error.code == "TOOL_NOT_ENABLED"

    async def test_a_public_session_needs_a_real_sandbox(self, tmp_path: Path) -> None:
        sandbox = ProcessSandbox()
        shop = Workshop.make(Home(tmp_path / "h"), sandbox)
        with pytest.raises(EnvironmentLacksError, match="outside a sandbox"):
            await shop.engine.open_session(shop.agent, host(), public=True)
        await sandbox.aclose()

    async def test_the_trusted_override_runs_tools(self, tmp_path: Path) -> None:
        sandbox = ProcessSandbox()
        shop = Workshop.make(Home(tmp_path / "h"), sandbox)
        try:
            assert (await shop.outcome(source("return 5;"))).value == 5
        finally:
            await shop.engine.aclose()
            await sandbox.aclose()


class TestPinning:
    async def test_a_changed_file_is_refused_and_changed_back_works(self, shop: Workshop) -> None:
        tool_id = shop.write_enabled("a-tool", source("return 1;"))
        path = shop.agent.tools / "a-tool.tool.js"
        original = path.read_bytes()
        async with shop.session() as session:
            assert (await session.call(tool_id, {}, parent=TURN)).value == 1
            for changed in (source("return 2;").encode(), original + b" ", b"", b"\xff"):
                path.write_bytes(changed)
                outcome = await session.call(tool_id, {}, parent=TURN)
                assert outcome.error is not None
                assert outcome.error.code == "SOURCE_CHANGED"
            path.unlink()
            assert not (await session.call(tool_id, {}, parent=TURN)).ok
            path.write_bytes(original)
            assert (await session.call(tool_id, {}, parent=TURN)).value == 1
        path.write_text(source("return 2;"))
        async with shop.session() as session:
            assert (await session.call(tool_id, {}, parent=TURN)).value == 2

    async def test_the_log_names_the_source_that_ran(self, shop: Workshop) -> None:
        tool_id = shop.write_enabled("a-tool", source())
        async with shop.session() as session:
            await session.call(tool_id, {}, parent=TURN)
            assert [body.source_hash for body in shop.bodies(ToolStarted)] == [session.pinned[0].sha256]


class TestProcesses:
    async def test_a_process_stays_between_calls_and_is_not_shared(self, shop: Workshop) -> None:
        shop.write("counter", COUNTER)
        shop.write("other", COUNTER)
        shop.configure("counter", "other")
        async with (
            shop.session(host(session="one")) as first,
            shop.session(host(session="two")) as second,
        ):
            calls = ((first, "counter"), (first, "counter"), (second, "counter"), (first, "other"))
            seen = [(await session.call(tool, {}, parent=TURN)).value for session, tool in calls]
        assert seen == [
            {"counter": 1, "session": "one"},
            {"counter": 2, "session": "one"},
            {"counter": 1, "session": "two"},
            {"counter": 1, "session": "one"},
        ]

    async def test_a_killed_process_is_replaced(self, shop: Workshop) -> None:
        tool_id = shop.write_enabled("counter", COUNTER)
        async with shop.session() as session:
            guest = await session._guests[tool_id].ready(5)
            assert (await session.call(tool_id, {}, parent=TURN)).ok
            pidfd = os.pidfd_open(guest.pid)
            os.kill(guest.pid, signal.SIGKILL)
            assert select.select([pidfd], [], [], 10)[0]
            os.close(pidfd)
            outcome = await session.call(tool_id, {}, parent=TURN)
        assert outcome.value == {"counter": 1, "session": "s-1"}

    async def test_a_killed_launcher_fails_the_running_call_and_the_next_works(self, tmp_path: Path) -> None:
        sandbox = BubblewrapSandbox()
        shop = Workshop.make(Home(tmp_path / "other"), sandbox)
        text = source("if (input.v) return 1;\nawait ctx.log('begun');\nfor (;;);", schema="{ v: {} }")
        tool_id = shop.write_enabled("a-tool", text)
        async with shop.session() as session:
            running = asyncio.ensure_future(session.call(tool_id, {}, parent=TURN))
            await shop.told(ToolStarted)
            launcher = sandbox._shared
            assert launcher is not None
            os.kill(launcher._child.pid, signal.SIGKILL)
            outcome = await asyncio.wait_for(running, 20)
            assert outcome.error is not None
            assert outcome.error.code == "SANDBOX_CRASHED"
            assert (await session.call(tool_id, {"v": 1}, parent=TURN)).value == 1
        await shop.engine.aclose()
        await sandbox.aclose()

    async def test_calls_of_one_tool_wait_for_each_other_and_each_has_its_full_time(
        self, shop: Workshop
    ) -> None:
        text = source(
            "active += 1; const seen = active; await ctx.wait(200); active -= 1; return seen;",
            before="let active = 0;",
            exports="export const timeoutMs = 450;",
        )
        tool_id = shop.write_enabled("a-tool", text)
        async with shop.session() as session:
            outcomes = await asyncio.gather(*(session.call(tool_id, {}, parent=TURN) for _ in range(4)))
        assert [outcome.value for outcome in outcomes] == [1, 1, 1, 1]

    async def test_two_tools_run_side_by_side(self, shop: Workshop) -> None:
        for stem in ("a", "b"):
            shop.write(stem, source("await ctx.wait(300); return ctx.now;"))
        shop.configure("a", "b")
        async with shop.session() as session:
            await asyncio.gather(*(session.call(tool_id, {}, parent=TURN) for tool_id in "ab"))
        kinds = [type(e.body) for e in shop.events if isinstance(e.body, ToolStarted | ToolFinished)]
        assert kinds == [ToolStarted, ToolStarted, ToolFinished, ToolFinished]

    async def test_closing_ends_every_process_and_lets_no_call_start(self, shop: Workshop) -> None:
        tool_id = shop.write_enabled("a-tool", source())
        session = await shop.engine.open_session(shop.agent, host())
        guest = await session._guests[tool_id].ready(5)
        await session.aclose()
        assert not is_process(guest.pid)
        outcome = await session.call(tool_id, {}, parent=TURN)
        assert outcome.error is not None
        assert outcome.error.code == "CANCELLED"
        await session.aclose()

    async def test_warming_up_changes_nothing_that_a_tool_sees(self, shop: Workshop) -> None:
        tool_id = shop.write_enabled("counter", COUNTER)
        async with shop.session() as session:
            await session.warm()
            assert (await session.call(tool_id, {}, parent=TURN)).value == {"counter": 1, "session": "s-1"}


async def test_a_tool_that_is_not_enabled_is_refused_and_logged(shop: Workshop) -> None:
    shop.write("a-tool", source())
    shop.write("b-tool", source())
    shop.configure("a_tool")
    async with shop.session() as session:
        for tool_id in ("b_tool", "nothing", ""):
            outcome = await session.call(tool_id, {"x": 1}, call_id="c-1", parent=TURN)
            assert outcome.error is not None
            assert outcome.error.code == "TOOL_NOT_ENABLED"
    started = shop.bodies(ToolStarted)
    assert [(body.tool, body.call_id, body.input) for body in started] == [
        ("b_tool", "c-1", {"x": 1}),
        ("nothing", "c-1", {"x": 1}),
        ("", "c-1", {"x": 1}),
    ]
    assert len(shop.bodies(ToolFinished)) == 3
