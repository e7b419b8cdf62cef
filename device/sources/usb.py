"""A USB camera through V4L2: MJPG before size before rate, and plain words when it cannot be opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from device.errors import DeviceError
from device.sources.opencv_capture import DrainedCapture, OpenCapture
from device.sources.producer import Mode
from device.sources.spec import SourceSpec


class UsbProducer(DrainedCapture):
    """An open camera at a device node.

    The format comes first, since the driver picks size and rate from what that format offers: left
    alone, many choose raw YUYV, which fits through USB 2 at 720p with 5 to 10 frames a second only.
    Raises DeviceError CAMERA_BUSY, CAMERA_DENIED, NO_CAMERA or CAMERA_SILENT.
    """

    end_words = "the camera stopped"

    def __init__(self, spec: SourceSpec, node: str, open_capture: OpenCapture) -> None:
        from device.opencv import cv2

        self._asked = f"{spec.width}x{spec.height}@{spec.fps:g} MJPG"
        super().__init__(open_capture(node, cv2.CAP_V4L2, ()))
        if not self._capture.isOpened():
            self._capture.release()
            raise why_not_open(node, spec.label)
        self._capture.set(cv2.CAP_PROP_FOURCC, float(cv2.VideoWriter.fourcc(*"MJPG")))
        self._capture.set(cv2.CAP_PROP_FRAME_WIDTH, spec.width)
        self._capture.set(cv2.CAP_PROP_FRAME_HEIGHT, spec.height)
        self._capture.set(cv2.CAP_PROP_FPS, spec.fps)
        self._capture.set(cv2.CAP_PROP_CONVERT_RGB, 1)

    @property
    def mode(self) -> Mode:
        return self._actual_mode(self._asked)


def why_not_open(node: str, label: str) -> DeviceError:
    """Why a camera's node could not be opened, found by opening the node itself without starting it."""
    try:
        os.close(os.open(node, os.O_RDWR | os.O_NONBLOCK))
    except FileNotFoundError:
        return DeviceError(
            "NO_CAMERA", f"there is no camera at {label}", "plug it in; see styleeyes camera list"
        )
    except PermissionError:
        return DeviceError(
            "CAMERA_DENIED",
            f"this user may not use the camera {label}",
            "add the user to the group video (sudo usermod -aG video $USER), then log in again",
        )
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.ENXIO):
            return DeviceError("NO_CAMERA", f"the camera {label} is gone", "plug it in again")
        if error.errno != errno.EBUSY:
            return DeviceError(
                "CAMERA_SILENT",
                f"the camera {label} does not open: {error.strerror}",
                "plug it out and in again",
            )
        return busy(node, label)
    return (
        busy(node, label)
        if holders(node)
        else DeviceError(
            "CAMERA_SILENT",
            f"{label} opens, but gives no video",
            "styleeyes camera list shows the nodes that do; or plug it out and in again",
        )
    )


def busy(node: str, label: str) -> DeviceError:
    """The camera is in use, and by whom where this user may know."""
    programs = holders(node)
    by = f"by {', '.join(programs)}" if programs else "by another program"
    return DeviceError(
        "CAMERA_BUSY", f"the camera {label} is in use {by}", "close that program; it is tried again by itself"
    )


def holders(node: str, processes: Path = Path("/proc")) -> list[str]:
    """Names of the other programs that hold `node` open, as far as this user may see them."""
    wanted = os.path.realpath(node)
    found: set[str] = set()
    for process in processes.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            if any(os.path.realpath(fd) == wanted for fd in (process / "fd").iterdir()):
                found.add((process / "comm").read_text(errors="replace").strip())
        except OSError:
            continue
    return sorted(found)
