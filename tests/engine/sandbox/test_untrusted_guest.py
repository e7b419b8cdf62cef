"""A guest that says what it likes: the host's side against a peer that forges every frame."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from edge_agent.engine.sandbox.api import CapabilityReply, CapabilityRequest, GuestError, GuestNote
from edge_agent.engine.sandbox.guest import framing
from edge_agent.engine.sandbox.launcher import Ending, Fork
from edge_agent.engine.sandbox.remote import RemoteGuest

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Forger:
    """A `RemoteGuest` whose process is an idle `sleep` and whose words are the test's."""

    guest: RemoteGuest
    channel: socket.socket
    process: subprocess.Popen[bytes]
    requests: list[CapabilityRequest] = field(default_factory=list)
    notes: list[GuestNote] = field(default_factory=list)

    async def say(self, header: dict[str, Any], body: str = "null") -> None:
        await self.raw(framing.pack(header, body))

    async def raw(self, data: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self.channel, data)
        except (BrokenPipeError, ConnectionResetError):
            assert not self.guest.alive or self.guest._verdict is not None

    async def hear(self) -> tuple[dict[str, Any], str]:
        size = await self._exactly(framing.LENGTH.size)
        return framing.parse(await self._exactly(framing.LENGTH.unpack(size)[0]))

    async def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = await asyncio.get_running_loop().sock_recv(self.channel, size - len(data))
            assert piece
            data += piece
        return data

    def start(self, timeout_s: float = 5.0) -> asyncio.Task[str]:
        async def handler(request: CapabilityRequest) -> CapabilityReply:
            self.requests.append(request)
            return CapabilityReply(True, value_json='"é"')

        return asyncio.create_task(
            self.guest.run(
                "r1", "{}", "null", timeout_s=timeout_s, on_request=handler, on_note=self.notes.append
            )
        )


@pytest_asyncio.fixture(loop_scope="session")
async def forger() -> AsyncIterator[Forger]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    process = subprocess.Popen(["sleep", "60"])  # noqa: ASYNC220 - does not wait
    pidfd = os.pidfd_open(process.pid)
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Ending] = loop.create_future()
    watched = os.dup(pidfd)
    loop.add_reader(watched, lambda: ended.done() or ended.set_result(Ending(process.wait(), 0)))  # type: ignore[func-returns-value]
    made = Forger(RemoteGuest(Fork(ours, pidfd, process.pid, ended), lambda _guest: None), theirs, process)
    await made.say({"t": "ready", "peak": 1})
    await made.guest.ready()
    yield made
    await made.guest.kill()
    loop.remove_reader(watched)
    os.close(watched)
    theirs.close()
    process.wait()


async def crash(running: asyncio.Task[str]) -> str:
    with pytest.raises(GuestError) as caught:
        await asyncio.wait_for(running, 5)
    return caught.value.code


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x05[]\n12",
        b"\x00\x00\x00\x04\xff\xff\n1",
        b"\x00\x00\x00\x00",
        framing.LENGTH.pack(40_002) + b"[" * 40_000 + b"\n1",
    ],
)
async def test_bytes_that_are_no_frame_end_the_guest(forger: Forger, data: bytes) -> None:
    running = forger.start()
    await forger.raw(data)
    assert await crash(running) == "SANDBOX_CRASHED"
    assert not forger.guest.alive


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ({"t": "call", "run": "r1", "id": "x", "method": "db.query"}, "[]"),
        ({"t": "call", "run": "r1", "id": 1, "method": 5}, "[]"),
        ({"t": "call", "run": "r1", "id": 1, "method": "os.system"}, "[]"),
        ({"t": "call", "run": "r1", "id": 1, "method": "db.query"}, "{}"),
        ({"t": "call", "run": "r1", "id": 1, "method": "db.query"}, "[NaN]"),
        ({"t": "call", "run": "r1", "id": 1, "method": "db.query"}, "[" * 300 + "]" * 300),
        ({"t": "call", "run": "r1", "id": 1, "method": "db.query"}, "nonsense"),
        ({"t": "log", "run": "r1", "level": "shout", "data": False}, '["x", null]'),
        ({"t": "log", "run": "r1", "level": "info", "data": False}, "5"),
        ({"t": "log", "run": "r1", "level": "info"}, "[1, 2]"),
        ({"t": "progress", "run": "r1", "fraction": "much"}, '"x"'),
        ({"t": "progress", "run": "r1", "fraction": True}, '"x"'),
        ({"t": "reply", "run": "r1"}, "1"),
        ({"t": ["x"], "run": "r1"}, "1"),
        ({"run": "r1"}, "1"),
    ],
)
async def test_frames_against_the_rules_end_the_guest(
    forger: Forger, header: dict[str, Any], body: str
) -> None:
    running = forger.start()
    await forger.say(header, body)
    assert await crash(running) == "SANDBOX_CRASHED"
    assert forger.requests == []


async def test_frames_of_another_run_are_not_heard(forger: Forger) -> None:
    running = forger.start()
    for kind in ("call", "result", "failed", "log", "progress"):
        await forger.say(
            {"t": kind, "run": "r0", "id": 1, "method": "db.query", "level": "info"}, '["x", null]'
        )
    await forger.say({"t": "result", "run": "r1"}, "7")
    assert await running == "7"
    assert forger.requests == []
    assert forger.notes == []


