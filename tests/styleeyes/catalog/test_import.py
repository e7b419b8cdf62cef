"""Importing: one note a style, photos beside them, what people wrote left alone."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from edge_agent.errors import UsageError
from edge_agent.styleeyes.catalog.build import build_catalog
from edge_agent.styleeyes.catalog.feeds.importer import ImportReport, import_feed
from edge_agent.styleeyes.catalog.notes import PhotoReference, ProductNote, read_note
from tests.styleeyes.catalog.shop import photo_bytes

COLUMNS = (
    "id", "item_group_id", "title", "description", "price", "sale_price", "color", "size", "material",
    "gender", "product_type", "image_link", "additional_image_link",
)  # fmt: skip
ROW = {
    "id": "A1-Red",
    "item_group_id": "A1",
    "title": "Alpha Coat - Red",
    "description": "Warm",
    "price": "50.00 EUR",
    "color": "Red",
    "size": "S/M",
    "material": "Wool/Silk",
    "gender": "female",
    "product_type": "Women > Outerwear > Coats &amp; Jackets",
    "image_link": "https://x.example/p/a1-red_main.jpg?w=9",
}
NAVY = {
    **ROW,
    "id": "A1-Navy",
    "title": "Alpha Coat (Navy)",
    "color": "Navy",
    "size": "M/L",
    "description": "Warm and long",
    "image_link": "https://x.example/p/a1-navy_main.jpg",
    "additional_image_link": "https://x.example/p/a1-navy_back.jpg",
}


class Snapshot:
    """A feed, a folder of photos, and the data folder they go to."""

    def __init__(self, root: Path) -> None:
        self.data, self.photos, self.feed = root / "data", root / "pictures", root / "feed.tsv"
        self.photos.mkdir()
        for seed, name in enumerate(("a1-red_main.jpg", "A1-NAVY_MAIN.JPG")):
            (self.photos / name).write_bytes(photo_bytes(seed))

    def write(self, *rows: dict[str, str]) -> None:
        lines = ["\t".join(COLUMNS), *("\t".join(row.get(c, "") for c in COLUMNS) for row in rows)]
        self.feed.write_text("\n".join(lines) + "\n")

    def run(self, *rows: dict[str, str], date: str | None = None) -> ImportReport:
        if rows:
            self.write(*rows)
        return import_feed(self.feed, self.data, photos=self.photos, snapshot_date=date)

    def note(self, style_id: str) -> ProductNote:
        return read_note(self.data / "products" / f"{style_id}.md")


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return Snapshot(tmp_path)


def test_sizes_and_colours_of_a_style_become_one_note(snapshot: Snapshot) -> None:
    report = snapshot.run(ROW, NAVY)
    note = snapshot.note("A1")
    assert (note.name, note.category, note.gender) == ("Alpha Coat", "Outerwear > Coats & Jackets", "female")
    assert (note.colors, note.sizes, note.materials) == (("Red", "Navy"), ("S", "M", "L"), ("Wool", "Silk"))
    assert (note.price, note.currency, note.description) == (Decimal("50.00"), "EUR", "Warm and long")
    assert [(photo.file, photo.view, photo.color) for photo in note.photos] == [
        ("a1-red_main.jpg", "main", "Red"),
        ("a1-navy_main.jpg", "main", "Navy"),
        ("a1-navy_back.jpg", "back", "Navy"),
    ]
    assert [variant.id for variant in note.variants] == ["A1-Red", "A1-Navy"]
    assert (report.items, report.styles, report.created) == (2, 1, 1)
    assert (report.photos_placed, report.photos_missing) == (2, 1)


def test_photos_are_found_by_base_name_whatever_their_case(snapshot: Snapshot) -> None:
    snapshot.run(ROW, NAVY)
    placed = snapshot.data / "photos" / "a1-navy_main.jpg"
    assert placed.read_bytes() == (snapshot.photos / "A1-NAVY_MAIN.JPG").read_bytes()
    report = build_catalog(snapshot.data, snapshot.data / "c.sqlite")
    assert (report.photos, report.excluded) == (2, {"missing": 1})


def test_photos_are_copied_where_links_do_not_reach(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_disk(self: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", other_disk)
    snapshot.run(ROW)
    placed = snapshot.data / "photos" / "a1-red_main.jpg"
    assert placed.stat().st_nlink == 1
    assert placed.read_bytes() == (snapshot.photos / "a1-red_main.jpg").read_bytes()
    assert [path.name for path in placed.parent.iterdir()] == ["a1-red_main.jpg"]


def test_same_feed_again_changes_nothing(snapshot: Snapshot) -> None:
    snapshot.run(ROW, NAVY)
    before = (snapshot.data / "products" / "A1.md").stat().st_mtime_ns
    report = snapshot.run()
    assert (report.created, report.updated, report.unchanged, report.kept) == (0, 0, 1, [])
    assert (snapshot.data / "products" / "A1.md").stat().st_mtime_ns == before


def test_newer_feed_renews_imported_notes(snapshot: Snapshot) -> None:
    snapshot.run(ROW)
    report = snapshot.run({**ROW, "price": "40 EUR"})
    assert (report.updated, snapshot.note("A1").price) == (1, Decimal(40))


@pytest.mark.parametrize(
    "text", ["---\nstyle_id: A1\nname: Mine\n---\n", "half a no", "---\nstyle_id: B\nname: x\n---\n"]
)
def test_hand_made_notes_are_left_alone(snapshot: Snapshot, text: str) -> None:
    path = snapshot.data / "products" / "A1.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    report = snapshot.run(ROW)
    assert report.kept == ["A1"]
    assert path.read_text() == text


def test_imported_notes_edited_by_hand_are_left_alone(snapshot: Snapshot) -> None:
    snapshot.run(ROW)
    path = snapshot.data / "products" / "A1.md"
    path.write_text(path.read_text().replace("Warm", "Very warm"))
    report = snapshot.run({**ROW, "price": "40 EUR"})
    assert report.kept == ["A1"]
    assert snapshot.note("A1").description == "Very warm"


def test_snapshot_date_is_the_feeds_or_the_operators_and_never_made_up(snapshot: Snapshot) -> None:
    report = snapshot.run(ROW)
    assert (report.undated, snapshot.note("A1").snapshot_date) == (1, None)
    snapshot.run(date="2026-09-14")
    assert snapshot.note("A1").snapshot_date == "2026-09-14"


def test_rows_that_cannot_be_used_are_told_by_line_and_the_rest_goes_on(snapshot: Snapshot) -> None:
    report = snapshot.run(
        {**ROW, "title": ""}, {**ROW, "price": "ask us"}, {**NAVY, "item_group_id": "B/2: x", "id": "B2"}
    )
    assert [str(problem) for problem in report.problems] == [
        "line 2: item A1-Red has no title",
        "line 3: item A1-Red: price 'ask us' is not a price; left out",
    ]
    assert (report.errors, report.warnings, report.cut_short) == (1, 1, False)
    assert snapshot.note("A1").price is None
    assert read_note(snapshot.data / "products" / "B%2F2%3A x.md").style_id == "B/2: x"


def test_sale_price_is_the_price(snapshot: Snapshot) -> None:
    snapshot.run({**ROW, "sale_price": "39.90 EUR"})
    assert snapshot.note("A1").price == Decimal("39.90")


def test_base_name_of_several_addresses_is_no_photo_of_anything(snapshot: Snapshot) -> None:
    (snapshot.photos / "1.jpg").write_bytes(photo_bytes(7))
    report = snapshot.run(
        {**ROW, "image_link": "https://x.example/a/1.jpg"},
        {**ROW, "id": "B2", "item_group_id": "B2", "image_link": "https://x.example/b/1.jpg"},
    )
    assert snapshot.note("A1").photos == snapshot.note("B2").photos == ()
    assert report.warnings == 2
    assert "several addresses end in 1.jpg" in report.problems[0].reason


def test_address_cannot_write_outside_the_photos_folder(snapshot: Snapshot) -> None:
    (snapshot.photos / "evil.jpg").write_bytes(photo_bytes(8))
    snapshot.run({**ROW, "image_link": "https://x.example/..%2f..%2fevil.jpg"})
    assert snapshot.note("A1").photos[0].file == "evil.jpg"
    assert (snapshot.data / "photos" / "evil.jpg").exists()


def test_feed_without_usable_items_writes_nothing(snapshot: Snapshot) -> None:
    with pytest.raises(UsageError) as caught:
        snapshot.run({**ROW, "id": ""})
    assert caught.value.code == "EMPTY_FEED"
    assert "line 2: has no id" in caught.value.message
    assert not snapshot.data.exists()


def test_shopify_page(snapshot: Snapshot) -> None:
    product = {
        "title": "Alpha Coat",
        "handle": "a1",
        "body_html": "<p>Warm</p>",
        "vendor": "Luma",
        "product_type": "Coats",
        "tags": ["female"],
        "updated_at": "2026-09-14T11:20:00-04:00",
        "options": [{"name": "Size"}, {"name": "Color"}],
        "variants": [
            {
                "id": 1,
                "option1": "S",
                "option2": "Red",
                "sku": "A1-S-Red",
                "price": "50.00",
                "barcode": "40012345",
            },
            {"id": 2, "option1": "S", "option2": "Navy", "sku": "A1-S-Navy", "price": "55.00"},
        ],
        "images": [
            {"src": "https://c.example/a1-red_main.jpg?v=1", "variant_ids": []},
            {"src": "https://c.example/shared.jpg", "variant_ids": []},
            {"src": "https://c.example/second.jpg", "variant_ids": [2]},
        ],
    }
    snapshot.feed.write_text(json.dumps({"products": [product, {"variants": []}]}))
    report = snapshot.run()
    note = snapshot.note("A1")
    assert (note.style_id, note.name, note.colors, note.sizes) == (
        "A1",
        "Alpha Coat",
        ("Red", "Navy"),
        ("S",),
    )
    assert (note.price, note.gtins, note.snapshot_date) == (Decimal("50.00"), ("40012345",), "2026-09-14")
    assert [(photo.file, photo.color) for photo in note.photos] == [
        ("a1-red_main.jpg", "Red"),
        ("shared.jpg", None),
        ("second.jpg", "Navy"),
    ]
    assert [str(problem) for problem in report.problems] == ["line 2: product has no title"]


@pytest.mark.needs_data
@pytest.mark.parametrize("feed", ["google-merchant.xml", "google-merchant.tsv", "shopify-products.json"])
def test_real_feed(retail: Path, tmp_path: Path, feed: str) -> None:
    report = import_feed(retail / feed, tmp_path / "data", photos=retail / "photos")
    assert (report.styles, report.created, report.errors, report.warnings) == (147, 147, 0, 0)
    assert (report.photos_placed, report.photos_missing) == (618, 0)
    note = read_note(tmp_path / "data" / "products" / "MH01.md")
    assert (note.name, note.price) == ("Chaz Kangeroo Hoodie", Decimal("52.00"))
    assert note.colors == ("Black", "Gray", "Orange")
    assert PhotoReference("mh01-gray_back.jpg", "back", "Gray") in [
        PhotoReference(photo.file, photo.view, photo.color) for photo in note.photos
    ]
