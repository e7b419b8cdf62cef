"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_agent.files import resolves_within, write_atomically, write_new


def test_a_failed_replacement_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "agent.json"
    write_atomically(target, b"old", mode=0o600)
    assert target.stat().st_mode & 0o777 == 0o600

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["agent.json"]


def test_a_new_file_never_takes_a_taken_name(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "a.tool.js"
    write_new(target, b"first")
    with pytest.raises(FileExistsError):
        write_new(target, b"second")
    assert target.read_bytes() == b"first"
    assert [p.name for p in target.parent.iterdir()] == ["a.tool.js"]


def test_links_are_resolved_before_a_path_is_judged(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (inside / "circle").symlink_to(inside / "circle")
    assert resolves_within(inside / "a" / ".." / "b", inside)
    assert not resolves_within(inside / "link" / "file", inside)
    assert not resolves_within(inside / ".." / "out", inside)
    assert not resolves_within(inside / "circle", inside)
