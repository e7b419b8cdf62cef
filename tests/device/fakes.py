"""Stand-ins at the true borders: time, the machine's device tree, and OpenCV's VideoCapture."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device.camera import Camera
from device.discovery import DeviceTree
from device.quality import Pixels
from device.sources.opencv_capture import VideoCapture
from device.sources.opening import ProducerOpener
from device.states import CameraState
from device.status import CameraStatus
from device.v4l2 import NodeFacts

BOUND_S = 10.0
"""How long a handshake between threads may take before a test fails."""


class FakeClock:
    """Time that only moves when told to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 1000.0
        self._alarm_at = float("inf")
        self._alarm = threading.Event()
        self.wall_moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> datetime:
        return self.wall_moment + timedelta(seconds=self._now - 1000.0)

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds
            if self._now >= self._alarm_at:
                self._alarm.set()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """A `Wait` that takes no time: the clock jumps on instead."""
        self.advance(seconds)
        return event.is_set()

    def reached(self, moment: float) -> bool:
        """Blocks until some thread has moved the clock to `moment`."""
        with self._lock:
            self._alarm.clear()
            self._alarm_at = moment
            if self._now >= moment:
                return True
        return self._alarm.wait(BOUND_S * 6)


class StateLog:
    """The states a camera went through, and a bounded wait for one."""

    def __init__(self, camera: Camera) -> None:
        self._news = threading.Condition()
        self.statuses: list[CameraStatus] = []
        camera.subscribe(self._note)

    def _note(self, status: CameraStatus) -> None:
        with self._news:
            self.statuses.append(status)
            self._news.notify_all()

    @property
    def states(self) -> list[CameraState]:
        """The states without immediate repeats."""
        seen = [status.state for status in self.statuses]
        return [state for at, state in enumerate(seen) if at == 0 or seen[at - 1] is not state]

    def wait_for(self, state: CameraState) -> CameraStatus:
        with self._news:
            assert self._news.wait_for(
                lambda: bool(self.statuses) and self.statuses[-1].state is state, BOUND_S
            ), f"never {state}: {self.states}"
            return self.statuses[-1]


Item = Pixels | None | Callable[[], Pixels | None]


