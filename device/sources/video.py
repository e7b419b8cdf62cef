"""A recorded video: paced by its own timestamps, with an exact start."""

from __future__ import annotations

from device.errors import DeviceError
from device.quality import Pixels
from device.sources.opencv_capture import OpenCapture, VideoCapture, fourcc_text, picture_of, rate_of
from device.sources.producer import Grab, Mode, StopAsked
from device.sources.spec import SourceSpec

_SEEK_EARLIER_S = 1.0
"""Seeking lands a little before the wanted position; the rest is decoded frame by frame."""

_TRUNCATED_S = 1.0


class VideoProducer:
    """One pass through a file, from `spec.at` to its end. Opening reads the first picture.

    Raises DeviceError SOURCE_UNREADABLE where there is none to read, SOURCE_INVALID where `at` lies
    behind the end.
    """

    def __init__(self, spec: SourceSpec, open_capture: OpenCapture, stop_asked: StopAsked) -> None:
        from device.opencv import cv2

        self._cv = cv2
        self._spec = spec
        self._open_capture = open_capture
        self._capture = self._open()
        self._position = 0.0
        self._first_is_grabbed = False
        try:
            self._fps = rate_of(self._capture.get(cv2.CAP_PROP_FPS))
            self._duration = self._read_duration()
            self._start(spec.at or 0.0, stop_asked)
        except BaseException:
            self._capture.release()
            raise

    @property
    def mode(self) -> Mode:
        get, cv = self._capture.get, self._cv
        width, height = int(get(cv.CAP_PROP_FRAME_WIDTH)), int(get(cv.CAP_PROP_FRAME_HEIGHT))
        return Mode(width, height, self._fps, fourcc_text(get(cv.CAP_PROP_FOURCC)))

    @property
    def position_s(self) -> float | None:
        return self._position

    @property
    def end_words(self) -> str:
        if self._duration is not None and self._position < self._duration - _TRUNCATED_S:
            reached = f"{self._position:.1f} s of {self._duration:.1f} s"
            return f"the video breaks off at {reached}: the file is damaged"
        return "the video is over"

    def grab(self) -> Grab:
        if self._first_is_grabbed:
            self._first_is_grabbed = False
            return Grab.PICTURE
        return Grab.PICTURE if self._advance() else Grab.END

    def retrieve(self) -> Pixels | None:
        return picture_of(self._capture)

    def close(self) -> None:
        self._capture.release()

    def _open(self) -> VideoCapture:
        # One decoding thread: two hold a frame back each and cost more in all.
        parameters = (self._cv.CAP_PROP_N_THREADS, 1)
        capture = self._open_capture(self._spec.address, self._cv.CAP_FFMPEG, parameters)
        if not capture.isOpened():
            capture.release()
            raise self._unreadable()
        # Whether OpenCV turns by itself has changed between its versions, so it is said.
        capture.set(self._cv.CAP_PROP_ORIENTATION_AUTO, 1)
        return capture

    def _start(self, at: float, stop_asked: StopAsked) -> None:
        """Leaves the picture at `at` grabbed; seeks by key frame, then decodes up to it."""
        if at > 0:
            self._capture.set(self._cv.CAP_PROP_POS_MSEC, max(0.0, at - _SEEK_EARLIER_S) * 1000)
        found = self._advance()
        if at > 0 and (not found or self._position > at):
            # Without an index a seek may land behind: then all is decoded from the start.
            self._capture.release()
            self._capture = self._open()
            found = self._advance()
        near = at - 0.5 / (self._fps or 30.0)
        while found and self._position < near and not stop_asked():
            found = self._advance()
        if not found:
            raise self._unreadable() if self._position == 0 else self._behind_the_end(at)
        self._first_is_grabbed = True

    def _advance(self) -> bool:
        if not self._capture.grab():
            return False
        self._position = max(0.0, self._capture.get(self._cv.CAP_PROP_POS_MSEC) / 1000)
        return True

    def _read_duration(self) -> float | None:
        frames = self._capture.get(self._cv.CAP_PROP_FRAME_COUNT)
        return frames / self._fps if frames > 0 and self._fps else None

    def _unreadable(self) -> DeviceError:
        return DeviceError(
            "SOURCE_UNREADABLE",
            f"{self._spec.label} holds no video that can be read",
            "it may be damaged, cut short, or sound only: try to play it, or convert it to MP4 (H.264)",
        )

    def _behind_the_end(self, at: float) -> DeviceError:
        return DeviceError(
            "SOURCE_INVALID",
            f"{self._spec.label} ends at {self._position:.1f} s, so there is nothing at {at:g} s",
            "choose an earlier --at",
        )
