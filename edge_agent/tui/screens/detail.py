"""One log entry over the whole screen: for terminals too small for the pane, and for long results."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from edge_agent.session.span_tree import SpanNode
from edge_agent.tui.keys import bindings
from edge_agent.tui.widgets.detail import node_content, node_text


class DetailScreen(ModalScreen[None]):
    """Shows `node` as it was at monotonic `now`."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("details"))

    def __init__(self, node: SpanNode, now: float) -> None:
        super().__init__()
        self._node, self._now = node, now

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="detail-full") as pane:
            pane.border_title = "Details"
            yield Static(node_content(self._node, self._now))
        yield Footer(show_command_palette=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(node_text(self._node, self._now))
        self.notify("Copied.", timeout=2)
