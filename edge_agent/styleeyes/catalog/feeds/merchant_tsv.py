"""Google Merchant TSV, read line by line, so that one bad row cannot swallow the rest of the feed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

from edge_agent.styleeyes.catalog.feeds.items import MAX_FIELD, Reading, RowProblem, item_from_fields

_MAX_LINE = 1 << 20
_MAX_JOINED = 40
"""Lines one quoted field may run over before the quote is taken for a slip."""


def read_merchant_tsv(stream: BinaryIO) -> Iterator[Reading]:
    """Items in order, and a problem for each row that cannot be used. The first line names the columns."""
    lines = _Lines(_decoded(stream))
    header_line = next(lines, None)
    if header_line is None:
        return
    if isinstance(header_line, RowProblem):
        yield header_line
        return
    columns = [_unquote(name).strip().lower().replace(" ", "_") for name in header_line[1].split("\t")]
    for entry in lines:
        if isinstance(entry, RowProblem):
            yield entry
            continue
        number, text = entry
        if not text.strip():
            continue
        values = text.split("\t")
        if len(values) < len(columns) and _is_open(values[-1]):
            # A quoted field with a line break in it: join lines until the row is complete.
            joined = _join(text, lines, len(columns))
            if joined is None:
                yield RowProblem(number, f"has {len(values)} of {len(columns)} columns and a quote left open")
                continue
            values = joined
        yield _row(number, columns, values)


class _Lines:
    """Numbered lines, of which some may be put back."""

    def __init__(self, lines: Iterator[tuple[int, str] | RowProblem]) -> None:
        self._lines = lines
        self._back: deque[tuple[int, str] | RowProblem] = deque()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> tuple[int, str] | RowProblem:
        return self._back.popleft() if self._back else next(self._lines)

    def put_back(self, taken: list[tuple[int, str] | RowProblem]) -> None:
        self._back.extendleft(reversed(taken))


def _row(number: int, columns: list[str], values: list[str]) -> Reading:
    while len(values) > len(columns) and not values[-1].strip():
        values.pop()
    if len(values) > len(columns):
        return RowProblem(number, f"has {len(values)} columns where the header has {len(columns)}")
    fields: dict[str, list[str]] = {}
    for column, value in zip(columns, values, strict=False):
        text = _unquote(value).strip()
        if text:
            fields.setdefault(column, []).append(text[:MAX_FIELD])
    if len(values) < len(columns) - 1 and not ("id" in fields and "title" in fields):
        return RowProblem(number, f"has {len(values)} columns where the header has {len(columns)}")
    return item_from_fields(number, fields, None)


def _is_open(value: str) -> bool:
    """Whether a field begins with a quote that nothing closes: its end, but for doubled ones, is no quote."""
    return value.startswith('"') and (value.count('"') % 2 == 1 or not value.endswith('"'))


def _join(text: str, lines: _Lines, columns: int) -> list[str] | None:
    """Adds following lines to a row until its quotes close; puts them back if they never do."""
    taken: list[tuple[int, str] | RowProblem] = []
    for entry in lines:
        taken.append(entry)
        if isinstance(entry, RowProblem):
            break
        text += "\n" + entry[1]
        values = _split_quoted(text)
        if values is not None and len(values) >= columns - 1:
            return values
        if len(taken) >= _MAX_JOINED:
            break
    lines.put_back(taken)
    return None


def _split_quoted(text: str) -> list[str] | None:
    values: list[str] = []
    current = ""
    for part in text.split("\t"):
        current = part if not current else f"{current}\t{part}"
        if not _is_open(current):
            values.append(current)
            current = ""
    return None if current else values


def _unquote(value: str) -> str:
    value = value.strip("\r\n ")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        return value[1:-1].replace('""', '"')
    return value


def _decoded(stream: BinaryIO) -> Iterator[tuple[int, str] | RowProblem]:
    """Numbered lines of text. UTF-8 is expected; UTF-16 is known by its mark, Windows-1252 per line."""
    mark = stream.read(2)
    if mark in (b"\xff\xfe", b"\xfe\xff"):
        yield from _utf16_lines(stream, "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be")
        return
    told = False
    rest = mark
    number = 0
    while raw := rest + stream.readline(_MAX_LINE):
        rest = b""
        number += 1
        if len(raw) >= _MAX_LINE and not raw.endswith(b"\n"):
            while (more := stream.readline(_MAX_LINE)) and not more.endswith(b"\n"):
                pass
            yield RowProblem(number, "is longer than 1 MiB")
            continue
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("cp1252", errors="replace")
            if not told:
                told = True
                yield RowProblem(number, "is not UTF-8; such lines are read as Windows-1252", "warning")
        yield number, text.rstrip("\r\n")


def _utf16_lines(stream: BinaryIO, encoding: str) -> Iterator[tuple[int, str] | RowProblem]:
    number, waiting = 0, b""
    while chunk := stream.read(_MAX_LINE):
        waiting += chunk
        lines = waiting[: len(waiting) // 2 * 2].decode(encoding, errors="replace").split("\n")
        consumed = len(waiting)
        last = lines.pop()
        for line in lines:
            number += 1
            yield number, line.rstrip("\r")
        waiting = last.encode(encoding, errors="replace") + waiting[consumed // 2 * 2 :]
        if len(waiting) > 4 * _MAX_LINE:
            number += 1
            yield RowProblem(number, "is longer than 1 MiB")
            waiting = b""
    if waiting:
        yield number + 1, waiting.decode(encoding, errors="replace").rstrip("\r\n")
