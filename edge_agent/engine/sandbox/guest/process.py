"""The guest: one forked process, one isolate, one tool. It trusts the host and nothing else.

After the fork it makes the isolate, gives up descriptors, memory and system calls, says `ready`, and
then moves text between its socket and the harness. Nothing here understands a capability.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import socket
import time
from dataclasses import dataclass
from typing import NoReturn

from edge_agent.engine.sandbox.guest import confine, framing, module_form
from edge_agent.engine.sandbox.guest.v8 import Isolate, Program, ScriptError

DATA_LIMIT = 232 * 1024 * 1024


_TICK = b'{"t":"tick"}\nnull'
_WARM_TOOL = """export const metadata = { title: "w" };
export async function execute(ctx, input) { ctx.log("w", input); await null; return { a: ["w", 1, null] }; }
"""
_WARM_RUN = b"""{"t":"run","run":""}
{"context":{"now":"","agent":{},"session":{},"recentTurns":[],"camera":{},"capabilities":["db"]},"input":{"a":1}}"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the launcher gives every fork. `filter` is empty where seccomp is refused."""

    library: ctypes.CDLL
    harness: str
    filter: bytes
    parent: int


def serve(channel: socket.socket, settings: Settings) -> NoReturn:
    """Never returns; the process ends when the host closes the channel."""
    confine.die_with_parent(settings.parent)
    isolate = Isolate(settings.library, settings.harness)
    isolate.limit_memory()
    confine.close_all_but(channel.fileno())
    confine.limit_resources(data_bytes=DATA_LIMIT)
    if settings.filter:
        confine.install_filter(settings.filter)
    guest = _Guest(channel, isolate)
    guest.send({"t": "ready", "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss})
    isolate.drive(guest.serve())


class _Guest:
    def __init__(self, channel: socket.socket, isolate: Isolate) -> None:
        self._channel = channel
        self._isolate = isolate
        self._buffer = framing.FrameBuffer()
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._wake: float | None = None

    def send(self, header: dict[str, object], body: str = "null") -> None:
        self._channel.sendall(framing.pack(header, body))

    def serve(self) -> Program:
        """What the host asks for and what timers are due, until the host closes the channel."""
        try:
            while True:
                if self._wake is not None and not self._poll.poll(self._milliseconds_left()):
                    yield from self._pump(_TICK)
                    continue
                data = self._channel.recv(1 << 16)
                if not data:
                    os._exit(0)
                for payload in self._buffer.feed(data):
                    if payload.startswith(b'{"t":"load"'):
                        yield from self._load(payload)
                    elif payload.startswith(b'{"t":"warm"'):
                        yield from self._warm_up()
                    else:
                        yield from self._pump(payload)
        except ConnectionError:
            os._exit(0)

    def _milliseconds_left(self) -> float:
        return 0.0 if self._wake is None else max(0.0, (self._wake - time.monotonic()) * 1000.0)

    def _pump(self, payload: bytes) -> Program:
        self._wake = None
        try:
            self._forward((yield from self._isolate.pump(payload)))
        except ScriptError:
            self._die_of_memory()

    def _warm_up(self) -> Program:
        """Goes the way of a load and a run with a tool of our own, while nobody waits for it."""
        module = module_form.rewrite(_WARM_TOOL, "warm.js")
        function = yield from self._isolate.compile(module.code)
        yield from self._isolate.run_module(function)
        yield from self._isolate.pump(_WARM_RUN)

    def _load(self, payload: bytes) -> Program:
        header, body = framing.parse(payload)
        source: str = json.loads(body)
        try:
            module = module_form.rewrite(source, header["filename"])
        except module_form.RefusedError as refused:
            self._refuse(refused)
            return
        try:
            function = yield from self._isolate.compile(module.code)
        except ScriptError as error:
            if self._isolate.out_of_memory:
                self._die_of_memory()
            self._refuse(module_form.explain_v8(error.text, module.doubt, source))
            return
        if module.doubt is not None:
            self._isolate.drop(function)
            self._refuse(module.doubt)
            return
        try:
            self._forward((yield from self._isolate.run_module(function)))
        except ScriptError:
            self._die_of_memory()

    def _refuse(self, refused: module_form.RefusedError) -> None:
        self.send({"t": "refused", "message": refused.message[:2000], "at": [refused.line, refused.column]})

    def _forward(self, out: bytes) -> None:
        """`out` is a line with the milliseconds to the next timer (or nothing), then frames of two lines."""
        if self._isolate.out_of_memory:
            self._die_of_memory()
        if not out.isascii():
            out = out.decode("utf-8", "replace").encode("ascii", framing.ESCAPES)
        first, *lines = out.split(b"\n")
        self._wake = time.monotonic() + float(first) / 1000.0 if first else None
        if len(lines) < 2:
            return
        pieces = []
        for header, body in zip(lines[0::2], lines[1::2], strict=False):
            pieces += [framing.LENGTH.pack(len(header) + 1 + len(body)), header, b"\n", body]
        self._channel.sendall(b"".join(pieces))

    def _die_of_memory(self) -> NoReturn:
        self.send({"t": "died", "code": "MEMORY_LIMIT"})
        os._exit(3)
