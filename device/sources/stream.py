"""A network stream: RTSP, or HTTP with MJPEG or anything else FFmpeg reads."""

from __future__ import annotations

from device.errors import DeviceError
from device.sources.opencv_capture import DrainedCapture, OpenCapture
from device.sources.producer import Mode
from device.sources.spec import SourceSpec

OPEN_TIMEOUT_MS = 6000
READ_TIMEOUT_MS = 3000


class StreamProducer(DrainedCapture):
    """An open stream. Raises DeviceError STREAM_UNREACHABLE; its address is never in the words."""

    end_words = "the stream stopped"

    def __init__(self, spec: SourceSpec, open_capture: OpenCapture) -> None:
        from device.opencv import cv2

        parameters = (
            *(cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_TIMEOUT_MS),
            *(cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_TIMEOUT_MS),
            *(cv2.CAP_PROP_N_THREADS, 1),  # each further decoding thread holds one frame back
        )
        super().__init__(open_capture(spec.address, cv2.CAP_FFMPEG, parameters))
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
        return self._actual_mode()
