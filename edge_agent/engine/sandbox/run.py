"""One run of a tool as the host keeps its books: calls, concurrency, notes, limits."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from typing import Any

from edge_agent.engine.sandbox import untrusted
from edge_agent.engine.sandbox.api import (
    CapabilityReply,
    CapabilityRequest,
    GuestError,
    GuestNote,
    NoteHandler,
    RequestHandler,
)
from edge_agent.engine.sandbox.guest import framing
from edge_agent.engine.sandbox.wire import Wire

MAX_CALLS = 32
MAX_AT_ONCE = 8
MAX_LOG_LINES = 100
MAX_LOG_BYTES = 16 * 1024
MAX_STEPS = 1_000
MAX_FRAMES = 4_096
_MOST_NUMBER = 1 << 31
MAX_BYTES = 64 * 1024 * 1024
TRUNCATED = "… truncated: a run may log 100 lines and 16 KiB"

METHODS = frozenset(
    {
        *("db.query", "db.execute", "images.open", "llm.generate"),
        *("files.readText", "files.writeText", "files.list"),
    }
)
_OWN_CODES = frozenset({"TOOL_ERROR", "INVALID_RESULT", "RESULT_TOO_LARGE", "MEMORY_LIMIT"})
_HARNESS_CODES = frozenset({"CAPABILITY_LIMIT", "CAPABILITY_DENIED", "INVALID_INPUT", "INPUT_TOO_LARGE"})
_LEVELS = frozenset({"info", "warn", "error", "debug"})
_LOGGER = logging.getLogger(__name__)


class Run:
    """Takes a run's frames; `outcome` becomes the result's JSON text or a GuestError."""

    def __init__(
        self,
        run_id: str,
        wire: Wire,
        filename: str,
        on_request: RequestHandler,
        on_note: NoteHandler,
    ) -> None:
        self._id = run_id
        self._wire = wire
        self._filename = filename
        self._on_request = on_request
        self._on_note = on_note
        self._reply_head = f'{{"t":"reply","run":{json.dumps(run_id)},"id":'
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._waiting: deque[tuple[int, CapabilityRequest]] = deque()
        self._calls = self._frames = self._bytes = self._steps = 0
        self._lines = self._logged = 0
        self._truncated = False
        self._codes: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[str] = self._loop.create_future()

    def take(self, header: dict[str, Any], body: str) -> bool:
        """One frame of the guest. False: it broke the rules and has to be ended."""
        self._frames += 1
        self._bytes += len(body)
        if self._frames > MAX_FRAMES or self._bytes > MAX_BYTES:
            return False
        if header.get("run") != self._id or self.outcome.done():
            return True
        match header.get("t"):
            case "call":
                return self._call(header, body)
            case "log":
                return self._log(header, body)
            case "progress":
                return self._progress(header, body)
            case "result":
                return self._result(body)
            case "failed":
                return self._failed(header, body)
            case _:
                return False

    def fail(self, error: GuestError) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)
            # Whoever awaits it sees it; if nobody does any more, that is no news.
            self.outcome.exception()

    async def end(self) -> None:
        """Cancels the handlers still at work and waits for them."""
        self._waiting.clear()
        if self._tasks:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _call(self, header: dict[str, Any], body: str) -> bool:
        number, method = header.get("id"), header.get("method")
        if type(number) is not int or not 0 <= number < _MOST_NUMBER or not isinstance(method, str):
            return False
        self._calls += 1
        if self._calls > MAX_CALLS:
            self._reply(
                number,
                CapabilityReply(
                    False,
                    code="CAPABILITY_LIMIT",
                    message=f"A run may make {MAX_CALLS} capability calls; this was one more.",
                ),
            )
            return True
        arguments = untrusted.checked_arguments(body)
        if arguments is None or method not in METHODS:
            return False
        request = CapabilityRequest(method, arguments)
        if len(self._tasks) < MAX_AT_ONCE:
            self._start(self._calls, number, request)
        else:
            self._waiting.append((number, request))
        return True

    def _start(self, place: int, number: int, request: CapabilityRequest) -> None:
        """`place` is ours and used once; `number` is the guest's, who may say one twice."""
        self._tasks[place] = self._loop.create_task(self._answer(place, number, request))

    async def _answer(self, place: int, number: int, request: CapabilityRequest) -> None:
        try:
            try:
                reply = await self._on_request(request)
            except Exception:  # the handler's border: a lost reply would hang the tool
                _LOGGER.exception("the handler of %s failed", request.method)
                reply = CapabilityReply(
                    False, code="TOOL_ERROR", message=f"The host failed while answering {request.method}."
                )
            self._reply(number, reply)
            # The place among the eight is given up only when the guest has taken its answer.
            await self._wire.drain()
        finally:
            del self._tasks[place]
            if self._waiting:
                self._start(place, *self._waiting.popleft())

    def _reply(self, number: int, reply: CapabilityReply) -> None:
        try:
            if reply.ok:
                self._send_reply(f'{number},"ok":true}}', reply.value_json or "null")
            else:
                self._refuse(number, reply.code or "TOOL_ERROR", untrusted.words(reply.message))
        except framing.FrameError:
            self._refuse(number, "RESULT_TOO_LARGE", "The answer is too large.")

    def _refuse(self, number: int, code: str, message: str) -> None:
        self._codes.add(code)
        words = json.dumps({"code": code, "message": message})
        self._send_reply(f'{number},"ok":false,{words[1:]}', "null")

    def _send_reply(self, head: str, body: str) -> None:
        self._wire.send(framing.pack_text(self._reply_head + head, body))

    def _log(self, header: dict[str, Any], body: str) -> bool:
        if self._truncated:
            return True
        try:
            text, data = json.loads(body)
        except (ValueError, TypeError, RecursionError):
            return False
        level = header.get("level")
        if not isinstance(text, str) or not isinstance(level, str) or level not in _LEVELS:
            return False
        data_json = None
        if header.get("data") is True and not framing.too_deep(body):
            data_json = json.dumps(data, separators=(",", ":"))
        text = untrusted.well_formed(text)
        self._lines += 1
        self._logged += len(text.encode()) + len(data_json or "")
        if self._lines > MAX_LOG_LINES or self._logged > MAX_LOG_BYTES:
            self._truncated = True
            self._on_note(GuestNote("log", "warn", TRUNCATED))
            return True
        self._on_note(GuestNote("log", level, text, data_json))
        return True

    def _progress(self, header: dict[str, Any], body: str) -> bool:
        fraction = header.get("fraction")
        if isinstance(fraction, bool) or not isinstance(fraction, int | float):
            return False
        self._steps += 1
        if self._steps <= MAX_STEPS:
            try:
                message = untrusted.words(json.loads(body))
            except (ValueError, RecursionError):
                return False
            share = min(1.0, max(0.0, float(fraction)))
            self._on_note(GuestNote("progress", "info", message, fraction=share))
        return True

    def _result(self, body: str) -> bool:
        try:
            text = untrusted.checked_result(body)
        except GuestError as error:
            self.fail(error)
        else:
            self.outcome.set_result(text)
        return True

    def _failed(self, header: dict[str, Any], body: str) -> bool:
        allowed = _OWN_CODES | _HARNESS_CODES | self._codes
        code = str(header.get("code"))
        self.fail(untrusted.fault(code, body, allowed, self._filename, framing.WRAPPER_LINES))
        return True
