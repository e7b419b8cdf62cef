"""The process behind database calls: a forker, and the workers that it forks.

Run as a script, inside Bubblewrap or, for trusted development, beside the app: arguments are the
control descriptor and a JSON object `{"root", "writable", "memory", "fileSize", "filter"}` (a seccomp
program as base64, or null). The forker reads
one byte with one socket attached, forks a worker for that socket and answers with the worker's pidfd.
A worker answers one statement after the other until its socket closes or it is killed; native code in
SQLite cannot be interrupted in time, so being killed is its ordinary end at a deadline.

Frames both ways: four bytes of length (big endian), then JSON. An answer begins with `+` and the value,
or with `-` and `{code, message, hint, recoverable, worn}`.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # -I keeps the script's folder off the path; the package's parent is four folders up.
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from edge_agent.engine.sandbox.guest import confine
from edge_agent.engine.sandbox.guest.sql_statements import Databases, StatementError

_MAX_FRAME = 8 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class Forker:
    """Forks a worker a request, until the host closes the control socket."""

    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self._control = control
        self._options = options

    def serve(self) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps: no worker stays a zombie
        gc.collect()
        gc.freeze()  # what is shared with the workers stays shared
        while True:
            asked, sockets, _, _ = socket.recv_fds(self._control, 1, 1)
            if not asked:
                return
            if len(sockets) != 1:
                self._control.send(b"E")
                continue
            self._fork(sockets[0])

    def _fork(self, descriptor: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_worker(descriptor, parent)
            finally:
                os._exit(0)
        os.close(descriptor)
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._control.send(b"E")
            return
        try:
            socket.send_fds(self._control, [b"P"], [handle])
        finally:
            os.close(handle)

    def _become_worker(self, descriptor: int, parent: int) -> None:
        confine.die_with_parent(parent)
        kept = 3
        if descriptor != kept:
            os.dup2(descriptor, kept)
        os.closerange(kept + 1, 1 << 16)
        _limit(self._options)
        databases = Databases(Path(self._options["root"]), writable=self._options["writable"])
        with socket.socket(fileno=kept) as host:
            if self._options["filter"] is not None:
                with contextlib.suppress(OSError):  # a kernel that refuses leaves Bubblewrap to hold alone
                    confine.install_filter(base64.b64decode(self._options["filter"]))
            _Worker(host, databases).serve()


class _Worker:
    """Answers statements that come over one socket."""

    def __init__(self, host: socket.socket, databases: Databases) -> None:
        self._host = host
        self._databases = databases

    def serve(self) -> None:
        while (frame := self._receive()) is not None:
            worn = False
            try:
                answer = b"+" + self._answer(json.loads(frame)).encode()
            except StatementError as error:
                worn = error.worn
                answer = b"-" + json.dumps(_as_json(error)).encode()
            except Exception as error:  # noqa: BLE001 - the border: the caller is told, then a fresh process
                worn = True
                words = f"The statement could not be run ({type(error).__name__})."
                failure = StatementError("SQL_ERROR", words, worn=True)
                answer = b"-" + json.dumps(_as_json(failure)).encode()
            self._host.sendall(_LENGTH.pack(len(answer)) + answer)
            if worn:
                return

    def _answer(self, asked: dict[str, Any]) -> str:
        match asked["kind"]:
            case "query":
                return self._databases.query(asked["name"], asked["sql"], asked["params"], asked["limit"])
            case "execute":
                return self._databases.execute(asked["name"], asked["sql"], asked["params"])
            case "recover":
                return self._databases.recover(asked["name"])
            case other:
                raise StatementError("SQL_ERROR", f"No such operation: {other}.")

    def _receive(self) -> bytes | None:
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        return self._exactly(length) if length <= _MAX_FRAME else None

    def _exactly(self, count: int) -> bytes | None:
        pieces = bytearray()
        while len(pieces) < count:
            piece = self._host.recv(count - len(pieces))
            if not piece:
                return None
            pieces += piece
        return bytes(pieces)


def _as_json(error: StatementError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "recoverable": error.recoverable,
        "worn": error.worn,
    }


def _limit(options: dict[str, Any]) -> None:
    """What a worker may use: private memory, the size of a file it writes, few descriptors."""
    size = options["fileSize"] if options["writable"] else 0
    for kind, most in (
        (resource.RLIMIT_DATA, options["memory"]),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full file is an error of SQLite, not a death


def main() -> None:
    with contextlib.suppress(ConnectionError), socket.socket(fileno=int(sys.argv[1])) as control:
        Forker(control, json.loads(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
