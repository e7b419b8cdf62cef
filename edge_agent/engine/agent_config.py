"""`agent.json`: who an agent is and which tools it may use. Read strictly, written atomically."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from edge_agent.errors import UsageError
from edge_agent.files import write_atomically
from edge_agent.home import AgentFolder

MAX_FILE_TOOLS = 16
"""Agent and shared files that an agent may have enabled (contract, section 1); built-ins are not counted."""
_MAX_BYTES = 1 << 20


class AgentConfig(BaseModel):
    """An agent's settings. Keys that this version does not know are kept in the file as they are."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    id: str
    name: str
    instructions: str = ""
    model: str | None = None
    tools: list[str] = Field(default_factory=list)

    @field_validator("tools")
    @classmethod
    def _no_tool_twice(cls, tools: list[str]) -> list[str]:
        return list(dict.fromkeys(tools))


def read_agent_config(agent: AgentFolder) -> AgentConfig:
    """The agent's settings. Raises UsageError that says what is wrong, and where."""
    return parse_agent_config(agent, _read(agent))


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
    """Holds the agent's lock, so that two writers cannot lose each other's change. May block.

    Raises UsageError where the agent's folder is not there or cannot be locked.
    """
    try:
        fd = os.open(agent.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _bad(agent, f"cannot be changed: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            raise _bad(agent, f"cannot be locked: {error.strerror or error}") from error
        yield
    finally:
        os.close(fd)


def write_tools(agent: AgentFolder, tools: Sequence[str]) -> AgentConfig:
    """Replaces the list of enabled tools; everything else in the file stays, unknown keys too.

    Call it within `changing`. Raises UsageError where the disk refuses; the file is then as it was.
    """
    raw = _read(agent)
    parse_agent_config(agent, raw)
    raw = {**raw, "tools": list(tools)}
    try:
        write_atomically(agent.config, _readable(raw), mode=agent.config.stat().st_mode & 0o777)
    except OSError as error:
        raise _bad(agent, f"cannot be written: {error.strerror or error}") from error
    return parse_agent_config(agent, raw)


def _read(agent: AgentFolder) -> Any:
    try:
        found = agent.config.stat()
        if not agent.config.is_file():
            raise _bad(agent, "is not a regular file")
        if found.st_size > _MAX_BYTES:
            raise _bad(agent, f"is over {_MAX_BYTES:,} bytes")
        # Editors on Windows begin a file with a byte order mark.
        text = agent.config.read_text("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            "NOT_FOUND",
            f"the agent {agent.id!r} has no agent.json",
            f"write {agent.config}: "
            f'{{"id": "{agent.id}", "name": "…", "tools": ["search_catalog", "match_garment"]}}',
        ) from None
    except UnicodeDecodeError as error:
        raise _bad(agent, f"is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise _bad(agent, f"cannot be read: {error.strerror or error}") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _bad(agent, f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError:
        raise _bad(agent, "is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _bad(agent, f"cannot be read: {error}") from None


def _readable(raw: Any) -> bytes:
    try:
        return json.dumps(raw, ensure_ascii=False, indent=2).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(raw, indent=2).encode() + b"\n"


def _bad(agent: AgentFolder, what: str) -> UsageError:
    return UsageError("INVALID_AGENT", f"{agent.config} {what}", "mend the file, then try again")
