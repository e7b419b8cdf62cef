"""The list of photos to look at ahead: what the catalog refers to, and nothing outside its folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from edge_agent.errors import UsageError
from edge_agent.styleeyes.photo_list import read_photo_list
from tests.styleeyes.catalog.shop import Shop, note


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "data")
    made.add(note("MH01", "Chaz Hoodie", photos=("mh01-a.jpg", "mh01-b.jpg"), category="Tops"))
    made.add(note("WP03", "Ida Pant", photos=("wp03.jpg",)))
    made.build()
    return made


def test_the_first_view_of_every_style_comes_before_any_second_view(shop: Shop) -> None:
    listed = read_photo_list(shop.catalog, shop.data / "photos")
    assert [photo.path.name for photo in listed] == ["mh01-a.jpg", "wp03.jpg", "mh01-b.jpg"]
    assert (listed[0].style_id, listed[0].words, listed[0].color) == ("MH01", "Chaz Hoodie, Tops", "red")
    assert listed[1].words == "Ida Pant"


@pytest.mark.parametrize("file", ["../../secret.jpg", "/etc/hostname", "link.jpg"])
def test_a_reference_that_leads_out_of_the_folder_is_left_out(shop: Shop, tmp_path: Path, file: str) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"no")
    (shop.data / "photos" / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    with sqlite3.connect(shop.catalog) as tampered:
        tampered.execute("UPDATE photos SET file = ? WHERE file = 'wp03.jpg'", (file,))
    tampered.close()
    listed = read_photo_list(shop.catalog, shop.data / "photos")
    assert [photo.style_id for photo in listed] == ["MH01", "MH01"]


def test_what_is_no_catalog_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_photo_list(tmp_path / "none.sqlite", tmp_path)
