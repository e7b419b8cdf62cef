"""Inspection in the real sandbox: what a file says, where it is wrong, and how long it may take."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from device.clock import SystemClock
from edge_agent.engine.inspection import Inspection, Inspector, close
from edge_agent.engine.sandbox.api import Guest
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.engine.sources import ToolFile, lone_file
from edge_agent.errors import EnvironmentLacksError, SourcePosition, StyleEyesError
from tests.engine.workshop import Watched, is_process, source

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def inspector(engine_sandbox: BubblewrapSandbox) -> Inspector:
    return Inspector(engine_sandbox, SystemClock())


def write(folder: Path, text: str | bytes, stem: str = "a-tool") -> ToolFile:
    path = folder / f"{stem}.tool.js"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return lone_file(path)


async def one(inspector: Inspector, file: ToolFile, budget_s: float = 8.0) -> Inspection:
    [inspection] = await inspector.inspect([file], budget_s=budget_s)
    return inspection


async def fault(inspector: Inspector, file: ToolFile, budget_s: float = 8.0) -> StyleEyesError:
    inspection = await one(inspector, file, budget_s)
    assert inspection.error is not None
    assert inspection.tool is None
    return inspection.error


async def test_computed_exports_are_what_they_come_to(inspector: Inspector, tmp_path: Path) -> None:
    text = source(
        before='const list = ["cat", "alog"].join("");',
        exports="export const timeoutMs = 10 * 1000;"
        "const c = { path: `databases/${list}.sqlite`, mode: 'read' };"
        "export const capabilities = { databases: { [list]: c } };",
        schema="Object.fromEntries(['a', 'b'].map((n) => [n, { type: 'string' }]))",
    )
    inspected = (await one(inspector, write(tmp_path, text))).tool
    assert inspected is not None
    definition = inspected.definition
    assert definition.timeout_ms == 10_000
    assert definition.capabilities.databases["catalog"].path == "databases/catalog.sqlite"
    assert definition.input_schema["properties"] == {"a": {"type": "string"}, "b": {"type": "string"}}


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        (source(exports="import x from 'y';"), "`import`", 4, 1),
        (source("  return await import('x');"), "import()", 6, 16),
        (source("", exports="const a = require('a');"), "require", 4, 11),
        (source(exports="export default 1;"), "default", 4, 1),
        (source("return {;"), "SyntaxError", 6, 9),
        (source(exports="await 1;"), "top level", 4, 1),
        (source(exports="const t = undefined; t.x;"), "undefined", 4, 24),
        (source(exports="export const timeoutMs =\n  -1;"), "timeoutMs", 4, 14),
        (source(exports='export const capabilities = { llm: { models: ["ok", ""] } };'), "models[1]", 4, 38),
        (source(exports="export const timeoutMs = NaN;"), "NaN", 4, 14),
        (source().replace('"For a test."', "9n"), "BigInt", 2, 44),
        (
            source().replace("additionalProperties: false", "additionalProperties: true"),
            "must be false",
            3,
            46,
        ),
    ],
)
async def test_an_error_is_at_its_place(
    inspector: Inspector, tmp_path: Path, text: str, words: str, line: int, column: int
) -> None:
    error = await fault(inspector, write(tmp_path, text))
    assert error.code == "INVALID_TOOL"
    assert words in error.message
    assert error.at == SourcePosition(line, column)


async def test_nothing_is_there_while_a_module_is_evaluated(inspector: Inspector, tmp_path: Path) -> None:
    names = ["fetch", "process", "require", "WebAssembly", "SharedArrayBuffer", "Atomics", "ctx", "input"]
    checks = ",".join(f'typeof {name} === "undefined"' for name in names)
    text = source(exports=f'if (![{checks}].every(Boolean)) throw Error("something is in reach");')
    assert (await one(inspector, write(tmp_path, text))).tool is not None


@pytest.mark.parametrize("loop", ["for (;;);", "(async () => { while (true) await null; })();"])
async def test_a_top_level_that_never_ends_has_a_budget(
    inspector: Inspector, tmp_path: Path, loop: str
) -> None:
    began = time.monotonic()
    error = await fault(inspector, write(tmp_path, source(exports=loop)), budget_s=0.4)
    assert error.code == "INSPECTION_BUDGET"
    assert time.monotonic() - began < 3


async def test_a_top_level_that_eats_memory_is_a_file_error(inspector: Inspector, tmp_path: Path) -> None:
    text = source(exports="const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length));")
    error = await fault(inspector, write(tmp_path, text), budget_s=30)
    assert (error.code, "memory" in error.message) == ("INVALID_TOOL", True)


async def test_files_that_hang_do_not_take_the_time_of_those_that_do_not(
    inspector: Inspector, tmp_path: Path
) -> None:
    files = [write(tmp_path, source(exports="for (;;);"), f"hung-{n}") for n in range(9)]
    files.append(write(tmp_path, source(), "good"))
    began = time.monotonic()
    inspections = await inspector.inspect(files, budget_s=2.4)
    took = time.monotonic() - began
    assert [i.error.code if i.error else "ok" for i in inspections] == ["INSPECTION_BUDGET"] * 9 + ["ok"]
    assert took < 5


async def test_guests_end_with_the_inspection_unless_they_are_kept(
    inspector: Inspector, tmp_path: Path
) -> None:
    good, bad = write(tmp_path, source(), "good"), write(tmp_path, source(exports="throw 1"), "bad")
    opened = await inspector.open([good, bad], budget_s=8)
    kept = opened[0].guest
    assert kept is not None
    assert kept.alive
    assert opened[1].guest is None
    await close(opened)
    assert not kept.alive
    assert not is_process(kept.pid)


async def test_a_process_killed_from_outside_is_not_the_files_fault(
    engine_sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    class Shot(Watched):
        """The first guest is killed before it is used."""

        async def guest(self) -> Guest:
            guest = await super().guest()
            if len(self.given) == 1:
                os.kill(guest.pid, signal.SIGKILL)
            return guest

    shot = Shot(engine_sandbox)
    inspection = await one(Inspector(shot, SystemClock()), write(tmp_path, source()))
    assert inspection.tool is not None
    assert len(shot.given) == 2


async def test_a_file_that_crashes_its_process_twice_is_a_file_error(
    inspector: Inspector, tmp_path: Path
) -> None:
    text = source(exports="const b = []; for (;;) b.push(new ArrayBuffer(1 << 26));")
    error = await fault(inspector, write(tmp_path, text))
    assert error.code == "INVALID_TOOL"


async def test_a_lacking_sandbox_is_raised_and_not_told_of_a_file(tmp_path: Path) -> None:
    closed = BubblewrapSandbox()
    await closed.aclose()
    with pytest.raises(EnvironmentLacksError):
        await one(Inspector(closed, SystemClock()), write(tmp_path, source()))


async def test_a_byte_order_mark_is_no_fault(inspector: Inspector, tmp_path: Path) -> None:
    assert (await one(inspector, write(tmp_path, "\ufeff" + source()))).tool is not None
