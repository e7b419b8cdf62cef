"""Where everything lives: the HOME folder, an agent's folders, and the bundled assets.

Nothing is ever written outside HOME. A first start seeds HOME from `assets/`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

ASSETS = Path(__file__).resolve().parent.parent / "assets"
BUILTIN_TOOLS = ASSETS / "tools"
"""The two example tools: copied into a new agent, and read-only built-ins for every agent."""
DEMO_CLIP = ASSETS / "demo" / "clip.mp4"


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """One agent's files."""

    root: Path

    @property
    def id(self) -> str:
        return self.root.name

    @property
    def config(self) -> Path:
        return self.root / "agent.json"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def tools(self) -> Path:
        return self.data / "tools"

    @property
    def databases(self) -> Path:
        return self.data / "databases"

    @property
    def catalog(self) -> Path:
        return self.databases / "catalog.sqlite"


@dataclass(frozen=True, slots=True)
class Home:
    """The HOME folder and what is where in it."""

    root: Path

    @staticmethod
    def find(given: str | os.PathLike[str] | None = None) -> Home:
        """`--home`, else STYLEEYES_HOME, else the platform's user data folder."""
        chosen = given or os.environ.get("STYLEEYES_HOME")
        root = Path(chosen) if chosen else platformdirs.user_data_path("styleeyes", appauthor=False)
        return Home(root.expanduser().absolute())

    @property
    def shared_tools(self) -> Path:
        return self.root / "shared" / "tools"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def vision(self) -> Path:
        """Prepared vision weights and the cache of catalog photo features."""
        return self.root / "vision"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def agent(self, agent_id: str) -> AgentFolder:
        return AgentFolder(self.root / "agents" / agent_id)

    def agent_ids(self) -> tuple[str, ...]:
        """Agents that have a folder, sorted."""
        folder = self.root / "agents"
        return tuple(sorted(p.name for p in folder.iterdir() if p.is_dir())) if folder.is_dir() else ()
