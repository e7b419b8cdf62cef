"""`agent.json`: who an agent is and which tools it may use. Read strictly, written atomically."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from edge_agent.errors import UsageError
from edge_agent.files import write_atomically
from edge_agent.home import AgentFolder

MAX_FILE_TOOLS = 16
"""File tools that an agent may have enabled (contract, section 1)."""
_MAX_BYTES = 1 << 20


class AgentConfig(BaseModel):
    """An agent's settings. Keys that this version does not know are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    id: str
    name: str
    instructions: str = ""
    model: str | None = None
    tools: tuple[str, ...] = Field(default=(), strict=False)

    @field_validator("tools")
    @classmethod
    def _no_tool_twice(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tools))


def read_agent_config(agent: AgentFolder) -> AgentConfig:
    """The agent's settings. Raises UsageError that says what is wrong, and where."""
    try:
        if agent.config.stat().st_size > _MAX_BYTES:
            raise _bad(agent, f"is over {_MAX_BYTES:,} bytes")
        text = agent.config.read_text("utf-8")
    except FileNotFoundError:
        raise UsageError(
            "NOT_FOUND",
            f"the agent {agent.id!r} has no agent.json",
            f"write {agent.config}: "
            f'{{"id": "{agent.id}", "name": "…", "tools": ["search_catalog", "match_garment"]}}',
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(agent, f"cannot be read: {error}") from error
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise _bad(agent, f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError:
        raise _bad(agent, "is nested too deeply") from None
    return parse_agent_config(agent, raw)


def parse_agent_config(agent: AgentFolder, raw: Any) -> AgentConfig:
    """Checks the value of an `agent.json`. Raises UsageError naming each wrong key."""
    try:
        config = AgentConfig.model_validate(raw)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}" for fault in error.errors()
        )
        raise _bad(agent, f"is not right: {faults}") from None
    if config.id != agent.id:
        raise _bad(agent, f"has the id {config.id!r}, but its folder is {agent.id!r}")
    return config


@contextmanager
def changing(agent: AgentFolder) -> Iterator[None]:
    """Holds the agent's lock, so that two writers cannot lose each other's change."""
    fd = os.open(agent.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def write_tools(agent: AgentFolder, config: AgentConfig, tools: tuple[str, ...]) -> AgentConfig:
    """Replaces the list of enabled tools and keeps everything else; call it within `changing`."""
    changed = config.model_copy(update={"tools": tools})
    data = changed.model_dump()
    data["tools"] = list(tools)
    write_atomically(agent.config, json.dumps(data, ensure_ascii=False, indent=2).encode() + b"\n")
    return changed


def _bad(agent: AgentFolder, what: str) -> UsageError:
    return UsageError("INVALID_AGENT", f"{agent.config} {what}", "mend the file, then try again")
