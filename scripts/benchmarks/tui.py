"""What the screen costs: a log update, a preview frame, and the time from a key to its paint.

The app runs headless with its real event loop, layout and compositor on a scripted session; what a
terminal adds (writing and drawing) is not in these figures.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from device.clock import SystemClock
from edge_agent.events import (
    CameraChanged,
    CapabilityFinished,
    CapabilityStarted,
    SessionStarted,
    Spine,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from edge_agent.tui.app import StyleEyesApp
from edge_agent.tui.half_blocks import strips
from edge_agent.tui.widgets.prompt import Prompt
from edge_agent.tui.widgets.span_log import SpanLog

Figures = dict[str, dict[str, Any]]
COLUMNS, ROWS = 60, 20


class _Frame:
    sharpness = 1.0

    def __init__(self, number: int, pixels: Any) -> None:
        self.id, self.received, self._pixels = f"f1-{number}", time.monotonic(), pixels

    def bgr(self) -> Any:
        return self._pixels


class _Status:
    state, words, source, epoch = "live", "live", "drawn", 1
    age_ms, fps, width, height, sharpness = 10.0, 30.0, 1280, 720, 1.0


class _Camera:
    """A new picture at every look, which is the dearest case."""

    def __init__(self, pictures: list[Any]) -> None:
        self.status = _Status()
        self._pictures, self._looks = pictures, 0

    def newest(self) -> _Frame:
        self._looks += 1
        return _Frame(self._looks, self._pictures[self._looks % len(self._pictures)])


class _Session:
    """Open at once; does nothing by itself."""

    facts = SessionStarted(
        session_id="s",
        mode="demo",
        agent_id="a",
        agent_name="Agent",
        model="offline",
        model_reason="measured",
        source="drawn",
        sandbox="none",
        tools=(),
        app_version="0",
    )

    def __init__(self, pictures: list[Any]) -> None:
        self.spine = Spine(SystemClock())
        self.camera = _Camera(pictures)

    async def open(self) -> None:
        self.spine.emit(CameraChanged(state="live", words="live", source="drawn", epoch=1), span="s")

    async def ask(self, question: str, /) -> None: ...
    def cancel_turn(self) -> None: ...
    async def aclose(self) -> None: ...


def measure() -> Figures:
    """The room's figures; see the module's text."""
    pictures = _pictures()
    return {**_preview(pictures), **asyncio.run(_app(pictures))}


def _pictures() -> list[Any]:
    """Photo-like 720p pictures: smooth shading, an object that moves, sensor noise."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[0:720, 0:1280]
    pictures = []
    for step in range(12):
        base = np.stack([90 + y / 9, 110 + x / 16, 150 - y / 12], axis=-1)
        inside = ((x - 500 - step * 20) / 260) ** 2 + ((y - 380) / 300) ** 2 < 1
        base[inside] = np.stack([40 + x / 20, 50 + y / 15, 140 + (x % 90)], axis=-1)[inside]
        pictures.append((base + random.normal(0, 6, base.shape)).clip(0, 255).astype(np.uint8))
    return pictures


def _preview(pictures: list[Any]) -> Figures:
    strips(pictures[0], COLUMNS, ROWS)
    times = [_ms(lambda picture=picture: strips(picture, COLUMNS, ROWS)) for picture in pictures]  # type: ignore[misc]
    return {"tui.preview_frame": _figure(statistics.median(times), "ms", 15.0)}


async def _app(pictures: list[Any]) -> Figures:
    session = _Session(pictures)
    app = StyleEyesApp(lambda: session)
    async with app.run_test(size=(120, 40)) as pilot:
        async with asyncio.timeout(20):
            while not app.main.ready:
                await pilot.pause(0.01)
        _fill(session.spine, 500)
        async with asyncio.timeout(20):
            while not (len(app.main.spans) >= 500 and app.main.drawn):
                await pilot.pause(0.01)
        update = await _update_times(app, session.spine, pilot)
        keys = await _key_times(
            app, app.main.query_one(Prompt), pilot, lambda n: _call(session.spine, 900, n)
        )
    bare = await _bare_key_times()
    return {
        "tui.log_update_500_spans": _figure(statistics.median(update), "ms", 5.0),
        "tui.key_to_paint_p50": _figure(statistics.median(keys), "ms", 50.0),
        "tui.key_to_paint_p95": _figure(_p95(keys), "ms", 50.0) | {"peer": round(_p95(bare), 2)},
    }


