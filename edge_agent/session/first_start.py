"""A first start: HOME is seeded from the bundled assets, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from edge_agent.errors import EnvironmentLacksError, UsageError
from edge_agent.home import ASSETS, AgentFolder, Home
from edge_agent.styleeyes.catalog.build import build_catalog

DEMO_AGENT = "demo"
_DEMO_DATA = ASSETS / "demo" / "data"
_DEMO_CONFIG = ASSETS / "demo" / "agent.json"


def prepare_home(home: Home, on_progress: Callable[[str], None] = lambda _: None) -> None:
    """Makes HOME's folders and the demo agent where they are missing.

    Raises EnvironmentLacksError where HOME cannot be written.
    """
    try:
        home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (home.shared_tools, home.sessions, home.root / "agents"):
            folder.mkdir(parents=True, exist_ok=True)
        demo = home.agent(DEMO_AGENT)
        if not demo.root.exists():
            on_progress("first start: setting up the demo agent and its catalog …")
            _seed_demo(demo)
    except OSError as error:
        raise EnvironmentLacksError(
            "HOME_NOT_WRITABLE",
            f"the folder {home.root} cannot be written: {error.strerror or error}",
            "free some space or choose another folder with --home or STYLEEYES_HOME",
        ) from error


def _seed_demo(demo: AgentFolder) -> None:
    """Builds the agent beside its place and renames it there, so that a crash leaves no half agent."""
    demo.root.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=demo.root.parent, prefix=".demo-"))
    try:
        agent = AgentFolder(building / DEMO_AGENT)
        shutil.copytree(_DEMO_DATA, agent.data)
        for folder in (agent.tools, agent.databases):
            folder.mkdir(parents=True, exist_ok=True)
        build_catalog(agent.data, agent.catalog)
        shutil.copyfile(_DEMO_CONFIG, agent.config)
        agent.root.rename(demo.root)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def choose_agent(home: Home, asked: str | None) -> AgentFolder:
    """The agent to use: the one asked for, else the only one beside the demo, else the demo.

    Raises UsageError naming the agents that exist.
    """
    known = [agent_id for agent_id in home.agent_ids() if not agent_id.startswith(".")]
    own = [agent_id for agent_id in known if agent_id != DEMO_AGENT]
    if asked is not None:
        if asked not in known:
            raise UsageError(
                "NOT_FOUND",
                f"there is no agent {asked!r} in {home.root}",
                f"known agents: {', '.join(known) or 'none'}; `styleeyes catalog import FEED --to "
                f"{home.root}/agents/NAME/data` makes one",
            )
        return home.agent(asked)
    if len(own) > 1:
        raise UsageError(
            "AGENT_AMBIGUOUS",
            f"there are several agents: {', '.join(own)}",
            "say which with --agent ID",
        )
    return home.agent(own[0] if own else DEMO_AGENT)
