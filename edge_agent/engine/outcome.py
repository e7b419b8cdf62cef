"""What a tool call comes to: a JSON value, or an error that the model sees as a value."""

from __future__ import annotations

from dataclasses import dataclass

from edge_agent.events import ErrorInfo
from edge_agent.json_types import JsonValue


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """`error` is None exactly when the call succeeded; `value` may then be any JSON, None too."""

    value: JsonValue = None
    error: ErrorInfo | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    def for_model(self) -> JsonValue:
        """The value, or `{"error": {code, message, hint?, at?}}` of the contract's section 6."""
        if self.error is None:
            return self.value
        shown: dict[str, JsonValue] = {"code": self.error.code, "message": self.error.message}
        if self.error.hint:
            shown["hint"] = self.error.hint
        if self.error.line is not None:
            shown["at"] = {"line": self.error.line, "column": self.error.column or 1}
        return {"error": shown}
