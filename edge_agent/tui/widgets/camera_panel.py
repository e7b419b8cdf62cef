"""The camera's corner: picture, state in words, freshness and sharpness gauges."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from device.clock import Clock
from device.errors import DeviceError
from device.frame import FRESH_S
from edge_agent.session.span_text import bar, duration
from edge_agent.text import sanitise
from edge_agent.tui.cells import steady
from edge_agent.tui.half_blocks import fit, strips
from edge_agent.tui.widgets.preview import Preview

if TYPE_CHECKING:
    from textual.strip import Strip

    from edge_agent.tui.session_port import CameraStatusView, CameraView, FrameView

PERIOD_S = 0.22
NARROW_PERIOD_S = 0.5

_STATE_LOOKS: dict[str, tuple[str, str]] = {
    "live": ("●", "$success"),
    "opening": ("◌", "$warning"),
    "warming": ("◌", "$warning"),
    "reconnecting": ("◌", "$warning"),
    "stalled": ("◐", "$warning"),
    "frozen": ("◐", "$warning"),
    "ended": ("■", "$secondary"),
    "paused": ("○", "$quiet"),
    "closed": ("○", "$quiet"),
}
"""By `device.states`; `lost`, `busy`, `denied` and whatever is unknown look like trouble."""
_TROUBLE = ("✗", "$error")


def state_look(state: str) -> tuple[str, str]:
    """Glyph and colour of a camera state."""
    return _STATE_LOOKS.get(state, _TROUBLE)


class CameraPanel(Vertical):
    """Polls the camera a few times a second and draws its newest frame while that is fresh.

    Frames are fetched and scaled in a thread, one at a time: a slow camera or a slow machine lowers
    the picture rate, never the speed of the keys.
    """

    BORDER_TITLE = "Camera"

    def __init__(self, clock: Clock) -> None:
        super().__init__(id="camera")
        self._clock = clock
        self._camera: CameraView | None = None
        self._drawn: tuple[str, int, int] | None = None
        self._sharpest = 0.0
        self._epoch: int | None = None
        self._preview = Preview()
        self._state_line = Static(id="camera-state")
        self._figures_line = Static(id="camera-figures")

    def compose(self) -> ComposeResult:
        yield self._preview
        yield self._state_line
        yield self._figures_line

    def on_mount(self) -> None:
        self._preview.show_words("Opening the camera…")
        self._state_line.update(Content.styled("◌ starting", "$warning"))

    def watch_camera(self, camera: CameraView) -> None:
        """Shows `camera` from now on."""
        self._camera = camera
        self.run_worker(self._follow(), name="preview", exclusive=True)

    def say(self, words: str) -> None:
        """Words in place of the picture while there is no camera to watch."""
        if self._camera is None:
            self._preview.show_words(words)

    def stop(self, words: str) -> None:
        """There will be no camera: the session did not open."""
        self.say(words)
        self._state_line.update(Content.styled("✗ no camera", "$error"))

    @property
    def period(self) -> float:
        return NARROW_PERIOD_S if self.screen.has_class("-narrow") else PERIOD_S

    async def _follow(self) -> None:
        while self._camera is not None:
            started = self._clock.monotonic()
            await self.draw(self._camera)
            await asyncio.sleep(max(0.02, self.period - (self._clock.monotonic() - started)))

    async def draw(self, camera: CameraView) -> None:
        """One look at the camera: draws its newest frame, or says why there is none."""
        status, frame = camera.status, camera.newest()
        if status.epoch != self._epoch:
            self._epoch, self._drawn, self._sharpest = status.epoch, None, 0.0
            self._preview.show_words(sanitise(status.words))
        age_s = None if frame is None else self._clock.monotonic() - frame.received
        if frame is None or age_s is None or age_s > FRESH_S - self.period:
            # a period early, so that nothing over 15.0 s old is still there at the next look
            self._drawn = None
            self._preview.show_words(sanitise(status.words))
        else:
            await self._draw_frame(frame)
        self._describe(status, age_s)

    async def _draw_frame(self, frame: FrameView) -> None:
        preview = self._preview
        size = preview.size
        wanted = (frame.id, size.width, size.height)
        if wanted == self._drawn or not size.area or not preview.is_on_screen:
            return
        lines = await asyncio.to_thread(_lines, frame, size.width, size.height)
        if lines and preview.size == size:
            self._drawn = wanted
            preview.show(lines)

    def _describe(self, status: CameraStatusView, age_s: float | None) -> None:
        glyph, colour = state_look(status.state)
        narrow = self.content_size.width < 32
        parts = [Content.styled(f"{glyph} {status.state}", f"bold {colour}")]
        if age_s is None and status.age_ms is not None:
            parts.append(Content.styled(f"last picture {duration(status.age_ms)} ago", "$error"))
        elif age_s is not None:
            fresh = max(0.0, 1 - age_s / FRESH_S)
            gauge = "$success" if fresh > 0.8 else "$warning" if fresh > 0.3 else "$error"
            parts.append(Content.styled(bar(fresh, 4 if narrow else 6), gauge))
            parts.append(Content.styled(f"{age_s:.1f} s old", "$foreground"))
        self._state_line.update(Content("  ").join(parts))
        # a state may need more words than its name: said below the picture, even where room is scarce
        words = steady(sanitise(status.words))
        words = words.removeprefix(status.state).lstrip(" ,:.").removeprefix("but ")
        more = self._preview.has_picture and bool(words)
        self._figures_line.set_class(more, "-words")
        shown = Content.styled(words, "$warning") if more else self._figures(status, narrow)
        self._figures_line.update(shown)

    def _figures(self, status: CameraStatusView, narrow: bool) -> Content:
        parts: list[Content] = []
        if status.width and status.height:
            parts.append(Content(f"{status.width}×{status.height}"))
        if status.fps and not narrow:
            parts.append(Content(f"{status.fps:.0f} fps"))
        if status.sharpness is not None:
            self._sharpest = max(self._sharpest, status.sharpness)
            share = status.sharpness / self._sharpest if self._sharpest else 0.0
            colour = "$success" if share > 0.6 else "$warning"
            words = f"sharp {share * 100:.0f} %"
            parts.append(
                Content.assemble(words if narrow else f"{words} ", (bar(share, 0 if narrow else 6), colour))
            )
        return Content(" · ").join(parts)


def _lines(frame: FrameView, columns: int, rows: int) -> list[Strip]:
    """The frame as lines; none when it expired meanwhile."""
    try:
        picture = frame.bgr()
    except DeviceError:
        return []
    wide, high = fit(picture.shape[1], picture.shape[0], columns, rows)
    return strips(picture, wide, high) if wide and high else []
