"""A tool's `capabilities` export, checked: what one tool may reach, and nothing else.

Only the form is checked here. That a path's links stay inside their folder is checked whenever the
path is used, because links can change after a tool was inspected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

from edge_agent.engine.broker.limits import MAX_ALIASES, MAX_NAME_BYTES
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonValue

AccessMode = Literal["read", "write"]

DATABASE_FOLDER = "databases"
TOOL_FOLDER = "tools"
_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MODEL_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_Grant = TypeVar("_Grant")


@dataclass(frozen=True, slots=True)
class DatabaseGrant:
    """One declared database; `path` is relative to `data/` and begins with `databases/`."""

    path: str
    mode: AccessMode

    @property
    def name(self) -> str:
        """The path within `data/databases`."""
        return self.path.removeprefix(f"{DATABASE_FOLDER}/")


@dataclass(frozen=True, slots=True)
class FolderGrant:
    """One declared folder under `data/`, relative to it."""

    path: str
    mode: AccessMode = "read"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a tool declared. Nothing declared is the default: such a tool can only compute."""

    databases: Mapping[str, DatabaseGrant] = field(default_factory=dict)
    images: Mapping[str, FolderGrant] = field(default_factory=dict)
    files: Mapping[str, FolderGrant] = field(default_factory=dict)
    models: frozenset[str] = frozenset()
    camera: bool = False
    conversation: bool = False

    @property
    def members(self) -> tuple[str, ...]:
        """The members of `ctx` that this tool gets beyond those that every tool has."""
        declared = {
            "db": self.databases,
            "images": self.images,
            "files": self.files,
            "llm": self.models,
            "camera": self.camera,
            "conversation": self.conversation,
        }
        return tuple(name for name, given in declared.items() if given)

    @property
    def writes(self) -> bool:
        """Whether the tool may change anything on disk."""
        modes = [grant.mode for grant in self.databases.values()]
        return "write" in (*modes, *(grant.mode for grant in self.files.values()))


def parse_capabilities(value: JsonValue) -> Capabilities:
    """The checked form of a module's `capabilities` export; None means that it has none.

    Raises StyleEyesError("INVALID_TOOL") naming the path of the first thing that is wrong.
    """
    if value is None:
        return Capabilities()
    top = _object(value, "capabilities")
    _known(top, {"databases", "images", "files", "llm", "camera", "conversation"}, "capabilities")
    return Capabilities(
        databases=_aliases(top, "databases", _database),
        images=_aliases(top, "images", _image_folder),
        files=_aliases(top, "files", _file_folder),
        models=_models(top.get("llm")),
        camera=_switch(top, "camera"),
        conversation=_switch(top, "conversation"),
    )


def _database(value: JsonValue, at: str) -> DatabaseGrant:
    given = _object(value, at)
    _known(given, {"path", "mode"}, at)
    path = _path(given.get("path"), f"{at}.path")
    if not path.startswith(f"{DATABASE_FOLDER}/"):
        raise _wrong(
            f"{at}.path", f"{path!r} is not in `databases/`", 'Write it as "databases/<file>.sqlite".'
        )
    return DatabaseGrant(path, _mode(given.get("mode"), f"{at}.mode"))


def _image_folder(value: JsonValue, at: str) -> FolderGrant:
    given = _object(value, at)
    _known(given, {"path"}, at)
    return FolderGrant(_path(given.get("path"), f"{at}.path"))


def _file_folder(value: JsonValue, at: str) -> FolderGrant:
    given = _object(value, at)
    _known(given, {"path", "mode"}, at)
    path = _path(given.get("path"), f"{at}.path")
    if path.split("/", 1)[0] in (DATABASE_FOLDER, TOOL_FOLDER):
        raise _wrong(
            f"{at}.path",
            f"{path!r} is not a folder for text files",
            "Tool sources and databases are out of reach of `files`: name a folder of your own.",
        )
    return FolderGrant(path, _mode(given.get("mode"), f"{at}.mode"))


def _models(value: JsonValue) -> frozenset[str]:
    if value is None:
        return frozenset()
    at = "capabilities.llm"
    given = _object(value, at)
    _known(given, {"models"}, at)
    models = given.get("models")
    if not isinstance(models, list | tuple) or not models or len(models) > MAX_ALIASES:
        raise _wrong(f"{at}.models", f"must be an array of 1 to {MAX_ALIASES} model aliases")
    for index, model in enumerate(models):
        if not isinstance(model, str) or not _MODEL_ALIAS.fullmatch(model):
            raise _wrong(f"{at}.models[{index}]", 'must be a model alias such as "default"')
    return frozenset(cast(list[str], models))


def _aliases(
    top: Mapping[str, JsonValue], kind: str, parse: Callable[[JsonValue, str], _Grant]
) -> dict[str, _Grant]:
    value = top.get(kind)
    at = f"capabilities.{kind}"
    if value is None and kind not in top:
        return {}
    given = _object(value, at)
    if len(given) > MAX_ALIASES:
        raise _wrong(at, f"declares {len(given)} aliases; at most {MAX_ALIASES} are allowed")
    for alias in given:
        if not _ALIAS.fullmatch(alias):
            raise _wrong(
                at, f"{alias!r} is no alias", "An alias is a letter, then letters, digits, `_` or `-`."
            )
    return {alias: parse(grant, f"{at}.{alias}") for alias, grant in given.items()}


def _switch(top: Mapping[str, JsonValue], name: str) -> bool:
    value = top.get(name, False)
    if not isinstance(value, bool):
        raise _wrong(f"capabilities.{name}", "must be true or false")
    return value


def _mode(value: JsonValue, at: str) -> AccessMode:
    if value == "read":
        return "read"
    if value == "write":
        return "write"
    raise _wrong(at, 'must be "read" or "write"')


def _path(value: JsonValue, at: str) -> str:
    if not isinstance(value, str):
        raise _wrong(at, "must be a string")
    if not is_plain_path(value):
        raise _wrong(
            at,
            f"{value!r} is not a plain path relative to data/",
            "Write folders and names separated by `/`, without `..`, a leading `/` or a leading dot.",
        )
    return value


def is_plain_path(text: str) -> bool:
    """Whether `text` is a bare relative path: no `..`, no dot names, no root, no control characters."""
    if not text or len(text.encode("utf-8", "replace")) > MAX_NAME_BYTES or "\\" in text:
        return False
    if not text.isprintable():
        return False
    return all(part and not part.startswith(".") for part in text.split("/"))


def _object(value: JsonValue, at: str) -> Mapping[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise _wrong(at, "must be an object")
    return value


def _known(given: Mapping[str, JsonValue], known: set[str], at: str) -> None:
    for key in given:
        if key not in known:
            allowed = ", ".join(f"`{name}`" for name in sorted(known))
            raise _wrong(f"{at}.{key}", "is not a known key", f"Known here: {allowed}.")


def _wrong(at: str, what: str, hint: str | None = None) -> StyleEyesError:
    return StyleEyesError("INVALID_TOOL", f"`{at}`: {what}.", hint)
