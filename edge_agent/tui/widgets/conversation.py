"""The conversation: what was asked, what was answered, what went wrong, and the matched style."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from edge_agent.events import ErrorInfo, Notice
from edge_agent.session.span_text import duration, error_words
from edge_agent.tui.cells import steady
from edge_agent.tui.verdict import Product, Verdict

KEPT_ENTRIES = 60
"""Widgets kept on the screen, since each costs a little at every layout; what went before is in the
session log."""

Voice = Literal["you", "agent", "note", "trouble", "card", "welcome"]


class Entry(Static):
    """One message. Its text is only ever `Content`, so no markup in it can mean anything."""

    def __init__(self, voice: Voice, content: Content) -> None:
        super().__init__(content, classes=f"entry -{voice}", markup=False)
        self.voice = voice


class Conversation(VerticalScroll, can_focus=True):
    """Messages in order; stays at the newest unless the reader has scrolled up.

    Streaming pieces are collected and drawn by `flush`, which the screen calls at most ten times a
    second.
    """

    BORDER_TITLE = "Conversation"

    def __init__(self) -> None:
        super().__init__(id="talk")
        self._answering: tuple[str, Entry] | None = None
        self._card: tuple[Verdict, Entry] | None = None
        self._pieces: list[str] = []
        self._dirty = False
        self._doing = ""
        self._entries: list[Entry] = []
        self.model = ""

    def on_mount(self) -> None:
        self.anchor()

    def welcome(self, content: Content) -> None:
        """What to do here; gone with the first question."""
        for entry in self._entries:
            if entry.voice == "welcome":
                entry.update(content)
                return
        self._add("welcome", content)

    def asked(self, turn: str, question: str, at: str) -> None:
        """A turn began: the question, and room for its answer."""
        self._take_away("welcome")
        self._add(
            "you",
            Content.assemble(
                ("You", "bold $primary"), (f"  {_clock_time(at)}\n", "$quiet"), steady(question)
            ),
        )
        self._pieces, self._card = [], None
        entry = self._add("agent", self._answer_so_far("", "thinking…"))
        self._answering = (turn, entry)

    def grew(self, turn: str, text: str) -> None:
        """A further piece of the answer."""
        if self._answering is not None and self._answering[0] == turn:
            self._pieces.append(text)
            self._dirty = True

    def answered(self, turn: str, answer: str, error: ErrorInfo | None, ms: float) -> None:
        """The turn ended. What had been streamed stays when it ended badly."""
        if self._answering is None or self._answering[0] != turn:
            return
        entry, self._answering, self._dirty = self._answering[1], None, False
        text = answer or "".join(self._pieces)
        self._pieces = []
        if text:
            entry.update(self._answer_so_far(text, duration(ms)))
        else:
            self._take_away(entry)
        if error is not None and error.code == "CANCELLED":
            self._add("note", Content.styled(f"⊘ stopped after {duration(ms)}", "$warning"))
        elif error is not None:
            self.trouble(error_words(error))

    def start_failed(self, words: str) -> None:
        """The session did not open: the reason in place of the welcome."""
        self._take_away("welcome")
        self.trouble(words)
        self.trouble("Nothing can be asked now.\nCtrl+Q quits; start again when this is mended.")

    def matched(self, verdict: Verdict, product: Product | None) -> None:
        """The matched style as a card, under the answer, where it is seen at any size.

        An answer may compare in several rounds: its one card shows the best of them.
        """
        if self._card is None:
            self._card = verdict, self._add("card", _card(verdict, product))
        elif verdict.weight > self._card[0].weight:
            self._card = verdict, self._card[1]
            self._card[1].update(_card(verdict, product))

    def noticed(self, notice: Notice) -> None:
        """Something a person should know that belongs to no turn."""
        if notice.level == "error":
            self.trouble(f"{notice.code}: {notice.message}\n{notice.hint or ''}".strip())
        elif notice.level == "warn":
            hint = f"\n{steady(notice.hint)}" if notice.hint else ""
            text = steady(notice.message)
            self._add("note", Content.assemble(("! ", "bold $warning"), text, (hint, "$quiet")))

    def trouble(self, words: str) -> None:
        head, _, hint = steady(words).partition("\n")
        self._add(
            "trouble", Content.assemble(("✗ ", "bold $error"), head, (f"\n{hint}" if hint else "", "$quiet"))
        )

    def flush(self, doing: str) -> None:
        """Draws what has been streamed since the last time, and what is being done now."""
        self._mount_new()
        if self._answering is not None and (self._dirty or doing != self._doing):
            self._dirty, self._doing = False, doing
            self._answering[1].update(self._answer_so_far("".join(self._pieces), doing))

    def _answer_so_far(self, text: str, state: str) -> Content:
        head = Content.assemble(
            ("StyleEyes", "bold $secondary"), (steady(f"  {self.model} · {state}"), "$quiet")
        )
        return Content.assemble(head, "\n", steady(text)) if text else head

    def _take_away(self, what: Voice | Entry) -> None:
        for entry in [entry for entry in self._entries if what in (entry, entry.voice)]:
            self._entries.remove(entry)
            if entry.is_attached:
                entry.remove()

    def _add(self, voice: Voice, content: Content) -> Entry:
        entry = Entry(voice, content)
        self._entries.append(entry)
        return entry

    def _mount_new(self) -> None:
        """Puts the newest entries on the screen and takes the oldest away, in one step each."""
        kept, gone = self._entries[-KEPT_ENTRIES:], self._entries[:-KEPT_ENTRIES]
        self._entries = kept
        if old := [entry for entry in gone if entry.is_attached]:
            self.remove_children(old)
        if new := [entry for entry in kept if not entry.is_attached]:
            self.mount(*new)


def _clock_time(wall: str) -> str:
    try:
        return datetime.fromisoformat(wall.replace("Z", "+00:00")).astimezone().strftime("%H:%M")
    except ValueError:
        return ""


def _card(verdict: Verdict, product: Product | None) -> Content:
    sure = "" if verdict.confidence is None else f"confidence {verdict.confidence * 100:.0f} %"
    lines: list[Content] = []
    if verdict.style_id is None:
        lines.append(Content.assemble(("◇ no style matched", "bold $warning"), (f"  {sure}", "$quiet")))
    else:
        name = product.name if product is not None else ""
        kind = "◇ closest:" if verdict.ask_to_see_tag else "◆"
        title = steady(f"{kind} {verdict.style_id} {name}".rstrip())
        lines.append(Content.assemble((title, "bold $accent"), (f"  {sure}", "$quiet")))
    if product is not None and (product.brand or product.price):
        facts = " · ".join(part for part in (product.brand, product.price) if part)
        lines.append(Content.styled(steady(facts), "$quiet"))
    for glyph, colour, word, texts in (
        ("✓", "$success", "agrees", verdict.agrees),
        ("✗", "$error", "differs", verdict.differs),
    ):
        if texts:
            lines.append(Content.assemble((f"{glyph} {word} ", colour), steady(", ".join(texts))))
    if verdict.ask_to_see_tag:
        lines.append(Content.styled("! show me the tag to be certain", "$warning"))
    return Content("\n").join(lines)
