"""The items of one style as one product note."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from edge_agent.styleeyes.catalog.feeds.grouping import photo_name
from edge_agent.styleeyes.catalog.feeds.html_text import html_to_text, inline_text
from edge_agent.styleeyes.catalog.feeds.items import FeedItem, RowProblem
from edge_agent.styleeyes.catalog.feeds.prices import parse_price
from edge_agent.styleeyes.catalog.notes import PhotoReference, ProductNote, Variant
from edge_agent.styleeyes.catalog.words import gender_of, words_of

_SEVERAL = re.compile(r"\s*[/,;|]\s*")
_VIEWS = {
    "main": "main", "front": "front", "back": "back", "rear": "back", "side": "side", "sideb": "side",
    "detail": "detail", "closeup": "detail", "zoom": "detail", "outfit": "outfit", "look": "outfit",
    "model": "worn", "worn": "worn", "alt": "alt", "alternate": "alt",
}  # fmt: skip
_NOT_A_KIND = frozenset({"men", "women", "boys", "girls", "kids", "unisex"})
_CATEGORY_STEP = re.compile(r"\s*[>›»]\s*")
_LINK = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class StyleNote:
    """A note, and what about its items could only be used in part."""

    note: ProductNote
    problems: tuple[RowProblem, ...]


def note_of_style(
    style_id: str,
    items: Sequence[FeedItem],
    feed: str,
    snapshot_date: str | None,
    is_ambiguous: Callable[[str], bool],
) -> StyleNote:
    """One note for the sizes and colours of one style.

    `snapshot_date` is the operator's word and comes before the feed's own date; where there is
    neither, the date stays unknown: the day of the import says nothing about the prices in a file.
    The note's price is the lowest of the items'. A photo whose base name several addresses share
    is left out, since a folder cannot say which of them its file is.
    """
    problems: list[RowProblem] = []
    prices = [_price(item, problems) for item in items]
    amounts = [amount for amount, _ in prices if amount is not None]
    colors = _distinct(color for item in items for color in [_color(item)] if color)
    first = items[0]
    categories = Counter(inline_text(item.category) for item in items if item.category)
    dates = [item.updated for item in items if item.updated]
    gender = next((inline_text(item.gender) for item in items if item.gender), None)
    category, implied_gender = _category(categories.most_common(1)[0][0] if categories else "")
    note = ProductNote(
        style_id=style_id.strip(),
        name=_style_name(items, colors),
        brand=next((inline_text(item.brand) for item in items if item.brand), None),
        category=category,
        colors=colors,
        materials=_words(items, "material"),
        gender=gender or implied_gender,
        price=min(amounts) if amounts else None,
        currency=next((currency for _, currency in prices if currency), None),
        url=first.link if first.link and _LINK.fullmatch(first.link) else None,
        snapshot_date=snapshot_date or max(dates, default=None),
        photos=tuple(_photos(items, colors, is_ambiguous, problems)),
        patterns=_words(items, "pattern"),
        sizes=_words(items, "size"),
        gtins=_distinct(item.gtin for item in items if item.gtin),
        variants=tuple(
            Variant(
                item.id, _color(item), _split(item.size), amount if len(set(amounts)) > 1 else None, item.gtin
            )
            for item, (amount, _) in zip(items, prices, strict=True)
        ),
        imported_from=feed,
        description=html_to_text(max((item.description for item in items), key=len)),
    )
    return StyleNote(note, tuple(problems))


def _price(item: FeedItem, problems: list[RowProblem]) -> tuple[Decimal | None, str | None]:
    """What the item costs: its sale price where it has a lower one."""
    found: list[tuple[Decimal, str | None]] = []
    for text in filter(None, (item.price, item.sale_price)):
        try:
            found.append(parse_price(text))
        except ValueError as wrong:
            problems.append(RowProblem(item.line, f"item {item.id}: price {wrong}; left out", "warning"))
    amount = min((amount for amount, _ in found), default=None)
    return amount, next((currency for _, currency in found if currency), item.currency)


def _color(item: FeedItem) -> str | None:
    return inline_text(item.color) or None if item.color else None


def _style_name(items: Sequence[FeedItem], colors: Sequence[str]) -> str:
    """The title without what tells colours and sizes apart (`Chaz Hoodie Black` → `Chaz Hoodie`)."""
    names: Counter[str] = Counter()
    for item in items:
        name = inline_text(item.title)
        endings = [_color(item), *_split(item.size), *colors]
        names[_without_endings(name, [ending for ending in endings if ending])] += 1
    return names.most_common(1)[0][0]


def _without_endings(name: str, endings: Sequence[str]) -> str:
    """Cuts endings such as ` - Black`, `, XL` or ` (Red)` as long as something is left."""
    shorter = True
    while shorter:
        shorter = False
        for ending in endings:
            cut = re.sub(rf"(?i)[\s,/|(\[–-]+{re.escape(ending)}[)\]]?\s*$", "", name)
            if cut != name and cut:
                name, shorter = cut, True
    return name


def _category(path: str) -> tuple[str | None, str | None]:
    """`Men > Tops > Hoodies & Sweatshirts` → `Tops > Hoodies & Sweatshirts` and the gender it says."""
    steps = [step for step in _CATEGORY_STEP.split(path) if step]
    gender = None
    kept = []
    for step in steps:
        if gender_of(step) in _NOT_A_KIND and len(words_of(step)) == 1:
            gender = gender or step
        else:
            kept.append(step)
    # A bare number is a code of Google's taxonomy, which says nothing to a person.
    text = " > ".join(kept)
    return (None if not text or text.isdigit() else text), gender


def _words(items: Sequence[FeedItem], field: str) -> tuple[str, ...]:
    return _distinct(word for item in items for word in _split(getattr(item, field)))


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(part for part in _SEVERAL.split(inline_text(text)) if part) if text else ()


def _distinct(values: Iterator[str]) -> tuple[str, ...]:
    """Without repetitions, whatever their case; the first spelling stays."""
    kept: dict[str, str] = {}
    for value in values:
        kept.setdefault(value.casefold(), value)
    return tuple(kept.values())


def _photos(
    items: Sequence[FeedItem],
    colors: Sequence[str],
    is_ambiguous: Callable[[str], bool],
    problems: list[RowProblem],
) -> Iterator[PhotoReference]:
    shown: dict[str, tuple[FeedItem, str, set[str | None]]] = {}
    for item in items:
        for url in item.photo_urls:
            name = photo_name(url)
            if not name:
                problems.append(RowProblem(item.line, f"item {item.id}: {url!r} names no photo", "warning"))
                continue
            shown.setdefault(name, (item, url, set()))[2].add(_color(item))
    for name, (item, url, of_colors) in shown.items():
        if is_ambiguous(name):
            reason = f"item {item.id}: several addresses end in {name}; that photo is left out"
            problems.append(RowProblem(item.line, reason, "warning"))
            continue
        color = next(iter(of_colors)) if len(of_colors) == 1 else _named_color(name, colors)
        yield PhotoReference(name, _view(name), color, url)


def _named_color(name: str, colors: Sequence[str]) -> str | None:
    """The one colour of a style that a file name names."""
    words = " ".join(words_of(name))
    named = [color for color in colors if f" {' '.join(words_of(color))} " in f" {words} "]
    return named[0] if len(named) == 1 else None


def _view(name: str) -> str | None:
    for word in reversed(words_of(name.rsplit(".", 1)[0])):
        view = _VIEWS.get(word.rstrip("0123456789"))
        if view:
            return view
    return None
