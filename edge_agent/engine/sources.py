"""Where module tools come from, and which file wins where names collide.

Finding tools reads folder listings only: no file is opened, nothing is evaluated. Precedence is agent
file, shared file, built-in; a file whose name breaks the rule, or whose real path leaves its folder, is
a winner with an error, so that it is seen and can be mended.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from edge_agent.errors import StyleEyesError
from edge_agent.files import resolves_within
from edge_agent.home import BUILTIN_TOOLS, AgentFolder, Home

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
    """One tool file in one folder. `name_error` says why its name or place cannot be a tool's."""

    id: str
    path: Path
    origin: Origin
    folder: Path
    name_error: str | None = None

    @property
    def label(self) -> str:
        """What people and logs see: `agent: search-catalog.tool.js`."""
        return f"{self.origin}: {self.path.name}"


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
    """All tools an agent could enable, by id, in order of id."""
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
    return _tool_file(path, "agent", path.parent)


def read_source(file: ToolFile) -> SourceText:
    """The file's bytes. Raises StyleEyesError INVALID_TOOL for a file that cannot be a tool's source."""
    if file.name_error is not None:
        raise StyleEyesError("INVALID_TOOL", file.name_error, NAME_RULE)
    try:
        if not file.path.is_file():
            raise StyleEyesError("INVALID_TOOL", f"{file.path.name} is not a regular file")
        with file.path.open("rb") as source:
            data = source.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise StyleEyesError(
            "INVALID_TOOL", f"{file.path.name} cannot be read: {error.strerror or error}"
        ) from error
    if len(data) > MAX_SOURCE_BYTES:
        raise StyleEyesError(
            "INVALID_TOOL", f"{file.path.name} is over {MAX_SOURCE_BYTES:,} bytes", "put data into a database"
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StyleEyesError(
            "INVALID_TOOL", f"{file.path.name} is not UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from error
    if b"\0" in data:
        raise StyleEyesError("INVALID_TOOL", f"{file.path.name} holds a NUL byte")
    return SourceText(data, hashlib.sha256(data).hexdigest())


def _files_in(folder: Path, origin: Origin) -> Iterator[ToolFile]:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(SUFFIX))
    except OSError:
        return
    for name in names:
        yield _tool_file(folder / name, origin, folder)


def _tool_file(path: Path, origin: Origin, folder: Path) -> ToolFile:
    stem = path.name.removesuffix(SUFFIX)
    error: str | None = None
    if not path.name.endswith(SUFFIX):
        error = f"{path.name} does not end in {SUFFIX}"
    elif not _STEM.fullmatch(stem):
        error = f"{path.name} is no name for a tool file"
    elif len(stem) > _MAX_ID:
        error = f"{path.name} is longer than {_MAX_ID} characters before {SUFFIX}"
    elif not resolves_within(path, folder):
        error = f"{path.name} is a link that leads out of its folder"
    return ToolFile(stem.replace("-", "_"), path, origin, folder, error)
