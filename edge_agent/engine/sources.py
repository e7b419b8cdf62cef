"""Where module tools come from, and which file wins where ids collide.

Finding tools reads folder listings only: no file is opened, nothing is evaluated. Precedence is agent
file, shared file, built-in. A file that cannot be a tool's is found all the same, with its fault, so that
it is seen and can be mended: where its name breaks the rule it has no id and overrides nothing (it is
listed under its file name); where only its place is wrong, it wins like any other and never falls back.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.files import resolves_within
from edge_agent.home import BUILTIN_TOOLS, AgentFolder, Home
from edge_agent.text import visible

Origin = Literal["agent", "shared", "built-in"]

SUFFIX = ".tool.js"
MAX_SOURCE_BYTES = 262_144
"""The size that the contract gives to every text; a tool's source is one."""
_STEM = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_ID = 64
NAME_RULE = (
    "a tool file is named like search-catalog.tool.js: lowercase words of letters and digits joined by "
    f"single hyphens, starting with a letter, at most {_MAX_ID} characters before {SUFFIX}"
)


@dataclass(frozen=True, slots=True)
class ToolFile:
    """One tool file in one folder. `fault` says why its name or place cannot be a tool's."""

    id: str
    path: Path
    origin: Origin
    fault: str | None = None
    hint: str | None = None

    @property
    def label(self) -> str:
        """What people and logs see: `agent: search-catalog.tool.js`."""
        return f"{self.origin}: {visible(self.path.name)}"

    @property
    def shown_path(self) -> str:
        """The path as text that any screen and any JSON can hold, whatever bytes the name has."""
        return visible(str(self.path))


@dataclass(frozen=True, slots=True)
class ToolSource:
    """The file that counts for an id, and those that it overrides, strongest first."""

    winner: ToolFile
    overridden: tuple[ToolFile, ...] = ()

    @property
    def id(self) -> str:
        return self.winner.id


@dataclass(frozen=True, slots=True)
class SourceText:
    """A tool's source as read: its bytes and their SHA-256 in hex."""

    data: bytes = field(repr=False)
    sha256: str


def find_tools(home: Home, agent: AgentFolder) -> dict[str, ToolSource]:
    """All tools an agent could enable, by id, in order of id.

    Raises UsageError where a folder is there but cannot be read: what it overrides must not run instead.
    """
    files: dict[str, list[ToolFile]] = {}
    folders: tuple[tuple[Origin, Path], ...] = (
        ("agent", agent.tools),
        ("shared", home.shared_tools),
        ("built-in", BUILTIN_TOOLS),
    )
    for origin, folder in folders:
        for file in _files_in(folder, origin):
            files.setdefault(file.id, []).append(file)
    return {tool_id: ToolSource(found[0], tuple(found[1:])) for tool_id, found in sorted(files.items())}


def lone_file(path: Path) -> ToolFile:
    """A file outside the tool folders, for checking it before it is put into one."""
    return _named(path, "agent")


def file_name(tool_id: str) -> str:
    """The file that an id comes from: `search_catalog` → `search-catalog.tool.js`."""
    return tool_id.replace("_", "-") + SUFFIX


def read_source(file: ToolFile) -> SourceText:
    """The file's bytes. Raises StyleEyesError INVALID_TOOL for a file that cannot be a tool's source."""
    name = visible(file.path.name)
    if file.fault is not None:
        raise StyleEyesError("INVALID_TOOL", file.fault, file.hint)
    try:
        # Asked before it is opened: opening a FIFO would wait for a writer.
        if not file.path.is_file():
            missing = not file.path.exists()
            raise StyleEyesError(
                "INVALID_TOOL", f"{name} " + ("does not exist" if missing else "is not a regular file")
            )
        with file.path.open("rb") as source:
            data = source.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise StyleEyesError(
            "INVALID_TOOL", f"{name} cannot be read: {error.strerror or error}", "look at its permissions"
        ) from error
    if len(data) > MAX_SOURCE_BYTES:
        raise StyleEyesError(
            "INVALID_TOOL",
            f"{name} is over {MAX_SOURCE_BYTES:,} bytes",
            "put data into a database or a text file",
        )
    if b"\0" in data:
        raise StyleEyesError("INVALID_TOOL", f"{name} holds a NUL byte (byte {data.index(0)})")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StyleEyesError(
            "INVALID_TOOL", f"{name} is not UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from error
    return SourceText(data, hashlib.sha256(data).hexdigest())


def _files_in(folder: Path, origin: Origin) -> Iterator[ToolFile]:
    try:
        with os.scandir(folder) as entries:
            found = sorted((e.name, e.is_symlink()) for e in entries if e.name.endswith(SUFFIX))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            "TOOLS_UNREADABLE",
            f"the tool folder {folder} cannot be read: {error.strerror or error}",
            "mend its permissions, or move it away",
        ) from error
    moved = origin != "built-in" and folder.is_symlink()
    for name, linked in found:
        file = _named(folder / name, origin)
        if file.fault is None and (moved or (linked and not resolves_within(file.path, folder))):
            file = ToolFile(
                file.id,
                file.path,
                origin,
                f"{visible(name)} is reached by a link that leads out of its folder",
                f"copy the file itself into {folder}",
            )
        yield file


def _named(path: Path, origin: Origin) -> ToolFile:
    name = visible(path.name)
    stem = path.name.removesuffix(SUFFIX)
    fault: str | None = None
    if not path.name.endswith(SUFFIX):
        fault = f"{name} does not end in {SUFFIX}"
    elif not _STEM.fullmatch(stem):
        fault = f"{name} is no name for a tool file"
    elif len(stem) > _MAX_ID:
        fault = f"{name} has {len(stem)} characters before {SUFFIX}; at most {_MAX_ID} are allowed"
    if fault is not None:
        return ToolFile(name, path, origin, fault, NAME_RULE)
    return ToolFile(stem.replace("-", "_"), path, origin)