async def test_the_host_counts_calls_itself(forger: Forger) -> None:
    running = forger.start()
    for number in range(40):
        await forger.say({"t": "call", "run": "r1", "id": number, "method": "db.query"}, "[]")
    await forger.hear()
    replies = [(await forger.hear())[0] for _ in range(40)]
    assert sum(reply["ok"] for reply in replies) == 32
    assert {reply.get("code") for reply in replies if not reply["ok"]} == {"CAPABILITY_LIMIT"}
    await forger.say({"t": "result", "run": "r1"}, "1")
    await running
    assert len(forger.requests) == 32


async def test_the_host_counts_lines_and_steps_itself(forger: Forger) -> None:
    running = forger.start()
    for number in range(1500):
        await forger.say({"t": "log", "run": "r1", "level": "info", "data": True}, f'["l{number}", {{}}]')
        await forger.say({"t": "progress", "run": "r1", "fraction": 99}, '"x"')
    await forger.say({"t": "result", "run": "r1"}, "1")
    await running
    lines = [note for note in forger.notes if note.kind == "log"]
    steps = [note for note in forger.notes if note.kind == "progress"]
    assert len(lines) == 101
    assert len(steps) == 1000
    assert {note.fraction for note in steps} == {1.0}


async def test_a_flood_of_frames_ends_the_guest(forger: Forger) -> None:
    running = forger.start()
    frame = framing.pack({"t": "log", "run": "r1", "level": "info", "data": False}, '["x", null]')
    for _ in range(50):
        await forger.raw(frame * 100)
    assert await crash(running) == "SANDBOX_CRASHED"


async def test_a_flood_of_bytes_ends_the_guest(forger: Forger) -> None:
    running = forger.start()
    frame = framing.pack({"t": "log", "run": "r0"}, '"' + "x" * 2_000_000 + '"')
    for _ in range(34):
        await forger.raw(frame)
    assert await crash(running) == "SANDBOX_CRASHED"


async def test_a_result_is_checked_again(forger: Forger) -> None:
    for body, code in (
        ("nonsense", "INVALID_RESULT"),
        ("[" * 300 + "]" * 300, "INVALID_RESULT"),
        (json.dumps("x" * 262_143), "RESULT_TOO_LARGE"),
    ):
        running = forger.start()
        await forger.say({"t": "result", "run": "r1"}, body)
        with pytest.raises(GuestError) as caught:
            await running
        assert caught.value.code == code


@pytest.mark.parametrize("code", ["TIMEOUT", "SOURCE_CHANGED", "MODEL_ERROR", "x", 5, None])
async def test_a_guest_cannot_claim_the_hosts_codes(forger: Forger, code: object) -> None:
    running = forger.start()
    await forger.say({"t": "failed", "run": "r1", "code": code}, '{"message": "m", "stack": 5}')
    with pytest.raises(GuestError) as caught:
        await running
    assert (caught.value.code, caught.value.message, caught.value.line) == ("TOOL_ERROR", "m", None)


async def test_only_the_first_end_counts(forger: Forger) -> None:
    running = forger.start()
    await forger.raw(
        framing.pack({"t": "result", "run": "r1"}, "1")
        + framing.pack({"t": "failed", "run": "r1", "code": "TOOL_ERROR"}, "{}")
        + framing.pack({"t": "result", "run": "r1"}, "2")
    )
    assert await running == "1"


async def test_words_out_of_turn_are_ignored_and_a_flood_of_them_ends_the_guest(forger: Forger) -> None:
    for _ in range(10):
        await forger.say({"t": "result", "run": "r1"}, "1")
    while forger.guest._stray_frames < 10:  # noqa: ASYNC110 - nothing tells of an ignored frame
        await asyncio.sleep(0)
    running = forger.start()
    await forger.say({"t": "result", "run": "r1"}, "5")
    assert await running == "5"
    for _ in range(100):
        await forger.say({"t": "loaded"}, "1")
    await asyncio.wait_for(asyncio.wait([forger.guest._fork.ended]), 5)
    assert not forger.guest.alive


async def test_replies_are_ascii_whatever_the_handler_gives(forger: Forger) -> None:
    running = forger.start()
    await forger.say({"t": "call", "run": "r1", "id": 1, "method": "db.query"}, "[]")
    await forger.hear()
    header, body = await forger.hear()
    assert header == {"t": "reply", "run": "r1", "id": 1, "ok": True}
    assert body == '"\\u00e9"'
    await forger.say({"t": "result", "run": "r1"}, "1")
    await running


async def test_a_guest_that_does_not_listen_holds_back_only_itself(forger: Forger) -> None:
    running = forger.start(timeout_s=0.5)
    for number in range(32):
        await forger.say({"t": "call", "run": "r1", "id": number, "method": "db.query"}, "[]")
    with pytest.raises(GuestError) as caught:
        await running
    assert caught.value.code == "TIMEOUT"
