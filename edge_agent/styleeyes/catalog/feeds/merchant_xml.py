"""Google Merchant XML (RSS 2.0 and Atom), streamed: memory holds one item at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import BinaryIO
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler, feature_namespaces
from xml.sax.xmlreader import AttributesNSImpl, Locator

from defusedxml import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from edge_agent.errors import UsageError
from edge_agent.styleeyes.catalog.feeds.items import (
    MAX_FIELD,
    MAX_PHOTOS,
    Reading,
    RowProblem,
    item_from_fields,
)

_CHUNK = 1 << 16
_ITEMS = frozenset({"item", "entry"})
_FEED_DATES = frozenset({"lastBuildDate", "pubDate", "updated"})
_MAX_FIELDS = 200


def read_merchant_xml(stream: BinaryIO) -> Iterator[Reading]:
    """Items of a feed in order, and a problem for each that cannot be used.

    XML that is not well formed ends the reading with a problem that names the line: what follows
    cannot be told apart any more. Raises UsageError for entity or external-reference tricks.
    """
    handler = _Items()
    # Entities and external references are refused; a bare DOCTYPE is harmless and some feeds have one.
    parser = DefusedExpatParser(forbid_dtd=False, forbid_entities=True, forbid_external=True)
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(handler)
    # Fed in pieces, the parser does not introduce itself as it does when it is given a whole file.
    handler.setDocumentLocator(parser)
    try:
        while chunk := stream.read(_CHUNK):
            parser.feed(chunk)
            yield from handler.take()
        parser.close()
        yield from handler.take()
    except SAXParseException as wrong:
        yield from handler.take()
        yield RowProblem(
            wrong.getLineNumber() or 0,
            f"the XML is broken here ({wrong.getMessage()}); items after it were not read",
            ends_reading=True,
        )
    except DefusedXmlException as wrong:
        raise UsageError(
            "FEED_REFUSED",
            f"The feed uses XML entities or external references: {wrong}.",
            "Export it without.",
        ) from None
    except SAXException as wrong:
        raise UsageError("FEED_UNREADABLE", f"The feed cannot be read as XML: {wrong}.") from None


class _Items(ContentHandler):
    """Collects the fields of each item by local name, whatever their namespace."""

    def __init__(self) -> None:
        super().__init__()
        self._done: list[Reading] = []
        self._where: Locator | None = None
        self._fields: dict[str, list[str]] | None = None
        self._line = 0
        self._depth = 0
        self._item_depth = 0
        self._text: list[str] | None = None
        self._length = 0
        self._feed_date: str | None = None

    def take(self) -> list[Reading]:
        done, self._done = self._done, []
        return done

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802  the names are SAX's
        self._where = locator

    def startElementNS(  # noqa: N802
        self, name: tuple[str | None, str], qname: str | None, attrs: AttributesNSImpl
    ) -> None:
        self._depth += 1
        local = name[1]
        if self._fields is None:
            if local in _ITEMS:
                self._fields, self._item_depth = {}, self._depth
                self._line = (self._where and self._where.getLineNumber()) or 0
            elif local in _FEED_DATES:
                self._begin_text()
        elif self._depth == self._item_depth + 1:
            self._begin_text()
            if local == "link" and (None, "href") in attrs:
                # Atom puts the address into an attribute.
                self._add("link", attrs.getValue((None, "href")))

    def characters(self, content: str) -> None:
        if self._text is not None and self._length < MAX_FIELD:
            self._text.append(content[: MAX_FIELD - self._length])
            self._length += len(content)

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:  # noqa: N802
        local = name[1]
        if self._fields is None:
            if local in _FEED_DATES and self._text is not None:
                self._feed_date = max(
                    filter(None, (self._feed_date, _iso_date(self._end_text()))), default=None
                )
        elif self._depth == self._item_depth:
            own = _iso_date(" ".join(self._fields.get("updated", [])))
            self._done.append(item_from_fields(self._line, self._fields, own or self._feed_date))
            self._fields = None
        elif self._depth == self._item_depth + 1:
            self._add(local, self._end_text())
        self._depth -= 1

    def _begin_text(self) -> None:
        self._text, self._length = [], 0

    def _end_text(self) -> str:
        text = "".join(self._text or ())
        self._text = None
        return text.strip()

    def _add(self, name: str, value: str) -> None:
        fields = self._fields
        if fields is None or not value or (name not in fields and len(fields) >= _MAX_FIELDS):
            return
        # In Atom `summary` or `content` holds what RSS calls the description.
        values = fields.setdefault({"summary": "description", "content": "description"}.get(name, name), [])
        if len(values) < MAX_PHOTOS:
            values.append(value)


def _iso_date(text: str) -> str | None:
    """`Mon, 14 Sep 2026 10:00:00 GMT` or ISO 8601 → `2026-09-14`; None for anything else."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(text).date().isoformat()
        except (ValueError, TypeError):
            continue
    return None
