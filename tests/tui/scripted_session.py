"""A scripted session behind the app's one door: real events through a real spine, no engine.

`ask` plays the events of a turn; a script decides which. Frames are drawn with numpy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from edge_agent.errors import StyleEyesError
from edge_agent.events import (
    AnswerDelta,
    CapabilityFinished,
    CapabilityStarted,
    ErrorInfo,
    FrameRef,
    ModelFinished,
    ModelStarted,
    PinnedTool,
    SessionStarted,
    Spine,
    TokenUsage,
    ToolFinished,
    ToolLogged,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from edge_agent.json_types import JsonObject


class StillClock:
    """Time that moves only when told."""

    def __init__(self, start: float = 100.0) -> None:
        self.now = start

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime.fromtimestamp(1_780_000_000 + self.now, UTC)


@dataclass(frozen=True)
class ScriptedFrame:
    id: str
    received: float
    pixels: Any
    sharpness: float | None = 120.0

    def bgr(self) -> Any:
        return self.pixels


@dataclass
class ScriptedStatus:
    state: str = "live"
    words: str = "live"
    source: str = "clip.mp4"
    epoch: int = 1
    age_ms: float | None = 200.0
    fps: float | None = 30.0
    width: int | None = 1280
    height: int | None = 720
    sharpness: float | None = 120.0


@dataclass
class ScriptedCamera:
    status: ScriptedStatus = field(default_factory=ScriptedStatus)
    frame: ScriptedFrame | None = None

    def newest(self) -> ScriptedFrame | None:
        return self.frame


def picture(seed: int = 0, height: int = 180, width: int = 320) -> Any:
    """A hanging jacket before a wall, drifting a little with `seed`."""
    y, x = np.mgrid[0:height, 0:width]
    wall = np.stack([150 + y * 0.2, 160 + x * 0.1, 175 + y * 0.1], axis=-1)
    cx = width / 2 + np.sin(seed / 5) * 12
    u, v = (x - cx) / (height * 0.42), (y - height * 0.52) / (height * 0.42)
    body = (np.abs(u) < 0.62 + 0.1 * v) & (np.abs(v) < 0.95)
    arms = (np.abs(np.abs(u) - 0.72 - 0.16 * (v + 0.6)) < 0.17) & (v > -0.85) & (v < 0.75)
    garment = body | arms
    shade = 1 - 0.35 * np.abs(u) + 0.06 * np.sin(u * 18 + v * 3)
    red = np.stack([52 * shade, 44 * shade, 172 * shade], axis=-1)
    out = np.where(garment[..., None], red, wall)
    out = np.where((np.abs(u) < 0.02)[..., None] & garment[..., None], 40, out)
    neck = (u**2 / 0.06 + (v + 0.95) ** 2 / 0.03) < 1
    return np.where(neck[..., None], wall * 0.8, out).clip(0, 255).astype(np.uint8)


FRAME = FrameRef(
    id="frame-412",
    age_ms=180.0,
    width=1280,
    height=720,
    sharpness=131.0,
    epoch=1,
    captured_at="2026-05-28T20:28:20.000Z",
)

SQL = (
    "SELECT p.style_id, p.name FROM products p JOIN products_fts f ON f.rowid = p.rowid\n"
    "WHERE products_fts MATCH ?1 AND p.photos > 0 ORDER BY rank LIMIT 8"
)

PRODUCTS: JsonObject = {
    "products": [
        {
            "styleId": "MT01",
            "name": "Atlas Fleece Jacket",
            "brand": "Northline",
            "price": 89.0,
            "currency": "USD",
            "snapshotDate": "2026-03-02",
            "photos": 3,
        },
        {"styleId": "MT07", "name": "Ridge Zip Jacket", "brand": "Northline", "photos": 2},
    ],
    "total": 2,
    "snapshotNote": "Prices as of 2026-03-02; stock is not known.",
}

VERDICT: JsonObject = {
    "best": "MT01",
    "confidence": 0.87,
    "candidates": [
        {
            "styleId": "MT01",
            "probability": 0.87,
            "agrees": ["red fleece", "full zip", "stand collar"],
            "differs": [],
        },
        {"styleId": "MT07", "probability": 0.08, "agrees": ["full zip"], "differs": ["hood"]},
    ],
    "askToSeeTag": False,
    "reason": "Colour and collar agree.",
}

ANSWER = (
    "That looks like the Atlas Fleece Jacket (MT01) in red: same stand collar and full zip. "
    "I judged a frame 0.2 s old; the catalog price was 89 USD on 2 March. Stock is not known."
)

FACTS = SessionStarted(
    session_id="s-1",
    mode="demo",
    agent_id="stylist",
    agent_name="Stylist",
    model="offline",
    model_reason="no GEMINI_API_KEY is set",
    source="clip.mp4",
    sandbox="bubblewrap",
    tools=(PinnedTool(id="search_catalog", source="agent", sha256="ab" * 32),),
    app_version="0.1.0",
)

Turn = Callable[["ScriptedSession", str, str], Awaitable[None]]


class ScriptedSession:
    """Satisfies `SessionPort`. `script` plays a turn; `opening` may raise or wait."""

    def __init__(
        self,
        clock: Any,
        script: Turn | None = None,
        *,
        facts: SessionStarted = FACTS,
        opening: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.clock = clock
        self.spine = Spine(clock)
        self.facts = facts
        self.camera = ScriptedCamera()
        self.questions: list[str] = []
        self.cancelled = asyncio.Event()
        self.closed = False
        self._script = script or matching_turn
        self._opening = opening
        self._task: asyncio.Task[Any] | None = None

    async def open(self) -> None:
        if self._opening is not None:
            await self._opening()
        self.spine.emit(self.facts, span="session-1")

    async def ask(self, question: str, /) -> None:
        self.questions.append(question)
        span = f"turn-{len(self.questions)}"
        self.spine.emit(
            TurnStarted(question=question, frame=FRAME, camera="fresh"), span=span, parent="session-1"
        )
        self._task = asyncio.ensure_future(self._script(self, span, question))
        try:
            await self._task
        except asyncio.CancelledError:
            error = ErrorInfo(code="CANCELLED", message="Stopped by the wearer.")
            self.spine.emit(TurnFinished(ok=False, answer="", ms=900.0, error=error), span=span)
            self.cancelled.set()
        except StyleEyesError as failed:
            error = ErrorInfo(code=failed.code, message=failed.message, hint=failed.hint)
            self.spine.emit(TurnFinished(ok=False, answer="", ms=900.0, error=error), span=span)

    def cancel_turn(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        self.closed = True


async def matching_turn(session: ScriptedSession, turn: str, question: str) -> None:
    """The main flow: describe, search, match, answer."""
    play_match(session.spine, turn)


def play_match(spine: Spine, turn: str) -> None:
    """The events of a whole turn: two model calls, two tools, one nested model call."""
    n = turn
    spine.emit(
        ModelStarted(alias="default", model="offline", purpose="turn", images=1, prompt="Describe it."),
        span=f"{n}-m1", parent=turn,
    )  # fmt: skip
    spine.emit(
        ModelFinished(ok=True, ms=140.0, finish_reason="tool_calls", usage=TokenUsage()), span=f"{n}-m1"
    )
    spine.emit(
        ToolStarted(
            call_id="c1", tool="search_catalog", source_hash="ab" * 32,
            input={"query": "red fleece jacket", "hasPhotos": True}, frame=FRAME,
        ),
        span=f"{n}-t1", parent=turn,
    )  # fmt: skip
    spine.emit(
        CapabilityStarted(kind="db.query", target="catalog", detail=SQL), span=f"{n}-c1", parent=f"{n}-t1"
    )
    spine.emit(CapabilityFinished(ok=True, ms=4.0, rows=2, bytes=412), span=f"{n}-c1")
    spine.emit(ToolLogged(level="info", text="2 of 147 styles fit"), span=f"{n}-t1")
    spine.emit(ToolFinished(ok=True, ms=23.0, result=PRODUCTS), span=f"{n}-t1")
    spine.emit(
        ToolStarted(
            call_id="c2", tool="match_garment", source_hash="cd" * 32,
            input={"styleIds": ["MT01", "MT07"]}, frame=FRAME,
        ),
        span=f"{n}-t2", parent=turn,
    )  # fmt: skip
    for index, photo in enumerate(("mt01-front.jpg", "mt01-back.jpg", "mt07-front.jpg")):
        spine.emit(
            CapabilityStarted(kind="images.open", target="photos", detail=photo),
            span=f"{n}-i{index}", parent=f"{n}-t2",
        )  # fmt: skip
        spine.emit(CapabilityFinished(ok=True, ms=2.0, bytes=40_960), span=f"{n}-i{index}")
    spine.emit(ToolProgressed(fraction=0.5, message="comparing"), span=f"{n}-t2")
    spine.emit(CapabilityStarted(kind="llm.generate", target="default"), span=f"{n}-c2", parent=f"{n}-t2")
    spine.emit(
        ModelStarted(
            alias="default", model="offline", purpose="tool", images=4,
            prompt="Image 1: camera frame\nImage 2: candidate MT01 (Atlas Fleece Jacket, red)",
        ),
        span=f"{n}-m2", parent=f"{n}-c2",
    )  # fmt: skip
    spine.emit(
        ModelFinished(ok=True, ms=388.0, finish_reason="stop", usage=TokenUsage(input=1834, output=96)),
        span=f"{n}-m2",
    )
    spine.emit(CapabilityFinished(ok=True, ms=391.0, bytes=512), span=f"{n}-c2")
    spine.emit(ToolFinished(ok=True, ms=412.0, result=VERDICT), span=f"{n}-t2")
    for piece in ANSWER.split(" "):
        spine.emit(AnswerDelta(text=piece + " "), span=turn)
    spine.emit(TurnFinished(ok=True, answer=ANSWER, ms=655.0), span=turn)
