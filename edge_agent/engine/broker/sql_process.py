"""The host's side of database processes: a forker for one folder, and the workers it forks.

The forker is a Python in Bubblewrap that sees nothing but the folder of databases, read-only unless
it serves writing (see `sandbox/guest/sql_worker.py`). A worker is killed through a pidfd that the forker
sends, so a process id that was used again can never be hit.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import Protocol

from edge_agent.engine.sandbox import python_root, seccomp
from edge_agent.engine.sandbox.bubblewrap import RootSpec
from edge_agent.engine.sandbox.child import Child
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject

WORKER_MEMORY_BYTES = 64 * 1024 * 1024
"""RLIMIT_DATA of a worker; an idle one uses about 8 MB of it."""
MAX_DATABASE_BYTES = 1024 * 1024 * 1024
"""RLIMIT_FSIZE where databases may be written."""
_MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""256 KiB of JSON in which every character became an ASCII escape, and room."""
_FORK_TIMEOUT_S = 10.0
_LENGTH = struct.Struct(">I")
_GUEST = Path(python_root.__file__).resolve().parent / "guest"
_INSIDE = "/app/edge_agent/engine/sandbox/guest"
_SCRIPTS = ("sql_worker.py", "sql_statements.py", "confine.py")
_MODULES = ("sqlite3", "ctypes", "socket", "json", "resource", "base64", "contextlib", "urllib.parse")


class WorkerGoneError(Exception):
    """A worker or its forker ended before it answered."""


class ForkerChild(Protocol):
    """A forker's process, in Bubblewrap or not."""

    @property
    def alive(self) -> bool: ...

    def kill(self) -> None: ...

    async def aclose(self) -> None: ...


class SqlWorker:
    """One worker: answers one operation at a time, until it is closed or killed."""

    def __init__(self, connection: socket.socket, handle: int) -> None:
        self._connection = connection
        self._handle: int | None = handle
        self._poll = select.poll()
        self._poll.register(handle, select.POLLIN)

    @property
    def alive(self) -> bool:
        """Whether the process still runs; asks the kernel, about a microsecond."""
        return self._handle is not None and not self._poll.poll(0)

    async def ask(self, request: JsonObject) -> bytes:
        """The answer's bytes (`+` or `-`, then JSON); raises WorkerGoneError where none comes.

        When this is cancelled the worker may be busy still: kill it.
        """
        loop = asyncio.get_running_loop()
        body = json.dumps(request).encode()
        try:
            await loop.sock_sendall(self._connection, _LENGTH.pack(len(body)) + body)
            (length,) = _LENGTH.unpack(await self._exactly(loop, _LENGTH.size))
            if not 0 < length <= _MAX_ANSWER_BYTES:
                raise WorkerGoneError("the answer's length is impossible")
            return await self._exactly(loop, length)
        except OSError as error:
            raise WorkerGoneError(str(error)) from None

    async def _exactly(self, loop: asyncio.AbstractEventLoop, count: int) -> bytes:
        pieces = bytearray()
        while len(pieces) < count:
            piece = await loop.sock_recv(self._connection, min(count - len(pieces), 1 << 18))
            if not piece:
                raise WorkerGoneError("the process ended")
            pieces += piece
        return bytes(pieces)

    def kill(self) -> None:
        """SIGKILL, at once; the forker's kernel reaps. Safe to call twice."""
        if self._handle is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        os.close(self._handle)
        self._handle = None
        self._connection.close()


class SqlForker:
    """Starts workers for one folder of databases. `aclose` ends it and every worker of it."""

    def __init__(self, child: ForkerChild, control: socket.socket) -> None:
        self._child = child
        self._control = control
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, folder: Path, *, writable: bool, sandboxed: bool) -> SqlForker:
        """Raises EnvironmentLacksError("SANDBOX_UNAVAILABLE") where Bubblewrap cannot start."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            spawn = _spawn_sandboxed if sandboxed else _spawn_plain
            child = await spawn(folder, writable, theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(child, ours)

    @property
    def alive(self) -> bool:
        return self._child.alive

    async def fork(self) -> SqlWorker:
        """A fresh worker (about 2 ms). Raises WorkerGoneError where the forker has ended."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            async with self._turn:
                # Shielded: an answer left unread would be taken for that of the next request.
                asked = asyncio.ensure_future(self._ask_for(theirs))
                try:
                    handle = await asyncio.shield(asked)
                except asyncio.CancelledError:
                    with contextlib.suppress(WorkerGoneError):
                        os.close(await asked)  # its socket closes below, which ends the worker
                    raise
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return SqlWorker(ours, handle)

    async def _ask_for(self, connection: socket.socket) -> int:
        try:
            socket.send_fds(self._control, [b"F"], [connection.fileno()])
            async with asyncio.timeout(_FORK_TIMEOUT_S):
                await _readable(self._control)
            answer, handles, _, _ = socket.recv_fds(self._control, 1, 1)
        except (OSError, TimeoutError) as error:
            self._child.kill()
            raise WorkerGoneError(f"the database process cannot fork: {error}") from None
        if answer != b"P" or len(handles) != 1:
            raise WorkerGoneError("the database process could not fork")
        return handles[0]

    async def aclose(self) -> None:
        self._control.close()
        await self._child.aclose()


class _PlainChild:
    """The forker beside the app, without any sandbox: `WORLDAGENTS_TOOL_SANDBOX=process` only."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    async def aclose(self) -> None:
        self.kill()
        await asyncio.to_thread(self._process.wait)


async def _spawn_sandboxed(folder: Path, writable: bool, control: int) -> ForkerChild:
    scripts = tuple((_GUEST / name, f"{_INSIDE}/{name}") for name in _SCRIPTS)
    databases = ((folder, "/db"),)
    root = RootSpec(
        modules=_MODULES,
        read_only=scripts if writable else (*scripts, *databases),
        read_write=databases if writable else (),
    )
    program = seccomp.sql_worker() if seccomp.supported() else None
    options = _options("/db", writable, program)
    return await Child.spawn_async(
        root, [f"{_INSIDE}/sql_worker.py", str(control), options], pass_fds=[control]
    )


async def _spawn_plain(folder: Path, writable: bool, control: int) -> ForkerChild:
    script = str(_GUEST / "sql_worker.py")
    argv = [python_root.base_executable(), *python_root.FLAGS, script, str(control)]
    process = await asyncio.to_thread(
        subprocess.Popen,
        [*argv, _options(str(folder), writable, None)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[control],
        process_group=0,
        cwd="/",
        env={},
    )
    return _PlainChild(process)


def _options(root: str, writable: bool, program: bytes | None) -> str:
    return json.dumps(
        {
            "root": root,
            "writable": writable,
            "memory": WORKER_MEMORY_BYTES,
            "fileSize": MAX_DATABASE_BYTES,
            "filter": None if program is None else base64.b64encode(program).decode("ascii"),
        }
    )


async def _readable(source: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(source, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)


def gone(error: WorkerGoneError) -> StyleEyesError:
    """What a caller is told when its database process ended under it."""
    return StyleEyesError(
        "SQL_ERROR",
        f"The database process ended unexpectedly: {error}.",
        "A change it was making may or may not have been made; look before you repeat it.",
    )
