"""A tool's fault as a good compiler shows it: file, line, column, the line itself, a caret, a hint."""

from __future__ import annotations

from pathlib import Path

from edge_agent.errors import SourcePosition, StyleEyesError
from edge_agent.text import sanitise

_WIDEST = 160


def fault_report(file: Path, error: StyleEyesError) -> str:
    """The lines to show for `error` in `file`; the source line only where it can be read."""
    at = error.at
    place = f"{file}:{at.line}:{at.column}" if at else str(file)
    lines = [f"{place}: {error.code}: {error.message}"]
    if at is not None:
        lines += _source_lines(file, at)
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    return "\n".join(sanitise(line) for line in lines)


def _source_lines(file: Path, at: SourcePosition) -> list[str]:
    try:
        source = file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    if not 1 <= at.line <= len(source):
        return []
    shown = source[at.line - 1]
    # A tab counts as one column for the caret to stand right under it.
    before = shown[: max(0, at.column - 1)]
    cut = max(0, len(before) - _WIDEST // 2)
    text = shown.replace("\t", " ")[cut : cut + _WIDEST]
    gutter = f"{at.line:>5} | "
    return [gutter + text, " " * (len(gutter) + len(before) - cut) + "^"]
