"""One real sandbox for the engine's tests, and a fresh home for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge_agent.engine.sandbox import bubblewrap
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import EnvironmentLacksError
from edge_agent.home import Home
from tests.engine.workshop import Workshop


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine_sandbox() -> AsyncIterator[BubblewrapSandbox]:
    try:
        bubblewrap.executable()
    except EnvironmentLacksError as lack:
        pytest.skip(str(lack))
    sandbox = BubblewrapSandbox()
    yield sandbox
    await sandbox.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def shop(engine_sandbox: BubblewrapSandbox, tmp_path: Path) -> AsyncIterator[Workshop]:
    workshop = Workshop.make(Home(tmp_path / "home"), engine_sandbox)
    yield workshop
    await workshop.engine.aclose()
