"""One opened source from its opening to its end: states, warm-up, repeats, loss and reconnection.

The capture thread reports to it, the watchdog thread asks it to look at the time; it owns the thread
that captures and replaces it when it is stuck.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from device.buffer import FreshnessBuffer
from device.capture import CaptureRun, Wait
from device.clock import Clock
from device.discovery import CameraDevice, DeviceTree
from device.errors import DeviceError
from device.figures import CaptureFigures
from device.frame import Epoch
from device.quality import ExposureWord, Pixels, Quality
from device.sources.opening import OpenProducer
from device.sources.producer import Mode
from device.sources.spec import SourceSpec
from device.states import CameraState, may_follow
from device.status import Situation
from device.warm_up import WarmUp
from device.watchdog import Signs, Verdict, judge, retry_delay

_RELEASE_S = 3.0
"""How long a thread that was asked to stop may take to let go of the device before it counts as stuck."""

_STUCK_AT_MOST = 4
"""Each stuck thread keeps its memory; past this no more are started until one wakes."""


@dataclass(frozen=True, slots=True)
class FeedPorts:
    """What a feed needs from around it. `changed` is called after each change of state, `offered`
    after each new frame, both without any lock held."""

    clock: Clock
    wait: Wait
    buffer: FreshnessBuffer
    devices: DeviceTree
    open_producer: OpenProducer
    jitter: Callable[[float, float], float]
    announce: Callable[[Feed, Situation], None]
    changed: Callable[[], None]
    offered: Callable[[], None]


class Feed:
    """A source that was opened. All methods may be called from any thread."""

    def __init__(self, spec: SourceSpec, device: CameraDevice | None, epoch: Epoch, ports: FeedPorts) -> None:
        self.spec = spec
        self.figures = CaptureFigures()
        self.settled = threading.Event()
        """Set once the source has opened or failed for the first time."""
        self._device = device
        self._epoch = epoch
        self._ports = ports
        self._lock = threading.Lock()
        now = ports.clock.monotonic()
        self._situation = Situation(CameraState.OPENING, now)
        self._mode: Mode | None = None
        self._run: CaptureRun | None = None
        self._given_up: list[tuple[CaptureRun, float]] = []
        self._over = False
        self._ever_opened = False
        self._attempt = 0
        self._retry_at: float | None = None
        self._unplugged = False
        self._warm_up: WarmUp | None = None
        self._seen: Quality | None = None
        self._same_since: float | None = None
        self._arrived = now
        self._interval = 0.0

    # -- asked by the camera ------------------------------------------------------------------

    @property
    def situation(self) -> Situation:
        return self._situation

    @property
    def mode(self) -> Mode | None:
        """What the source gave when it was opened last."""
        return self._mode

    @property
    def exposure(self) -> ExposureWord:
        """That of the picture seen last, offered or not."""
        seen = self._seen
        return "good" if seen is None else seen.exposure.word

    @property
    def position_s(self) -> float | None:
        """Where a recording stands."""
        run = self._run
        return run.position_s if run is not None else None

    def start(self) -> None:
        with self._lock:
            self._ports.announce(self, self._situation)
            node = None if self._device is None else str(self._device.node)
            self._start_run(node)
        self._ports.changed()

    def close(self, timeout: float) -> bool:
        """Stops the capture thread; whether it and those before it ended within `timeout` seconds.

        Nothing of this feed is offered or announced from the moment this is called.
        """
        with self._lock:
            self._over = True
            runs = [run for run, _ in self._given_up]
            if self._run is not None:
                self._run.stop()
                runs.append(self._run)
                self._run = None
        self.settled.set()
        until = time.monotonic() + timeout  # threads end in real time, whatever the camera's clock says
        ended = [run.join(max(0.0, until - time.monotonic())) for run in runs]
        return all(ended)

    def tick(self) -> None:
        """Looks at the time; called by the watchdog a few times a second."""
        with self._lock:
            if self._over:
                return
            now = self._ports.clock.monotonic()
            self._given_up = [(run, at) for run, at in self._given_up if run.alive]
            if self._run is not None:
                self._watch(self._run, now)
            elif self._retry_at is not None:
                self._await_retry(now)
        self._ports.changed()

    # -- told by the capture thread -----------------------------------------------------------

    def run_opened(self, run: CaptureRun, mode: Mode) -> None:
        with self._lock:
            if run is not self._run:
                return
            now = self._ports.clock.monotonic()
            self._mode = mode
            self._arrived = now
            self._ever_opened = True
            if self.spec.live:
                self._warm_up = WarmUp(self.spec.kind, now)
                self._set(Situation(CameraState.WARMING, now))
        self.settled.set()
        self._ports.changed()

    def run_gave(
        self, run: CaptureRun, pixels: Pixels, quality: Quality, received: float, captured_at: datetime
    ) -> None:
        with self._lock:
            if run is not self._run or not self._is_new(quality, received):
                return
            if self._warm_up is not None:
                if not self._warm_up.is_over(quality, received):
                    return
                self._warm_up = None
        frame = self._ports.buffer.publish(
            pixels, quality, epoch=self._epoch, received=received, captured_at=captured_at
        )
        if frame is None:
            return
        with self._lock:
            if run is self._run:
                self.figures.offered += 1
                self._attempt = 0
                if self._situation.state is not CameraState.LIVE:
                    self._set(Situation(CameraState.LIVE, received))
        self._ports.offered()
        self._ports.changed()

    def run_missed(self, run: CaptureRun, frames: int) -> None:
        with self._lock:
            if run is self._run:
                self.figures.lost += frames

    def run_ended(self, run: CaptureRun, words: str) -> None:
        with self._lock:
            if run is not self._run:
                return
            self._run = None
            self._set(Situation(CameraState.ENDED, self._ports.clock.monotonic(), detail=words))
        self.settled.set()
        self._ports.changed()

    def run_failed(self, run: CaptureRun, error: DeviceError) -> None:
        with self._lock:
            if run is not self._run:
                return
            self._run = None
            now = self._ports.clock.monotonic()
            if not self.spec.live:
                self._set(Situation(CameraState.ENDED, now, error=error))
            elif error.code == "CAMERA_DENIED" and not self._ever_opened:
                self._set(Situation(CameraState.DENIED, now, error=error))
            else:
                # After replugging, permissions come a moment after the node: that is no final denial.
                state = CameraState.BUSY if error.code == "CAMERA_BUSY" else CameraState.LOST
                self._lose(state, error, now)
        self.settled.set()
        self._ports.changed()

    # -- with the lock held -------------------------------------------------------------------

    def _is_new(self, quality: Quality, received: float) -> bool:
        """Enters a picture into the figures; False for an exact repeat of the last one of a live source.

        A repeat is the same moment seen again, so it must not look fresh. The last picture is
        remembered over a reconnection, which some drivers answer with it.
        """
        if self._arrived and self.figures.arrivals:
            self._interval = received - self._arrived
        self._arrived = received
        nominal = self._mode.fps if self.spec.live and self._mode is not None else None
        self.figures.arrived(received, nominal)
        if self.spec.live and self._seen is not None and quality.same_picture(self._seen):
            self.figures.repeated += 1
            self._same_since = received if self._same_since is None else self._same_since
            return False
        self._seen, self._same_since = quality, received
        return True

    def _watch(self, run: CaptureRun, now: float) -> None:
        if self._device is not None and self._ports.devices.node_of(self._device.stable_id) is None:
            self._unplugged = True
            gone = DeviceError("CAMERA_LOST", f"{self._device.name} was unplugged", "plug it in again")
            self._give_up(run, CameraState.LOST, gone, now)
            return
        signs = Signs(
            now=now,
            heartbeat=run.heartbeat,
            arrived=self._arrived,
            same_since=self._same_since,
            interval=self._interval,
            live=self.spec.live,
            black=self.exposure == "black",
        )
        state = self._situation.state
        match judge(signs):
            case Verdict.GIVE_UP:
                self._give_up(run, *self._silent(state), now)
            case Verdict.FROZEN if state is not CameraState.FROZEN:
                self._set(Situation(CameraState.FROZEN, self._same_since or now))
            case Verdict.STALLED if state is not CameraState.STALLED:
                if may_follow(state, CameraState.STALLED):
                    self._set(Situation(CameraState.STALLED, self._arrived))
            case _:
                pass

    def _silent(self, state: CameraState) -> tuple[CameraState, DeviceError]:
        label = self._device.name if self._device is not None else self.spec.label
        if state in (CameraState.OPENING, CameraState.RECONNECTING):
            words = f"{label} does not answer; it may be in use by another program"
            return CameraState.BUSY, DeviceError("CAMERA_BUSY", words, "close other camera programs")
        words = (
            f"{label} repeats one picture" if state is CameraState.FROZEN else f"{label} gives no pictures"
        )
        return CameraState.LOST, DeviceError("CAMERA_SILENT", words, "plug it out and in again")

    def _give_up(self, run: CaptureRun, state: CameraState, error: DeviceError, now: float) -> None:
        run.stop()
        self._given_up.append((run, now))
        self._run = None
        self.settled.set()
        self._lose(state, error, now)

    def _lose(self, state: CameraState, error: DeviceError, now: float) -> None:
        self._warm_up = None
        self.figures.interrupted()
        self._set(Situation(state, now, error=error))
        self._schedule(now)

    def _schedule(self, now: float) -> None:
        self._attempt += 1
        self._retry_at = now + retry_delay(self._attempt, self._ports.jitter)

    def _await_retry(self, now: float) -> None:
        device = self._device
        node = None if device is None else self._ports.devices.node_of(device.stable_id)
        back = self._unplugged and node is not None
        if self._situation.state is not CameraState.RECONNECTING:
            self._say_reconnecting(now)
        if not back and now < (self._retry_at or 0.0):
            return
        if any(now - at < _RELEASE_S for _, at in self._given_up):
            self._retry_at = now  # the device is still being let go of: at the next tick
            return
        if len(self._given_up) >= _STUCK_AT_MOST or (device is not None and node is None):
            self._unplugged = device is not None and node is None
            self._schedule(now)
            self._say_reconnecting(now)
            return
        self._unplugged = False
        self._retry_at = None
        self._say_reconnecting(now)
        self._start_run(None if node is None else str(node))

    def _say_reconnecting(self, now: float) -> None:
        detail = ""
        if self._unplugged and self._device is not None:
            detail = f"plug {self._device.name} in again; "
        elif len(self._given_up) >= _STUCK_AT_MOST:
            detail = "its driver hangs, plug it out and in again; "
        self._set(
            Situation(
                CameraState.RECONNECTING,
                now,
                detail=detail,
                error=self._situation.error,
                attempt=self._attempt,
                retry_at=self._retry_at,
            )
        )

    def _start_run(self, node: str | None) -> None:
        self._arrived = self._ports.clock.monotonic()
        self._same_since = None
        run = CaptureRun(
            self.spec,
            node,
            open_producer=self._ports.open_producer,
            listener=self,
            clock=self._ports.clock,
            wait=self._ports.wait,
        )
        self._run = run
        run.start()

    def _set(self, situation: Situation) -> None:
        before = self._situation
        if not may_follow(before.state, situation.state):
            raise AssertionError(f"the camera cannot go from {before.state} to {situation.state}")
        if replace(situation, since=before.since) == before:
            return
        self._situation = situation
        self._ports.announce(self, situation)
