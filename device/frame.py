"""One camera frame, and the epoch it belongs to."""

from __future__ import annotations

import threading
from datetime import datetime

import numpy as np

from device.clock import Clock
from device.errors import DeviceError
from device.glance import Glance
from device.quality import Exposure, Pixels, Quality

FRESH_S = 15.0
"""A frame received longer ago than this does not exist (tool contract, section 4)."""

_JPEG_QUALITY = 90


class Epoch:
    """The reign of one source. Once over, no frame of it can be used."""

    __slots__ = ("number", "over")

    def __init__(self, number: int) -> None:
        self.number = number
        self.over = False


class Frame:
    """A picture with its times and quality. Usable from any thread, for at most 15.0 s.

    `received` is in monotonic seconds of the camera's clock, `captured_at` in UTC and only to show.
    Pixels are kept raw while the frame is one of the newest, later as JPEG alone. Whoever holds a
    frame cannot use it past its time: `bgr` and `jpeg` then raise DeviceError FRAME_EXPIRED.
    """

    __slots__ = (
        "_clock",
        "_encoded",
        "_lock",
        "_pixels",
        "_reign",
        "captured_at",
        "exposure",
        "glance",
        "height",
        "received",
        "seq",
        "sharpness",
        "width",
    )

    def __init__(
        self,
        pixels: Pixels,
        quality: Quality,
        *,
        epoch: Epoch,
        seq: int,
        received: float,
        captured_at: datetime,
        clock: Clock,
    ) -> None:
        pixels.flags.writeable = False  # shared by all who look at this frame
        self._pixels: Pixels | None = pixels
        self._encoded: bytes | None = None
        self._reign = epoch
        self._clock = clock
        self._lock = threading.Lock()
        self.seq = seq
        self.received = received
        self.captured_at = captured_at
        self.height, self.width = int(pixels.shape[0]), int(pixels.shape[1])
        self.sharpness = quality.sharpness
        self.exposure: Exposure = quality.exposure
        self.glance: Glance = quality.glance

    @property
    def epoch(self) -> int:
        """The number of the epoch; it grows with each source that is opened."""
        return self._reign.number

    @property
    def id(self) -> str:
        """Unique within one camera's life, such as `f2-118`."""
        return f"f{self.epoch}-{self.seq}"

    @property
    def age_s(self) -> float:
        """Seconds since the frame was received."""
        return max(0.0, self._clock.monotonic() - self.received)

    @property
    def usable(self) -> bool:
        """At most 15.0 s old, and its source still the open one."""
        return not self._reign.over and self.age_s <= FRESH_S

    def bgr(self) -> Pixels:
        """The pixels, read only. Raises DeviceError FRAME_EXPIRED."""
        with self._lock:
            self._check()
            if self._pixels is not None:
                return self._pixels
            encoded = self._encoded
        return _decode(encoded)

    def jpeg(self) -> bytes:
        """The picture as JPEG, encoded once. Raises DeviceError FRAME_EXPIRED."""
        with self._lock:
            self._check()
            if self._encoded is None:
                self._encoded = _encode(self._pixels)
            return self._encoded

    def keep_encoded_only(self) -> None:
        """Gives the raw pixels up; they are encoded first where that has not happened yet."""
        with self._lock:
            if self._pixels is not None and self._encoded is None:
                self._encoded = _encode(self._pixels)
            self._pixels = None

    @property
    def held_bytes(self) -> int:
        """What this frame keeps in memory."""
        with self._lock:
            raw = 0 if self._pixels is None else int(self._pixels.nbytes)
            return raw + len(self._encoded or b"")

    def _check(self) -> None:
        if self.usable:
            return
        # What must not be used need not be kept either, whoever still holds this frame.
        self._pixels, self._encoded = None, None
        raise DeviceError(
            "FRAME_EXPIRED",
            f"frame {self.id} is gone: its source was closed or it is over {FRESH_S:.0f} s old",
            "take a new snapshot",
        )


def _encode(pixels: Pixels | None) -> bytes:
    from device.opencv import cv2

    if pixels is None:
        raise AssertionError("a frame keeps its pixels raw or encoded")
    done, encoded = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    if not done:
        raise DeviceError("CAMERA_FAILED", "a frame could not be encoded as JPEG")
    return encoded.tobytes()


def _decode(encoded: bytes | None) -> Pixels:
    from device.opencv import cv2

    pixels = cv2.imdecode(np.frombuffer(encoded or b"", dtype=np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise DeviceError("CAMERA_FAILED", "a kept frame could not be decoded")
    pixels.flags.writeable = False
    return np.asarray(pixels, dtype=np.uint8)
