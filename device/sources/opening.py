"""Opening a source: what can be said before any thread starts, and its producer on the capture thread."""

from __future__ import annotations

import os
from typing import Protocol

from device.errors import DeviceError
from device.sources.opencv_capture import OpenCapture, open_capture
from device.sources.producer import Producer, StopAsked
from device.sources.spec import SourceKind, SourceSpec
from device.sources.stills import StillsProducer, pictures_in
from device.sources.synthetic import SyntheticProducer


class OpenProducer(Protocol):
    """Opens a source; called on the capture thread. `node` is a USB camera's present device node."""

    def __call__(self, spec: SourceSpec, node: str | None, stop_asked: StopAsked) -> Producer: ...


class ProducerOpener:
    """The real OpenProducer; `capture` is the border to OpenCV."""

    def __init__(self, capture: OpenCapture = open_capture) -> None:
        self._capture = capture

    def __call__(self, spec: SourceSpec, node: str | None, stop_asked: StopAsked) -> Producer:
        match spec.kind:
            case SourceKind.SYNTHETIC:
                return SyntheticProducer(spec)
            case SourceKind.STILL | SourceKind.IMAGES:
                return StillsProducer(spec)
            case SourceKind.VIDEO:
                from device.sources.video import VideoProducer

                return VideoProducer(spec, self._capture, stop_asked)
            case SourceKind.STREAM:
                from device.sources.stream import StreamProducer

                return StreamProducer(spec, self._capture)
            case SourceKind.USB:
                from device.sources.usb import UsbProducer

                if node is None:
                    raise DeviceError("NO_CAMERA", f"there is no camera at {spec.label}", "plug it in")
                return UsbProducer(spec, node, self._capture)


def check_recorded(spec: SourceSpec) -> None:
    """Fails at once for a recorded source that is not there or plainly cannot be read.

    Raises DeviceError SOURCE_NOT_FOUND or SOURCE_UNREADABLE.
    """
    path = spec.path
    try:
        if spec.kind is SourceKind.IMAGES:
            if not path.is_dir():
                raise _not_found(spec, "folder", "use images:DIR with a folder of pictures")
            if not pictures_in(path):
                raise DeviceError(
                    "SOURCE_UNREADABLE", f"the folder {path} holds no pictures", "put JPEG or PNG files there"
                )
            return
        if not path.exists():
            raise _not_found(spec, "file", "check the path; a camera is called usb or /dev/video0")
        if not path.is_file():
            raise DeviceError("SOURCE_UNREADABLE", f"{path} is not a file", "name a video or picture file")
        if path.stat().st_size == 0:
            raise DeviceError("SOURCE_UNREADABLE", f"{path} is empty (0 bytes)", "record or copy it again")
    except PermissionError:
        raise _unreadable(spec) from None
    except OSError as error:
        raise DeviceError("SOURCE_UNREADABLE", f"{path} cannot be read: {error.strerror}", None) from error
    if not os.access(path, os.R_OK):
        raise _unreadable(spec)


def _not_found(spec: SourceSpec, what: str, hint: str) -> DeviceError:
    return DeviceError("SOURCE_NOT_FOUND", f"there is no {what} {spec.path}", hint)


def _unreadable(spec: SourceSpec) -> DeviceError:
    return DeviceError(
        "SOURCE_UNREADABLE", f"{spec.path} may not be read by this user", f"chmod +r {spec.path}"
    )
