"""The launcher: preloads what every guest needs, then forks one guest for each request.

Started as `python launcher.py SETTINGS` inside Bubblewrap (or, unsandboxed, by ProcessSandbox). It
talks over one SOCK_SEQPACKET socket: a request is `{"fork": id}` with the guest's end of a socket
pair; the answer is `{"forked": id}` with a pidfd; a guest's end is told as `{"ended": id, "status",
"peak"}`. It ends when the host closes the socket.
"""

from __future__ import annotations

import array
import base64
import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

_REQUEST_BYTES = 4096


def main(settings: dict[str, Any]) -> NoReturn:
    """`settings`: {"control": fd, "paths": [import folders], "racer": folder, "filters": {name: base64}}."""
    sys.path[:0] = settings["paths"]
    # The paths are known only now, and everything has to be loaded before the first fork.
    from edge_agent.engine.sandbox.guest import confine, process, v8

    control = socket.socket(fileno=settings["control"])
    filters = {name: base64.b64decode(text) for name, text in settings["filters"].items()}
    library = v8.open_library(Path(settings["racer"]))
    harness = _assemble(Path(process.__file__).parent)
    confine.limit_resources(data_bytes=None)
    problem = None
    if filters["launcher"]:
        try:
            confine.install_filter(filters["launcher"])
        except OSError as error:
            problem = str(error)
            filters = {"launcher": b"", "guest": b""}
    guest_settings = process.Settings(library, harness, filters["guest"], os.getpid())
    _tell(control, {"started": True, "seccomp": bool(filters["guest"]), "problem": problem})
    gc.collect()
    gc.freeze()
    _Nursery(control, guest_settings, process.serve).run()


def _assemble(folder: Path) -> str:
    """The harness's script, with `/* NAME.js */` replaced by that file."""
    script = (folder / "harness.js").read_text("utf-8")
    for part in ("json.js", "web.js", "url.js"):
        script = script.replace(f"/* {part} */", (folder / part).read_text("utf-8"))
    return script


def _tell(control: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    control.sendmsg([json.dumps(message).encode()], rights)


class _Nursery:
    """Forks guests and reaps them."""

    def __init__(self, control: socket.socket, settings: Any, serve: Any) -> None:
        self._control = control
        self._settings = settings
        self._serve = serve
        self._guests: dict[int, tuple[int, int]] = {}
        """pidfd → (pid, id)"""

    def run(self) -> NoReturn:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            for fd, _event in poll.poll():
                if fd == self._control.fileno():
                    pidfd = self._fork()
                    if pidfd is not None:
                        poll.register(pidfd, select.POLLIN)
                else:
                    poll.unregister(fd)
                    self._bury(fd)

    def _fork(self) -> int | None:
        request, rights, _flags, _address = self._control.recvmsg(
            _REQUEST_BYTES, socket.CMSG_SPACE(array.array("i").itemsize)
        )
        if not request:
            self._kill_all()
            os._exit(0)
        fds = array.array("i")
        for _level, _kind, data in rights:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fds[0])
        name = json.loads(request)["fork"]
        pid = os.fork()
        if pid == 0:
            try:
                self._serve(channel, self._settings)
            except BaseException as failure:  # noqa: BLE001 - the fork's outermost border
                os.write(2, f"guest: {type(failure).__name__}: {failure}\n".encode(errors="replace"))
            finally:
                os._exit(70)
        channel.close()
        pidfd = os.pidfd_open(pid)
        self._guests[pidfd] = (pid, name)
        _tell(self._control, {"forked": name}, (pidfd,))
        return pidfd

    def _bury(self, pidfd: int) -> None:
        pid, name = self._guests.pop(pidfd)
        os.close(pidfd)
        _pid, status, usage = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ConnectionError):
            _tell(self._control, {"ended": name, "status": code, "peak": usage.ru_maxrss})

    def _kill_all(self) -> None:
        for pidfd in self._guests:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
