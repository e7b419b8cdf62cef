"""A picture made here: something that moves, with its own time burnt in, for demos, tests and figures."""

from __future__ import annotations

import math

import numpy as np

from device.quality import Pixels
from device.sources.producer import Grab, Mode
from device.sources.spec import SourceSpec

_BITS = 32


class SyntheticProducer:
    """A disc that circles over a pattern, with the elapsed time in digits and in a row of cells.

    The cells (black 0, white 1, highest bit first, along the top edge) hold the position in
    milliseconds, so that a test or a benchmark reads from any picture when it was made.
    """

    def __init__(self, spec: SourceSpec) -> None:
        self._width, self._height, self._fps = spec.width, spec.height, spec.fps
        self._background = _pattern(self._width, self._height)
        self._count = 0
        self._draw()  # loads the font, so that the second picture is not late
        self._count = -1

    @property
    def mode(self) -> Mode:
        return Mode(self._width, self._height, self._fps)

    @property
    def position_s(self) -> float | None:
        return self._count / self._fps

    @property
    def end_words(self) -> str:
        return "the synthetic picture is over"

    def grab(self) -> Grab:
        self._count += 1
        return Grab.PICTURE

    def retrieve(self) -> Pixels | None:
        return self._draw()

    def close(self) -> None:
        self._count = -1

    def _draw(self) -> Pixels:
        from device.opencv import cv2

        position = self._count / self._fps
        picture = self._background.copy()
        width, height = self._width, self._height
        angle = position * 1.7
        centre = (int(width * (0.5 + 0.3 * math.cos(angle))), int(height * (0.55 + 0.25 * math.sin(angle))))
        cv2.circle(picture, centre, max(6, height // 9), (60, 90, 220), -1)
        cv2.circle(picture, centre, max(3, height // 18), (230, 230, 240), -1)
        minutes, seconds = divmod(position, 60)
        text = f"{int(minutes):02d}:{seconds:06.3f}  #{self._count}"
        scale = height / 480
        cv2.putText(
            picture,
            text,
            (width // 16, height - height // 12),
            cv2.FONT_HERSHEY_SIMPLEX,
            scale,
            (255, 255, 255),
            2,
        )
        _burn(picture, round(position * 1000))
        return picture


def burnt_position_s(pixels: Pixels) -> float:
    """The position in seconds that a synthetic picture carries, read from its cells."""
    side = _cell_side(pixels)
    row = pixels[side // 2, side // 2 : side * _BITS : side, 1] > 127
    return int("".join("1" if bit else "0" for bit in row), 2) / 1000


def _burn(picture: Pixels, value: int) -> None:
    side = _cell_side(picture)
    bits = np.array([value >> shift & 1 for shift in range(_BITS - 1, -1, -1)], dtype=np.uint8) * 255
    picture[:side, : side * _BITS] = np.repeat(bits, side)[None, :, None]


def _cell_side(picture: Pixels) -> int:
    return max(2, int(picture.shape[1]) // (_BITS + 8))


def _pattern(width: int, height: int) -> Pixels:
    """A checked cloth with a soft shade: edges for the sharpness score, nothing clipped."""
    y, x = np.mgrid[0:height, 0:width]
    check = ((x // max(4, width // 40)) + (y // max(4, width // 40))) % 2
    shade = 40 + 60 * x / width
    picture = np.stack(
        (shade + 40 * check, shade + 25 * check + 20 * y / height, 70 + 30 * check + 0 * x), axis=2
    )
    return picture.astype(np.uint8)
