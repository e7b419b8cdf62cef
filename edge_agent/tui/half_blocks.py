"""Pictures as text: each cell shows two pixels, its upper half in the foreground colour of `▀`.

Pure and thread-safe, so that the preview can compute frames off the UI thread. Terminal cells are
taken to be twice as high as wide, which makes the half-cell pixel square.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_UPPER_HALF = "▀"
_LEVELS = 0xFC
"""Colours are rounded to 64 levels a channel: cells then mostly reuse a known style, which more than
halves the cost of a frame (27 to 12 ms at 60×20) and cannot be told apart."""


def fit(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """The largest (columns, rows) of cells with the picture's aspect inside the given cells."""
    if width <= 0 or height <= 0 or columns <= 0 or rows <= 0:
        return 0, 0
    scale = min(columns / width, rows * 2 / height)
    return max(1, min(columns, round(width * scale))), max(1, min(rows, round(height * scale / 2)))


def strips(bgr: Any, columns: int, rows: int) -> list[Strip]:
    """`bgr` (uint8, height × width × 3) as `rows` lines of `columns` cells."""
    import cv2

    small = cv2.resize(bgr, (columns, rows * 2), interpolation=cv2.INTER_AREA)
    rounded = (small & _LEVELS) | (small >> 6)
    packed = (
        rounded[:, :, 2].astype("uint32") << 16 | rounded[:, :, 1].astype("uint32") << 8 | rounded[:, :, 0]
    ).tolist()
    return [_line(packed[2 * row], packed[2 * row + 1]) for row in range(rows)]


def _line(upper: list[int], lower: list[int]) -> Strip:
    segments: list[Segment] = []
    start, count = 0, len(upper)
    while start < count:
        top, bottom = upper[start], lower[start]
        end = start + 1
        while end < count and upper[end] == top and lower[end] == bottom:
            end += 1
        segments.append(Segment(_UPPER_HALF * (end - start), _style(top, bottom)))
        start = end
    return Strip(segments, count)


@lru_cache(maxsize=8192)
def _style(top: int, bottom: int) -> Style:
    return Style.from_color(_color(top), _color(bottom))


@lru_cache(maxsize=8192)
def _color(packed: int) -> Color:
    return Color.from_triplet(ColorTriplet(packed >> 16, packed >> 8 & 0xFF, packed & 0xFF))
