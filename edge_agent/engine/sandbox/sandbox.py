"""The sandboxes an application can have: Bubblewrap, or, for trusted development, a bare process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

from edge_agent.engine.sandbox import probe
from edge_agent.engine.sandbox.api import Guest, GuestError, Sandbox, SandboxStatus
from edge_agent.engine.sandbox.launcher import Launcher, LauncherGoneError
from edge_agent.engine.sandbox.remote import RemoteGuest
from edge_agent.errors import EnvironmentLacksError, UsageError

VARIABLE = "WORLDAGENTS_TOOL_SANDBOX"
_ATTEMPTS = 3
_SPARES = 1
_SPARES_ALONE = 2


class _ForkingSandbox:
    """What both kinds share: a launcher that is started lazily and replaced when it dies, and spares.

    Where seccomp is refused, guests that share a launcher would be protected from each other by
    nothing but V8: then each guest has a launcher, and so a Bubblewrap, of its own.
    """

    def __init__(self, kind: Literal["bubblewrap", "process"], *, use_seccomp: bool = True) -> None:
        self._kind = kind
        self._use_seccomp = use_seccomp
        self._shared: Launcher | None = None
        self._launchers: set[Launcher] = set()
        self._alone = False
        self._starting = asyncio.Lock()
        self._spares: list[RemoteGuest] = []
        self._guests: set[RemoteGuest] = set()
        self._owned: dict[RemoteGuest, Launcher] = {}
        self._burials: set[asyncio.Task[None]] = set()
        self._refilling: asyncio.Task[None] | None = None
        self._closed = False

    async def guest(self) -> Guest:
        if self._closed:
            raise EnvironmentLacksError("SANDBOX_UNAVAILABLE", "The sandbox has been closed.")
        spare = self._take_spare()
        guest = spare or await self._new_guest()
        self._refill_later()
        return guest

    async def aclose(self) -> None:
        """Kills every guest and launcher; afterwards no process or descriptor is left."""
        self._closed = True
        if self._refilling is not None:
            self._refilling.cancel()
            await asyncio.gather(self._refilling, return_exceptions=True)
        async with self._starting:
            await asyncio.gather(*(guest.kill() for guest in list(self._guests)))
            await asyncio.gather(*(launcher.aclose() for launcher in list(self._launchers)))
            await asyncio.gather(*self._burials, return_exceptions=True)
            self._launchers.clear()

    def _take_spare(self) -> RemoteGuest | None:
        while self._spares:
            spare = self._spares.pop(0)
            if spare.alive:
                return spare
        return None

    async def _new_guest(self) -> RemoteGuest:
        problem: BaseException | None = None
        for _attempt in range(_ATTEMPTS):
            launcher = await self._launcher()
            try:
                fork = await launcher.fork()
            except LauncherGoneError as gone:
                problem = gone
                continue
            guest = RemoteGuest(fork, self._forget)
            self._guests.add(guest)
            if self._alone:
                self._owned[guest] = launcher
            try:
                await guest.ready()
            except GuestError as error:
                problem = error
                continue
            return guest
        raise EnvironmentLacksError(
            "SANDBOX_UNAVAILABLE",
            f"The sandbox starts no tool process: {problem}",
            "`styleeyes doctor` says what is missing.",
        ) from problem

    async def _launcher(self) -> Launcher:
        async with self._starting:
            if self._shared is not None and self._shared.alive:
                return self._shared
            for dead in [launcher for launcher in self._launchers if not launcher.alive]:
                self._launchers.discard(dead)
                await dead.aclose()
            launcher = await Launcher.start(self._kind, use_seccomp=self._use_seccomp)
            self._launchers.add(launcher)
            self._alone = not launcher.seccomp and self._kind == "bubblewrap"
            self._shared = None if self._alone else launcher
            return launcher

    def _forget(self, guest: RemoteGuest) -> None:
        self._guests.discard(guest)
        owner = self._owned.pop(guest, None)
        if owner is not None:
            self._launchers.discard(owner)
            burial = asyncio.get_running_loop().create_task(owner.aclose(), name="end of a launcher")
            self._burials.add(burial)
            burial.add_done_callback(self._burials.discard)

    def _refill_later(self) -> None:
        if (self._refilling is None or self._refilling.done()) and not self._closed:
            self._refilling = asyncio.get_running_loop().create_task(self._refill(), name="spare guests")

    async def _refill(self) -> None:
        try:
            # The guest just handed out is about to load: the spare is not made at its cost.
            await asyncio.sleep(0.03)
            while len(self._spares) < (_SPARES_ALONE if self._alone else _SPARES) and not self._closed:
                spare = await self._new_guest()
                spare.warm_up()
                self._spares.append(spare)
        except EnvironmentLacksError:
            return  # the next guest() meets the same and says so


class BubblewrapSandbox(_ForkingSandbox):
    """The default. Never falls back to less than Bubblewrap."""

    def __init__(self, *, use_seccomp: bool = True) -> None:
        super().__init__("bubblewrap", use_seccomp=use_seccomp)
        self._status: SandboxStatus | None = None

    @property
    def status(self) -> SandboxStatus:
        """Probed at the first look (about 100 ms, blocking), then remembered."""
        if self._status is None:
            self._status = probe.probe(use_seccomp=self._use_seccomp)
        return self._status


class ProcessSandbox(_ForkingSandbox):
    """Trusted development only: the same guest and limits, but it sees files and network as we do."""

    def __init__(self) -> None:
        super().__init__("process")

    @property
    def status(self) -> SandboxStatus:
        return SandboxStatus(
            "process",
            "process: TOOLS ARE NOT SANDBOXED",
            seccomp=False,
            reason=f"{VARIABLE}=process turns the sandbox off.",
            fix=f"Unset {VARIABLE} unless you wrote every tool yourself.",
        )


def open_sandbox(env: Mapping[str, str]) -> Sandbox:
    """The sandbox that `WORLDAGENTS_TOOL_SANDBOX` asks for; Bubblewrap where it is unset or empty.

    Starts nothing yet. Raises UsageError for a value that is neither `bubblewrap` nor `process`.
    """
    wanted = env.get(VARIABLE, "").strip()
    if wanted in ("", "bubblewrap"):
        return BubblewrapSandbox()
    if wanted == "process":
        return ProcessSandbox()
    raise UsageError(
        "BAD_SETTING",
        f"{VARIABLE} is {wanted!r}, which is no sandbox.",
        f"Unset {VARIABLE}, or set it to bubblewrap, or (trusted tools only) to process.",
    )
