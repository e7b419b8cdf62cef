# ruff: noqa: E501 - programs in text read best as they are
"""Births and deaths: deadlines, cancellation, kills from outside, replacement, nothing left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from edge_agent.engine.sandbox import bubblewrap, child, probe
from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest, GuestError
from edge_agent.engine.sandbox.launcher import package_folder
from edge_agent.engine.sandbox.sandbox import (
    VARIABLE,
    BubblewrapSandbox,
    ProcessSandbox,
    open_sandbox,
)
from edge_agent.errors import EnvironmentLacksError, UsageError

from .conftest import HEAD, Bench, tool

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("needs_bubblewrap")]

ONE = tool("return 1")


@pytest_asyncio.fixture(loop_scope="session")
async def own() -> AsyncIterator[Bench]:
    """A sandbox of the test's own, to be broken."""
    sandbox = BubblewrapSandbox()
    yield Bench(sandbox)
    await sandbox.aclose()


def descendants() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def gone(pid: int) -> bool:
    """Dead and reaped."""
    return not Path(f"/proc/{pid}").exists()


def namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/pid").readlink()


def dead(pid: int) -> bool:
    """Dead; whoever inherited it may not have reaped it (a container's first process often does not)."""
    return gone(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def until(holds: Callable[[], object]) -> None:
    """Waits, at most 5 s, for what no event tells of."""
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.002)


async def test_after_closing_nothing_is_left(quiet: None) -> None:
    before, open_before = descendants(), descriptors()
    sandbox = BubblewrapSandbox()
    bench = Bench(sandbox)
    held = [await sandbox.guest() for _ in range(4)]
    assert await bench.execute(ONE) == 1
    await sandbox.aclose()
    assert all(not guest.alive for guest in held)
    assert descendants() == before
    assert descriptors() == open_before
    with pytest.raises(EnvironmentLacksError):
        await sandbox.guest()
    await sandbox.aclose()


async def test_closing_while_a_run_goes_on_ends_it(own: Bench) -> None:
    guest = await own.sandbox.guest()
    await guest.load(tool("ctx.log('running'); await new Promise(() => {})"), "t.tool.js", timeout_s=5)
    running = asyncio.create_task(own.run(guest, timeout_s=30))
    await until(lambda: own.lines)
    await own.sandbox.aclose()
    with pytest.raises(GuestError) as caught:
        await asyncio.wait_for(running, 5)
    assert caught.value.code == "SANDBOX_CRASHED"


@pytest.mark.parametrize("body", ["for (;;);", "while (true) await null", "await ctx.wait(1e9)"])
async def test_the_deadline_kills(bench: Bench, body: str) -> None:
    guest = await bench.sandbox.guest()
    await guest.load(tool(body), "t.tool.js", timeout_s=5)
    started = time.monotonic()
    with pytest.raises(GuestError) as caught:
        await bench.run(guest, timeout_s=0.2)
    assert caught.value.code == "TIMEOUT"
    assert time.monotonic() - started >= 0.2
    assert not guest.alive
    assert gone(guest.pid)
    with pytest.raises(GuestError):
        await bench.run(guest)


async def test_the_deadline_covers_the_hosts_own_work_and_cancels_it(bench: Bench) -> None:
    cancelled = asyncio.Event()

    async def slow(_request: CapabilityRequest) -> CapabilityReply:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    error = await bench.failure("await ctx.db.query('a')", handler=slow, timeout_s=0.2)
    assert error.code == "TIMEOUT"
    assert cancelled.is_set()


async def test_returning_early_cancels_calls_still_open(bench: Bench) -> None:
    cancelled = asyncio.Event()

    async def slow(_request: CapabilityRequest) -> CapabilityReply:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    assert await bench.call("ctx.db.query('a'); await ctx.wait(20); return 5", handler=slow) == 5
    assert cancelled.is_set()


