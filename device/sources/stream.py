"""A network stream: RTSP, or HTTP with MJPEG or anything else FFmpeg reads."""

from __future__ import annotations

from device.errors import DeviceError
from device.quality import Pixels
from device.sources.opencv_capture import OpenCapture, fourcc_text, picture_of, rate_of
from device.sources.producer import Grab, Mode
from device.sources.spec import SourceSpec

OPEN_TIMEOUT_MS = 6000
READ_TIMEOUT_MS = 3000


class StreamProducer:
    """An open stream. Raises DeviceError STREAM_UNREACHABLE; its address is never in the words."""

    def __init__(self, spec: SourceSpec, open_capture: OpenCapture) -> None:
        from device.opencv import cv2

        self._cv = cv2
        parameters = (
            *(cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_TIMEOUT_MS),
            *(cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_TIMEOUT_MS),
            *(cv2.CAP_PROP_N_THREADS, 1),  # each further decoding thread holds one frame back
        )
        self._capture = open_capture(spec.address, cv2.CAP_FFMPEG, parameters)
        if not self._capture.isOpened():
            self._capture.release()
            raise DeviceError(
                "STREAM_UNREACHABLE",
                f"the stream {spec.label} cannot be reached or holds no video",
                "check address, network and password; it is tried again by itself",
            )
        self._capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 1)

    @property
    def mode(self) -> Mode:
        get, cv = self._capture.get, self._cv
        width, height = int(get(cv.CAP_PROP_FRAME_WIDTH)), int(get(cv.CAP_PROP_FRAME_HEIGHT))
        return Mode(width, height, rate_of(get(cv.CAP_PROP_FPS)), fourcc_text(get(cv.CAP_PROP_FOURCC)))

    @property
    def position_s(self) -> float | None:
        return None

    @property
    def end_words(self) -> str:
        return "the stream stopped"

    def grab(self) -> Grab:
        return Grab.PICTURE if self._capture.grab() else Grab.NOTHING

    def retrieve(self) -> Pixels | None:
        return picture_of(self._capture)

    def close(self) -> None:
        self._capture.release()
