"""The capture thread: opens a source, drains it without pause, closes it. Nobody else touches it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from device.clock import Clock
from device.errors import DeviceError
from device.pacing import Pacer
from device.quality import Pixels, Quality, measure
from device.sources.opening import OpenProducer
from device.sources.producer import Grab, Mode, Producer
from device.sources.spec import SourceSpec

SUSPECT_GRAB_S = 2.0
"""V4L2 may wait out a timeout and still report success: such a picture is of unknown age."""

_FAILURES_IN_A_ROW = 25
_AFTER_FAILURE_S = 0.02
"""Together half a second of nothing but failed reads, at next to no CPU, before the source is given up."""

Wait = Callable[[threading.Event, float], bool]
"""Waits up to so many seconds for an event and says whether it was set."""


def wait_for(event: threading.Event, seconds: float) -> bool:
    """The real `Wait`."""
    return event.wait(seconds)


class Phase(Enum):
    """What the thread is doing, for the watchdog outside it."""

    OPENING = auto()
    READING = auto()
    HOLDING = auto()
    """A recorded picture waits for its time: by design, however long."""
    CLOSING = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    phase: Phase
    since: float


class CaptureListener(Protocol):
    """Told by the capture thread. `run` lets the listener ignore a thread it has given up."""

    def run_opened(self, run: CaptureRun, mode: Mode) -> None: ...
    def run_gave(
        self, run: CaptureRun, pixels: Pixels, quality: Quality, received: float, captured_at: datetime
    ) -> None: ...
    def run_missed(self, run: CaptureRun, frames: int) -> None: ...
    def run_ended(self, run: CaptureRun, words: str) -> None: ...
    def run_failed(self, run: CaptureRun, error: DeviceError) -> None: ...


class CaptureRun:
    """One thread and the one source object it owns, from opening to closing.

    `stop` only asks; a thread that is stuck in a driver cannot be stopped, is left behind (it is a
    daemon) and closes its object itself if it ever wakes.
    """

    def __init__(
        self,
        spec: SourceSpec,
        node: str | None,
        *,
        open_producer: OpenProducer,
        listener: CaptureListener,
        clock: Clock,
        wait: Wait,
    ) -> None:
        self._spec = spec
        self._node = node
        self._open_producer = open_producer
        self._listener = listener
        self._clock = clock
        self._wait = wait
        self._stop = threading.Event()
        self._heartbeat = Heartbeat(Phase.OPENING, clock.monotonic())
        self._position: float | None = None
        self._thread = threading.Thread(target=self._main, name="styleeyes-capture", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Whether the thread has ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def heartbeat(self) -> Heartbeat:
        return self._heartbeat

    @property
    def position_s(self) -> float | None:
        """Where a recording stands; None for what is live."""
        return self._position

    def _enter(self, phase: Phase) -> None:
        self._heartbeat = Heartbeat(phase, self._clock.monotonic())

    def _main(self) -> None:
        """Runs to an end and tells it, once the source is closed and may be opened anew."""
        words: str | None = None
        failure: DeviceError | None = None
        try:
            words = self._capture()
        except DeviceError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the capture loop's border: drivers raise anything
            failure = DeviceError(
                "CAMERA_FAILED",
                f"{self._spec.label} failed: {type(error).__name__}",
                "plug it out and in again, or try another source",
            )
        finally:
            self._enter(Phase.DONE)
        if self._stop.is_set():
            return
        if failure is not None:
            self._listener.run_failed(self, failure)
        elif words is not None:
            self._listener.run_ended(self, words)

    def _capture(self) -> str | None:
        """The words of a recording's end, None where the thread was asked to stop."""
        producer = self._open(self._spec)
        try:
            self._listener.run_opened(self, producer.mode)
            pacer = Pacer(producer.mode.fps)
            failures = 0
            while not self._stop.is_set():
                self._enter(Phase.READING)
                began = self._heartbeat.since
                grab = producer.grab()
                now = self._clock.monotonic()
                if grab is Grab.END:
                    if not self._spec.loop:
                        return producer.end_words
                    # Seeking to the start lands elsewhere in some files; opening anew does not.
                    producer.close()
                    producer = self._open(self._spec.from_position(None))
                    pacer.restart()
                    continue
                if grab is Grab.NOTHING or (self._spec.live and now - began > SUSPECT_GRAB_S):
                    failures += 1
                    self._after_failure(failures)
                    continue
                if self._show(producer, pacer, now) or not self._spec.live:
                    failures = 0  # a damaged picture in a file costs nothing: the file has an end
                else:
                    failures += 1
                    self._after_failure(failures)
            return None
        finally:
            self._enter(Phase.CLOSING)
            producer.close()

    def _open(self, spec: SourceSpec) -> Producer:
        self._enter(Phase.OPENING)
        return self._open_producer(spec, self._node, self._stop.is_set)

    def _show(self, producer: Producer, pacer: Pacer, grabbed: float) -> bool:
        """Hands the grabbed picture on, a recorded one at its time; False where it is unusable."""
        position = producer.position_s
        due = grabbed
        if position is not None:
            self._position = position
            due = pacer.due(position, grabbed)
            if pacer.skips(grabbed):
                self._listener.run_missed(self, 1)
                return True
        captured_at = self._clock.wall()
        pixels = producer.retrieve()
        if pixels is None:
            self._listener.run_missed(self, 1)
            return False
        quality = measure(pixels)
        received = grabbed
        if position is not None:
            # All work is done ahead, so that a recorded picture can be had the moment it is due.
            self._enter(Phase.HOLDING)
            if self._wait(self._stop, max(0.0, due - self._clock.monotonic())):
                return True
            received, captured_at = self._clock.monotonic(), self._clock.wall()
        self._listener.run_gave(self, pixels, quality, received, captured_at)
        return True

    def _after_failure(self, failures: int) -> None:
        if failures >= _FAILURES_IN_A_ROW:
            raise DeviceError(
                "CAMERA_LOST",
                f"{self._spec.label} gives no pictures any more",
                "check the cable; it is tried again by itself",
            )
        self._wait(self._stop, _AFTER_FAILURE_S)
