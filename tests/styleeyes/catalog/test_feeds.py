"""Reading feeds: formats told by content, rows that cannot be used told by line, the rest read."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest

from edge_agent.errors import UsageError
from edge_agent.styleeyes.catalog.feeds.formats import open_feed
from edge_agent.styleeyes.catalog.feeds.html_text import html_to_text, inline_text
from edge_agent.styleeyes.catalog.feeds.items import FeedItem, Reading, RowProblem
from edge_agent.styleeyes.catalog.feeds.merchant_tsv import read_merchant_tsv
from edge_agent.styleeyes.catalog.feeds.merchant_xml import read_merchant_xml
from edge_agent.styleeyes.catalog.feeds.prices import parse_price

RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel><title>Shop</title>
<lastBuildDate>Mon, 14 Sep 2026 10:00:00 GMT</lastBuildDate>
{items}
</channel></rss>"""
ITEM = """<item>
<g:id>{id}</g:id><title>Coat</title><description><![CDATA[<p>Warm &amp; dry</p>]]></description>
<g:image_link>https://x.example/a.jpg</g:image_link>
<g:additional_image_link>https://x.example/b.jpg</g:additional_image_link>
<g:additional_image_link>https://x.example/c.jpg,https://x.example/d,e.jpg</g:additional_image_link>
<g:price>52.00 USD</g:price><g:shipping><g:price>5.00 USD</g:price></g:shipping>
</item>"""


def xml(text: str) -> list[Reading]:
    return list(read_merchant_xml(io.BytesIO(text.encode())))


