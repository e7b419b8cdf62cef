"""Tells a feed's format by its content and opens it as a stream of items."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from edge_agent.errors import UsageError
from edge_agent.styleeyes.catalog.feeds.items import Reading
from edge_agent.styleeyes.catalog.feeds.merchant_tsv import read_merchant_tsv
from edge_agent.styleeyes.catalog.feeds.merchant_xml import read_merchant_xml
from edge_agent.styleeyes.catalog.feeds.shopify import read_shopify

_PEEK = 4096
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A feed being read. `position()` is how many of `size` bytes of the file have been read."""

    kind: str
    items: Iterator[Reading]
    size: int
    _file: BinaryIO

    def position(self) -> int:
        return self._file.tell()


@contextmanager
def open_feed(path: Path) -> Iterator[OpenFeed]:
    """Opens a feed, gzip or not. Raises UsageError where it is missing or of no known format."""
    try:
        file = path.open("rb")
    except OSError as wrong:
        raise UsageError(
            "FEED_UNREADABLE", f"The feed {path} cannot be opened: {wrong.strerror or wrong}."
        ) from None
    with file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        raw = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
        stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 16)
        try:
            head = stream.peek(_PEEK)[:_PEEK]
            kind, items = _recognise(head, stream, path)
            yield OpenFeed(kind, items, path.stat().st_size, file)
        except (gzip.BadGzipFile, EOFError) as wrong:
            raise UsageError(
                "FEED_UNREADABLE", f"{path.name} is a damaged gzip file: {wrong}.", "Download it again."
            ) from None


def _recognise(head: bytes, stream: BinaryIO, path: Path) -> tuple[str, Iterator[Reading]]:
    text = _as_text(head).lstrip()
    if text.startswith("<"):
        return "google-merchant-xml", read_merchant_xml(stream)
    if text.startswith("{") and '"products"' in text:
        return "shopify", read_shopify(stream)
    first = text.split("\n", 1)[0].lower()
    if "\t" in first and {"id", "title"} <= {name.strip(' "\r') for name in first.split("\t")}:
        return "google-merchant-tsv", read_merchant_tsv(stream)
    raise UsageError(
        "UNKNOWN_FEED",
        f"{path.name} is no feed that StyleEyes can read.",
        "It reads Google Merchant feeds (XML, Atom, or TSV with the columns id and title) and Shopify "
        "products.json, also gzipped.",
    )


def _as_text(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    return head.decode("utf-8-sig", errors="replace")
