from __future__ import annotations

from typing import Any

import pytest

from edge_agent.engine.broker.capabilities import (
    Capabilities,
    DatabaseGrant,
    FolderGrant,
    is_plain_path,
    parse_capabilities,
)
from edge_agent.errors import StyleEyesError
from tests.engine.broker.world import ALL


def test_everything_declared_is_kept() -> None:
    parsed = parse_capabilities(ALL)
    assert parsed.databases["catalog"] == DatabaseGrant("databases/catalog.sqlite", "read")
    assert parsed.databases["catalog"].name == "catalog.sqlite"
    assert parsed.images == {"photos": FolderGrant("photos", "read")}
    assert parsed.files["diary"] == FolderGrant("diary", "write")
    assert parsed.models == {"default", "unknown"}
    assert parsed.members == ("db", "images", "files", "llm", "camera", "conversation")
    assert parsed.writes


@pytest.mark.parametrize("nothing", [None, {}, {"camera": False}, {"databases": {}}])
def test_nothing_declared_gives_nothing(nothing: Any) -> None:
    parsed = parse_capabilities(nothing)
    assert parsed == Capabilities()
    assert parsed.members == ()
    assert not parsed.writes


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ([], "capabilities"),
        ({"network": True}, "capabilities.network"),
        ({"camera": 1}, "capabilities.camera"),
        ({"conversation": "yes"}, "capabilities.conversation"),
        ({"databases": None}, "capabilities.databases"),
        ({"databases": {"c": {"path": "databases/c.sqlite"}}}, "capabilities.databases.c.mode"),
        ({"databases": {"c": {"path": "databases/c.sqlite", "mode": "rw"}}}, "capabilities.databases.c.mode"),
        ({"databases": {"c": {"path": "notes/c.sqlite", "mode": "read"}}}, "capabilities.databases.c.path"),
        ({"databases": {"c": {"path": "Databases/c", "mode": "read"}}}, "capabilities.databases.c.path"),
        ({"databases": {"c": {"path": "databases", "mode": "read"}}}, "capabilities.databases.c.path"),
        ({"databases": {"c": {"path": "databases/../x", "mode": "read"}}}, "capabilities.databases.c.path"),
        ({"databases": {"c": {"path": "/databases/c", "mode": "read"}}}, "capabilities.databases.c.path"),
        (
            {"databases": {"c": {"path": "databases/c", "mode": "read", "key": 1}}},
            "capabilities.databases.c.key",
        ),
        ({"databases": {"__proto__": {"path": "databases/c", "mode": "read"}}}, "capabilities.databases"),
        (
            {"databases": {f"c{n}": {"path": "databases/c", "mode": "read"} for n in range(17)}},
            "capabilities.databases",
        ),
        ({"images": {"p": {"path": "photos", "mode": "write"}}}, "capabilities.images.p.mode"),
        ({"images": {"p": {"path": ""}}}, "capabilities.images.p.path"),
        ({"images": {"p": {"path": "."}}}, "capabilities.images.p.path"),
        ({"images": {"p": {"path": 5}}}, "capabilities.images.p.path"),
        ({"files": {"f": {"path": "tools", "mode": "write"}}}, "capabilities.files.f.path"),
        ({"files": {"f": {"path": "databases/x", "mode": "read"}}}, "capabilities.files.f.path"),
        ({"files": {"f": {"path": "notes\x00", "mode": "read"}}}, "capabilities.files.f.path"),
        ({"llm": True}, "capabilities.llm"),
        ({"llm": {}}, "capabilities.llm.models"),
        ({"llm": {"models": []}}, "capabilities.llm.models"),
        ({"llm": {"models": ["ok", 3]}}, "capabilities.llm.models[1]"),
        ({"llm": {"models": ["default"], "key": "x"}}, "capabilities.llm.key"),
    ],
)
def test_a_mistake_is_named_by_its_path(declared: Any, path: str) -> None:
    with pytest.raises(StyleEyesError) as caught:
        parse_capabilities(declared)
    assert caught.value.code == "INVALID_TOOL"
    assert caught.value.message.startswith(f"`{path}`: ")


@pytest.mark.parametrize(
    "path", ["/a", "a/", "a//b", "..", "a/../b", ".a", "a/.b", "", "a\\b", "a\nb", "a\x00", "a" * 1025]
)
def test_paths_that_are_not_plain(path: str) -> None:
    assert not is_plain_path(path)


@pytest.mark.parametrize("path", ["a", "a/b.txt", "größe/été 1.txt", "a..b", "a" * 1024])
def test_plain_paths(path: str) -> None:
    assert is_plain_path(path)
