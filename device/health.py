"""A health report of one source: what it was asked for, what it gives, and what to do about it."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from device.camera import Camera
from device.capture import Wait, wait_for
from device.clock import Clock
from device.errors import DeviceError
from device.frame import Frame
from device.quality import ExposureWord
from device.sources.producer import Mode
from device.sources.spec import SourceSpec

_FIRST_PICTURE_S = 10.0
_SAMPLE_EVERY_S = 0.05

_RAW_FORMATS = frozenset({"YUYV", "YUY2", "UYVY", "NV12", "RGB3", "BGR3"})
_SOFT = 1.5
"""Well below the score of motion-blurred handheld pictures (about 4): a picture without any detail."""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Times in milliseconds, shares 0…1. `sharpness` and `brightness` are medians over the frames seen.

    `jitter_ms` is how much later than usual the latest twentieth of the pictures comes.
    """

    source: str
    mode: Mode | None
    seconds: float
    first_picture_ms: float
    fps: float
    jitter_ms: float
    longest_gap_ms: float
    received: int
    lost: int
    repeated: int
    reconnects: int
    width: int
    height: int
    exposure: ExposureWord
    brightness: float
    sharpness: float
    age_p99_ms: float
    cpu_share: float
    states: tuple[str, ...]
    advice: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.advice


def check_health(
    camera: Camera,
    source: SourceSpec,
    clock: Clock,
    *,
    seconds: float = 10.0,
    wait: Wait = wait_for,
    cpu_time: Callable[[], float] = time.process_time,
) -> HealthReport:
    """Opens `source` on `camera`, watches it for `seconds` after its first picture, and closes it.

    Raises DeviceError as `Camera.open`, or where no picture came within 10 s.
    """
    states: list[str] = []
    unsubscribe = camera.subscribe(lambda status: states.append(status.state.value))
    try:
        began = clock.monotonic()
        camera.open(source)
        if not camera.wait_fresh(_FIRST_PICTURE_S):
            status = camera.status
            raise status.error or DeviceError(
                "CAMERA_SILENT", f"{status.source} gave no picture: {status.words}", "try another source"
            )
        first_picture = clock.monotonic() - began
        watch = _watch(camera, clock, seconds, wait, cpu_time)
        return _report(camera, watch, first_picture * 1000, tuple(states))
    finally:
        unsubscribe()
        camera.close()


@dataclass(frozen=True, slots=True)
class _Watch:
    frames: Sequence[Frame]
    ages_ms: Sequence[float]
    seconds: float
    cpu_share: float


def _watch(camera: Camera, clock: Clock, seconds: float, wait: Wait, cpu_time: Callable[[], float]) -> _Watch:
    never = threading.Event()
    frames: dict[str, Frame] = {}
    ages: list[float] = []
    began, cpu_began = clock.monotonic(), cpu_time()
    while clock.monotonic() - began < seconds and not camera.status.ended:
        frame = camera.newest()
        if frame is not None:
            frames[frame.id] = frame
            ages.append(frame.age_s * 1000)
        wait(never, _SAMPLE_EVERY_S)
    passed = max(1e-6, clock.monotonic() - began)
    return _Watch(list(frames.values()), ages, passed, (cpu_time() - cpu_began) / passed)


def _report(camera: Camera, watch: _Watch, first_picture_ms: float, states: tuple[str, ...]) -> HealthReport:
    status, figures = camera.status, camera.figures
    intervals = sorted(1000 * interval for interval in figures.intervals())
    usual = statistics.median(intervals) if intervals else 0.0
    exposures = [frame.exposure for frame in watch.frames]
    facts = HealthReport(
        source=status.source,
        mode=camera.mode,
        seconds=watch.seconds,
        first_picture_ms=first_picture_ms,
        fps=1000 / statistics.fmean(intervals) if intervals else 0.0,
        jitter_ms=max(0.0, _share_of(intervals, 0.95) - usual),
        longest_gap_ms=intervals[-1] if intervals else 0.0,
        received=figures.received,
        lost=figures.lost,
        repeated=figures.repeated,
        reconnects=figures.reconnects,
        width=status.width,
        height=status.height,
        exposure=statistics.mode([exposure.word for exposure in exposures] or ["black"]),
        brightness=statistics.median([exposure.brightness for exposure in exposures] or [0.0]),
        sharpness=statistics.median([frame.sharpness for frame in watch.frames] or [0.0]),
        age_p99_ms=_share_of(sorted(watch.ages_ms), 0.99),
        cpu_share=watch.cpu_share,
        states=states,
    )
    return replace(facts, advice=tuple(advice_on(facts)))


def _share_of(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def advice_on(report: HealthReport) -> list[str]:
    """What a person can do about what the report shows, most telling first; empty where all is well."""
    advice: list[str] = []
    promised = report.mode.fps if report.mode is not None else None
    fourcc = report.mode.fourcc if report.mode is not None else ""
    if fourcc in _RAW_FORMATS and report.fps < 20:
        advice.append(
            f"{fourcc} at {report.fps:.0f} fps: ask for MJPG; this camera did not give it at this size, "
            "so try a smaller one or another camera"
        )
    elif promised and report.fps < 0.8 * promised:
        advice.append(
            f"{report.fps:.0f} of {promised:.0f} frames a second come: give it more light (automatic "
            "exposure slows down in the dark), and plug it into the computer rather than a hub"
        )
    if report.reconnects:
        advice.append(f"it was lost {report.reconnects} times: check cable, plug and hub")
    if report.lost > 0.02 * max(1, report.received):
        advice.append(f"{report.lost} frames were lost: another USB port or cable, or a smaller size")
    if report.repeated > 0.05 * max(1, report.received):
        advice.append(
            f"{report.repeated} pictures were exact repeats, so the driver repeats itself: plug it out and in"
        )
    match report.exposure:
        case "black":
            advice.append("the picture is black: is the lens covered, or a privacy shutter closed?")
        case "dark":
            advice.append("the picture is very dark: more light")
        case "bright":
            advice.append("much of the picture is too bright: away from the window or lamp")
        case "good":
            pass
    if report.sharpness < _SOFT and report.exposure != "black":
        advice.append("the picture has no detail: wipe the lens, check the focus")
    if report.cpu_share > 0.7:
        advice.append(f"it takes {report.cpu_share:.0%} of a core: a smaller size would spare the machine")
    return advice
