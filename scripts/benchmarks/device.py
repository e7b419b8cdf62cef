"""What the camera side costs and gives: capture, memory, age, snapshots, sharpness, unplugging."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from device.buffer import FreshnessBuffer
from device.camera import Camera
from device.clock import SystemClock
from device.discovery import DeviceTree
from device.quality import Pixels
from device.quality import measure as measure_quality
from device.sources import parse_source
from device.sources.producer import StopAsked
from device.sources.spec import SourceSpec
from device.sources.synthetic import SyntheticProducer, burnt_position_s
from device.states import CameraState
from device.status import CameraStatus
from device.v4l2 import NodeFacts

_WALK = Path(__file__).resolve().parents[2].parent / "shared/data/video/rack-walk.mp4"
_WALK_FPS = 15
_RUN_S = 6.0
_LOOK_EVERY_S = 0.0071  # no multiple of a frame interval, so that looks fall anywhere within one

Figures = dict[str, dict[str, object]]


def measure() -> Figures:
    """Runs for about half a minute on one core at most."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, width, height, cpu_aim in (("720p30", 1280, 720, 0.35), ("1080p30", 1920, 1080, None)):
            clip = _clip(Path(folder) / f"{name}.avi", width, height)
            figures |= _capture(name, clip, cpu_aim)
        figures["device.unplug_to_words"] = _unplug(Path(folder))
    figures["device.true_age_error_ms"] = _true_age()
    figures |= _best_against_newest()
    return figures


def _figure(
    value: float, unit: str, aim: float | None = None, peer: float | None = None
) -> dict[str, object]:
    figure: dict[str, object] = {
        "value": round(value, 4),
        "unit": unit,
        "aim": aim,
        "ok": None if aim is None else value <= aim,
    }
    if peer is not None:
        figure["peer"] = round(peer, 4)
    return figure


def _clip(path: Path, width: int, height: int) -> Path:
    """Eight seconds of MJPG, what a USB camera sends: textured, moving, at 30 frames a second."""
    from device.opencv import cv2

    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"MJPG"), 30, (width, height))
    grain = np.random.default_rng(1).integers(0, 24, (height + 64, width + 64, 3)).astype(np.uint8)
    scene = cv2.add(cv2.GaussianBlur(grain, (3, 3), 0), np.full_like(grain, 60))
    for line in range(0, height, 40):
        cv2.line(scene, (0, line), (width, line + 90), (150, 120, 90), 7)
    for number in range(240):
        dx, dy = int(30 + 30 * np.sin(number / 9)), int(30 + 30 * np.cos(number / 11))
        writer.write(np.ascontiguousarray(scene[dy : dy + height, dx : dx + width]))
    writer.release()
    return path


def _capture(name: str, clip: Path, cpu_aim: float | None) -> Figures:
    process = psutil.Process()
    bare = _bare_reading(clip)
    rss_before = process.memory_info().rss
    camera = Camera(SystemClock())
    camera.open(parse_source(str(clip)))
    camera.wait_fresh(5)
    ages: list[float] = []
    costs: list[float] = []
    held = 0
    capture_cpu = _thread_cpu("styleeyes-capture")
    began, cpu_began = time.perf_counter(), capture_cpu()
    looks = 0
    while (passed := time.perf_counter() - began) < _RUN_S:
        frame = camera.newest()
        if frame is not None:
            ages.append(frame.age_s * 1000)
        looks += 1
        if looks % 8 == 0:
            before = time.perf_counter()
            snapshot = camera.snapshot()
            if snapshot.frame is not None:
                snapshot.frame.jpeg()
            costs.append((time.perf_counter() - before) * 1000)
            held = max(held, camera.held_bytes)
        time.sleep(_LOOK_EVERY_S)
    cpu = (capture_cpu() - cpu_began) / passed
    lost, received = camera.figures.lost, camera.figures.received
    rss = process.memory_info().rss - rss_before
    camera.close()
    interval = 1000 / 30
    return {
        f"device.capture_{name}_cpu": _figure(cpu, "cores", cpu_aim, bare),
        f"device.capture_{name}_lost": _figure(lost, f"of {received} frames", 0),
        f"device.capture_{name}_buffer": _figure(held / 2**20, "MiB", 64),
        f"device.capture_{name}_memory": _figure(rss / 2**20, "MiB grown"),
        f"device.newest_age_p99_{name}": _figure(_p99(ages) / interval, "frame intervals", 1.0),
        f"device.snapshot_cost_p99_{name}": _figure(_p99(costs), "ms", 15.0),
    }


