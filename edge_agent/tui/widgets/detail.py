"""The details of one log entry, coloured where it is JSON or SQL."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.highlight import highlight
from textual.widgets import Static

from edge_agent.session.span_text import GLYPHS, Section, details, row
from edge_agent.session.span_tree import SpanNode, State
from edge_agent.tui.cells import steady

SHOWN_CHARACTERS = 20_000
"""Of each section; the whole is in the session log."""
COLOURED_CHARACTERS = 6_000


def section_content(section: Section) -> Content:
    """A titled section; long text is cut and says so."""
    text, left = steady(section.text[:SHOWN_CHARACTERS]), len(section.text) - SHOWN_CHARACTERS
    if section.language != "text" and len(text) <= COLOURED_CHARACTERS:
        body = highlight(text, language=section.language)
    else:
        body = Content(text)
    cut = (
        Content.styled(f"\n… {left} more characters, in the session log", "$quiet")
        if left > 0
        else Content("")
    )
    style = "bold $error" if section.title == "Error" else "bold $primary"
    return Content.assemble((f"{section.title}\n", style), body, cut)


def node_content(node: SpanNode, now: float) -> Content:
    """Everything of an entry, most wanted first."""
    words = row(node, now)
    head = Content.assemble(
        (steady(f"{GLYPHS[node.state]} {words.name}"), "bold"), (f"  {words.right}", "$quiet")
    )
    return Content("\n\n").join([head, *(section_content(section) for section in details(node))])


def node_text(node: SpanNode, now: float) -> str:
    """The same as plain text, whole, for the clipboard."""
    words = row(node, now)
    parts = [f"{GLYPHS[node.state]} {words.name} {words.right}"]
    return "\n\n".join([*parts, *(f"{section.title}\n{section.text}" for section in details(node))])


class DetailPane(VerticalScroll, can_focus=True):
    """Follows the log's chosen entry; drawn anew only when that entry has changed."""

    BORDER_TITLE = "Details"

    def __init__(self) -> None:
        super().__init__(id="detail")
        self._shown: tuple[str, State] | None = None

    def compose(self) -> ComposeResult:
        yield Static(
            Content.styled(
                "What a tool got, did and gave appears here.\nChoose an entry in the tool log.", "$quiet"
            ),
            id="detail-text",
        )

    def show(self, node: SpanNode, now: float) -> None:
        key = (node.id, node.state)  # nothing else changes what is told of it
        if key == self._shown or not self.display:
            return
        if self._shown is None or self._shown[0] != node.id:
            self.scroll_home(animate=False)
        self._shown = key
        self.query_one("#detail-text", Static).update(node_content(node, now))
