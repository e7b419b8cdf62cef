"""A tool's fault as a good compiler shows it: file, line, column, the line itself, a caret, a hint."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from edge_agent.engine.sources import MAX_SOURCE_BYTES
from edge_agent.errors import SourcePosition, StyleEyesError
from edge_agent.text import sanitise, visible

_WIDEST = 160


def fault_report(file: Path, error: StyleEyesError) -> str:
    """The lines to show for `error` in `file`; the source line only where it can be read."""
    at = error.at
    name = visible(str(file))
    place = f"{name}:{at.line}:{at.column}" if at else name
    lines = [f"{place}: {error.code}: {error.message}"]
    if at is not None:
        lines += _source_lines(file, at)
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    return "\n".join(sanitise(line) for line in lines)


def _source_lines(file: Path, at: SourcePosition) -> list[str]:
    """The line with a gutter, and a caret under the column; a long line is cut around it."""
    try:
        with file.open("rb") as source:
            text = source.read(MAX_SOURCE_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return []
    # As JavaScript counts lines for its errors, and not as splitlines() does.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not 1 <= at.line <= len(lines):
        return []
    line = lines[at.line - 1]
    before, after = (_shown(part) for part in (line[: at.column - 1], line[at.column - 1 :]))
    before = before[-_WIDEST // 2 :]
    after = after[: _WIDEST - len(before)]
    gutter = f"{at.line:>5} | "
    return [gutter + before + after, " " * (len(gutter) + _cells(before)) + "^"]


def _shown(text: str) -> str:
    # A tab becomes one space, so that the caret stands right under its character.
    return sanitise(text.replace("\t", " "))


def _cells(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
