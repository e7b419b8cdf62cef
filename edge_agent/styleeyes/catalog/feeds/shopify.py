"""Shopify `products.json`: one page of at most a few hundred products, each with variants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from edge_agent.errors import UsageError
from edge_agent.styleeyes.catalog.feeds.items import MAX_FIELD, MAX_PHOTOS, FeedItem, Reading, RowProblem

MAX_PAGE_BYTES = 64 * 1024 * 1024
"""A page of Shopify's holds at most 250 products; this is far above that."""
_GENDERS = frozenset({"male", "female", "unisex", "men", "women", "mens", "womens", "boys", "girls", "kids"})


def read_shopify(stream: BinaryIO) -> Iterator[Reading]:
    """Every variant of every product; `line` is the number of the product in the page."""
    data = stream.read(MAX_PAGE_BYTES + 1)
    if len(data) > MAX_PAGE_BYTES:
        raise UsageError(
            "FEED_TOO_LARGE",
            "The page is larger than 64 MiB.",
            "Export it in pages, and import one after another.",
        )
    try:
        products = json.loads(data)["products"]
    except (ValueError, KeyError, TypeError, RecursionError) as wrong:
        raise UsageError(
            "FEED_UNREADABLE", f"The feed is not a Shopify products.json: {wrong}.", "Download it again."
        ) from None
    if not isinstance(products, list):
        raise UsageError("FEED_UNREADABLE", "`products` of the feed is not a list.")
    for number, product in enumerate(products, 1):
        yield from _variants(number, product)


def _variants(number: int, product: Any) -> Iterator[Reading]:
    if not isinstance(product, Mapping) or not _text(product.get("title")):
        yield RowProblem(number, "product has no title")
        return
    variants = [v for v in _list(product.get("variants")) if isinstance(v, Mapping)]
    names = [str(o.get("name", "")).lower() for o in _list(product.get("options")) if isinstance(o, Mapping)]
    photos = [image for image in _list(product.get("images")) if isinstance(image, Mapping)]
    group = _text(product.get("handle")) or _text(product.get("id"))
    if group is None:
        yield RowProblem(number, "product has neither handle nor id")
        return
    group = _common_style(group, variants)
    tags = product.get("tags")
    words = tags.split(",") if isinstance(tags, str) else [str(tag) for tag in _list(tags)]
    gender = next((w.strip() for w in words if w.strip().lower() in _GENDERS), None)
    updated = _text(product.get("updated_at"))
    for variant in variants or [{}]:
        options = _options(names, variant)
        yield FeedItem(
            line=number,
            id=_text(variant.get("sku")) or _text(variant.get("id")) or group,
            title=_text(product.get("title")) or group,
            group_id=group,
            description=(_text(product.get("body_html")) or "")[:MAX_FIELD],
            photo_urls=tuple(_photos_of(variant, photos))[:MAX_PHOTOS],
            price=_text(variant.get("price")),
            brand=_text(product.get("vendor")),
            color=options.get("color") or options.get("colour"),
            size=options.get("size"),
            material=options.get("material"),
            gender=gender,
            gtin=_text(variant.get("barcode")),
            category=_text(product.get("product_type")),
            updated=updated[:10] if updated else None,
        )


def _common_style(group: str, variants: Sequence[Mapping[str, Any]]) -> str:
    """The handle as the variants' SKUs write it: handle `mh01`, SKU `MH01-XS-Black` → `MH01`."""
    heads = {sku[: len(group)] for v in variants if (sku := _text(v.get("sku"))) is not None}
    return heads.pop() if len(heads) == 1 and next(iter(heads)).lower() == group.lower() else group


def _options(names: Sequence[str], variant: Mapping[str, Any]) -> dict[str, str]:
    values = (_text(variant.get(f"option{place}")) for place in (1, 2, 3))
    return {name: value for name, value in zip(names, values, strict=False) if value}


def _photos_of(variant: Mapping[str, Any], photos: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Photos that name the variant, else those that name none."""
    own = [p for p in photos if variant.get("id") in _list(p.get("variant_ids"))]
    shared = [p for p in photos if not _list(p.get("variant_ids"))]
    for photo in [*own, *shared]:
        url = _text(photo.get("src"))
        if url:
            yield url


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
