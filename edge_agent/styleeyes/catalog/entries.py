"""One product note as the rows of a catalog: what is shown, what is filtered by, what is searched."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.styleeyes.catalog.notes import PhotoReference, ProductNote
from edge_agent.styleeyes.catalog.photos import VerifiedPhoto, fold_code
from edge_agent.styleeyes.catalog.words import (
    broader_terms,
    color_families,
    fold,
    gender_of,
    has_unspaced_script,
    index_terms,
    preferred_terms,
    words_of,
)

SqlValue = str | int | float | None
MAX_DESCRIPTION_WORDS = 2_000
"""What of a description is searched; all of it is shown."""
_VIEW_ORDER = ("main", "front", None, "worn", "alt", "side", "outfit", "back", "detail")


@dataclass(frozen=True, slots=True)
class ProductEntry:
    """All rows of one product. The order of fields follows `schema`."""

    product: tuple[SqlValue, ...]
    photos: tuple[tuple[SqlValue, ...], ...]
    variants: tuple[tuple[SqlValue, ...], ...]
    colors: tuple[tuple[int, str, str], ...]
    kinds: tuple[tuple[int, str], ...]
    codes: tuple[tuple[str, int], ...]
    words: tuple[SqlValue, ...]
    script: str | None
    """The folded text, where some of it is written without spaces between words."""
    vocabulary: frozenset[str]


def product_entry(
    product_id: int, note: ProductNote, photos: Sequence[tuple[PhotoReference, VerifiedPhoto]]
) -> ProductEntry:
    """The rows for `note` with the photos of it that were verified."""
    colors = tuple(color.lower() for color in note.colors)
    gender = gender_of(note.gender) if note.gender else None
    columns = _index_columns(note, colors, gender)
    text = "\n".join(
        filter(None, (note.name, note.brand, note.category, *colors, *note.materials, note.description))
    )
    return ProductEntry(
        product=(
            product_id,
            note.style_id,
            note.name,
            note.brand,
            note.category,
            gender,
            _json(colors),
            _json(note.materials),
            _json(note.patterns),
            _json(note.sizes),
            note.description,
            None if note.price is None else float(note.price),
            note.currency,
            note.url,
            note.snapshot_date,
            note.imported_from,
            len(photos),
        ),
        photos=tuple(_photo_rows(product_id, note.style_id, photos)),
        variants=tuple(
            (product_id, v.id, v.color, _json(v.sizes), None if v.price is None else float(v.price), v.gtin)
            for v in note.variants
        ),
        colors=tuple(
            (product_id, fold(color), family)
            for color in dict.fromkeys(colors)
            for family in color_families(color) or ("",)
        ),
        kinds=tuple((product_id, kind) for kind in sorted(set(columns.kinds))),
        codes=tuple((code, product_id) for code in sorted(_codes(note))),
        words=(product_id, *columns.texts),
        script=fold(text) if has_unspaced_script(text) else None,
        vocabulary=columns.vocabulary,
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    texts: tuple[str, ...]
    kinds: list[str]
    vocabulary: frozenset[str]


def _index_columns(note: ProductNote, colors: Sequence[str], gender: str | None) -> _Columns:
    """The columns of `product_words`, every word in its preferred form."""
    name = list(preferred_terms(words_of(note.name)))
    category = list(preferred_terms(words_of(note.category or "")))
    own_kinds = [row.term for row in (*category, *name) if row.kind == "garment"]
    kinds = [*dict.fromkeys(own_kinds), *sorted(broader_terms(own_kinds) - set(own_kinds))]
    color_terms: list[str] = []
    for color in colors:
        color_terms += _terms(color)
        color_terms += [family for family in color_families(color) if family not in color_terms]
    columns = (
        _terms(note.name),
        # Category words that are no garment ("running", "outlet") are searched as well.
        [*kinds, *(row.term for row in category if row.kind != "garment")],
        color_terms,
        _terms(note.brand or ""),
        [term for material in note.materials for term in _terms(material)],
        [term for pattern in note.patterns for term in _terms(pattern)],
        [gender] if gender else [],
        list(index_terms(words_of(note.description)[:MAX_DESCRIPTION_WORDS])),
    )
    vocabulary = Counter(word for column in columns for word in column)
    return _Columns(
        tuple(" ".join(column) for column in columns),
        kinds,
        frozenset(word for word in vocabulary if word.isalpha() and 2 <= len(word) <= 32),
    )


def _terms(text: str) -> list[str]:
    return list(index_terms(words_of(text)))


def _photo_rows(
    product_id: int, style_id: str, photos: Sequence[tuple[PhotoReference, VerifiedPhoto]]
) -> list[tuple[SqlValue, ...]]:
    ordered = sorted(photos, key=lambda pair: _view_rank(pair[0].view))
    return [
        (
            product_id,
            style_id,
            position,
            reference.file,
            reference.view,
            reference.color.lower() if reference.color else None,
            photo.width,
            photo.height,
            photo.bytes,
            photo.sha256,
        )
        for position, (reference, photo) in enumerate(ordered)
    ]


def _view_rank(view: str | None) -> int:
    known = view.lower() if view else None
    return _VIEW_ORDER.index(known) if known in _VIEW_ORDER else _VIEW_ORDER.index("alt")


def _codes(note: ProductNote) -> set[str]:
    given = [note.style_id, *note.gtins]
    given += [code for variant in note.variants for code in (variant.id, variant.gtin) if code]
    return {code for code in map(fold_code, given) if code}


def _json(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
