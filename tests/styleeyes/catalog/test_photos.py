"""Photo verification: only what decodes and belongs to its style."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.styleeyes.catalog.photos import (
    LeftOut,
    VerifiedPhoto,
    fold_code,
    is_telling_code,
    names_another_style,
    verify_photo,
)
from tests.styleeyes.catalog.shop import photo_bytes

STYLES = ("MH01", "MH02", "POL-358", "38.101", "12", "zip-up-tee", "red", "MT1", "MT12")
KNOWN = {fold_code(style): style for style in STYLES}


@pytest.mark.parametrize(
    ("file", "style", "other"),
    [
        ("mh01-black_main.jpg", "MH01", None),
        ("mh01-black_main.jpg", "MH02", "MH01"),
        ("MH01black_main.jpg", "MH02", "MH01"),
        ("folder/mh01.jpg", "MH02", "MH01"),
        ("mh02.jpg/front.jpg", "MH01", None),  # a folder's name is no file name
        ("mh01-with-mh02_outfit.jpg", "MH01", None),  # its own style is named too
        ("pol_358_front.jpg", "MH01", "POL-358"),
        ("pol-358.jpg", "POL-358", None),
        ("38101-a.jpg", "MH01", "38.101"),
        ("front-12.jpg", "MH01", None),  # too short a code to say anything
        ("red-front.jpg", "MH01", None),
        ("zip-up-tee-blue.jpg", "MH01", "zip-up-tee"),
        ("mt12.jpg", "MT1", "MT12"),
        ("mt1-2.jpg", "MT1", None),
        ("mh011.jpg", "MH02", None),
        ("IMG_20260914.jpg", "MH01", None),
    ],
)
def test_file_name_of_another_style(file: str, style: str, other: str | None) -> None:
    assert names_another_style(file, style, KNOWN.get) == other


@pytest.mark.parametrize(
    ("style", "telling"), [("12", False), ("1234", False), ("12345", True), ("a1", False), ("ab1", True)]
)
def test_which_codes_say_something(style: str, telling: bool) -> None:
    assert is_telling_code(style) is telling


def check(tmp_path: Path, name: str) -> VerifiedPhoto | LeftOut:
    return verify_photo(tmp_path.resolve(), name)


@pytest.mark.parametrize("ending", [".jpg", ".png", ".webp"])
def test_good_photo(tmp_path: Path, ending: str) -> None:
    data = photo_bytes(size=(64, 96), ending=ending)
    (tmp_path / "p").write_bytes(data)
    found = check(tmp_path, "p")
    assert isinstance(found, VerifiedPhoto)
    assert (found.width, found.height, found.bytes) == (64, 96, len(data))


@pytest.mark.parametrize("ending", [".jpg", ".png", ".webp"])
def test_cut_off_photo_is_damaged(tmp_path: Path, ending: str) -> None:
    data = photo_bytes(size=(200, 200), ending=ending)
    (tmp_path / "p").write_bytes(data[: len(data) * 2 // 3])
    found = check(tmp_path, "p")
    assert isinstance(found, LeftOut)
    assert found.reason == "damaged"


def test_jpeg_with_data_behind_its_end_is_good(tmp_path: Path) -> None:
    (tmp_path / "p.jpg").write_bytes(photo_bytes() + b"trailer" * 4000)
    assert isinstance(check(tmp_path, "p.jpg"), VerifiedPhoto)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not-an-image"),
        (b"<html>not found</html>", "not-an-image"),
        (b"\xff\xd8\xff\xe0" + b"\x00" * 50 + b"\xff\xd9", "damaged"),
        (photo_bytes(size=(16, 16)), "size"),
    ],
)
def test_what_is_no_photo_of_a_garment(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "p.jpg").write_bytes(content)
    found = check(tmp_path, "p.jpg")
    assert isinstance(found, LeftOut)
    assert found.reason == reason


def test_photo_must_lie_in_its_folder(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (tmp_path / "secret.jpg").write_bytes(photo_bytes())
    (photos / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (photos / "loop.jpg").symlink_to("loop.jpg")
    for name, reason in (
        ("link.jpg", "outside"),
        ("../secret.jpg", "outside"),
        (str(tmp_path / "secret.jpg"), "outside"),
        ("loop.jpg", "unreadable"),
        ("gone.jpg", "missing"),
        (".", "missing"),
        ("a\x00b.jpg", "unreadable"),
    ):
        found = verify_photo(photos.resolve(), name)
        assert isinstance(found, LeftOut), name
        assert found.reason == reason, name
