"""The freshness buffer: what has been seen in the last 15.0 s, and nothing else.

Raw pictures of 15 s would be 2.8 GB at 1080p30. So raw pixels are kept of two frames only, the newest
and the best of the running slot; each slot (a quarter of a second) leaves its best frame behind as
JPEG. A new source begins a new epoch, which empties the buffer and voids frames that others hold.
"""

from __future__ import annotations

import threading
from collections import deque
from datetime import datetime

from device.best_frame import best_frame
from device.clock import Clock
from device.frame import FRESH_S, Epoch, Frame
from device.quality import Pixels, Quality

JPEG_BYTES_AT_MOST = 36 * 1024 * 1024
"""With the newest, the slot's best and the two pictures that are being made, under 64 MiB at 1080p."""

_SLOT_S = 0.25
_ENCODING_SHARE = 0.15
"""At most this share of time goes into JPEG: slots grow where encoding is slow (4K, a small board)."""


class FreshnessBuffer:
    """Frames of the running epoch, at most 15.0 s old by receive time. Thread-safe.

    One thread publishes; any may read. Encoding happens on the publishing thread, after the newest
    frame is already to be had.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._epoch = Epoch(0)
        self._seq = 0
        self._newest: Frame | None = None
        self._last_received: float | None = None
        self._slot_best: Frame | None = None
        self._slot_ends = 0.0
        self._ring: deque[Frame] = deque()

    @property
    def epoch(self) -> int:
        return self._epoch.number

    def begin_epoch(self) -> Epoch:
        """Ends the running epoch: its frames are dropped and void wherever they are held."""
        with self._lock:
            self._epoch.over = True
            self._epoch = Epoch(self._epoch.number + 1)
            self._seq = 0
            self._drop_all()
            return self._epoch

    def publish(
        self, pixels: Pixels, quality: Quality, *, epoch: Epoch, received: float, captured_at: datetime
    ) -> Frame | None:
        """Makes a picture the newest frame. None, and nothing kept, where `epoch` is over."""
        with self._lock:
            if epoch.over or epoch is not self._epoch:
                return None
            self._expire()
            self._seq += 1
            frame = Frame(
                pixels,
                quality,
                epoch=epoch,
                seq=self._seq,
                received=received,
                captured_at=captured_at,
                clock=self._clock,
            )
            self._newest = frame
            self._last_received = received
            finished = self._enter_slot(frame)
        if finished is not None:
            self._encode(finished)
        return frame

    def newest(self) -> Frame | None:
        """The newest frame, None where there is none of at most 15.0 s."""
        with self._lock:
            self._expire()
            return self._newest

    @property
    def age_s(self) -> float | None:
        """Seconds since the last frame of this epoch came, however many; None where none has."""
        last = self._last_received
        return None if last is None else max(0.0, self._clock.monotonic() - last)

    def best(self) -> Frame | None:
        """The sharpest well-exposed frame of the last moments before the newest one, None as above."""
        return best_frame(self.recent())

    def recent(self) -> list[Frame]:
        """All frames that are kept, oldest first: one a slot, the running slot's best, the newest."""
        with self._lock:
            self._expire()
            frames = list(self._ring)
            for frame in (self._slot_best, self._newest):
                if frame is not None and (not frames or frame.received > frames[-1].received):
                    frames.append(frame)
            return frames

    def expire(self) -> None:
        """Frees what is over 15.0 s old; called now and then, so that a dead source keeps no picture."""
        with self._lock:
            self._expire()

    @property
    def held_bytes(self) -> int:
        """Raw and encoded pixels in memory."""
        return sum(frame.held_bytes for frame in self.recent())

    def _enter_slot(self, frame: Frame) -> Frame | None:
        """Enters `frame` into the running slot; the best frame of the slot that this ended, if it did."""
        if self._slot_best is not None and frame.received < self._slot_ends:
            self._slot_best = best_frame((self._slot_best, frame))
            return None
        finished, self._slot_best = self._slot_best, frame
        self._slot_ends = frame.received + _SLOT_S
        if finished is not None:
            self._ring.append(finished)
        return finished

    def _encode(self, frame: Frame) -> None:
        """Encodes outside the lock: readers never wait for it."""
        began = self._clock.monotonic()
        frame.keep_encoded_only()
        took = self._clock.monotonic() - began
        with self._lock:
            self._slot_ends = max(self._slot_ends, began + took / _ENCODING_SHARE)
            held = sum(kept.held_bytes for kept in self._ring)
            while held > JPEG_BYTES_AT_MOST:
                held -= self._ring.popleft().held_bytes

    def _expire(self) -> None:
        now = self._clock.monotonic()
        while self._ring and now - self._ring[0].received > FRESH_S:
            self._ring.popleft()
        if self._slot_best is not None and now - self._slot_best.received > FRESH_S:
            self._slot_best = None
        if self._newest is not None and now - self._newest.received > FRESH_S:
            self._newest = None

    def _drop_all(self) -> None:
        self._newest = None
        self._last_received = None
        self._slot_best = None
        self._slot_ends = 0.0
        self._ring.clear()
