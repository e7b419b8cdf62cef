"""Product notes: what people write, what YAML makes of it, and what is said about mistakes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.styleeyes.catalog.notes import (
    NoteError,
    PhotoReference,
    ProductNote,
    Variant,
    is_untouched_import,
    note_file_name,
    parse_note,
    read_note,
    render_note,
    seal,
    style_id_of_file,
)

LEAST = "style_id: A1\nname: Coat\n"


def parsed(front: str, body: str = "") -> ProductNote:
    return parse_note(f"---\n{front}---\n{body}", "A1.md")


def refused(front: str) -> NoteError:
    with pytest.raises(NoteError) as caught:
        parsed(front)
    return caught.value


def test_a_whole_note() -> None:
    note = parsed(
        LEAST
        + "brand: Luma\ncategory: Jackets\ncolors: [red, dark blue]\nmaterials:\n  - wool\ngender: men\n"
        "price: 29.50\ncurrency: usd\nurl: https://shop.example/a1\nsnapshot_date: 2026-09-14\n"
        "photos:\n  - {file: a1.jpg, view: main, color: red}\n  - file: a1_back.jpg\n"
        "  - plain.jpg\nfit: slim\n",
        "\nA *warm* coat.\n",
    )
    assert note == ProductNote(
        "A1",
        "Coat",
        brand="Luma",
        category="Jackets",
        colors=("red", "dark blue"),
        materials=("wool",),
        gender="men",
        price=Decimal("29.50"),
        currency="USD",
        url="https://shop.example/a1",
        snapshot_date="2026-09-14",
        photos=(
            PhotoReference("a1.jpg", "main", "red"),
            PhotoReference("a1_back.jpg"),
            PhotoReference("plain.jpg"),
        ),
        description="A *warm* coat.",
        more={"fit": "slim"},
    )


def test_yaml_guesses_no_types() -> None:
    note = parse_note("---\nstyle_id: 012\nname: 1e3\ncolors: [no, on, 010, 2026-01-01]\n---\n", "012.md")
    assert (note.style_id, note.name) == ("012", "1e3")
    assert note.colors == ("no", "on", "010", "2026-01-01")


@pytest.mark.parametrize(
    ("written", "price", "currency"),
    [
        ("29", "29", None),
        ('"29.90"', "29.90", None),
        ("29.00 USD", "29.00", "USD"),
        ("EUR 5", "5", "EUR"),
        ("0", "0", None),
    ],
)
def test_price_as_number_or_text(written: str, price: str, currency: str | None) -> None:
    note = parsed(f"{LEAST}price: {written}\n")
    assert (note.price, note.currency) == (Decimal(price), currency)


@pytest.mark.parametrize(
    "missing", ["", "snapshot_date:\n", "snapshot_date: ~\n", "snapshot_date: unknown\n"]
)
def test_missing_snapshot_date_stays_unknown(missing: str) -> None:
    assert parsed(LEAST + missing).snapshot_date is None


def test_time_of_day_is_dropped_from_the_date() -> None:
    assert parsed(LEAST + "snapshot_date: 2026-09-14T11:20:00-04:00\n").snapshot_date == "2026-09-14"


def test_one_colour_or_several_between_commas_will_do_for_a_list() -> None:
    assert parsed(LEAST + "colors: red, Blue , red\n").colors == ("red", "Blue")


@pytest.mark.parametrize(
    ("front", "line", "words"),
    [
        ("name: Coat\n", None, "style_id is missing"),
        ("style_id: A1\nname:\n", 3, "name is missing"),
        (LEAST + "price: cheap\n", 4, "price 'cheap' is not an amount"),
        (LEAST + "price: -3\n", 4, "is not an amount"),
        (LEAST + "price: .nan\n", 4, "is not an amount"),
        (LEAST + "currency: dollars\n", 4, "three-letter code"),
        (LEAST + "brand: x\nsnapshot_date: last week\n", 5, "is not a date"),
        (LEAST + "snapshot_date: 2026-02-30\n", 4, "is not a date"),
        (LEAST + "colors: {a: b}\n", 4, "colors must be a list of words"),
        (LEAST + "colors: [[red]]\n", 4, "colors must hold words only"),
        (LEAST + "photos: a1.jpg\n", 4, "photos must be a list"),
        (LEAST + "photos:\n  - view: main\n", 5, "a photo has no file name"),
        (LEAST + "name: Again\n", 4, "name is given twice"),
        (LEAST + "brand: [unclosed\n", None, "front matter is not YAML"),
        (LEAST + "name2: a: b\n", 4, "front matter is not YAML"),
        (LEAST + "brand: !!python/object/apply:os.system [ls]\n", 4, "brand must hold one value"),
        ("- a\n- b\n", 2, "must be a list of `key: value` lines"),
    ],
)
def test_mistakes_are_named_with_file_and_line(front: str, line: int | None, words: str) -> None:
    error = refused(front)
    assert words in error.message
    assert error.message.startswith("A1.md")
    if line is not None:
        assert error.at is not None
        assert error.at.line == line
        assert error.message.startswith(f"A1.md:{line}: ")


@pytest.mark.parametrize("text", ["", "no front matter", "---\nstyle_id: A1\n"])
def test_front_matter_must_begin_and_end(text: str) -> None:
    with pytest.raises(NoteError, match="front matter"):
        parse_note(text, "A1.md")


def test_aliases_cannot_blow_up_memory() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
    )
    assert "colors must hold words only" in refused(f"{LEAST}{bomb}colors: *u\n").message


def test_deep_nesting_is_a_fault_not_a_crash() -> None:
    assert refused(LEAST + "brand: " + "[" * 50_000 + "\n").code == "INVALID_NOTE"


def test_control_characters_are_taken_out() -> None:
    note = parsed('style_id: A1\nname: "Co\\e[31mat\\u202E"\n', "text \x1b]0;title\x07 more")
    assert (note.name, note.description) == ("Coat", "text  more")


def test_file_must_be_named_for_its_style(tmp_path: Path) -> None:
    path = tmp_path / "B2.md"
    path.write_text(f"---\n{LEAST}---\n")
    with pytest.raises(NoteError, match=r"style_id is 'A1', but the file is named for 'B2'"):
        read_note(path)


def test_note_that_is_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "A1.md"
    path.write_bytes(b"---\nstyle_id: A1\nname: Caf\xe9\n---\n")
    with pytest.raises(NoteError, match=r"A1\.md:3: is not UTF-8"):
        read_note(path)


def test_huge_note_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "A1.md"
    path.write_text(f"---\n{LEAST}---\n" + "x" * 300_000)
    with pytest.raises(NoteError, match="larger than 256 KiB"):
        read_note(path)


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)
_WORDS = st.lists(_TEXT.map(lambda t: t + "x"), max_size=4, unique_by=str.casefold).map(tuple)


@given(
    style_id=_TEXT,
    name=_TEXT,
    colors=_WORDS,
    photos=st.lists(
        st.builds(PhotoReference, _TEXT, st.none() | _TEXT), max_size=3, unique_by=lambda p: p.file
    ),
    variants=st.lists(st.builds(Variant, _TEXT, sizes=_WORDS), max_size=3),
    description=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))),
)
def test_written_notes_read_the_same(
    style_id: str,
    name: str,
    colors: tuple[str, ...],
    photos: list[PhotoReference],
    variants: list[Variant],
    description: str,
) -> None:
    note = ProductNote(
        style_id,
        name,
        colors=colors,
        photos=tuple(photos),
        variants=tuple(variants),
        price=Decimal("5.00"),
        description=description.strip(),
    )
    assert parse_note(render_note(note), "x.md") == note


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_every_style_id_has_a_file_name(style_id: str) -> None:
    name = note_file_name(style_id)
    assert "/" not in name
    assert "\x00" not in name
    assert not name.startswith(".")
    assert style_id_of_file(name) == style_id


def test_an_edit_by_hand_is_noticed() -> None:
    note = seal(ProductNote("A1", "Coat", imported_from="feed.xml"))
    text = render_note(note)
    assert is_untouched_import(parse_note(text, "A1.md"))
    assert not is_untouched_import(parse_note(text.replace("Coat", "Warm coat"), "A1.md"))
    assert not is_untouched_import(ProductNote("A1", "Coat"))
