"""The camera as the rest of the app sees it: thread-safe, one source at a time, fresh frames or none."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from device.buffer import FreshnessBuffer
from device.capture import Wait, wait_for
from device.clock import Clock
from device.discovery import CameraDevice, DeviceTree
from device.feed import Feed, FeedPorts
from device.figures import CaptureFigures
from device.frame import Frame
from device.quality import ExposureWord
from device.sources.opening import OpenProducer, ProducerOpener, check_recorded
from device.sources.producer import Mode
from device.sources.spec import SourceKind, SourceSpec
from device.states import CameraState
from device.status import CameraStatus, Situation
from device.watchdog import TICK_S

_JOIN_S = 2.0
_SETTLE_S = 5.0
"""How long `open` waits for a recording to open or fail; a slow disk then goes on opening."""

_NOTHING_COMES = frozenset({CameraState.ENDED, CameraState.DENIED, CameraState.PAUSED, CameraState.CLOSED})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The frame to use for a question, and the camera's status at that moment."""

    frame: Frame | None
    status: CameraStatus


class Camera:
    """One camera session. Any thread may call any method.

    `open`, `close`, `pause` and `resume` wait for the capture thread (at most 2 s; `open` of a
    recording up to 5 s more), so call them off an event loop. `wait`, `open_producer`, `devices` and
    `jitter` are the borders to time, sources, the machine and chance. Without `watch` no watchdog
    thread runs, and whoever made the camera calls `tick`.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        open_producer: OpenProducer | None = None,
        devices: DeviceTree | None = None,
        wait: Wait = wait_for,
        jitter: Callable[[float, float], float] = random.uniform,
        watch: bool = True,
    ) -> None:
        self._clock = clock
        self._devices = devices or DeviceTree()
        self._buffer = FreshnessBuffer(clock)
        self._ports = FeedPorts(
            clock=clock,
            wait=wait,
            buffer=self._buffer,
            devices=self._devices,
            open_producer=open_producer or ProducerOpener(),
            jitter=jitter,
            announce=self._announce,
            changed=self._deliver,
            offered=self._wake,
        )
        self._control = threading.Lock()
        self._feed: Feed | None = None
        self._resting = Situation(CameraState.CLOSED, clock.monotonic())
        self._paused_spec: SourceSpec | None = None
        self._news = threading.Condition()
        self._subscribers: tuple[Callable[[CameraStatus], None], ...] = ()
        self._to_deliver: deque[CameraStatus] = deque()
        self._delivering = threading.Lock()
        self._watch = watch
        self._watchdog: _Watchdog | None = None

    # -- control --------------------------------------------------------------------------------

    def open(self, source: SourceSpec) -> None:
        """Opens a source, or switches to it: a new epoch, in which nothing of the old one exists.

        What can be known at once fails at once, and then the open source stays: a missing file, no
        such camera. A recording that turns out unreadable fails too, but the old source is closed by
        then. A camera or stream that does not answer is a state, and is tried again.

        Raises DeviceError SOURCE_NOT_FOUND, SOURCE_UNREADABLE, SOURCE_INVALID or NO_CAMERA.
        """
        device = self._check(source)
        if device is not None:
            source = replace(source, label=f"{device.name} ({source.address or device.selector})")
        with self._control:
            feed = self._replace(source, device)
        if source.live:
            return
        feed.settled.wait(_SETTLE_S)
        situation = feed.situation
        if situation.error is not None and situation.state is CameraState.ENDED:
            raise situation.error

    def close(self) -> None:
        """Ends the session within 2 s: the source is released, no frame can be had any more."""
        with self._control:
            self._paused_spec = None
            self._rest(CameraState.CLOSED)
            if self._watchdog is not None:
                self._watchdog.stop()
                self._watchdog = None

    def pause(self) -> None:
        """Closes the camera at once and empties the buffer; `resume` opens the same source again."""
        with self._control:
            feed = self._feed
            if feed is None:
                return
            self._paused_spec = feed.spec.from_position(feed.position_s)
            self._rest(CameraState.PAUSED)

    def resume(self) -> None:
        """Opens the paused source again, a recording where it stood. Raises as `open` does, and stays
        paused then; does nothing where nothing is paused."""
        spec = self._paused_spec
        if spec is not None:
            self.open(spec)

    def tick(self) -> None:
        """One look of the watchdog."""
        feed = self._feed
        if feed is not None:
            feed.tick()
        self._buffer.expire()

    # -- what there is ------------------------------------------------------------------------

    @property
    def status(self) -> CameraStatus:
        feed = self._feed
        return self._status(feed, self._resting if feed is None else feed.situation)

    @property
    def mode(self) -> Mode | None:
        """What the open source was asked for and what it gave, once it has opened."""
        feed = self._feed
        return None if feed is None else feed.mode

    @property
    def figures(self) -> CaptureFigures:
        """What the open source has delivered."""
        feed = self._feed
        return CaptureFigures() if feed is None else feed.figures

    @property
    def held_bytes(self) -> int:
        """Pixels in memory, raw and as JPEG."""
        return self._buffer.held_bytes

    def newest(self) -> Frame | None:
        """The newest frame, None where there is none of at most 15.0 s."""
        return self._buffer.newest()

    def recent(self) -> list[Frame]:
        """Good frames of the last 15.0 s, oldest first, at a few a second."""
        return self._buffer.recent()

    def snapshot(self) -> Snapshot:
        """The sharpest well-exposed frame of the last moments, with the status it was taken in."""
        return Snapshot(self._buffer.best(), self.status)

    def wait_fresh(self, timeout: float) -> bool:
        """Blocks up to `timeout` seconds for a usable frame; whether there is one.

        Returns early where none will come: the source ended, was denied, is paused or closed.
        """
        with self._news:
            self._news.wait_for(
                lambda: self.newest() is not None or self.status.state in _NOTHING_COMES, timeout
            )
        return self.newest() is not None

    def subscribe(self, callback: Callable[[CameraStatus], None]) -> Callable[[], None]:
        """Calls `callback` on each change of state, in order, from whichever thread changed it.

        The callback must return at once (post and go). The result unsubscribes.
        """
        self._subscribers += (callback,)

        def unsubscribe() -> None:
            self._subscribers = tuple(other for other in self._subscribers if other is not callback)

        return unsubscribe

    # -- inside ---------------------------------------------------------------------------------

    def _check(self, source: SourceSpec) -> CameraDevice | None:
        match source.kind:
            case SourceKind.USB:
                return self._devices.find(source.address)
            case SourceKind.VIDEO | SourceKind.STILL | SourceKind.IMAGES:
                check_recorded(source)
        return None

    def _replace(self, source: SourceSpec, device: CameraDevice | None) -> Feed:
        old, self._feed = self._feed, None
        epoch = self._buffer.begin_epoch()
        if old is not None:
            old.close(_JOIN_S)
        feed = Feed(source, device, epoch, self._ports)
        self._feed = feed
        self._paused_spec = None
        if self._watch and self._watchdog is None:
            self._watchdog = _Watchdog(self.tick)
            self._watchdog.start()
        feed.start()
        return feed

    def _rest(self, state: CameraState) -> None:
        """Closes the open source, empties the buffer, says so."""
        old, self._feed = self._feed, None
        self._buffer.begin_epoch()
        changed = old is not None or self._resting.state is not state
        self._resting = Situation(state, self._clock.monotonic())
        if changed:
            self._to_deliver.append(self._status(None, self._resting))
        self._deliver()
        if old is not None:
            old.close(_JOIN_S)

    def _announce(self, feed: Feed, situation: Situation) -> None:
        if feed is self._feed:
            self._to_deliver.append(self._status(feed, situation))

    def _deliver(self) -> None:
        """Hands changes to the subscribers in order and without a lock that they might need."""
        while self._to_deliver:
            if not self._delivering.acquire(blocking=False):
                return  # another thread is at it and looks again before it goes
            try:
                while self._to_deliver:
                    status = self._to_deliver.popleft()
                    for callback in self._subscribers:
                        callback(status)
            finally:
                self._delivering.release()
            self._wake()

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()

    def _status(self, feed: Feed | None, situation: Situation) -> CameraStatus:
        now = self._clock.monotonic()
        newest, age = self._buffer.newest(), self._buffer.age_s
        spec = feed.spec if feed is not None else self._paused_spec
        label = "" if spec is None else spec.label
        exposure: ExposureWord = "good" if feed is None else feed.exposure
        mode = None if feed is None else feed.mode
        return CameraStatus(
            state=situation.state,
            words=situation.words(label, exposure, now),
            source=label,
            epoch=self._buffer.epoch,
            age_ms=None if age is None else age * 1000,
            fps=0.0 if feed is None else feed.figures.rate(now),
            width=newest.width if newest is not None else (mode.width if mode is not None else 0),
            height=newest.height if newest is not None else (mode.height if mode is not None else 0),
            sharpness=None if newest is None else newest.sharpness,
            ended=situation.state is CameraState.ENDED,
            error=situation.error,
        )


class _Watchdog:
    """Ticks from outside the capture thread."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._main, name="styleeyes-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_JOIN_S)

    def _main(self) -> None:
        while not self._stop.wait(TICK_S):
            self._tick()
