"""The border to OpenCV's VideoCapture, and what all producers on it share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from device.quality import Pixels, as_bgr
from device.sources.producer import Grab, Mode


class VideoCapture(Protocol):
    """The part of cv2.VideoCapture that is used; tests put a camera of their own in its place."""

    def isOpened(self) -> bool: ...  # noqa: N802 - OpenCV's name
    def grab(self) -> bool: ...
    def retrieve(self) -> tuple[bool, Any]: ...
    def get(self, prop: int, /) -> float: ...
    def set(self, prop: int, value: float, /) -> bool: ...
    def release(self) -> None: ...


class OpenCapture(Protocol):
    """Opens an address on one back end with parameters (property, value, property, value …)."""

    def __call__(self, address: str, backend: int, parameters: Sequence[int]) -> VideoCapture: ...


def open_capture(address: str, backend: int, parameters: Sequence[int]) -> VideoCapture:
    """cv2.VideoCapture itself; the result says by `isOpened` whether it worked."""
    from device.opencv import cv2

    return cv2.VideoCapture(address, backend, list(parameters))


class DrainedCapture:
    """What cameras and streams share: they are drained as fast as they give, and have no position."""

    end_words = "the source stopped"

    def __init__(self, capture: VideoCapture) -> None:
        self._capture = capture

    @property
    def position_s(self) -> float | None:
        return None

    def grab(self) -> Grab:
        return Grab.PICTURE if self._capture.grab() else Grab.NOTHING

    def retrieve(self) -> Pixels | None:
        return picture_of(self._capture)

    def close(self) -> None:
        self._capture.release()

    def _actual_mode(self, asked: str = "") -> Mode:
        """Size, rate and format as the back end says they are now."""
        from device.opencv import cv2

        get = self._capture.get
        return Mode(
            int(get(cv2.CAP_PROP_FRAME_WIDTH)),
            int(get(cv2.CAP_PROP_FRAME_HEIGHT)),
            rate_of(get(cv2.CAP_PROP_FPS)),
            fourcc_text(get(cv2.CAP_PROP_FOURCC)),
            asked,
        )


def picture_of(capture: VideoCapture) -> Pixels | None:
    """The picture grabbed last as BGR, None where it could not be decoded."""
    decoded, pixels = capture.retrieve()
    if not decoded or pixels is None or pixels.size == 0:
        return None
    return as_bgr(pixels)


def fourcc_text(value: float) -> str:
    """Four letters such as `MJPG` from OpenCV's number, empty where there is none."""
    code = int(value)
    letters = "".join(chr((code >> shift) & 0xFF) for shift in (0, 8, 16, 24)) if code > 0 else ""
    return letters.strip() if letters.isprintable() else ""


def rate_of(value: float) -> float | None:
    """A frame rate that can be one; back ends give 0, NaN or 90000 where they do not know."""
    return float(value) if 0.1 <= value <= 1000 else None