def _fill(spine: Spine, spans: int) -> None:
    """One turn with about `spans` entries, all unfolded."""
    spine.emit(TurnStarted(question="Measured", frame=None, camera="fresh"), span="turn")
    for tool in range(spans // 10):
        _start_tool(spine, tool)
        for call in range(9):
            _call(spine, tool, call)
        spine.emit(ToolFinished(ok=True, ms=40.0, result={"n": tool}), span=f"tool-{tool}")


def _start_tool(spine: Spine, tool: int) -> None:
    body = ToolStarted(call_id="c", tool="search_catalog", source_hash="", input={"n": tool}, frame=None)
    spine.emit(body, span=f"tool-{tool}", parent="turn")


def _call(spine: Spine, tool: int, call: int) -> None:
    span = f"cap-{tool}-{call}"
    started = CapabilityStarted(kind="db.query", target="catalog", detail="SELECT style_id FROM products")
    spine.emit(started, span=span, parent=f"tool-{tool}")
    spine.emit(CapabilityFinished(ok=True, ms=3.0, rows=4), span=span)


async def _update_times(app: StyleEyesApp, spine: Spine, pilot: Any) -> list[float]:
    """Folding one more call and bringing the log's rows and lines up to date."""
    log = app.main.query_one(SpanLog)
    times: list[float] = []
    _start_tool(spine, 900)
    for call in range(40):
        _call(spine, 900, call)
        await pilot.pause()

        def update() -> None:
            app.main.redraw()
            _ = log.last_line  # builds the lines, as the next paint would
            for y in range(log.size.height):
                log.render_line(y)

        times.append(_ms(update))
        await pilot.pause()
    return times


class _Bare(App[None]):
    """The peer: as little as an app that takes keys can be, for what Textual takes by itself here."""

    def compose(self) -> ComposeResult:
        yield TextArea()


async def _bare_key_times() -> list[float]:
    app = _Bare()
    async with app.run_test(size=(120, 40)) as pilot:
        return await _key_times(app, app.query_one(TextArea), pilot, lambda _: None)


async def _key_times(
    app: App[Any], prompt: TextArea, pilot: Any, meanwhile: Callable[[int], None]
) -> list[float]:
    """From a key put into the app's queue to its paint; with `meanwhile`, while frames and events flow."""
    prompt.focus()
    painted = asyncio.Event()
    display: Callable[..., None] = app._display

    def watched(*arguments: Any) -> None:
        display(*arguments)
        if len(prompt.text) == expected:
            painted.set()

    app._display = watched  # type: ignore[method-assign,assignment]
    times: list[float] = []
    for number in range(120):
        if number % 3 == 0:
            meanwhile(100 + number)
        expected = len(prompt.text) + 1
        painted.clear()
        started = time.perf_counter()
        app.post_message(events.Key("a", "a"))
        async with asyncio.timeout(10):
            await painted.wait()
        times.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.013 + 0.007 * (number % 5))  # keys fall anywhere in the picture's rhythm
        if number % 40 == 39:
            prompt.text = ""
            await pilot.pause()
    app._display = display  # type: ignore[method-assign]
    return times


def _ms(work: Callable[[], object]) -> float:
    """CPU time of this thread, so that whatever else the machine does is not in it."""
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1000


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def _figure(value: float, unit: str, aim: float) -> dict[str, Any]:
    return {"value": round(value, 2), "unit": unit, "aim": aim, "ok": value <= aim}
