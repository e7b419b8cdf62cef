"""A shop for each test, one sandbox for all, and the real tool path over a shop's catalog."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from edge_agent.engine.sandbox import bubblewrap
from edge_agent.engine.sandbox.sandbox import BubblewrapSandbox
from edge_agent.errors import EnvironmentLacksError
from tests.styleeyes.catalog.shop import Shop
from tests.styleeyes.catalog.tool_bench import ToolBench

RETAIL = Path(__file__).resolve().parents[4] / "shared" / "data" / "retail"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "home" / "agents" / "shop" / "data")


@pytest.fixture(scope="session")
def retail() -> Path:
    """The folder of the real feed and its photos."""
    if not RETAIL.is_dir():
        pytest.skip(f"needs {RETAIL}")
    return RETAIL


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox() -> AsyncIterator[BubblewrapSandbox]:
    try:
        bubblewrap.executable()
    except EnvironmentLacksError as lack:
        pytest.skip(str(lack))
    opened = BubblewrapSandbox()
    yield opened
    await opened.aclose()


OpenTools = Callable[[Path], Awaitable[ToolBench]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_tools(sandbox: BubblewrapSandbox) -> AsyncIterator[OpenTools]:
    """Opens a session with both catalog tools over a snapshot folder, in the real sandbox."""
    opened: list[ToolBench] = []

    async def open_bench(data: Path) -> ToolBench:
        opened.append(await ToolBench.open(data, sandbox))
        return opened[-1]

    yield open_bench
    for bench in opened:
        await bench.aclose()