def tsv(text: str | bytes) -> list[Reading]:
    return list(read_merchant_tsv(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def items(readings: list[Reading]) -> list[FeedItem]:
    return [reading for reading in readings if isinstance(reading, FeedItem)]


def problems(readings: list[Reading]) -> list[str]:
    return [str(reading) for reading in readings if isinstance(reading, RowProblem)]


def test_rss_item() -> None:
    (item,) = items(xml(RSS.format(items=ITEM.format(id="A1"))))
    assert (item.id, item.title, item.line, item.price) == ("A1", "Coat", 4, "52.00 USD")
    assert item.description == "<p>Warm &amp; dry</p>"
    assert item.photo_urls == tuple(f"https://x.example/{n}.jpg" for n in ("a", "b", "c", "d,e"))
    assert item.updated == "2026-09-14"


def test_atom_entry() -> None:
    text = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0">
<updated>2026-09-14T10:00:00Z</updated><entry><g:id>A1</g:id><title>Coat</title><summary>Warm</summary>
<link href="https://x.example/a1"/><updated>2026-09-15T10:00:00Z</updated></entry></feed>"""
    (item,) = items(xml(text))
    assert (item.id, item.link, item.description, item.updated) == (
        "A1",
        "https://x.example/a1",
        "Warm",
        "2026-09-15",
    )


def test_item_without_id_is_told_by_line_and_the_rest_is_read() -> None:
    found = xml(RSS.format(items="<item><title>x</title></item>\n" + ITEM.format(id="A1")))
    assert problems(found) == ["line 4: has no id"]
    assert [item.id for item in items(found)] == ["A1"]


def test_broken_xml_keeps_what_came_before_and_names_the_line() -> None:
    found = xml(RSS.format(items=ITEM.format(id="A1") + "\n<item><g:id>A2</g:id> & </item>"))
    assert [item.id for item in items(found)] == ["A1"]
    (problem,) = [p for p in found if isinstance(p, RowProblem)]
    assert problem.ends_reading
    assert str(problem).startswith("line 11: the XML is broken here")


def test_cut_off_xml_is_told() -> None:
    found = xml(RSS.format(items=ITEM.format(id="A1"))[:-40])
    assert any(isinstance(p, RowProblem) and p.ends_reading for p in found)


@pytest.mark.parametrize(
    "head",
    [
        '<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE rss [<!ENTITY f SYSTEM "file:///etc/passwd">]>',
    ],
)
def test_entity_tricks_are_refused(head: str) -> None:
    with pytest.raises(UsageError) as caught:
        xml(head + "<rss><channel><item><id>&a;</id></item></channel></rss>")
    assert caught.value.code == "FEED_REFUSED"


def test_xml_is_streamed() -> None:
    class Endless(io.RawIOBase):
        """A feed far larger than memory; counts what was read of it."""

        given = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            self.given += 1
            piece = ITEM.format(id=f"A{self.given}").encode()
            return piece if self.given > 1 else b"<rss xmlns:g='g'><channel>" + piece

    stream = Endless()
    reading = read_merchant_xml(stream)  # type: ignore[arg-type]
    for _ in range(500):
        next(reading)
    assert stream.given <= 501


HEAD = "id\ttitle\tdescription\tprice\n"


def test_tsv_rows() -> None:
    found = tsv(HEAD + 'A1\tCoat\t"He said ""warm"", and left"\t5 USD\r\n\nA2\tHat\tplain\t6 USD\n')
    assert [(i.id, i.line, i.description, i.price) for i in items(found)] == [
        ("A1", 2, 'He said "warm", and left', "5 USD"),
        ("A2", 4, "plain", "6 USD"),
    ]
    assert problems(found) == []


def test_tsv_field_over_several_lines() -> None:
    found = tsv(HEAD + 'A1\tCoat\t"line one\nline two"\t5 USD\nA2\tHat\tx\t6 USD\n')
    assert [(i.id, i.description) for i in items(found)] == [("A1", "line one\nline two"), ("A2", "x")]


def test_quote_left_open_costs_one_row_only() -> None:
    rest = "".join(f"B{n}\tHat\tx\t1 USD\n" for n in range(100))
    found = tsv(HEAD + 'A1\tCoat\t"never closed\n' + 'A2\tCoat\t"nor this\n' + rest)
    assert problems(found) == [
        "line 2: has 3 of 4 columns and a quote left open",
        "line 3: has 3 of 4 columns and a quote left open",
    ]
    assert len(items(found)) == 100


def test_rows_of_the_wrong_length() -> None:
    found = tsv(HEAD + "A1\tCoat\tx\t5 USD\textra\nA2\nA3\tHat\nA4\tHat\tx\t5 USD\t\t\n")
    assert problems(found) == [
        "line 2: has 5 columns where the header has 4",
        "line 3: has 1 columns where the header has 4",
    ]
    assert [item.id for item in items(found)] == ["A3", "A4"]


def test_other_encodings() -> None:
    text = HEAD + "A1\tCafé coat\tgrün\t5 EUR\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert [i.title for i in items(tsv(text.encode(encoding)))] == ["Café coat"], encoding
    found = tsv(text.encode("cp1252"))
    assert [i.title for i in items(found)] == ["Café coat"]
    assert problems(found) == ["line 2: is not UTF-8; such lines are read as Windows-1252"]


def test_line_without_end_is_bounded() -> None:
    found = tsv(HEAD.encode() + b"x" * 3_000_000 + b"\nA1\tCoat\tx\t5 USD\n")
    assert problems(found) == ["line 2: is longer than 1 MiB"]
    assert [item.id for item in items(found)] == ["A1"]


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "feed.bin"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (RSS.format(items=ITEM.format(id="A1")), "google-merchant-xml"),
        (HEAD + "A1\tCoat\tx\t5 USD\n", "google-merchant-tsv"),
        (json.dumps({"products": [{"title": "Coat", "handle": "A1", "variants": []}]}), "shopify"),
    ],
)
def test_format_is_told_by_content(tmp_path: Path, text: str, kind: str, pack: type[bytes]) -> None:
    with open_feed(written(tmp_path, pack(text.encode()))) as feed:
        assert feed.kind == kind
        assert [item.id for item in items(list(feed.items))] == ["A1"]


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7", b"a,b,c\n1,2,3\n", b'{"a": 1}'])
def test_anything_else_is_refused_with_what_can_be_read(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError) as caught, open_feed(written(tmp_path, data)):
        pass
    assert caught.value.code == "UNKNOWN_FEED"
    assert "Google Merchant" in (caught.value.hint or "")


def test_damaged_gzip_is_told(tmp_path: Path) -> None:
    data = gzip.compress((HEAD + "A1\tCoat\tx\t5 USD\n" * 5000).encode())
    with pytest.raises(UsageError, match="damaged gzip"), open_feed(written(tmp_path, data[:100])) as feed:
        list(feed.items)


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("52.00 USD", "52.00", "USD"),
        ("USD 52", "52", "USD"),
        ("$1,234.56", "1234.56", "USD"),
        ("1.234,56 €", "1234.56", "EUR"),
        ("1 234,50 EUR", "1234.50", "EUR"),
        ("1\u202f234,50\u00a0€", "1234.50", "EUR"),
        ("1'234.50 CHF", "1234.50", "CHF"),
        ("¥5,980", "5980", "JPY"),
        ("1.234 €", "1234", "EUR"),
        ("0.125 KWD", "0.125", "KWD"),
        ("12,5", "12.5", None),
        ("1,234,567", "1234567", None),
        ("£9", "9", "GBP"),
        ("CA$20.00", "20.00", "CAD"),
    ],
)
def test_prices_of_several_countries(text: str, amount: str, currency: str | None) -> None:
    assert parse_price(text) == (Decimal(amount), currency)


@pytest.mark.parametrize("text", ["", "free", "-5 USD", "USD -5", "5 - 10 USD", "9" * 40])
def test_what_is_no_price(text: str) -> None:
    with pytest.raises(ValueError, match="is not a price"):
        parse_price(text)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>&bull; Two<br />&bull; Three</p>", "One\n• Two\n• Three"),
        ("<ul><li>One<li>Two</ul>", "• One\n• Two"),
        ("<script>alert(1)</script><style>p{}</style>Text", "Text"),
        ("a &amp;bull; b", "a • b"),
        ("size < 5 & > 3", "size < 5 & > 3"),
        ("Cocona&reg; fabric", "Cocona® fabric"),
        ("<p>un<b>closed", "unclosed"),
        ("<!-- hidden --><p title='a>b'>x</p>", "x"),
        ("<p>\x1b[31mred\u202e</p>", "red"),
    ],
)
def test_html_to_text(html: str, text: str) -> None:
    assert html_to_text(html) == text


def test_inline_text() -> None:
    assert inline_text("<b>Ryker</b> LumaTech&trade;\n Tee") == "Ryker LumaTech™ Tee"
