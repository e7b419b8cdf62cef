"""What every feed format is read into: one orderable item, as the feed wrote it, with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MAX_FIELD = 65_536
"""Characters kept of one field; the rest of an absurd description is not worth memory."""
MAX_PHOTOS = 40
"""Photo addresses kept of one item."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One row, entry or variant. Texts are as written: prices and HTML are read later."""

    line: int
    """Where it begins in the file, counted from 1; in JSON the number of the product."""
    id: str
    title: str
    group_id: str | None = None
    description: str = ""
    link: str | None = None
    photo_urls: tuple[str, ...] = ()
    price: str | None = None
    sale_price: str | None = None
    brand: str | None = None
    color: str | None = None
    size: str | None = None
    material: str | None = None
    pattern: str | None = None
    gender: str | None = None
    gtin: str | None = None
    category: str | None = None
    updated: str | None = None
    """ISO date at which the feed says this item was so."""
    currency: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A place in a feed that could not be used (`error`) or only in part (`warning`)."""

    line: int
    reason: str
    severity: Severity = "error"
    ends_reading: bool = False
    """Nothing after this place could be read."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


Reading = FeedItem | RowProblem


def item_from_fields(line: int, fields: Mapping[str, list[str]], updated: str | None) -> Reading:
    """An item from Google Merchant attribute names (lower case, `_` for spaces)."""

    def one(*names: str) -> str | None:
        for name in names:
            for value in fields.get(name, ()):
                if value.strip():
                    return value.strip()[:MAX_FIELD]
        return None

    item_id, title = one("id"), one("title")
    if item_id is None:
        return RowProblem(line, "has no id")
    if title is None:
        return RowProblem(line, f"item {item_id} has no title")
    urls = [one("image_link"), *_many(fields.get("additional_image_link", []))]
    return FeedItem(
        line=line,
        id=item_id,
        title=title,
        group_id=one("item_group_id"),
        description=one("description") or "",
        link=one("link"),
        photo_urls=tuple(dict.fromkeys(url for url in urls if url))[:MAX_PHOTOS],
        price=one("price"),
        sale_price=one("sale_price"),
        brand=one("brand"),
        color=one("color", "colour"),
        size=one("size"),
        material=one("material"),
        pattern=one("pattern"),
        gender=one("gender"),
        gtin=one("gtin"),
        category=one("product_type") or one("google_product_category"),
        updated=updated,
    )


def _many(values: list[str]) -> list[str]:
    """Several addresses in one value stand between commas that an address itself follows."""
    return [url.strip() for value in values for url in _split_urls(value) if url.strip()]


def _split_urls(value: str) -> list[str]:
    parts: list[str] = []
    for part in value.split(","):
        if parts and "://" not in part and not part.lstrip().startswith("/"):
            parts[-1] += "," + part
        else:
            parts.append(part)
    return parts
