"""Which of the streamed text is the answer.

A model often says a sentence before it calls a tool: thinking aloud, not an answer. So the text of a
step is held back until it is clear that it is an answer: the step ended without a tool call, or the
text grew longer than thinking aloud ever is. What has once been published stays part of the
answer, so the published pieces together always equal the final answer.
"""

from __future__ import annotations

from collections.abc import Callable

HELD_CHARACTERS = 240
"""A sentence or two; longer text streams to the screen as it comes."""


class AnswerText:
    """The answer of one turn, published piece by piece through `publish`."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self._published = ""
        self._held = ""
        self._step_is_answer = False

    def add(self, text: str) -> None:
        """A further piece of the current step."""
        self._held += text
        if self._step_is_answer or len(self._held) > HELD_CHARACTERS:
            self._release()

    def step_called_tools(self) -> str | None:
        """Ends a step that called tools; returns what was said aloud in it and never published."""
        aloud = self._held.strip() or None
        self._held = ""
        self._step_is_answer = False
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
