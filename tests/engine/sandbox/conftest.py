"""One real sandbox for all tests of this room, and short ways to run a tool in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from edge_agent.engine.sandbox import bubblewrap
from edge_agent.engine.sandbox.api import (
    CapabilityReply,
    CapabilityRequest,
    Guest,
    GuestError,
    GuestNote,
    RequestHandler,
)
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import EnvironmentLacksError

HEAD = (
    'export const schemaVersion = "worldagents.tool.v1";'
    'export const metadata = {title: "T", description: "D"};'
    'export const inputSchema = {type: "object", properties: {}, additionalProperties: false};'
)
ALL = ("db", "images", "files", "llm", "camera", "conversation")


def tool(body: str) -> bytes:
    """A tool whose `execute` has this body; HEAD is its first line."""
    return f"{HEAD}\nexport async function execute(ctx, input) {{\n{body}\n}}\n".encode()


def context(capabilities: tuple[str, ...] = ALL) -> str:
    return json.dumps(
        {
            "now": "2026-12-01T00:00:00Z",
            "agent": {"id": "a", "name": "Agent"},
            "session": {"id": "s", "mode": "demo"},
            "recentTurns": [{"role": "user", "text": "hi", "at": "2026-12-01T00:00:00Z"}],
            "camera": {"frame": None, "status": {"state": "none", "ageMs": None, "reason": "no camera"}},
            "capabilities": list(capabilities),
        }
    )


async def echo(request: CapabilityRequest) -> CapabilityReply:
    """Answers every call with its own arguments."""
    return CapabilityReply(True, value_json=request.args_json)


@dataclass
class Bench:
    """Runs tools in the shared sandbox and keeps what they noted."""

    sandbox: BubblewrapSandbox
    notes: list[GuestNote] = field(default_factory=list)
    requests: list[CapabilityRequest] = field(default_factory=list)

    async def load(self, source: bytes | str, *, timeout_s: float = 5.0) -> dict[str, Any]:
        guest = await self.sandbox.guest()
        try:
            raw = source.encode() if isinstance(source, str) else source
            exports: dict[str, Any] = json.loads(await guest.load(raw, "t.tool.js", timeout_s=timeout_s))
            return exports
        finally:
            await guest.kill()

    async def refusal(self, source: bytes | str, *, timeout_s: float = 5.0) -> GuestError:
        with pytest.raises(GuestError) as caught:
            await self.load(source, timeout_s=timeout_s)
        return caught.value

    async def call(
        self,
        body: str,
        *,
        argument: object = None,
        handler: RequestHandler = echo,
        timeout_s: float = 5.0,
        capabilities: tuple[str, ...] = ALL,
    ) -> Any:
        """What `execute` with this body gives, parsed. Raises GuestError."""
        return await self.execute(tool(body), argument, handler, timeout_s, capabilities)

    async def failure(self, body: str, **options: Any) -> GuestError:
        with pytest.raises(GuestError) as caught:
            await self.call(body, **options)
        return caught.value

    async def execute(
        self,
        source: bytes,
        argument: object = None,
        handler: RequestHandler = echo,
        timeout_s: float = 5.0,
        capabilities: tuple[str, ...] = ALL,
    ) -> Any:
        guest = await self.sandbox.guest()
        try:
            await guest.load(source, "t.tool.js", timeout_s=5.0)
            return await self.run(guest, argument, handler, timeout_s, capabilities)
        finally:
            await guest.kill()

    async def run(
        self,
        guest: Guest,
        argument: object = None,
        handler: RequestHandler = echo,
        timeout_s: float = 5.0,
        capabilities: tuple[str, ...] = ALL,
        run_id: str = "run-1",
    ) -> Any:
        async def counted(request: CapabilityRequest) -> CapabilityReply:
            self.requests.append(request)
            return await handler(request)

        text = await guest.run(
            run_id,
            context(capabilities),
            json.dumps(argument),
            timeout_s=timeout_s,
            on_request=counted,
            on_note=self.notes.append,
        )
        return json.loads(text)

    @property
    def lines(self) -> list[str]:
        return [note.text for note in self.notes if note.kind == "log"]


@dataclass
class Resident(Bench):
    """Loads one source after another into the same guest: for those that leave it as it was.

    Making a guest costs some twenty times as much as using one that is there.
    """

    held: list[Guest] = field(default_factory=list)

    async def load(self, source: bytes | str, *, timeout_s: float = 5.0) -> dict[str, Any]:
        raw = source.encode() if isinstance(source, str) else source
        guest = await self._guest()
        exports: dict[str, Any] = json.loads(await guest.load(raw, "t.tool.js", timeout_s=timeout_s))
        return exports

    async def execute(
        self,
        source: bytes,
        argument: object = None,
        handler: RequestHandler = echo,
        timeout_s: float = 5.0,
        capabilities: tuple[str, ...] = ALL,
    ) -> Any:
        guest = await self._guest()
        await guest.load(source, "t.tool.js", timeout_s=5.0)
        return await self.run(guest, argument, handler, timeout_s, capabilities)

    async def _guest(self) -> Guest:
        if not self.held or not self.held[-1].alive:
            self.held.append(await self.sandbox.guest())
        return self.held[-1]


@pytest.fixture(scope="session")
def needs_bubblewrap() -> None:
    try:
        bubblewrap.executable()
    except EnvironmentLacksError as lack:
        pytest.skip(str(lack))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_sandbox(needs_bubblewrap: None) -> AsyncIterator[BubblewrapSandbox]:
    sandbox = BubblewrapSandbox()
    yield sandbox
    await sandbox.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def quiet(shared_sandbox: BubblewrapSandbox) -> None:
    """The shared sandbox makes no spare just now: for tests that count processes and descriptors."""
    if shared_sandbox._refilling is not None:
        await asyncio.wait([shared_sandbox._refilling])


@pytest.fixture
def bench(shared_sandbox: BubblewrapSandbox) -> Bench:
    return Bench(shared_sandbox)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def resident(shared_sandbox: BubblewrapSandbox) -> AsyncIterator[Resident]:
    made = Resident(shared_sandbox)
    yield made
    for guest in made.held:
        await guest.kill()
