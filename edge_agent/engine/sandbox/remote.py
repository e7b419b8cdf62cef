"""A guest as the host holds it: one operation at a time, a deadline on each, a kill that is sure."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
from collections.abc import Callable
from typing import Any

from edge_agent.engine.sandbox import untrusted
from edge_agent.engine.sandbox.api import GuestError, NoteHandler, RequestHandler
from edge_agent.engine.sandbox.guest import framing
from edge_agent.engine.sandbox.launcher import Ending, Fork
from edge_agent.engine.sandbox.run import Run
from edge_agent.engine.sandbox.wire import Wire

_READY_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0
_MEMORY_GROWTH_KIB = 48 * 1024
"""A crash after growing by this much was for want of memory."""
_CRASH_SIGNALS = frozenset({signal.SIGABRT, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS})
_LOAD_CODES = frozenset({"INVALID_TOOL", "MEMORY_LIMIT"})
_UNSAFE_IN_NAME = re.compile(r"[^\w.-]", re.ASCII)


class RemoteGuest:
    """Implements `api.Guest` over a fork of the launcher."""

    def __init__(self, fork: Fork, on_gone: Callable[[RemoteGuest], None]) -> None:
        self._fork = fork
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._loading: asyncio.Future[str] | None = None
        self._run: Run | None = None
        self._turn = asyncio.Lock()
        self._ready_kib = 0
        self._stray_frames = 0
        self._filename = "tool.js"
        self._verdict: GuestError | None = None
        self._closing: asyncio.Task[None] | None = None
        self._gone = False
        self._death = select.poll()
        self._death.register(fork.pidfd, select.POLLIN)
        self._wire = Wire(fork.channel, self._take, self._closed)

    @property
    def pid(self) -> int:
        return self._fork.pid

    @property
    def alive(self) -> bool:
        if self._gone or self._fork.ended.done():
            return False
        # A pidfd is readable from the moment of death, which the launcher tells a little later.
        return not self._death.poll(0)

    def ending(self) -> Ending:
        """How the process ended; only once it has (`kill` returned)."""
        return self._fork.ended.result()

    async def ready(self) -> None:
        """Returns when the guest has made its isolate and confined itself. Raises GuestError."""
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), _READY_TIMEOUT_S)
        except TimeoutError as failure:
            await self.kill()
            raise GuestError("SANDBOX_CRASHED", "The tool's process did not become ready.") from failure
        except BaseException:
            await self.kill()
            raise

    def warm_up(self) -> None:
        """Makes the first load and run quicker, while nobody waits: for spares."""
        self._wire.send(framing.pack({"t": "warm"}))

    async def load(self, source: bytes, filename: str, *, timeout_s: float) -> str:
        deadline = await self._take_turn(timeout_s)
        try:
            self._require_alive()
            self._filename = _UNSAFE_IN_NAME.sub("_", filename)[:120] or "tool.js"
            try:
                text = source.decode("utf-8")
                frame = framing.pack({"t": "load", "filename": self._filename}, json.dumps(text))
            except UnicodeDecodeError as error:
                raise _not_utf8(source, error.start) from error
            except framing.FrameError as error:
                raise GuestError("INVALID_TOOL", f"The file is too large ({len(source):,} bytes).") from error
            self._loading = self._loop.create_future()
            return await self._until(deadline, frame, self._loading)
        finally:
            self._loading = None
            self._turn.release()

    async def run(
        self,
        run_id: str,
        context_json: str,
        input_json: str,
        *,
        timeout_s: float,
        on_request: RequestHandler,
        on_note: NoteHandler,
    ) -> str:
        deadline = await self._take_turn(timeout_s)
        try:
            self._require_alive()
            try:
                frame = framing.pack(
                    {"t": "run", "run": run_id}, f'{{"context":{context_json},"input":{input_json}}}'
                )
            except framing.FrameError as error:
                raise GuestError("INPUT_TOO_LARGE", "The tool's input is too large.") from error
            run = self._run = Run(run_id, self._wire, self._filename, on_request, on_note)
            try:
                return await self._until(deadline, frame, run.outcome)
            finally:
                self._run = None
                await run.end()
        finally:
            self._turn.release()

    async def kill(self) -> None:
        self._signal()
        self._fail(GuestError("SANDBOX_CRASHED", "The tool's process was ended."))
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _take_turn(self, timeout_s: float) -> float:
        """One operation at a time; waiting for the turn counts. Gives the deadline (loop time).

        Whoever took the turn releases it.
        """
        deadline = self._loop.time() + timeout_s
        try:
            if self._turn.locked():
                await asyncio.wait_for(self._turn.acquire(), timeout_s)
            else:
                await self._turn.acquire()
        except TimeoutError as failure:
            raise GuestError(
                "TIMEOUT", f"The tool's earlier call did not end within {timeout_s:g} s."
            ) from failure
        return deadline

    async def _until(self, deadline: float, frame: bytes, answer: asyncio.Future[str]) -> str:
        """Sends `frame` and awaits `answer`; the guest does not outlive the deadline or a cancel."""
        timer = self._loop.call_at(deadline, self._expire, answer)
        self._wire.send(frame)
        try:
            return await answer
        except GuestError as error:
            if error.code in ("TIMEOUT", "MEMORY_LIMIT", "SANDBOX_CRASHED"):
                await self.kill()
            raise
        except BaseException:
            self._signal()
            await self.kill()
            raise
        finally:
            timer.cancel()

    def _expire(self, answer: asyncio.Future[str]) -> None:
        self._signal()
        if not answer.done():
            answer.set_exception(GuestError("TIMEOUT", "The tool did not finish by its deadline."))

    def _signal(self) -> None:
        """SIGKILL, now."""
        if not self._gone:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fork.pidfd, signal.SIGKILL)

    async def _close(self) -> None:
        self._wire.close()
        # The launcher has reaped it when this is done: then there is no zombie either.
        await asyncio.wait([self._fork.ended], timeout=_END_TIMEOUT_S)
        if not self._gone:
            self._gone = True
            os.close(self._fork.pidfd)
            self._on_gone(self)

    def _require_alive(self) -> None:
        if not self.alive or self._verdict is not None:
            raise GuestError("SANDBOX_CRASHED", "The tool's process has ended.")

    def _take(self, header: dict[str, Any], body: str) -> None:
        kind = header.get("t")
        if kind == "died" and header.get("code") == "MEMORY_LIMIT":
            self._fail(GuestError("MEMORY_LIMIT", "The tool used more memory than it may have (128 MiB)."))
        elif not self._ready.done():
            if kind == "ready" and isinstance(header.get("peak"), int):
                self._ready_kib = header["peak"]
                self._ready.set_result(None)
            else:
                self._break("it spoke before it was ready")
        elif self._loading is not None and kind in ("loaded", "refused", "threw"):
            self._take_loaded(str(kind), header, body, self._loading)
        elif self._run is not None:
            if not self._run.take(header, body):
                self._break("it broke the rules of a run")
        else:
            self._stray_frames += 1
            if self._stray_frames > 64:
                self._break("it spoke out of turn")

    def _take_loaded(
        self, kind: str, header: dict[str, Any], body: str, loading: asyncio.Future[str]
    ) -> None:
        if loading.done():
            return
        if kind == "refused":
            line, column = untrusted.position(header.get("at"))
            message = untrusted.words(header.get("message")) or "The file is no tool."
            loading.set_exception(GuestError("INVALID_TOOL", message, line, column))
        elif kind == "threw":
            code = str(header.get("code"))
            error = untrusted.fault(code, body, _LOAD_CODES, self._filename, framing.WRAPPER_LINES)
            loading.set_exception(error if error.code in _LOAD_CODES else _as_file_error(error))
        else:
            try:
                loading.set_result(untrusted.checked_result(body))
            except GuestError as error:
                loading.set_exception(GuestError("INVALID_TOOL", f"Its exports: {error.message}"))

    def _break(self, words: str) -> None:
        self._signal()
        self._fail(GuestError("SANDBOX_CRASHED", f"The tool's process was ended: {words}."))

    def _fail(self, error: GuestError) -> None:
        """Ends whatever is going on with `error`; the guest is of no more use."""
        self._verdict = self._verdict or error
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()
        if self._loading is not None and not self._loading.done():
            self._loading.set_exception(error)
        if self._run is not None:
            self._run.fail(error)
        if self._closing is None:
            self._closing = self._loop.create_task(self._close(), name=f"end of guest {self.pid}")
        self._signal()

    def _closed(self, problem: str | None) -> None:
        if problem is not None:
            self._break(problem)
        elif self._verdict is None:
            self._fork.ended.add_done_callback(self._explain)
            # A guest that only closed its channel has to end as well.
            self._loop.call_later(0.1, self._signal)

    def _explain(self, ended: asyncio.Future[Ending]) -> None:
        if ended.cancelled():
            return
        ending = ended.result()
        killer = None if ending.status is None else -ending.status
        grown = ending.peak_kib > self._ready_kib + _MEMORY_GROWTH_KIB
        # V8 gives up by a trap where it cannot have memory. Then the peak tells nothing: buffers that
        # were never written to count against the limit, and are not in it.
        if killer == signal.SIGTRAP or (killer in _CRASH_SIGNALS and grown):
            self._fail(GuestError("MEMORY_LIMIT", "The tool used more memory than it may have (128 MiB)."))
        else:
            self._fail(GuestError("SANDBOX_CRASHED", f"The tool's process ended by itself ({_how(ending)})."))


def _how(ending: Ending) -> str:
    if ending.status is None:
        return "the sandbox went down with it"
    if ending.status >= 0:
        return f"status {ending.status}"
    try:
        return signal.Signals(-ending.status).name
    except ValueError:
        return f"signal {-ending.status}"


def _as_file_error(error: GuestError) -> GuestError:
    return GuestError("INVALID_TOOL", error.message, error.line, error.column)


def _not_utf8(source: bytes, at: int) -> GuestError:
    start = source.rfind(b"\n", 0, at) + 1
    column = len(source[start:at].decode("utf-8", "replace")) + 1
    return GuestError("INVALID_TOOL", "The file is not UTF-8.", source.count(b"\n", 0, at) + 1, column)
