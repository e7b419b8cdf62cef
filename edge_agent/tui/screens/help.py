"""F1: what every key does, made from the key table, and what the signs mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from edge_agent.session.span_text import GLYPHS
from edge_agent.tui.keys import Place, bindings, by_place

_PLACE_TITLES: dict[Place, str] = {
    "main screen": "On the main screen",
    "prompt": "While typing",
    "tool log": "In the tool log",
    "details": "In the details",
    "anywhere": "Anywhere",
}
_GLYPH_WORDS = {
    "running": "running",
    "ok": "done",
    "failed": "failed",
    "cancelled": "stopped",
    "cut off": "cut off",
}


def help_content(first: Place) -> Content:
    """The key table in words, the place the reader comes from first."""
    places = sorted(by_place(), key=lambda item: item[0] != first)
    lines: list[Content] = [
        Content.assemble(
            "Point the camera at a garment and ask. StyleEyes takes the sharpest fresh frame, searches the "
            "catalog and compares photos; every step is a row of the tool log.\n"
        )
    ]
    for place, keys in places:
        lines.append(Content.styled(_PLACE_TITLES[place], "bold $primary"))
        for key in keys:
            lines.append(
                Content.assemble((f"  {key.shown_as:<22}", "bold $secondary"), (key.tooltip, "$foreground"))
            )
        lines.append(Content(""))
    lines.append(Content.styled("Signs", "bold $primary"))
    signs = "   ".join(f"{glyph} {_GLYPH_WORDS[state]}" for state, glyph in GLYPHS.items())
    lines.append(Content(f"  {signs}"))
    lines.append(
        Content("  Camera: ● live   ◌ starting   ◐ stalled or frozen   ■ ended   ○ paused   ✗ trouble")
    )
    return Content("\n").join(lines)


class HelpScreen(ModalScreen[None]):
    """Any of the details' keys, or F1 again, closes it."""

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
            yield Static(help_content(self._first))
        yield Footer(show_command_palette=False)
