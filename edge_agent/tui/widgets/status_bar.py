"""The line at the top: which model and why, sandbox, source, mode, agent, budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.widget import Widget

from edge_agent.events import Preparing, SessionStarted
from edge_agent.text import sanitise
from edge_agent.tui.cells import steady


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the line. Of what does not fit, the highest `rank` goes first."""

    rank: int
    text: str
    style: str = "$quiet"


SEPARATOR = "  "


def fitting(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit in `width` cells, in their order, the least important left out."""
    kept = [part for part in parts if part.text]

    def cells() -> int:
        return sum(Content(p.text).cell_length for p in kept) + len(SEPARATOR) * max(0, len(kept) - 1)

    while kept and cells() > width:
        kept.remove(max(kept, key=lambda part: part.rank))
    return kept


class StatusBar(Widget):
    """One row, whatever the width: parts leave in order of importance, never half of one."""

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__(id="status")
        self._facts: SessionStarted | None = None
        self._source = ""
        self._ahead: Preparing | None = None
        self._activity = Part(0, "◌ starting", "bold $warning")

    def show_facts(self, facts: SessionStarted) -> None:
        self._facts = facts
        self.refresh()

    def show_source(self, label: str) -> None:
        """What the camera calls its source: short, and free of a stream's credentials."""
        label = steady(sanitise(label))
        if label != self._source:
            self._source = label
            self.refresh()

    def show_ahead(self, ahead: Preparing) -> None:
        """How far work ahead of any question is; nothing once it is done."""
        self._ahead = ahead if ahead.done < ahead.total else None
        self.refresh()

    def show_activity(self, words: str, style: str) -> None:
        """What the app is doing: the one part that always stays."""
        part = Part(0, words, style)
        if part != self._activity:
            self._activity = part
            self.refresh()

    def parts(self) -> list[Part]:
        name = Part(6, "StyleEyes", "bold $primary")
        if self._facts is None:
            return [name, self._activity]
        facts = self._facts
        bypassed = "process" in facts.sandbox
        ahead = self._ahead
        return [
            name,
            self._activity,
            *([Part(2, f"{ahead.what} {ahead.done}/{ahead.total}")] if ahead else []),
            Part(2, steady(facts.model), "bold $secondary"),
            Part(7, f"({facts.model_reason})"),
            Part(1 if bypassed else 5, f"sandbox {facts.sandbox}", "bold $error" if bypassed else "$quiet"),
            Part(4, self._source),
            Part(3, f"{facts.mode} mode"),
            Part(8, steady(facts.agent_name)),
        ]

    def render(self) -> Content:
        pieces = [Content.styled(p.text, p.style) for p in fitting(self.parts(), self.size.width - 2)]
        return Content.assemble(" ", Content(SEPARATOR).join(pieces))
