"""A model call on the event spine: started, waiting, finished, whatever way it ends."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal

from device.clock import Clock
from edge_agent.agent.calls import error_info
from edge_agent.errors import StyleEyesError
from edge_agent.events import (
    ErrorInfo,
    ModelFinished,
    ModelStarted,
    ModelWaiting,
    Spine,
    TokenUsage,
    new_span,
)


class ModelCall:
    """An async context around one model call. Always emits ModelFinished, on errors too."""

    def __init__(
        self,
        spine: Spine,
        clock: Clock,
        *,
        parent: str,
        alias: str,
        model: str,
        purpose: Literal["turn", "tool"],
        images: int,
        prompt: str,
    ) -> None:
        self._spine = spine
        self._clock = clock
        self._parent = parent
        self._span = new_span("model")
        self._started = ModelStarted(alias=alias, model=model, purpose=purpose, images=images, prompt=prompt)
        self._begun = 0.0
        self._finish_reason: str | None = None
        self._usage = TokenUsage()
        self._said: str | None = None

    async def __aenter__(self) -> ModelCall:
        self._begun = self._clock.monotonic()
        self._spine.emit(self._started, span=self._span, parent=self._parent)
        return self

    def waiting(self, seconds: float, reason: str) -> None:
        """The adapter's wait notice."""
        self._spine.emit(
            ModelWaiting(seconds=round(seconds, 1), reason=reason), span=self._span, parent=self._parent
        )

    def finished(self, finish_reason: str, usage: TokenUsage, *, said: str | None = None) -> None:
        """What the call came to; told when the context ends."""
        self._finish_reason = finish_reason
        self._usage = usage
        self._said = said

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spine.emit(
            ModelFinished(
                ok=error is None,
                ms=(self._clock.monotonic() - self._begun) * 1000,
                finish_reason=self._finish_reason,
                usage=self._usage,
                error=_info(error),
                said=self._said,
            ),
            span=self._span,
            parent=self._parent,
        )


def _info(error: BaseException | None) -> ErrorInfo | None:
    match error:
        case None:
            return None
        case StyleEyesError():
            return error_info(error)
        case asyncio.CancelledError():
            return ErrorInfo(code="CANCELLED", message="The model call was cancelled.")
        case _:
            return ErrorInfo(code="INTERNAL", message=f"{type(error).__name__} in the model adapter.")
