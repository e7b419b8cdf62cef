"""Where the wearer types: Enter asks, several pasted lines stay several lines."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import TextArea

from edge_agent.text import sanitise
from edge_agent.tui.keys import bindings

_KEPT = 50


class Prompt(TextArea):
    """A small text area. Posts `Prompt.Sent`; its text goes only when `accept` is called."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("prompt"))

    class Sent(Message):
        """Enter was pressed; `text` may be empty."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            show_line_numbers=False,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Ask, or press Enter: What am I looking at?",
        )
        self._asked: list[str] = []
        self._back = 0

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default()  # TextArea would insert a line; the binding below sends
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = sanitise(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        await super()._on_paste(event)
        event.prevent_default()  # or TextArea's own handler would insert it again
        event.stop()

    def action_send(self) -> None:
        self.post_message(self.Sent(self.text.strip()))

    def action_newline(self) -> None:
        self.insert("\n")

    def action_earlier(self) -> None:
        """In an empty prompt, or one showing an earlier question: the question before that."""
        showing = self._back > 0 and self.text == self._asked[-self._back]
        if self.text and not showing:
            self.action_cursor_up()
            return
        if self._back < len(self._asked):
            self._back += 1
            self.text = self._asked[-self._back]
            self.move_cursor(self.document.end)

    def accept(self) -> None:
        """The question is being answered: remembers and clears it."""
        if question := self.text.strip():
            self._asked = [*self._asked, question][-_KEPT:]
        self._back = 0
        self.text = ""
