"""F1: what every key does, made from the key table, and what the signs mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from edge_agent.session.span_text import GLYPHS
from edge_agent.session.span_tree import State
from edge_agent.tui.keys import Place, bindings, by_place

_PLACE_TITLES: dict[Place, str] = {
    "main screen": "On the main screen",
    "prompt": "While typing",
    "tool log": "In the tool log",
    "details": "In the details",
    "anywhere": "Anywhere",
}
_INTRODUCTION = (
    "Point the camera at a garment and ask. StyleEyes takes the sharpest fresh frame, searches the "
    "catalog and compares photos; every step is a row of the tool log."
)
_GLYPH_WORDS: dict[State, str] = {
    "running": "running",
    "ok": "done",
    "failed": "failed",
    "cancelled": "stopped",
    "cut off": "cut off",
}


_SIGNS = (
    ("  ".join(GLYPHS.values()), f"in the log: {', '.join(_GLYPH_WORDS[state] for state in GLYPHS)}"),
    ("● ◌ ◐", "camera: live, starting, stalled or frozen"),
    ("■ ○ ✗", "camera: ended, paused or closed, in trouble"),
)


class HelpScreen(ModalScreen[None]):
    """The place the reader comes from is told first. Esc, or F1 again, closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(binding for binding in bindings("details") if binding.id == "details.close"),
        Binding("f1", "app.pop_screen", "Close", show=False),
    ]

    def __init__(self, first: Place) -> None:
        super().__init__()
        self._first = first

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help") as pane:
            pane.border_title = "Help"
            yield Static(Content(_INTRODUCTION), classes="help-text")
            for place, keys in sorted(by_place(), key=lambda item: item[0] != self._first):
                yield Static(Content(_PLACE_TITLES[place]), classes="help-title")
                for key in keys:
                    yield _row(key.shown_as, key.tooltip)
            yield Static(Content("Signs"), classes="help-title")
            for glyph, words in _SIGNS:
                yield _row(glyph, words)
        yield Footer(compact=True, show_command_palette=False)


def _row(key: str, words: str) -> Horizontal:
    """Two columns, so that long words wrap under themselves."""
    return Horizontal(
        Static(Content(key), classes="help-key"),
        Static(Content(words), classes="help-text"),
        classes="help-row",
    )
