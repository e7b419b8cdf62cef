"""What a person types for a source, parsed: `usb:1`, `walk.mp4`, `rtsp://…`, `images:DIR`, `synthetic`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from device.errors import DeviceError

PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})
"""What is taken for a still picture; every other file is taken for a video."""

_STREAM_SCHEMES = frozenset({"rtsp", "rtsps", "http", "https"})
_MASK = "•••"
_MODE = re.compile(r"(\d{2,4})x(\d{2,4})(?:@(\d{1,3}))?")
_USAGE = (
    "use usb, usb:N, a /dev/… path, a video or picture file, rtsp://…, http(s)://…, images:DIR or synthetic"
)


class SourceKind(StrEnum):
    USB = "usb"
    VIDEO = "video"
    STREAM = "stream"
    STILL = "still"
    IMAGES = "images"
    SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source to open; made by `parse_source`.

    `label` is what may be shown and logged. `address` is what is opened and may hold a stream's
    credentials, so it is in no repr: the selector of a USB camera ("" for the first, a number, a
    /dev path or a by-id name), an absolute path, or a URL. `at` is where a recording starts, in
    seconds; `width`, `height` and `fps` are what a camera is asked for, or what `synthetic` makes.
    """

    kind: SourceKind
    label: str
    address: str = field(repr=False)
    at: float | None = None
    loop: bool = False
    width: int = 1280
    height: int = 720
    fps: float = 30.0

    @property
    def live(self) -> bool:
        """Something that goes on by itself and has to be drained: a camera or a stream."""
        return self.kind in (SourceKind.USB, SourceKind.STREAM)

    def from_position(self, seconds: float | None) -> SourceSpec:
        """The same source, a recording at `seconds` and at its start for None."""
        return replace(self, at=seconds if self.kind is SourceKind.VIDEO else None)

    @property
    def path(self) -> Path:
        """The file or folder of a recorded source."""
        return Path(self.address)


def parse_source(text: str, *, at: float | None = None, loop: bool = False) -> SourceSpec:
    """The source that `text` names; looks at no device and no file but to tell a folder from a file.

    `at` (seconds) and `loop` are for recorded video. Raises DeviceError SOURCE_INVALID.
    """
    spec = _parse(text.strip(), loop)
    if at is None:
        return spec
    if not math.isfinite(at) or at < 0:
        raise DeviceError("SOURCE_INVALID", f"{at} is no position in a video", "use --at with seconds from 0")
    if spec.kind is not SourceKind.VIDEO:
        raise DeviceError(
            "SOURCE_INVALID", f"--at is for recorded video, not for {spec.label}", "leave --at out"
        )
    return spec.from_position(at)


def _parse(text: str, loop: bool) -> SourceSpec:
    if not text or "\0" in text:
        raise DeviceError("SOURCE_INVALID", "no camera source was given", _USAGE)
    scheme, _, rest = text.partition(":")
    scheme = scheme.lower()
    if scheme == "synthetic":
        return _synthetic(text, rest)
    if scheme == "usb":
        if rest and not rest.isdecimal():
            raise DeviceError("SOURCE_INVALID", f"{text!r} is no camera number", "use usb, usb:0, usb:1 …")
        return SourceSpec(SourceKind.USB, text.lower(), rest)
    if scheme == "images":
        if not rest:
            raise DeviceError("SOURCE_INVALID", "images: needs a folder", "use images:DIR")
        folder = Path(rest).expanduser().absolute()
        return SourceSpec(SourceKind.IMAGES, f"images:{folder.name}", str(folder))
    if text.startswith("/dev/") or re.match(r"usb-\S+-video-index\d+$", text):
        return SourceSpec(SourceKind.USB, text, text)
    if "://" in text:
        return _stream(text, scheme)
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        return SourceSpec(SourceKind.IMAGES, f"images:{path.name}", str(path))
    kind = SourceKind.STILL if path.suffix.lower() in PICTURE_SUFFIXES else SourceKind.VIDEO
    return SourceSpec(kind, path.name, str(path), loop=loop)


def _synthetic(text: str, mode: str) -> SourceSpec:
    if not mode:
        return SourceSpec(SourceKind.SYNTHETIC, "synthetic", "")
    match = _MODE.fullmatch(mode)
    width, height, fps = (int(part or 30) for part in match.groups()) if match else (0, 0, 0)
    if not (64 <= width <= 4096 and 64 <= height <= 4096 and 1 <= fps <= 120):
        raise DeviceError("SOURCE_INVALID", f"{text!r} is no picture size", "use synthetic:1280x720@30")
    return SourceSpec(SourceKind.SYNTHETIC, text.lower(), "", width=width, height=height, fps=float(fps))


def _stream(text: str, scheme: str) -> SourceSpec:
    if scheme not in _STREAM_SCHEMES:
        raise DeviceError("SOURCE_INVALID", f"{scheme}:// cannot be opened", _USAGE)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise DeviceError("SOURCE_INVALID", "the stream's address names no host", f"use {scheme}://HOST/PATH")
    # A password may sit before the host as well as in the query (`?pwd=`, `?token=`): neither is shown.
    shown_host = f"[{host}]" if ":" in host else host
    shown = (f"{_MASK}@" if "@" in parts.netloc else "") + shown_host + (f":{port}" if port else "")
    label = urlunsplit((scheme, shown, parts.path, _MASK if parts.query else "", ""))
    return SourceSpec(SourceKind.STREAM, label, text)
