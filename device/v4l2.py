"""Questions to a V4L2 node: is it a camera, which modes has it. None of them starts the camera.

Structures and request numbers are those of the Linux header `linux/videodev2.h`.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_QUERYCAP, _QUERYCAP_BYTES = 0x80685600, 104
_ENUM_FMT, _ENUM_FMT_BYTES = 0xC0405602, 64
_ENUM_FRAMESIZES, _ENUM_FRAMESIZES_BYTES = 0xC02C564A, 44
_ENUM_FRAMEINTERVALS, _ENUM_FRAMEINTERVALS_BYTES = 0xC034564B, 52

_CAP_VIDEO_CAPTURE, _CAP_VIDEO_CAPTURE_MPLANE = 0x0000_0001, 0x0000_1000
_CAP_DEVICE_CAPS = 0x8000_0000
_BUF_TYPE_VIDEO_CAPTURE = 1
_DISCRETE = 1
_ENTRIES_AT_MOST = 64  # a driver that never ends its list must not hang us


@dataclass(frozen=True, slots=True)
class CameraMode:
    """A size in a pixel format, with the highest rate (frames a second) where the driver says one."""

    fourcc: str
    width: int
    height: int
    fps: float | None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself. `captures` is false for metadata and output nodes."""

    card: str
    bus: str
    captures: bool
    modes: tuple[CameraMode, ...] = ()


Ioctl = Callable[[int, int, bytearray], object]


def ask_node(node: Path, *, with_modes: bool = False, ioctl: Ioctl | None = None) -> NodeFacts | None:
    """The facts of a node, None where it cannot be opened or is no V4L2 device."""
    call = ioctl or (lambda fd, request, buffer: fcntl.ioctl(fd, request, buffer, True))
    try:
        fd = os.open(node, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = bytearray(_QUERYCAP_BYTES)
        call(fd, _QUERYCAP, answer)
        _, card, bus, _, capabilities, device_caps = struct.unpack_from("16s32s32sIII", answer)
        caps = device_caps if capabilities & _CAP_DEVICE_CAPS else capabilities
        captures = bool(caps & (_CAP_VIDEO_CAPTURE | _CAP_VIDEO_CAPTURE_MPLANE))
        modes = tuple(_modes(fd, call)) if captures and with_modes else ()
        return NodeFacts(_text(card), _text(bus), captures, modes)
    except OSError:
        return None
    finally:
        os.close(fd)


def _modes(fd: int, call: Ioctl) -> Iterator[CameraMode]:
    for fourcc in _formats(fd, call):
        for width, height in _sizes(fd, call, fourcc):
            rate = _highest_rate(fd, call, fourcc, width, height)
            yield CameraMode(struct.pack("I", fourcc).decode("ascii", "replace").strip(), width, height, rate)


def _formats(fd: int, call: Ioctl) -> Iterator[int]:
    for index in range(_ENTRIES_AT_MOST):
        entry = bytearray(_ENUM_FMT_BYTES)
        struct.pack_into("II", entry, 0, index, _BUF_TYPE_VIDEO_CAPTURE)
        if not _answers(fd, call, _ENUM_FMT, entry):
            return
        yield struct.unpack_from("I", entry, 44)[0]


def _sizes(fd: int, call: Ioctl, fourcc: int) -> Iterator[tuple[int, int]]:
    for index in range(_ENTRIES_AT_MOST):
        entry = bytearray(_ENUM_FRAMESIZES_BYTES)
        struct.pack_into("II", entry, 0, index, fourcc)
        if not _answers(fd, call, _ENUM_FRAMESIZES, entry):
            return
        (kind,) = struct.unpack_from("I", entry, 8)
        if kind != _DISCRETE:
            _, widest, _, _, tallest, _ = struct.unpack_from("6I", entry, 12)
            yield widest, tallest
            return
        width, height = struct.unpack_from("II", entry, 12)
        yield width, height


def _highest_rate(fd: int, call: Ioctl, fourcc: int, width: int, height: int) -> float | None:
    rates: list[float] = []
    for index in range(_ENTRIES_AT_MOST):
        entry = bytearray(_ENUM_FRAMEINTERVALS_BYTES)
        struct.pack_into("IIII", entry, 0, index, fourcc, width, height)
        if not _answers(fd, call, _ENUM_FRAMEINTERVALS, entry):
            break
        kind, numerator, denominator = struct.unpack_from("III", entry, 16)
        if numerator:
            rates.append(denominator / numerator)
        if kind != _DISCRETE:
            break  # the first interval of a range is its shortest
    return max(rates, default=None)


def _answers(fd: int, call: Ioctl, request: int, entry: bytearray) -> bool:
    try:
        call(fd, request, entry)
    except OSError:
        return False
    return True


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip()
