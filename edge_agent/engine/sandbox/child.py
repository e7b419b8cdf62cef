"""A child process in Bubblewrap: spawned, watched and killed without leaving anything behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from edge_agent.engine.sandbox import bubblewrap, python_root
from edge_agent.engine.sandbox.bubblewrap import RootSpec
from edge_agent.errors import EnvironmentLacksError

_START_TIMEOUT_S = 10.0
_REAP_TIMEOUT_S = 5.0

# --die-with-parent is PR_SET_PDEATHSIG, which follows the *thread* that forked: one thread, which
# lives as long as the process, does every spawn.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sandbox-spawner")


class Child:
    """One Bubblewrap and what runs in it. `kill` and `aclose` may be called more than once.

    `pid` is that of the first process *inside* (as the host counts): killing it ends every process
    of its namespace, and Bubblewrap's own process then ends by itself and is reaped here.

    What runs inside dies with this process, but for the few milliseconds in which Bubblewrap starts:
    so it should also end by itself at the end of the pipe or socket that it serves.
    """

    def __init__(self, outer: subprocess.Popen[bytes], pid: int) -> None:
        self._outer = outer
        self.pid = pid
        self._inner_fd: int | None = None
        self._outer_fd: int | None = None
        with contextlib.suppress(ProcessLookupError):
            self._inner_fd = os.pidfd_open(pid)
        self._outer_fd = os.pidfd_open(outer.pid)

    @classmethod
    def spawn(
        cls, root: RootSpec, arguments: Sequence[str], *, pass_fds: Sequence[int] = (), quiet: bool = True
    ) -> Child:
        """Starts Python with `arguments` inside `root`. Blocking (about 20 ms).

        Descriptors 0–2 are /dev/null (with `quiet` off, 2 is this process's own), `pass_fds` keep
        their numbers, all others are closed. Raises EnvironmentLacksError with the fix.
        """
        return _spawner.submit(cls._spawn, root, arguments, tuple(pass_fds), quiet).result()

    @classmethod
    async def spawn_async(
        cls, root: RootSpec, arguments: Sequence[str], *, pass_fds: Sequence[int] = (), quiet: bool = True
    ) -> Child:
        """`spawn` without blocking the event loop."""
        return await _finish(_spawner.submit(cls._spawn, root, arguments, tuple(pass_fds), quiet))

    @classmethod
    def _spawn(
        cls, root: RootSpec, arguments: Sequence[str], pass_fds: tuple[int, ...], quiet: bool
    ) -> Child:
        reader, writer = os.pipe()
        try:
            argv = bubblewrap.command(root, arguments, info_fd=writer)
            outer = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if quiet else None,
                pass_fds=(*pass_fds, writer),
                process_group=0,
                env={},
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        try:
            pid = _read_child_pid(reader)
        finally:
            os.close(reader)
        if pid is None:
            outer.kill()
            outer.wait()
            raise EnvironmentLacksError("SANDBOX_UNAVAILABLE", *bubblewrap.explain(complaint(root)))
        return cls(outer, pid)

    @classmethod
    async def spawn_unsandboxed(cls, arguments: Sequence[str], *, pass_fds: Sequence[int] = ()) -> Child:
        """The same Python without Bubblewrap: for trusted development only."""

        def start() -> Child:
            outer = subprocess.Popen(
                [python_root.base_executable(), *python_root.FLAGS, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=tuple(pass_fds),
                process_group=0,
                env={},
            )
            return cls(outer, outer.pid)

        return await _finish(_spawner.submit(start))

    @property
    def exit_fd(self) -> int:
        """A pidfd that becomes readable when everything has ended; -1 once closed."""
        return -1 if self._outer_fd is None else self._outer_fd

    @property
    def alive(self) -> bool:
        return self._outer_fd is not None and self._outer.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit status as a shell gives it (128 + signal), once ended."""
        return self._outer.returncode

    def kill(self) -> None:
        """SIGKILL to all inside, at once; returns without waiting for the end."""
        if self._inner_fd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inner_fd, signal.SIGKILL)

    def close(self) -> None:
        """Kills, waits until all have ended (a few ms, at most 5 s) and reaps."""
        self.kill()
        # Bubblewrap's outer process can end a little before the inner one and all that it holds.
        for fd in (self._outer_fd, self._inner_fd):
            if fd is not None:
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll(_REAP_TIMEOUT_S * 1000)
        self._release()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        self.kill()
        if self._outer_fd is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), _REAP_TIMEOUT_S)
        self._release()

    async def ended(self) -> None:
        """Returns when everything inside has ended by itself or was killed."""
        # A reader is one callback a descriptor: duplicates let several tasks wait.
        watched = [os.dup(fd) for fd in (self._outer_fd, self._inner_fd) if fd is not None]
        try:
            for fd in watched:
                await _readable(fd)
        finally:
            for fd in watched:
                os.close(fd)

    def _release(self) -> None:
        if self._outer.poll() is None:
            self._outer.kill()
            self._outer.wait()
        for fd in (self._inner_fd, self._outer_fd):
            if fd is not None:
                os.close(fd)
        self._inner_fd = self._outer_fd = None


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not done.done():
            done.set_result(None)

    loop.add_reader(fd, settle)
    try:
        await done
    finally:
        loop.remove_reader(fd)


async def _finish(spawning: Future[Child]) -> Child:
    """The child that is being spawned; where the awaiting task is cancelled, it is ended first."""
    try:
        return await asyncio.shield(asyncio.wrap_future(spawning))
    except asyncio.CancelledError:
        with contextlib.suppress(EnvironmentLacksError, OSError):
            await (await asyncio.wrap_future(spawning)).aclose()
        raise


def complaint(root: RootSpec) -> str:
    """What Bubblewrap says on stderr when it is asked to start a Python that does nothing."""
    argv = bubblewrap.command(root, ["-c", ""])
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_START_TIMEOUT_S, check=False, env={}
    )
    return done.stderr.decode(errors="replace")


def _read_child_pid(reader: int) -> int | None:
    """Bubblewrap writes one JSON object and closes; nothing at all means that it failed."""
    told = b""
    end = time.monotonic() + _START_TIMEOUT_S
    while (left := end - time.monotonic()) > 0:
        if not select.select([reader], [], [], left)[0]:
            break
        piece = os.read(reader, 4096)
        told += piece
        if not piece or told.rstrip().endswith(b"}"):
            break
    try:
        return int(json.loads(told)["child-pid"])
    except (ValueError, KeyError, TypeError):
        return None