class Rig:
    """A camera whose every read is decided by the test.

    A read blocks until the test gives an item: a picture, None for a failed read, or a function that
    does something and returns one of both. `give` returns when all of it has been worked off.
    """

    def __init__(self, clock: FakeClock, interval: float = 1 / 30) -> None:
        self.clock = clock
        self.interval = interval
        self.refuses = False
        self.opened: list[str] = []
        self.captures: list[RigCapture] = []
        self.changed = threading.Condition()
        self.items: deque[Item] = deque()
        self.shut = False

    def open(self, address: str, backend: int, parameters: Sequence[int]) -> VideoCapture:
        with self.changed:
            self.opened.append(address)
            capture = RigCapture(self, not self.refuses)
            self.captures.append(capture)
            self.changed.notify_all()
            return capture

    @property
    def current(self) -> RigCapture:
        return self.captures[-1]

    def give(self, *items: Item) -> None:
        with self.changed:
            self.items.extend(items)
            self.changed.notify_all()
            assert self.changed.wait_for(self._idle, BOUND_S), "the pictures were not taken"

    def wait_opened(self, times: int) -> None:
        """Until the camera was opened so many times and its reader waits for a picture or has let go."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.opened) >= times and self._idle(), BOUND_S)

    def wait_released(self, capture: RigCapture) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: capture.released, BOUND_S)

    def let_go(self) -> None:
        """Every blocked read returns False from now on."""
        with self.changed:
            self.shut = True
            self.changed.notify_all()

    def _idle(self) -> bool:
        return not self.items and bool(self.captures) and (self.current.waiting or self.current.released)


class RigCapture:
    """One opened VideoCapture of the rig; remembers which threads touched it and what was set."""

    def __init__(self, rig: Rig, opened: bool) -> None:
        self._rig = rig
        self._opened = opened
        self._picture: Pixels | None = None
        self.waiting = False
        self.wakes = False
        self.released = False
        self.settings: list[tuple[int, float]] = []
        self.threads: set[int] = set()
        self._touch()

    def _touch(self) -> None:
        self.threads.add(threading.get_ident())

    def isOpened(self) -> bool:  # noqa: N802 - OpenCV's name
        self._touch()
        return self._opened

    def grab(self) -> bool:
        self._touch()
        rig = self._rig
        with rig.changed:
            self.waiting = True
            rig.changed.notify_all()
            rig.changed.wait_for(lambda: rig.shut or self.wakes or (rig.items and rig.current is self))
            self.waiting = False
            if rig.shut:
                return False
            item = rig.items.popleft()
        rig.clock.advance(rig.interval)
        self._picture = item() if callable(item) else item
        return self._picture is not None

    def retrieve(self) -> tuple[bool, Any]:
        self._touch()
        return self._picture is not None, None if self._picture is None else self._picture.copy()

    def get(self, prop: int, /) -> float:
        self._touch()
        from device.opencv import cv2

        return {
            cv2.CAP_PROP_FRAME_WIDTH: 640.0,
            cv2.CAP_PROP_FRAME_HEIGHT: 480.0,
            cv2.CAP_PROP_FPS: 30.0,
            cv2.CAP_PROP_FOURCC: float(cv2.VideoWriter.fourcc(*"MJPG")),
        }.get(prop, 0.0)

    def set(self, prop: int, value: float, /) -> bool:
        self._touch()
        self.settings.append((prop, value))
        return True

    def release(self) -> None:
        self._touch()
        with self._rig.changed:
            self.released = True
            self._rig.changed.notify_all()


class FakeMachine:
    """A sysfs and /dev tree in a folder, into which cameras are plugged."""

    def __init__(self, root: Path) -> None:
        self._dev, self._sys = root / "dev", root / "sys/class/video4linux"
        self._by_id = self._dev / "v4l/by-id"
        for folder in (self._by_id, self._sys):
            folder.mkdir(parents=True)
        self.facts: dict[str, NodeFacts | None] = {}
        self.tree = DeviceTree(root, self._ask)

    def _ask(self, node: Path, *, with_modes: bool = False) -> NodeFacts | None:
        return self.facts.get(node.name)

    def plug(
        self, number: int, name: str = "Wearable Cam", serial: str | None = "A1", captures: bool = True
    ) -> Path:
        node = self._dev / f"video{number}"
        node.touch()
        entry = self._sys / node.name
        entry.mkdir()
        (entry / "name").write_text(name + "\n")
        (entry / "index").write_text("0\n" if captures else "1\n")
        self.facts[node.name] = NodeFacts(name, "usb-1", captures)
        if serial is not None:
            link = self._by_id / f"usb-Maker_{serial}-video-index{0 if captures else 1}"
            link.symlink_to(f"../../{node.name}")
        return node

    def unplug(self, number: int) -> None:
        node = self._dev / f"video{number}"
        for link in self._by_id.iterdir():
            if link.resolve() == node.resolve():
                link.unlink()
        entry = self._sys / node.name
        for attribute in entry.iterdir():
            attribute.unlink()
        entry.rmdir()
        node.unlink()


def noise(seed: int, *, width: int = 64, height: int = 48, brightness: int = 120) -> Pixels:
    """A picture as from a live sensor: no two alike."""
    generator = np.random.default_rng(seed)
    return (brightness + generator.integers(-30, 30, (height, width, 3))).clip(0, 255).astype(np.uint8)


def flat(value: int, *, width: int = 64, height: int = 48) -> Pixels:
    return np.full((height, width, 3), value, dtype=np.uint8)


def striped(width: int) -> npt.NDArray[np.uint8]:
    """A grey plane with upright stripes of so many pixels: another view for another width."""
    return np.tile((60 + 120 * (np.arange(96) // width % 2)).astype(np.uint8), (72, 1))


def rig_camera(clock: FakeClock, rig: Rig, machine: FakeMachine) -> Camera:
    """A camera on the rig without a watchdog thread: the test calls `tick`."""
    return Camera(
        clock,
        open_producer=ProducerOpener(rig.open),
        devices=machine.tree,
        wait=clock.wait,
        jitter=lambda low, high: 1.0,
        watch=False,
    )
