"""The camera picture in half-block cells; knows nothing of cameras, only of lines and words."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from edge_agent.tui.cells import steady


class Preview(Widget):
    """Draws ready lines in its middle, or one line of words where there is no picture."""

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Strip] = []
        self._words = ""

    @property
    def has_picture(self) -> bool:
        return bool(self._lines)

    def show(self, lines: list[Strip]) -> None:
        """Draws `lines`, all of one width; only the rows that differ are painted anew."""
        old, self._lines, self._words = self._lines, lines, ""
        if len(old) != len(lines) or (old and old[0].cell_length != lines[0].cell_length):
            self.refresh()
            return
        top = self._top()
        changed = [i for i, (a, b) in enumerate(zip(old, lines, strict=True)) if a != b]
        if changed:
            first, last = changed[0], changed[-1]
            self.refresh(Region(0, top + first, self.size.width, last - first + 1))

    def show_words(self, words: str) -> None:
        """Takes the picture away and says `words` instead."""
        if self._lines or words != self._words:
            self._lines, self._words = [], words
            self.refresh()

    def _top(self) -> int:
        return max(0, (self.size.height - len(self._lines)) // 2)

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if not self._lines:
            return self._words_line(y)
        index = y - self._top()
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, base)
        line = self._lines[index]
        left = max(0, (width - line.cell_length) // 2)
        right = width - left - line.cell_length
        return Strip.join([Strip.blank(left, base), line, Strip.blank(right, base)]).crop(0, width)

    def _words_line(self, y: int) -> Strip:
        from rich.segment import Segment
        from rich.text import Text

        width, base = self.size.width, self.rich_style
        lines = Text(steady(self._words)).wrap(self.app.console, max(1, width - 2), justify="center")
        index = y - max(0, (self.size.height - len(lines)) // 2)
        if not 0 <= index < len(lines):
            return Strip.blank(width, base)
        text = lines[index].plain.strip()
        strip = Strip([Segment(text, base)])
        left = max(0, (width - strip.cell_length) // 2)
        return Strip.join([Strip.blank(left, base), strip]).adjust_cell_length(width, base)
