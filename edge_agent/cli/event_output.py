"""A session's events on the command line: JSON lines for programs, short words for people."""

from __future__ import annotations

from edge_agent.cli.failure import say, write_json_line
from edge_agent.events import (
    CameraChanged,
    Event,
    ModelWaiting,
    Notice,
    ToolFinished,
    ToolStarted,
    event_to_json,
)


class EventOutput:
    """A spine subscriber. With `json_output` every event is a line of stdout; people read stderr."""

    def __init__(self, *, json_output: bool) -> None:
        self._json_output = json_output
        self._tools: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        if self._json_output:
            write_json_line(event_to_json(event))
        words = self._words(event)
        if words:
            say(words)

    def _words(self, event: Event) -> str | None:
        match event.body:
            case Notice(level="warn" | "error", message=message, hint=hint):
                return message + (f"\n  → {hint}" if hint else "")
            case CameraChanged(words=words):
                return f"camera: {words}"
            case ToolStarted(tool=tool):
                self._tools[event.span] = tool
                return f"{tool} …"
            case ToolFinished(ok=ok, ms=ms, error=error):
                tool = self._tools.pop(event.span, "tool")
                if ok or error is None:
                    return f"{tool} done in {ms:.0f} ms"
                return f"{tool} failed: {error.message}"
            case ModelWaiting(seconds=seconds, reason=reason):
                return f"waiting {seconds:.0f} s: {reason}"
            case _:
                return None
