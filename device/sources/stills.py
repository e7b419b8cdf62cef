"""Still pictures as a source: a folder shown in turn, or one picture held in front of the camera."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from device.errors import DeviceError
from device.quality import Pixels
from device.sources.producer import Grab, Mode
from device.sources.spec import PICTURE_SUFFIXES, SourceKind, SourceSpec

_FPS = 5.0
_FRAMES_A_PICTURE = 10  # two seconds each
_LONG_SIDE_AT_MOST = 1920
"""A phone's photo is larger than any camera frame; a frame of it should cost what a frame costs."""


class StillsProducer:
    """Shows the pictures of a folder in the order of their names, over and over, or the one picture.

    Pictures that cannot be decoded are passed over. Raises DeviceError SOURCE_UNREADABLE where none can.
    """

    def __init__(self, spec: SourceSpec) -> None:
        self._paths = [spec.path] if spec.kind is SourceKind.STILL else pictures_in(spec.path)
        self._count = -1
        self._shown: int | None = None
        self._pixels = self._first_readable(spec)

    @property
    def mode(self) -> Mode:
        return Mode(int(self._pixels.shape[1]), int(self._pixels.shape[0]), _FPS)

    @property
    def position_s(self) -> float | None:
        return self._count / _FPS

    @property
    def end_words(self) -> str:
        return "the pictures are over"

    def grab(self) -> Grab:
        self._count += 1
        return Grab.PICTURE

    def retrieve(self) -> Pixels | None:
        wanted = (self._count // _FRAMES_A_PICTURE) % len(self._paths)
        if wanted != self._shown:
            pixels = _read(self._paths[wanted])
            self._shown = wanted
            # A picture that became unreadable leaves the one before it in view.
            self._pixels = self._pixels if pixels is None else pixels
        return self._pixels.copy()

    def close(self) -> None:
        self._paths = []

    def _first_readable(self, spec: SourceSpec) -> Pixels:
        while self._paths:
            pixels = _read(self._paths[0])
            if pixels is not None:
                return pixels
            self._paths.pop(0)
        raise DeviceError(
            "SOURCE_UNREADABLE",
            f"{spec.label} holds no picture that can be read",
            "use JPEG, PNG or WebP pictures",
        )


def pictures_in(folder: Path) -> list[Path]:
    """The picture files of a folder by name, hidden ones left out."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in PICTURE_SUFFIXES and not path.name.startswith(".") and path.is_file()
    )


def _read(path: Path) -> Pixels | None:
    from device.opencv import cv2

    try:
        # Through memory, since OpenCV's own reader fails on some file names; EXIF rotation is applied.
        pixels = cv2.imdecode(np.frombuffer(path.read_bytes(), dtype=np.uint8), cv2.IMREAD_COLOR)
    except (OSError, cv2.error):
        return None
    if pixels is None:
        return None
    scale = _LONG_SIDE_AT_MOST / max(pixels.shape[:2])
    if scale < 1:
        size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return np.asarray(pixels, dtype=np.uint8)
