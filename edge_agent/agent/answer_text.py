"""Which of the streamed text is the answer.

A model often says a sentence before it calls a tool: thinking aloud, not an answer. So the text of a
step is held back until it is clear that it is an answer: the step ended without a tool call, or the
text grew longer than thinking aloud ever is. What has once been published stays part of the
answer, so the published pieces together always equal the final answer.
"""

from __future__ import annotations

from collections.abc import Callable

HELD_AT_FIRST = 240
"""Before any tool has run: a sentence or two about what is seen often comes before the first call."""
HELD_LATER = 80
"""After tools have run text is most likely the answer; what is said before a further call is short."""


class AnswerText:
    """The answer of one turn, published piece by piece through `publish`."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self._published = ""
        self._held = ""
        self._step_is_answer = False
        self._held_at_most = HELD_AT_FIRST

    def step_cannot_call(self) -> None:
        """The step that begins may not call tools: its text is the answer from the first letter."""
        self._held_at_most = 0

    def add(self, text: str) -> None:
        """A further piece of the current step."""
        self._held += text
        if self._step_is_answer or len(self._held) > self._held_at_most:
            self._release()

    def step_called_tools(self) -> str | None:
        """Ends a step that called tools; returns what was said aloud in it and never published."""
        aloud = self._held.strip() or None
        self._held = ""
        self._step_is_answer = False
        self._held_at_most = HELD_LATER
        return aloud

    def step_answered(self) -> None:
        """Ends the step that called no tool: all of its text is the answer."""
        if self._held:
            self._release()

    @property
    def whole(self) -> str:
        """Everything published, which is the answer."""
        return self._published

    def _release(self) -> None:
        if not self._step_is_answer and self._published and not self._published.endswith("\n"):
            self._held = "\n\n" + self._held
        self._step_is_answer = True
        self._publish(self._held)
        self._published += self._held
        self._held = ""
