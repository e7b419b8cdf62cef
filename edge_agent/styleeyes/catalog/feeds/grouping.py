"""Brings the items of one style together, in a temporary file: a feed need not fit into memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from types import TracebackType
from urllib.parse import unquote, urlsplit

from edge_agent.styleeyes.catalog.feeds.items import FeedItem


def photo_name(url: str) -> str:
    """The base name of a photo's address, without its query (`…/mh01.jpg?v=1` → `mh01.jpg`)."""
    name = unquote(urlsplit(url).path).rsplit("/", 1)[-1]
    return "" if name in (".", "..") or "\x00" in name else name


class StyleGroups:
    """Items by style, on disk. Used as a context manager; its file goes with it."""

    def __init__(self) -> None:
        # An empty name makes a private temporary database that SQLite removes by itself.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute("PRAGMA journal_mode=OFF")
        self._db.execute("CREATE TABLE items (place INTEGER PRIMARY KEY, style TEXT, id TEXT, item TEXT)")
        self._db.execute("CREATE TABLE photos (name TEXT, path TEXT, PRIMARY KEY (name, path)) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def __enter__(self) -> StyleGroups:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def add(self, item: FeedItem) -> None:
        style = item.group_id or item.id
        self._db.execute(
            "INSERT INTO items (style, id, item) VALUES (?, ?, ?)", (style, item.id, json.dumps(asdict(item)))
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO photos VALUES (?, ?)",
            [(photo_name(url).lower(), urlsplit(url).path) for url in item.photo_urls],
        )

    def styles(self) -> Iterator[tuple[str, list[FeedItem]]]:
        """Every style with its items: styles in order of their first item, items as in the feed.

        Style ids that differ by case alone are one style, under the spelling that came first.
        """
        self._db.execute("CREATE INDEX by_style ON items (lower(style), place)")
        firsts = self._db.execute(
            "SELECT lower(style), min(place) FROM items GROUP BY lower(style) ORDER BY 2"
        )
        for folded, _ in firsts:
            rows = self._db.execute(
                "SELECT style, item FROM items WHERE lower(style) = ? ORDER BY place", (folded,)
            ).fetchall()
            yield rows[0][0], [_item(text) for _, text in rows]

    def count_styles(self) -> int:
        return int(self._db.execute("SELECT count(DISTINCT lower(style)) FROM items").fetchone()[0])

    def is_ambiguous(self, name: str) -> bool:
        """Whether addresses that differ in their folder share this base name (`…/1.jpg` of every style)."""
        rows = self._db.execute("SELECT 1 FROM photos WHERE name = ? LIMIT 2", (name.lower(),)).fetchall()
        return len(rows) > 1


def _item(text: str) -> FeedItem:
    fields = json.loads(text)
    fields["photo_urls"] = tuple(fields["photo_urls"])
    return FeedItem(**fields)
