"""The host's side of the launcher: starting it, asking it for forks, hearing of their ends."""

from __future__ import annotations

import array
import asyncio
import base64
import contextlib
import importlib.util
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edge_agent.engine.sandbox import bubblewrap, seccomp
from edge_agent.engine.sandbox.bubblewrap import RootSpec
from edge_agent.engine.sandbox.child import Child, complaint
from edge_agent.errors import EnvironmentLacksError

START_TIMEOUT_S = 15.0
_FORK_TIMEOUT_S = 10.0
_MESSAGE_BYTES = 4096
_STDLIB = ("array", "base64", "ctypes", "dataclasses", "json", "platform", "queue", "resource", "socket")

_ROOM = Path(__file__).resolve().parent
_GUEST_CODE = _ROOM / "guest"
_INSIDE = "/code"
_SCRIPT = f"{_INSIDE}/edge_agent/engine/sandbox/guest/launcher.py"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a guest's process ended: exit code or minus the signal (None: not known), peak KiB."""

    status: int | None
    peak_kib: int


@dataclass(frozen=True, slots=True)
class Fork:
    """A forked guest: the host's end of its channel, a pidfd, and its end when that is known."""

    channel: socket.socket
    pidfd: int
    pid: int
    ended: asyncio.Future[Ending]


class LauncherGoneError(Exception):
    """The launcher ended; a new one has to be started."""


def root_spec() -> RootSpec:
    """What the launcher needs in its root, beside Python."""
    racer = package_folder("py_mini_racer")
    parser, grammar = package_folder("tree_sitter"), package_folder("tree_sitter_javascript")
    libraries = (racer / "libmini_racer.so", *parser.glob("_binding*.so"), *grammar.glob("_binding*.so"))
    return RootSpec(
        modules=_STDLIB,
        libraries=libraries,
        read_only=(
            (_GUEST_CODE, str(Path(_SCRIPT).parent)),
            (racer / "libmini_racer.so", "/racer/libmini_racer.so"),
            (racer / "icudtl.dat", "/racer/icudtl.dat"),
            (parser, "/packages/tree_sitter"),
            (grammar, "/packages/tree_sitter_javascript"),
        ),
    )


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise EnvironmentLacksError(
            "SANDBOX_UNAVAILABLE", f"The package {name} is not installed.", "Run scripts/setup again."
        )
    return Path(spec.origin).parent


