"""HTML of product descriptions as plain text."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

from edge_agent.text import sanitise

_BLOCKS = frozenset(
    {"p", "br", "div", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
)
_HIDDEN = frozenset({"script", "style", "head", "title", "template", "noscript", "iframe"})
_TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def html_to_text(text: str) -> str:
    """Text of an HTML fragment: a line a block, list items with a bullet; plain text stays as it is.

    Entities that were escaped twice (`&amp;bull;`) are read as well. Never raises.
    """
    if _TAG.search(text):
        reader = _Reader()
        reader.feed(text)
        reader.close()
        text = "".join(reader.parts)
    if _ENTITY.search(text):
        text = html.unescape(html.unescape(text))
    lines = (" ".join(line.split()) for line in sanitise(text).splitlines())
    return "\n".join(line for line in lines if line and line != "•")


def inline_text(text: str) -> str:
    """The same on one line: for names, colours, materials."""
    return " ".join(html_to_text(text).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BLOCKS:
            self.parts.append("\n• " if tag == "li" else "\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)
