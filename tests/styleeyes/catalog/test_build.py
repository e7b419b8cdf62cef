"""The build: all or nothing, the same bytes, and nothing left behind."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.styleeyes.catalog.build import build_catalog
from edge_agent.styleeyes.catalog.schema import FORMAT, open_catalog
from edge_agent.styleeyes.catalog.snapshot import Progress
from tests.styleeyes.catalog.shop import Shop, note


@pytest.fixture
def stocked(shop: Shop) -> Shop:
    shop.add(note("MH01", "Chaz Hoodie", photos=("mh01_main.jpg",), snapshot_date="2026-09-14"))
    shop.add(note("MH02", "Teton Hoodie", photos=("mh02_main.jpg",), snapshot_date="2026-03-01"))
    shop.add(note("WP03", "Ida Pant"))
    return shop


def rows(shop: Shop, sql: str) -> list[tuple[object, ...]]:
    connection = open_catalog(shop.catalog)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_builds_products_photos_and_meta(stocked: Shop) -> None:
    report = stocked.build()
    assert (report.products, report.photos, report.excluded) == (3, 2, {})
    assert (report.snapshot_first, report.snapshot_last, report.snapshot_unknown) == (
        "2026-03-01",
        "2026-09-14",
        1,
    )
    assert report.bytes == stocked.catalog.stat().st_size
    assert rows(stocked, "SELECT style_id, photo_count, snapshot_date FROM products ORDER BY id") == [
        ("MH01", 1, "2026-09-14"),
        ("MH02", 1, "2026-03-01"),
        ("WP03", 0, None),
    ]
    assert rows(stocked, "SELECT style_id, file, view, color, width, height FROM photos ORDER BY id")[0] == (
        "MH01",
        "mh01_main.jpg",
        "main",
        "red",
        64,
        80,
    )
    assert stocked.leftovers() == []


def test_the_seeds_minimal_search_runs_on_it(stocked: Shop) -> None:
    stocked.build()
    assert rows(stocked, "SELECT name FROM products WHERE name LIKE '%hoodie%' LIMIT 5") == [
        ("Chaz Hoodie",),
        ("Teton Hoodie",),
    ]


def test_published_file_is_in_delete_mode_and_sound(stocked: Shop) -> None:
    stocked.build()
    with sqlite3.connect(stocked.catalog) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_same_snapshot_same_bytes(stocked: Shop, tmp_path: Path) -> None:
    build_catalog(stocked.data, tmp_path / "a.sqlite")
    build_catalog(stocked.data, tmp_path / "b.sqlite")
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()


def test_refuses_to_overwrite(stocked: Shop) -> None:
    stocked.catalog.parent.mkdir()
    stocked.catalog.write_text("mine")
    with pytest.raises(UsageError) as caught:
        stocked.build()
    assert caught.value.code == "ALREADY_EXISTS"
    assert stocked.catalog.read_text() == "mine"


def test_refuses_a_dangling_link_too(stocked: Shop) -> None:
    stocked.catalog.parent.mkdir()
    stocked.catalog.symlink_to("nowhere")
    with pytest.raises(UsageError, match="is not overwritten"):
        stocked.build()


def test_file_that_appears_during_the_build_is_not_overwritten(stocked: Shop) -> None:
    def someone_else(progress: Progress) -> None:
        if progress.stage == "checking":
            stocked.catalog.write_text("theirs")

    with pytest.raises(UsageError, match="is not overwritten"):
        build_catalog(stocked.data, stocked.catalog, someone_else)
    assert stocked.catalog.read_text() == "theirs"
    assert stocked.leftovers() == []


def test_file_that_appears_is_not_overwritten_without_hard_links_either(
    stocked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    stocked.build()
    assert rows(stocked, "SELECT count(*) FROM products") == [(3,)]
    stocked.catalog.unlink()

    def someone_else(progress: Progress) -> None:
        if progress.stage == "checking":
            stocked.catalog.write_text("theirs")

    with pytest.raises(UsageError, match="is not overwritten"):
        build_catalog(stocked.data, stocked.catalog, someone_else)
    assert stocked.catalog.read_text() == "theirs"


def test_replace_serves_the_old_catalog_until_the_rename(stocked: Shop) -> None:
    stocked.build()
    stocked.add(note("ZZ99", "New"))
    during: list[int] = []

    def look(progress: Progress) -> None:
        if progress.stage == "checking":
            during.append(len(rows(stocked, "SELECT 1 FROM products")))

    build_catalog(stocked.data, stocked.catalog, look, replace=True)
    assert during == [3]
    assert rows(stocked, "SELECT count(*) FROM products") == [(4,)]
    assert stocked.leftovers() == []


@pytest.mark.parametrize("stage", ["products", "indexing", "checking"])
def test_interrupted_build_leaves_nothing_and_can_be_retried(stocked: Shop, stage: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_catalog(stocked.data, stocked.catalog, interrupt)
    assert not stocked.catalog.exists()
    assert stocked.leftovers() == []
    assert stocked.build().products == 3


def test_every_broken_note_is_named_and_a_mended_snapshot_builds(stocked: Shop) -> None:
    stocked.write("---\nstyle_id: X1\nname: X\nprice: much\n---\n", "X1.md")
    stocked.write("nothing", "X2.md")
    with pytest.raises(UsageError) as caught:
        stocked.build()
    assert "2 notes cannot be read" in caught.value.message
    assert "X1.md:4: price 'much'" in caught.value.message
    assert "X2.md:1: does not begin with front matter" in caught.value.message
    assert stocked.leftovers() == []
    stocked.write("---\nstyle_id: X1\nname: X\nprice: 5\n---\n", "X1.md")
    (stocked.data / "products" / "X2.md").unlink()
    assert stocked.build().products == 4


def test_full_disk_is_one_clear_error_and_leaves_nothing(stocked: Shop, tmp_path: Path) -> None:
    limit = 64 * 1024
    pid = os.fork()
    if pid == 0:
        # In a child, since a limit on file sizes holds for the whole process.
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            stocked.build()
        except StyleEyesError as error:
            os._exit(7 if error.code == "CATALOG_WRITE_FAILED" else 8)
        os._exit(9)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert not stocked.catalog.exists()
    assert stocked.leftovers() == []


def test_photos_left_out_are_recorded_with_their_reason(shop: Shop) -> None:
    shop.add(note("MH01", "One", photos=("mh02-red_main.jpg", "gone.jpg", "mh01.jpg", "cut.jpg")))
    shop.add(note("MH02", "Two"))
    (shop.data / "photos" / "gone.jpg").unlink()
    cut = shop.data / "photos" / "cut.jpg"
    cut.write_bytes(cut.read_bytes()[:200])
    report = shop.build()
    assert (report.photos, report.excluded) == (1, {"damaged": 1, "missing": 1, "other-style": 1})
    assert rows(shop, "SELECT style_id, file, reason, detail FROM excluded_photos ORDER BY file") == [
        ("MH01", "cut.jpg", "damaged", "ends in the middle of the picture"),
        ("MH01", "gone.jpg", "missing", "is not in the photos folder"),
        ("MH01", "mh02-red_main.jpg", "other-style", "its file name names style MH02"),
    ]


@pytest.mark.parametrize("make", [True, False])
def test_no_notes_says_what_to_do(tmp_path: Path, make: bool) -> None:
    if make:
        (tmp_path / "products").mkdir()
    with pytest.raises(UsageError) as caught:
        build_catalog(tmp_path, tmp_path / "out.sqlite")
    assert caught.value.code == "NO_PRODUCTS"
    assert "catalog import" in (caught.value.hint or "")
    assert not list(tmp_path.glob("*out.sqlite*"))


def test_two_notes_of_one_style_id_are_refused(shop: Shop) -> None:
    shop.add(note("mh01", "One"))
    shop.add(note("MH01", "One again"))
    with pytest.raises(UsageError, match=r"MH01\.md and mh01\.md hold one style id"):
        shop.build()


def test_more_products_than_one_batch(shop: Shop) -> None:
    for number in range(1203):
        shop.write(f"---\nstyle_id: S{number:05}\nname: Red jacket {number}\n---\nwarm\n", f"S{number:05}.md")
    shop.build()
    found = "SELECT count(*), max(rowid) FROM product_words WHERE product_words MATCH 'jacket'"
    assert rows(shop, found) == [(1203, 1203)]
    assert rows(shop, "SELECT products FROM vocabulary WHERE word = 'jacket'") == [(1203,)]


def test_newer_or_foreign_files_are_refused(stocked: Shop, tmp_path: Path) -> None:
    stocked.build()
    with sqlite3.connect(stocked.catalog) as connection:
        connection.execute(f"PRAGMA user_version={FORMAT + 1}")
    connection.close()
    with pytest.raises(UsageError, match=f"format {FORMAT + 1}"):
        open_catalog(stocked.catalog)
    for content in (b"not a database at all" * 100, b""):
        (tmp_path / "x.sqlite").write_bytes(content)
        with pytest.raises(UsageError, match="is not a StyleEyes catalog"):
            open_catalog(tmp_path / "x.sqlite")
    with pytest.raises(UsageError, match="There is no catalog"):
        open_catalog(tmp_path / "none.sqlite")