async def test_cancelling_the_awaiting_task_kills_and_cancels(bench: Bench) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(_request: CapabilityRequest) -> CapabilityReply:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    guest = await bench.sandbox.guest()
    await guest.load(tool("await ctx.db.query('a')"), "t.tool.js", timeout_s=5)
    running = asyncio.create_task(bench.run(guest, handler=slow, timeout_s=30))
    await asyncio.wait_for(entered.wait(), 5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cancelled.is_set()
    assert not guest.alive
    assert gone(guest.pid)


async def test_cancelling_a_load_kills(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    loading = asyncio.create_task(guest.load((HEAD + "for (;;);").encode(), "t.tool.js", timeout_s=30))
    await asyncio.sleep(0)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    assert gone(guest.pid)


async def test_a_guest_killed_from_outside_is_a_crash_and_the_next_call_works(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    await guest.load(tool("ctx.log('in'); await new Promise(() => {})"), "t.tool.js", timeout_s=5)
    running = asyncio.create_task(bench.run(guest, timeout_s=30))
    await until(lambda: bench.lines)
    os.kill(guest.pid, signal.SIGKILL)
    with pytest.raises(GuestError, match="SIGKILL") as caught:
        await asyncio.wait_for(running, 5)
    assert caught.value.code == "SANDBOX_CRASHED"
    assert await bench.execute(ONE) == 1


async def test_a_killed_launcher_is_replaced(own: Bench) -> None:
    guest = await own.sandbox.guest()
    await guest.load(tool("await new Promise(() => {})"), "t.tool.js", timeout_s=5)
    running = asyncio.create_task(own.run(guest, timeout_s=30))
    parent = psutil.Process(guest.pid).ppid()
    os.kill(parent, signal.SIGKILL)
    with pytest.raises(GuestError) as caught:
        await asyncio.wait_for(running, 5)
    assert caught.value.code == "SANDBOX_CRASHED"
    assert gone(guest.pid)
    assert await own.execute(ONE) == 1


async def test_a_killed_spare_is_not_handed_out(own: Bench) -> None:
    first = await own.sandbox.guest()
    await until(lambda: own.sandbox._spares)
    spare = own.sandbox._spares[0]
    os.kill(spare.pid, signal.SIGKILL)
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: not spare.alive)
    for _ in range(3):
        assert await own.execute(ONE) == 1


async def test_killing_twice_and_a_dead_one_is_fine(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    await asyncio.gather(guest.kill(), guest.kill())
    await guest.kill()
    assert not guest.alive
    with pytest.raises(GuestError) as caught:
        await guest.load(ONE, "t.tool.js", timeout_s=1)
    assert caught.value.code == "SANDBOX_CRASHED"


async def test_many_guests_at_once(bench: Bench) -> None:
    got = await asyncio.gather(
        *(bench.call("await ctx.wait(5); return input", argument=i) for i in range(24))
    )
    assert got == list(range(24))


async def test_a_busy_guest_does_not_hold_up_another(bench: Bench) -> None:
    busy = asyncio.create_task(bench.failure("for (;;) ctx.log('x')", timeout_s=1.5))
    assert await bench.call("return (await ctx.db.query('a'))[0]", timeout_s=1.4) == "a"
    assert (await busy).code in ("TIMEOUT", "MEMORY_LIMIT")


async def test_without_seccomp_each_guest_has_a_bubblewrap_of_its_own(quiet: None) -> None:
    before = descendants()
    sandbox = BubblewrapSandbox(use_seccomp=False)
    assert sandbox.status.kind == "bubblewrap"
    assert not sandbox.status.seccomp
    assert sandbox.status.fix
    bench = Bench(sandbox)
    first, second = await sandbox.guest(), await sandbox.guest()
    assert namespace(first.pid) != namespace(second.pid)
    assert await bench.execute(ONE) == 1
    assert (await bench.failure("for (;;);", timeout_s=0.2)).code == "TIMEOUT"
    await first.kill()
    await sandbox.aclose()
    assert descendants() == before


async def test_the_process_sandbox_runs_the_same_guest_and_says_that_it_is_none(quiet: None) -> None:
    before, open_before = descendants(), descriptors()
    sandbox = open_sandbox({VARIABLE: "process"})
    assert isinstance(sandbox, ProcessSandbox)
    assert sandbox.status.kind == "process"
    assert "NOT SANDBOXED" in sandbox.status.label
    guest = await sandbox.guest()
    await guest.load(ONE, "t.tool.js", timeout_s=5)
    assert namespace(guest.pid) == namespace(os.getpid())
    await guest.kill()
    assert gone(guest.pid)
    await sandbox.aclose()
    assert descendants() == before
    assert descriptors() == open_before


async def test_waiting_for_another_run_counts_and_harms_it_not(bench: Bench) -> None:
    guest = await bench.sandbox.guest()
    try:
        await guest.load(tool("await ctx.wait(input); return input"), "t.tool.js", timeout_s=5)
        first = asyncio.create_task(bench.run(guest, 400, run_id="one"))
        await asyncio.sleep(0)
        with pytest.raises(GuestError) as caught:
            await bench.run(guest, 1, timeout_s=0.05, run_id="two")
        assert caught.value.code == "TIMEOUT"
        assert await first == 400
        assert await bench.run(guest, 2, run_id="three") == 2
    finally:
        await guest.kill()


AS_A_USER = """
import asyncio, json, os
from edge_agent.engine.sandbox.sandbox import open_sandbox
async def main():
    sandbox = open_sandbox({})
    assert sandbox.status.seccomp, sandbox.status
    guest = await sandbox.guest()
    await guest.load(b"export const execute = () => 42", "t.tool.js", timeout_s=10)
    context = json.dumps({"now": "", "agent": {}, "session": {}, "recentTurns": None, "camera": None, "capabilities": []})
    async def handler(request): raise AssertionError
    print(os.getuid(), await guest.run("r", context, "null", timeout_s=10, on_request=handler, on_note=print))
    await sandbox.aclose()
asyncio.run(main())
"""


async def test_as_an_ordinary_user_and_with_the_distributions_python() -> None:
    python = "/usr/bin/python3"
    here = ".".join(map(str, sys.version_info[:2]))
    if os.getuid() != 0 or shutil.which(python) is None:
        pytest.skip("needs root, to become somebody else, and /usr/bin/python3")
    asked = [python, "-c", "import sys; print('.'.join(map(str, sys.version_info[:2])))"]
    theirs = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, check=True)
    if theirs.stdout.strip() != here:
        pytest.skip(f"/usr/bin/python3 is not {here}, for which the packages are installed")
    packages = package_folder("py_mini_racer").parent
    repository = Path(bubblewrap.__file__).parents[3]
    done = await asyncio.to_thread(
        subprocess.run,
        [python, "-B", "-c", AS_A_USER],
        user=65534,
        group=65534,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{repository}:{packages}"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "Permission denied" in done.stderr and done.returncode != 0:
        pytest.skip("the repository cannot be read by an ordinary user here")
    assert (done.stdout.strip(), done.returncode) == ("65534 42", 0), done.stderr


@pytest.mark.parametrize("value", ["", "bubblewrap", " bubblewrap "])
async def test_bubblewrap_is_the_default(value: str) -> None:
    assert isinstance(open_sandbox({VARIABLE: value}), BubblewrapSandbox)
    assert isinstance(open_sandbox({}), BubblewrapSandbox)


@pytest.mark.parametrize("value", ["none", "PROCESS", "off", "0"])
async def test_an_unknown_setting_is_an_error_and_no_fallback(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_sandbox({VARIABLE: value})
    assert VARIABLE in caught.value.message
    assert caught.value.hint


async def test_without_bubblewrap_tools_are_unavailable_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    sandbox = BubblewrapSandbox()
    assert sandbox.status.kind == "unavailable"
    assert "apt install bubblewrap" in (sandbox.status.fix or "")
    with pytest.raises(EnvironmentLacksError) as caught:
        await sandbox.guest()
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    assert "apt install bubblewrap" in (caught.value.hint or "")
    await sandbox.aclose()


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("bwrap: Creating new namespace failed: Operation not permitted", "namespaces are turned off"),
        (
            "bwrap: No permissions to create new namespace, likely because the kernel does not allow",
            "turned off",
        ),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("bwrap: Unknown option --disable-userns", "older than 0.8"),
        ("something else", "something else"),
    ],
)
async def test_a_bubblewrap_that_fails_is_explained(
    complaint: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bubblewrap, "_in_container", lambda: False)
    status = await asyncio.to_thread(probe.probe)
    assert status.kind == "unavailable"
    assert words in (status.reason or "")
    assert status.fix
    sandbox = BubblewrapSandbox()
    with pytest.raises(EnvironmentLacksError, match=words.split()[0]):
        await sandbox.guest()
    await sandbox.aclose()


async def test_in_a_container_the_container_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_in_container", lambda: True)
    reason, fix = bubblewrap.explain("bwrap: No permissions to create new namespace")
    assert "container" in reason
    assert "--security-opt" in fix


CHILD_OF_A_DYING_HOST = """
import os, sys
from edge_agent.engine.sandbox.bubblewrap import RootSpec
from edge_agent.engine.sandbox.child import Child
reader, writer = os.pipe()
code = f"import os, select; os.write({writer}, b'.'); select.select([], [], [])"
made = Child.spawn(RootSpec(), ["-c", code], pass_fds=[writer])
os.read(reader, 1)
print(made.pid, flush=True)
os.kill(os.getpid(), 9)
"""
SANDBOX_OF_A_DYING_HOST = """
import asyncio, os, signal
from edge_agent.engine.sandbox.sandbox import open_sandbox
async def main():
    sandbox = open_sandbox({{"WORLDAGENTS_TOOL_SANDBOX": "{kind}"}})
    guest = await sandbox.guest()
    print(guest.pid, flush=True)
    asyncio.create_task(guest.load(b"for (;;);", "t.tool.js", timeout_s=60))
    await asyncio.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "host",
    [
        CHILD_OF_A_DYING_HOST,
        SANDBOX_OF_A_DYING_HOST.format(kind="bubblewrap"),
        SANDBOX_OF_A_DYING_HOST.format(kind="process"),
    ],
    ids=["child", "busy guest", "busy guest in a process"],
)
async def test_children_die_with_a_killed_host(host: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", host], capture_output=True, timeout=30
    )
    pid = int(done.stdout)
    await until(lambda: dead(pid))


async def test_a_child_is_killed_and_reaped(quiet: None) -> None:
    before, open_before = descendants(), descriptors()
    made = await child.Child.spawn_async(
        bubblewrap.RootSpec(), ["-c", "import select; select.select([], [], [])"]
    )
    assert made.alive
    await made.aclose()
    assert not made.alive
    assert gone(made.pid)
    await made.aclose()
    assert descendants() == before
    assert descriptors() == open_before
    short = child.Child.spawn(bubblewrap.RootSpec(), ["-c", "raise SystemExit(3)"])
    await asyncio.wait_for(short.ended(), 5)
    short.close()
    assert short.returncode == 3
