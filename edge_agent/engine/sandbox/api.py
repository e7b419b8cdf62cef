"""The sandbox's public face: what the engine may ask of a guest process.

A *guest* is one forked process in the sandbox that holds exactly one tool source. Everything it
says is untrusted. The launcher behind it, Bubblewrap and seccomp are this room's own business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

SandboxKind = Literal["bubblewrap", "process", "unavailable"]


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """What the sandbox is on this machine, in words for a person.

    `label` is for the status bar (`bubblewrap+seccomp`, `process: NOT SANDBOXED` …); `reason` and
    `fix` are set when it is unavailable or weaker than it should be.
    """

    kind: SandboxKind
    label: str
    seccomp: bool
    reason: str | None = None
    fix: str | None = None


class GuestError(Exception):
    """Why a guest could not load or finish: a contract code, a message, a place in the source."""

    def __init__(self, code: str, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class CapabilityRequest:
    """A capability call as it came out of the guest: a method name and JSON arguments (text)."""

    method: str
    """`db.query`, `db.execute`, `images.open`, `files.readText`, `files.writeText`, `files.list`,
    `llm.generate`. (`wait`, timers, `log` and `progress` are no capability requests.)"""
    args_json: str


@dataclass(frozen=True, slots=True)
class GuestNote:
    """A log or progress line of a run; `data_json` is JSON text or None."""

    kind: Literal["log", "progress"]
    level: str
    text: str
    data_json: str | None = None
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class CapabilityReply:
    """The host's answer: JSON text of the value, or a code and a message that reject the promise."""

    ok: bool
    value_json: str | None = None
    code: str | None = None
    message: str | None = None


RequestHandler = Callable[[CapabilityRequest], Awaitable[CapabilityReply]]
"""Must never raise but for cancellation; the sandbox runs handlers as tasks and cancels them when
the run ends. At most 8 run at once; the 9th waits its turn. The 33rd call of a run is answered by
the sandbox's host side with CAPABILITY_LIMIT and does not reach the handler."""

NoteHandler = Callable[[GuestNote], None]


class Guest(Protocol):
    """One guest process. Not shared between sessions or tool revisions."""

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    async def load(self, source: bytes, filename: str, *, timeout_s: float) -> str:
        """Parses and evaluates the module; returns its exports as JSON text:
        `{"schemaVersion", "metadata", "inputSchema", "capabilities"?, "timeoutMs"?, "execute": true|false}`
        and, with the value null, the name of every other export.

        Raises GuestError (`INVALID_TOOL` with line and column, `TIMEOUT`, `MEMORY_LIMIT`,
        `SANDBOX_CRASHED`). The source may call nothing: there are no capabilities while loading.
        """
        ...

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
        """Calls `execute(ctx, input)` once and returns the result as JSON text.

        `context_json` = `{"now", "agent", "session", "recentTurns"|null, "camera": {"frame", "status"}|null,
        "capabilities": [names of the ctx members to build]}`. Raises GuestError (`TOOL_ERROR`,
        `INVALID_RESULT`, `RESULT_TOO_LARGE`, `TIMEOUT`, `MEMORY_LIMIT`, `SANDBOX_CRASHED`; an uncaught
        capability error keeps its own code). On the deadline or when the awaiting task is cancelled,
        the process is killed at once and outstanding handlers are cancelled.
        """
        ...

    async def kill(self) -> None:
        """Ends the process now; safe to call twice."""
        ...


class Sandbox(Protocol):
    """Makes guests. One per application; started lazily, closed with it."""

    @property
    def status(self) -> SandboxStatus: ...

    async def guest(self) -> Guest:
        """A fresh, empty guest (from a spare where one is ready). Raises
        `EnvironmentLacksError("SANDBOX_UNAVAILABLE", …)` where the sandbox cannot run."""
        ...

    async def aclose(self) -> None: ...
