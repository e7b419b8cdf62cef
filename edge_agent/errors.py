"""The one error type that crosses rooms: a stable code, a sentence, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A place in an author's file; both counted from 1."""

    line: int
    column: int


class StyleEyesError(Exception):
    """A failure that a person or a model is told about.

    `code` is upper case and stable: log, screen, MCP and exit status show it. `message` is one
    clear sentence; `hint` says what to do. Neither ever holds a key or a path outside HOME that
    the reader did not name.
    """

    def __init__(
        self, code: str, message: str, hint: str | None = None, at: SourcePosition | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.at = at

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class UsageError(StyleEyesError):
    """Wrong usage or a bad input file: exit status 2."""


class EnvironmentLacksError(StyleEyesError):
    """The machine lacks something that `styleeyes doctor` can name: exit status 3."""