def _bare_reading(clip: Path) -> float:
    """The same clip through OpenCV alone at the same pace: what no buffer, no quality, no JPEG costs."""
    from device.opencv import cv2

    capture = cv2.VideoCapture(str(clip), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    began, cpu_began = time.perf_counter(), time.thread_time()
    frames = 0
    while frames < 90 and capture.read()[0]:
        frames += 1
        time.sleep(max(0.0, began + frames / 30 - time.perf_counter()))
    passed = time.perf_counter() - began
    capture.release()
    return (time.thread_time() - cpu_began) / passed


def _thread_cpu(name: str) -> Callable[[], float]:
    """The processor time of a running thread of this process, in seconds."""
    thread = next(thread for thread in threading.enumerate() if thread.name == name)
    process = psutil.Process()

    def seconds() -> float:
        for entry in process.threads():
            if entry.id == thread.native_id:
                return float(entry.user_time + entry.system_time)
        return 0.0

    return seconds


def _true_age() -> dict[str, object]:
    """How far a frame's stated age is from the age that the time burnt into its picture tells."""
    camera = Camera(SystemClock())
    camera.open(parse_source("synthetic"))
    camera.wait_fresh(5)
    offsets: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < 2.0:
        frame = camera.newest()
        if frame is not None:
            offsets.append((frame.received - burnt_position_s(frame.bgr())) * 1000)
        time.sleep(0.02)
    camera.close()
    return _figure(_p99([abs(offset - min(offsets)) for offset in offsets]), "ms", 1000 / 30)


def _unplug(folder: Path) -> dict[str, object]:
    """From a camera's node vanishing to the words that say so; the machine's tree is a folder here."""
    node, entry = folder / "dev/video0", folder / "sys/class/video4linux/video0"
    for made in (node.parent, entry):
        made.mkdir(parents=True)
    (entry / "name").write_text("Cam")
    waits: list[float] = []
    for _ in range(5):
        node.touch()
        with _usb_camera(folder) as camera:
            waits.append(_until_lost(camera, node))
    return _figure(max(waits), "s", 2.0)


def _until_lost(camera: Camera, node: Path) -> float:
    told = threading.Event()

    def listen(status: CameraStatus) -> None:
        if status.state is CameraState.LOST:
            told.set()

    camera.subscribe(listen)
    began = time.perf_counter()
    node.unlink()
    told.wait(5)
    return time.perf_counter() - began


@contextmanager
def _usb_camera(root: Path) -> Iterator[Camera]:
    def open_producer(spec: SourceSpec, node: str | None, stop_asked: StopAsked) -> SyntheticProducer:
        return SyntheticProducer(spec)

    def ask(node: Path, *, with_modes: bool = False) -> NodeFacts:
        return NodeFacts("Cam", "usb-1", True)

    camera = Camera(SystemClock(), open_producer=open_producer, devices=DeviceTree(root, ask))
    camera.open(parse_source("usb"))
    camera.wait_fresh(5)
    yield camera
    camera.close()


class _Film:
    """A clock that stands where the film stands."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.now = 0.0
        self.wall = self._real.wall

    def monotonic(self) -> float:
        return self.now


def _best_against_newest() -> Figures:
    """Share of sharp pictures among snapshots (`value`) and among newest frames (`peer`).

    Asked for at every frame of a walk past eight garments: as it is (blurred for half a second at each
    change, when no snapshot can be sharp), and with a hand that shakes for a fifth of a second in three.
    """
    plain, shaking = "device.sharp_share_walk", "device.sharp_share_shaking_walk"
    same = "device.best_frame_same_garment"
    if not _WALK.exists():
        absent: dict[str, object] = {"value": None, "reason": f"{_WALK.name} is not on this machine"}
        return dict.fromkeys((plain, shaking, same), absent)
    walk, shaken = _walk(shaking=False), _walk(shaking=True)
    return {
        plain: _at_least(walk.best, walk.newest, walk.newest),
        shaking: _at_least(shaken.best, shaken.newest, shaken.newest),
        same: _at_least(min(walk.same_garment, shaken.same_garment), 0.99),
        "device.best_frame_age_mean": _figure(max(walk.age, shaken.age), "s", 0.5),
    }


def _at_least(value: float, aim: float, peer: float | None = None) -> dict[str, object]:
    return _figure(value, "share", aim, peer) | {"ok": value >= aim}


@dataclass(frozen=True, slots=True)
class _Walk:
    """Shares of sharp pictures, of snapshots that show the present garment, and the snapshots' age."""

    best: float
    newest: float
    same_garment: float
    age: float


def _walk(*, shaking: bool) -> _Walk:
    """Sharp is judged by another measure than the one that chooses: the mean squared Sobel gradient at
    full size (Tenengrad), at least 0.8 of what the better half of the same four seconds has."""
    film = _Film()
    buffer = FreshnessBuffer(film)
    epoch = buffer.begin_epoch()
    detail: list[float] = []
    chosen: list[int] = []
    ages: list[float] = []
    for number, pixels in enumerate(_pictures(_WALK)):
        shown = _shaken(pixels) if shaking and number % 9 < 3 else pixels
        film.now = number / _WALK_FPS
        detail.append(_tenengrad(shown))
        quality = measure_quality(shown)
        buffer.publish(shown, quality, epoch=epoch, received=film.now, captured_at=film.wall())
        best = buffer.best()
        if best is not None:
            chosen.append(best.seq - 1)
            ages.append(film.now - best.received)
    garment = 4 * _WALK_FPS
    usual = [
        statistics.median(sorted(detail[at : at + garment])[garment // 2 :])
        for at in range(0, len(detail), garment)
    ]
    sharp = [score >= 0.8 * usual[number // garment] for number, score in enumerate(detail)]
    return _Walk(
        best=statistics.fmean(sharp[number] for number in chosen),
        newest=statistics.fmean(sharp),
        same_garment=statistics.fmean(
            number // garment == asked // garment for asked, number in enumerate(chosen)
        ),
        age=statistics.fmean(ages),
    )


def _pictures(path: Path) -> Iterator[Pixels]:
    from device.opencv import cv2

    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    while True:
        read, pixels = capture.read()
        if not read:
            break
        yield np.asarray(pixels, dtype=np.uint8)
    capture.release()


def _shaken(pixels: Pixels) -> Pixels:
    from device.opencv import cv2

    return np.asarray(cv2.blur(pixels, (13, 5)), dtype=np.uint8)


def _tenengrad(pixels: Pixels) -> float:
    from device.opencv import cv2

    grey = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)
    return float(np.mean(np.square(across) + np.square(down)))


def _p99(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else float("nan")
