"""Tools in the sandbox against the same tool in node under Bubblewrap, in the same run.

The tool makes three capability calls. Node gets the same isolation and speaks JSON lines over pipes.
Times are medians of interleaved rounds, so that what else the machine does falls on both.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from device.clock import SystemClock
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest, GuestError, GuestNote
from edge_agent.engine.sandbox.launcher import Launcher
from edge_agent.engine.sandbox.remote import RemoteGuest
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import EnvironmentLacksError
from edge_agent.events import Spine
from edge_agent.home import Home

Figure = dict[str, Any]

TOOL = """
export const schemaVersion = "worldagents.tool.v1";
export const metadata = { title: "Bench", description: "Three capability calls" };
export const inputSchema = {
  type: "object", properties: { q: { type: "string" } }, additionalProperties: false,
};
export async function execute(ctx, input) {
  const products = await ctx.db.query("catalog", "select * from products where name match ?", [input.q]);
  const prices = await ctx.db.query("catalog", "select * from prices where id = ?", [products.rows[0].id]);
  const note = await ctx.files.readText("notes", "a.md");
  return { name: products.rows[0].name, price: prices.rows[0].price, note: note.length };
}
"""
NODE_RUNNER = """
import { createInterface } from "node:readline";
const waiting = new Map(); let next = 0, module;
const call = (method) => (...args) => new Promise((resolve) => {
  waiting.set(++next, resolve);
  process.stdout.write(JSON.stringify({ id: next, method, args }) + "\\n");
});
const ctx = { db: { query: call("db.query") }, files: { readText: call("files.readText") } };
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if ("source" in message)
    module = await import("data:text/javascript," + encodeURIComponent(message.source));
  else if ("input" in message) module.execute(ctx, message.input).then((result) =>
    process.stdout.write(JSON.stringify({ result }) + "\\n"));
  else { waiting.get(message.id)(message.value); waiting.delete(message.id); }
}
"""
CONTEXT = json.dumps(
    {
        "now": "2026-12-01T00:00:00Z",
        "agent": {"id": "a", "name": "A"},
        "session": {"id": "s", "mode": "demo"},
        "recentTurns": None,
        "camera": None,
        "capabilities": ["db", "files"],
    }
)
INPUT = json.dumps({"q": "jacket"})
ANSWER = {"rows": [{"id": i, "name": f"Jacket {i}", "price": 59.5} for i in range(5)], "rowCount": 5}
ROUNDS = 15
WARM_CALLS = 1_500
SOAK_CALLS = 15_000
PAGE = 16
KILLS = 15
ALIVE = 64


def measure() -> dict[str, Figure]:
    """Flat figures `engine.…`; values are None with a reason where the sandbox cannot start."""
    try:
        return asyncio.run(_measure())
    except EnvironmentLacksError as lack:
        return {"engine.sandbox": {"value": None, "unit": "", "aim": None, "ok": False, "reason": str(lack)}}


async def _measure() -> dict[str, Figure]:
    sandbox = BubblewrapSandbox()
    try:
        figures = await _first_results(sandbox)
        figures |= await _warm_calls(sandbox)
        figures |= await _catalog_page(sandbox)
        figures |= await _kills(sandbox)
        figures |= await _attacks(sandbox)
        figures |= await _many(sandbox)
        figures |= await _soak(sandbox)
    finally:
        await sandbox.aclose()
    return figures


async def _handler(request: CapabilityRequest) -> CapabilityReply:
    return CapabilityReply(True, value_json=json.dumps("note" if "files" in request.method else ANSWER))


def _ignore(_note: GuestNote) -> None:
    return None


async def _load(guest: Any) -> None:
    await guest.load(TOOL.encode(), "bench.tool.js", timeout_s=10)


async def _call(guest: Any, run_id: str = "r") -> str:
    text: str = await guest.run(run_id, CONTEXT, INPUT, timeout_s=30, on_request=_handler, on_note=_ignore)
    return text


def _node() -> Path:
    return Path(str(shutil.which("node"))).resolve()


class Node:
    """Node in Bubblewrap, one tool, JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, script: Path) -> Node:
        command = [
            *(
                "bwrap",
                "--unshare-all",
                "--unshare-user",
                "--disable-userns",
                "--uid",
                "65534",
                "--gid",
                "65534",
            ),
            *("--cap-drop", "ALL", "--clearenv", "--new-session", "--die-with-parent"),
            *(
                "--ro-bind",
                "/usr",
                "/usr",
                "--ro-bind-try",
                "/lib",
                "/lib",
                "--ro-bind-try",
                "/lib64",
                "/lib64",
            ),
            *("--proc", "/proc", "--dev", "/dev", "--ro-bind", str(_node()), "/node"),
            *("--ro-bind", str(script), "/runner.mjs", "--", "/node", "/runner.mjs"),
        ]
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def call(self, *, load: bool = False) -> object:
        if load:
            self._say({"source": TOOL})
        self._say({"input": json.loads(INPUT)})
        assert self._process.stdout is not None
        while True:
            message = json.loads(await self._process.stdout.readline())
            if "result" in message:
                return message["result"]
            reply = await _handler(CapabilityRequest(message["method"], json.dumps(message["args"])))
            self._say({"id": message["id"], "value": json.loads(reply.value_json or "null")})

    def _say(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def stop(self) -> None:
        self._process.kill()
        await self._process.communicate()


async def _first_results(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    launcher = await Launcher.start("bubblewrap", use_seccomp=True)
    cold, spare, node, private = [], [], [], []
    have_node = shutil.which("node") is not None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "runner.mjs"
        script.write_text(NODE_RUNNER)
        script.chmod(0o644)
        for _ in range(ROUNDS):
            await (await sandbox.guest()).kill()
            await asyncio.sleep(0.1)  # a spare is made 30 ms after one was taken
            started = time.perf_counter()
            guest = RemoteGuest(await launcher.fork(), lambda _guest: None)
            await guest.ready()
            await _load(guest)
            expected = await _call(guest)
            cold.append(time.perf_counter() - started)
            private.append(psutil.Process(guest.pid).memory_full_info().uss / 1e6)
            await guest.kill()
            started = time.perf_counter()
            from_spare = await sandbox.guest()
            await _load(from_spare)
            await _call(from_spare)
            spare.append(time.perf_counter() - started)
            await from_spare.kill()
            if have_node:
                started = time.perf_counter()
                peer = await Node.start(script)
                assert await peer.call(load=True) == json.loads(expected)
                node.append(time.perf_counter() - started)
                await peer.stop()
    await launcher.aclose()
    median = {name: statistics.median(times) * 1e3 for name, times in (("cold", cold), ("spare", spare))}
    figures = {
        "engine.first_result": _figure(median["cold"], "ms", None, True),
        "engine.first_result_from_spare": _figure(median["spare"], "ms", None, True),
        "engine.idle_private_memory": _figure(
            statistics.median(private), "MB", 8, statistics.median(private) <= 8
        ),
    }
    for key, ours, aim in (
        ("engine.first_result_ratio_vs_node", median["cold"], 4),
        ("engine.first_result_from_spare_ratio_vs_node", median["spare"], 12),
    ):
        if node:
            ratio = statistics.median(node) * 1e3 / ours
            figures[key] = _figure(ratio, "×", aim, ratio >= aim, peer=statistics.median(node) * 1e3)
        else:
            figures[key] = _missing("×", aim, "node is not installed")
    return figures


async def _warm_calls(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    guest = await sandbox.guest()
    await _load(guest)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "runner.mjs"
        script.write_text(NODE_RUNNER)
        script.chmod(0o644)
        peer = await Node.start(script) if shutil.which("node") else None
        if peer is not None:
            await peer.call(load=True)
        for number in range(WARM_CALLS):
            started = time.perf_counter()
            await _call(guest, f"w{number}")
            ours.append((time.perf_counter() - started) * 1e3)
            if peer is not None:
                started = time.perf_counter()
                await peer.call()
                theirs.append((time.perf_counter() - started) * 1e3)
        if peer is not None:
            await peer.stop()
    await guest.kill()
    figures = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        value = _quantile(ours, share)
        if theirs:
            aim = _quantile(theirs, share)
            figures[f"engine.warm_call_{name}"] = _figure(value, "ms", aim, value <= aim, peer=aim)
        else:
            figures[f"engine.warm_call_{name}"] = _missing("ms", None, "node is not installed")
    return figures


async def _catalog_page(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    """A whole page as `tools list` asks for it."""
    clock = SystemClock()
    pages: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        agent = home.agent("bench")
        agent.tools.mkdir(parents=True)
        ids = [f"t{number:02}" for number in range(PAGE)]
        for tool_id in ids:
            (agent.tools / f"{tool_id}.tool.js").write_text(TOOL)
        agent.config.write_text(json.dumps({"id": "bench", "name": "Bench", "tools": ids}))
        engine = ToolEngine(home, sandbox, Spine(clock), clock)
        for _ in range(5):
            started = time.perf_counter()
            page = await engine.catalog(agent)
            pages.append((time.perf_counter() - started) * 1e3)
            assert [entry.error for entry in page.entries] == [None] * PAGE
    value = statistics.median(pages)
    return {"engine.catalog_page": _figure(value, "ms", 250, value <= 250)}


async def _kills(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    late = []
    for number in range(KILLS):
        guest = await sandbox.guest()
        body = ("for (;;);", "while (true) await null;", "await ctx.wait(1e9);")[number % 3]
        await guest.load(
            f"export async function execute(ctx) {{ {body} }}".encode(), "k.tool.js", timeout_s=5
        )
        pidfd = os.pidfd_open(guest.pid)
        died: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(pidfd, _note_death, pidfd, died)
        started = time.perf_counter()
        try:
            await guest.run("k", CONTEXT, "null", timeout_s=0.1, on_request=_handler, on_note=_ignore)
        except GuestError as error:
            assert error.code == "TIMEOUT", error
        late.append((await died - started - 0.1) * 1e3)
        os.close(pidfd)
    return {
        "engine.kill_lateness_max": _figure(max(late), "ms", 25, max(late) <= 25),
        "engine.kill_lateness_p50": _figure(statistics.median(late), "ms", 25, True),
    }


def _note_death(pidfd: int, died: asyncio.Future[float]) -> None:
    asyncio.get_running_loop().remove_reader(pidfd)
    died.set_result(time.perf_counter())


async def _attacks(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    """The largest resident memory that any of these reached, as the kernel counted it."""
    peak = 0.0
    for body in (
        "const a = []; for (;;) a.push(new Array(1000).fill(1.5))",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
        "const a = []; for (let i = 0;; i++) a.push(('x' + i).repeat(1000))",
        "const a = []; for (;;) { a.push(new Array(100).fill({})); a.push(new Uint8Array(1 << 16).fill(1)) }",
    ):
        guest = await sandbox.guest()
        assert isinstance(guest, RemoteGuest)
        await guest.load(
            f"export async function execute(ctx) {{ {body} }}".encode(), "a.tool.js", timeout_s=5
        )
        try:
            await guest.run("a", CONTEXT, "null", timeout_s=20, on_request=_handler, on_note=_ignore)
        except GuestError:
            await guest.kill()
        peak = max(peak, guest.ending().peak_kib * 1024 / 1e6)
    return {"engine.peak_memory_under_attack": _figure(peak, "MB", 300, peak <= 300)}


async def _many(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    """64 tools alive at once: how long a call takes while all of them are called in turn and at once."""
    guests = [await sandbox.guest() for _ in range(ALIVE)]
    for guest in guests:
        await _load(guest)
    times: list[float] = []

    async def call(guest: Any) -> None:
        started = time.perf_counter()
        await _call(guest)
        times.append((time.perf_counter() - started) * 1e3)

    for _ in range(5):
        await asyncio.gather(*(call(guest) for guest in guests))
    await asyncio.gather(*(guest.kill() for guest in guests))
    value = _quantile(times, 0.99)
    return {"engine.call_p99_with_64_tools_at_once": _figure(value, "ms", 500, value <= 500)}


async def _soak(sandbox: BubblewrapSandbox) -> dict[str, Figure]:
    """Growth of the guest's own memory, of ours, and of descriptors, after the first 1,000 of all calls."""
    guest = await sandbox.guest()
    await _load(guest)
    host, inside = psutil.Process(), psutil.Process(guest.pid)
    before = (0.0, 0.0, 0)
    for number in range(SOAK_CALLS):
        if number == 1_000:
            before = (inside.memory_full_info().uss, host.memory_full_info().uss, host.num_fds())
        await _call(guest, f"s{number}")
    after = (inside.memory_full_info().uss, host.memory_full_info().uss, host.num_fds())
    await guest.kill()
    growth = (after[0] - before[0]) / 1e6
    ours = (after[1] - before[1]) / 1e6
    return {
        "engine.soak_growth_guest": _figure(growth, "MB", 4, growth <= 4),
        "engine.soak_growth_host": _figure(ours, "MB", 2, ours <= 2),
        "engine.soak_growth_descriptors": _figure(after[2] - before[2], "", 0, after[2] <= before[2]),
    }


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _figure(value: float, unit: str, aim: float | None, ok: bool, peer: float | None = None) -> Figure:
    figure: Figure = {"value": round(value, 3), "unit": unit, "aim": None if aim is None else round(aim, 3)}
    figure["ok"] = bool(ok)
    if peer is not None:
        figure["peer"] = round(peer, 3)
    return figure


def _missing(unit: str, aim: float | None, reason: str) -> Figure:
    return {"value": None, "unit": unit, "aim": aim, "ok": False, "reason": reason}
