from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from edge_agent.engine.broker.folders import DeclaredFolder
from edge_agent.errors import StyleEyesError


def code_of(folder: DeclaredFolder, name: str) -> str:
    with pytest.raises(StyleEyesError) as caught:
        folder.read(name, 1000)
    return caught.value.code


def test_a_file_below_the_folder_is_read(data: Path) -> None:
    (data / "guide" / "a").mkdir()
    (data / "guide" / "a" / "b.txt").write_text("deep")
    assert DeclaredFolder(data, "guide").read("a/b.txt", 4) == b"deep"


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "..", ".", "", "a\x00b", "a\\..\\b", ".hidden"],
)
def test_names_that_try_to_lead_out_are_refused(data: Path, name: str) -> None:
    assert code_of(DeclaredFolder(data, "guide"), name) == "CAPABILITY_DENIED"


def test_links_may_not_leave_the_folder(data: Path) -> None:
    secret = data.parent.parent / "secret.txt"
    guide = data / "guide"
    (guide / "out.txt").symlink_to(secret)
    (guide / "up").symlink_to("..")
    (guide / "relative.txt").symlink_to("../diary/x.txt")
    (data / "diary" / "x.txt").write_text("x")
    folder = DeclaredFolder(data, "guide")
    assert code_of(folder, "out.txt") == "CAPABILITY_DENIED"
    assert code_of(folder, "up/diary/x.txt") == "CAPABILITY_DENIED"
    assert code_of(folder, "relative.txt") == "CAPABILITY_DENIED"


def test_a_link_inside_the_folder_is_followed(data: Path) -> None:
    (data / "guide" / "alias.txt").symlink_to("sizes.txt")
    assert DeclaredFolder(data, "guide").read("alias.txt", 100) == "S M L ✓".encode()


def test_the_folder_itself_may_not_lead_out_of_data(data: Path) -> None:
    (data / "away").symlink_to(data.parent.parent)
    assert code_of(DeclaredFolder(data, "away"), "secret.txt") == "CAPABILITY_DENIED"


def test_the_folder_may_not_be_a_link_to_tools(data: Path) -> None:
    (data / "harmless").symlink_to("tools")
    folder = DeclaredFolder(data, "harmless", refused=frozenset({"tools"}))
    with pytest.raises(StyleEyesError) as caught:
        folder.write("evil.tool.js", b"x")
    assert caught.value.code == "CAPABILITY_DENIED"
    assert not list((data / "tools").iterdir())


def test_links_in_a_circle_are_no_file(data: Path) -> None:
    (data / "guide" / "a").symlink_to("b")
    (data / "guide" / "b").symlink_to("a")
    assert code_of(DeclaredFolder(data, "guide"), "a") == "NOT_FOUND"


def test_only_regular_files_are_opened(data: Path) -> None:
    os.mkfifo(data / "guide" / "pipe")
    (data / "guide" / "folder").mkdir()
    folder = DeclaredFolder(data, "guide")
    assert code_of(folder, "pipe") == "NOT_FOUND"
    assert code_of(folder, "folder") == "NOT_FOUND"
    assert code_of(folder, "nothing") == "NOT_FOUND"
    with pytest.raises(StyleEyesError):
        folder.write("pipe", b"x")


def test_the_limit_holds_on_both_sides(data: Path) -> None:
    (data / "guide" / "five").write_bytes(b"12345")
    folder = DeclaredFolder(data, "guide")
    assert folder.read("five", 5) == b"12345"
    with pytest.raises(StyleEyesError) as caught:
        folder.read("five", 4)
    assert caught.value.code == "FILE_TOO_LARGE"


def test_writing_replaces_whole_and_leaves_nothing_beside(data: Path) -> None:
    folder = DeclaredFolder(data, "diary")
    folder.write("2026/day.txt", b"one")
    folder.write("2026/day.txt", b"two")
    assert folder.read("2026/day.txt", 10) == b"two"
    assert [path.name for path in (data / "diary" / "2026").iterdir()] == ["day.txt"]


def test_writing_makes_the_declared_folder(data: Path) -> None:
    DeclaredFolder(data, "new/store").write("a.txt", b"x")
    assert (data / "new" / "store" / "a.txt").read_bytes() == b"x"


def test_a_failed_write_keeps_the_old_file(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = DeclaredFolder(data, "diary")
    folder.write("day.txt", b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StyleEyesError) as caught:
        folder.write("day.txt", b"new")
    assert caught.value.code == "TOOL_ERROR"
    assert "No space left" in caught.value.message
    assert [path.read_bytes() for path in (data / "diary").iterdir()] == [b"old"]


def test_names_lists_regular_plain_files_only(data: Path) -> None:
    diary = data / "diary"
    (diary / "b" / "c").mkdir(parents=True)
    for name in ("z.txt", "b/a.txt", "b/c/d.txt", ".hidden"):
        (diary / name).write_text("x")
    (diary / "link.txt").symlink_to("z.txt")
    os.mkfifo(diary / "pipe")
    assert DeclaredFolder(data, "diary").names() == ["b/a.txt", "b/c/d.txt", "z.txt"]
    assert DeclaredFolder(data, "absent").names() == []


def test_names_stops_at_a_thousand(data: Path) -> None:
    for number in range(1001):
        (data / "diary" / f"{number:04}").touch()
    names = DeclaredFolder(data, "diary").names()
    assert (len(names), names[0], names[-1]) == (1000, "0000", "0999")


def test_a_folder_swapped_for_a_link_while_reading_never_leads_out(data: Path) -> None:
    """Two states change places as fast as they can; no read may ever see the outside one."""
    guide = data / "guide"
    outside = data.parent.parent / "outside"
    outside.mkdir()
    (outside / "x.txt").write_text("outside")
    (guide / "real").mkdir()
    (guide / "real" / "x.txt").write_text("inside")
    (guide / "link").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (guide / "real").rename(guide / "spare")
            (guide / "link").rename(guide / "real")
            (guide / "real").rename(guide / "link")
            (guide / "spare").rename(guide / "real")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        folder = DeclaredFolder(data, "guide")
        for _ in range(1500):
            try:
                seen.add(folder.read("real/x.txt", 100))
            except StyleEyesError as error:
                assert error.code in ("NOT_FOUND", "CAPABILITY_DENIED")
    finally:
        stop.set()
        swapper.join()
    assert seen <= {b"inside"}