class Launcher:
    """One launcher process and the forks it made."""

    def __init__(self, child: Child, control: socket.socket) -> None:
        self._child = child
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._forking: dict[int, asyncio.Future[int]] = {}
        self._ended: dict[int, asyncio.Future[Ending]] = {}
        self._last = 0
        self._burial: asyncio.Task[None] | None = None
        self.alive = True
        self.seccomp = False
        self.seccomp_problem: str | None = None
        control.setblocking(False)
        self._loop.add_reader(control, self._receive)

    @classmethod
    async def start(cls, kind: Literal["bubblewrap", "process"], *, use_seccomp: bool) -> Launcher:
        """Starts a launcher and waits until it can fork (about 150 ms).

        Raises EnvironmentLacksError (`SANDBOX_UNAVAILABLE`) with the reason and the fix.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        filtered = use_seccomp and seccomp.supported()
        settings: dict[str, Any] = {
            "control": theirs.fileno(),
            "filters": {
                "launcher": base64.b64encode(seccomp.launcher()).decode() if filtered else "",
                "guest": base64.b64encode(seccomp.guest()).decode() if filtered else "",
            },
        }
        try:
            if kind == "bubblewrap":
                settings |= {"paths": [_INSIDE, "/packages"], "racer": "/racer"}
                arguments = [_SCRIPT, json.dumps(settings)]
                root = await asyncio.to_thread(root_spec)
                child = await Child.spawn_async(root, arguments, pass_fds=[theirs.fileno()])
            else:
                racer = package_folder("py_mini_racer")
                settings |= {"paths": [str(_ROOM.parents[2]), str(racer.parent)], "racer": str(racer)}
                arguments = [str(_GUEST_CODE / "launcher.py"), json.dumps(settings)]
                child = await Child.spawn_unsandboxed(arguments, pass_fds=[theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        launcher = cls(child, ours)
        try:
            told = await asyncio.wait_for(launcher._started, START_TIMEOUT_S)
        except (LauncherGoneError, TimeoutError) as failure:
            await launcher.aclose()
            text = await asyncio.to_thread(complaint, root) if kind == "bubblewrap" else ""
            raise EnvironmentLacksError("SANDBOX_UNAVAILABLE", *_why_not_started(text, failure)) from failure
        except BaseException:
            await launcher.aclose()
            raise
        launcher.seccomp = bool(told["seccomp"])
        launcher.seccomp_problem = told["problem"]
        return launcher

    @property
    def pid(self) -> int:
        """The first process inside, as the host counts."""
        return self._child.pid

    async def fork(self) -> Fork:
        """A new guest, not yet ready. Raises LauncherGoneError."""
        if not self.alive:
            raise LauncherGoneError
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._last += 1
        name = self._last
        forked: asyncio.Future[int] = self._loop.create_future()
        ended: asyncio.Future[Ending] = self._loop.create_future()
        self._forking[name], self._ended[name] = forked, ended
        try:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))]
            self._control.sendmsg([json.dumps({"fork": name}).encode()], rights)
            pidfd = await asyncio.wait_for(forked, _FORK_TIMEOUT_S)
        except (OSError, TimeoutError) as failure:
            ours.close()
            self._lose()
            raise LauncherGoneError from failure
        except BaseException:
            # Closing our end is the guest's end too: it reads the end of its channel and exits.
            ours.close()
            raise
        finally:
            theirs.close()
            self._forking.pop(name, None)
        return Fork(ours, pidfd, _pid_of(pidfd), ended)

    async def aclose(self) -> None:
        """Kills the launcher and with it every guest; returns when all are reaped."""
        self._lose()
        await self._child.aclose()
        # Told only now: whoever hears of a guest's end may count on its being gone.
        for ended in self._ended.values():
            if not ended.done():
                ended.set_result(Ending(None, 0))
        self._ended.clear()

    def _receive(self) -> None:
        try:
            data, rights, _flags, _address = self._control.recvmsg(
                _MESSAGE_BYTES, socket.CMSG_SPACE(array.array("i").itemsize)
            )
        except BlockingIOError:
            return
        except OSError:
            data, rights = b"", []
        if not data:
            self._lose()
            self._burial = self._loop.create_task(self.aclose(), name="end of the launcher")
            return
        fds = array.array("i")
        for _level, _kind, raw in rights:
            fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
        self._note(json.loads(data), list(fds))

    def _note(self, message: dict[str, Any], fds: list[int]) -> None:
        if "started" in message and not self._started.done():
            self._started.set_result(message)
        elif "forked" in message and fds:
            waiting = self._forking.get(message["forked"])
            if waiting is not None and not waiting.done():
                waiting.set_result(fds.pop())
        elif "ended" in message:
            ended = self._ended.pop(message["ended"], None)
            if ended is not None and not ended.done():
                ended.set_result(Ending(message["status"], message["peak"]))
        for fd in fds:
            os.close(fd)

    def _lose(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._control)
        self._control.close()
        unanswered: list[asyncio.Future[Any]] = [self._started, *self._forking.values()]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(LauncherGoneError())
                waiting.exception()


def _why_not_started(text: str, failure: BaseException) -> tuple[str, str]:
    if text:
        return bubblewrap.explain(text)
    if isinstance(failure, TimeoutError):
        return "The sandbox's launcher did not start in time.", "Try again when the machine is less busy."
    return "The sandbox's launcher ended while starting.", "Run scripts/setup again, then `styleeyes doctor`."


def _pid_of(pidfd: int) -> int:
    """The process of a pidfd as this process counts; 0 where it has ended or /proc is not there."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text("ascii").splitlines():
            if line.startswith("Pid:"):
                return max(0, int(line.split()[1]))
    return 0
