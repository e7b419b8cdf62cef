"""A picture to look at what went right and wrong: for each case what was seen, and what it was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

_HEIGHT, _WIDTH, _WORDS = 150, 150, 34
_COLUMNS = 3
_GREEN, _AMBER, _RED = (80, 160, 60), (40, 150, 220), (60, 60, 210)


@dataclass(frozen=True, slots=True)
class Row:
    """One case: encoded pictures from left to right, its words, and how it went."""

    pictures: Sequence[bytes]
    words: str
    outcome: str
    """`right`, `similar` (right, but not established) or `wrong`."""


def write_sheet(rows: Sequence[Row], path: Path) -> None:
    """Writes the sheet as PNG; wrong cases come first. Raises OSError where it cannot be written."""
    if not rows:
        return
    order = {"wrong": 0, "similar": 1, "right": 2}
    tiles = [_tile(row) for row in sorted(rows, key=lambda row: order[row.outcome])]
    width = max(tile.shape[1] for tile in tiles)
    tiles = [
        np.pad(tile, ((0, 8), (0, width + 8 - tile.shape[1]), (0, 0)), constant_values=255) for tile in tiles
    ]
    blank = np.full_like(tiles[0], 255)
    tiles += [blank] * (-len(tiles) % _COLUMNS)
    lines = [np.hstack(tiles[start : start + _COLUMNS]) for start in range(0, len(tiles), _COLUMNS)]
    path.write_bytes(cv2.imencode(".png", np.vstack(lines))[1].tobytes())


def _tile(row: Row) -> np.ndarray:
    shown = [_thumbnail(picture) for picture in row.pictures]
    body = np.hstack(shown)
    colour = {"right": _GREEN, "similar": _AMBER, "wrong": _RED}[row.outcome]
    head = np.full((_WORDS, body.shape[1], 3), colour, np.uint8)
    text = row.words.encode("ascii", "replace").decode()
    cv2.putText(head, text, (6, 22), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (255, 255, 255), 1, cv2.LINE_AA)
    return np.vstack([head, body])


def _thumbnail(picture: bytes) -> np.ndarray:
    tile = np.full((_HEIGHT, _WIDTH, 3), 235, np.uint8)
    pixels = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR) if picture else None
    if pixels is None:
        return tile
    scale = min(_HEIGHT / pixels.shape[0], _WIDTH / pixels.shape[1])
    small = cv2.resize(pixels, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)[:_HEIGHT, :_WIDTH]
    top, left = (_HEIGHT - small.shape[0]) // 2, (_WIDTH - small.shape[1]) // 2
    tile[top : top + small.shape[0], left : left + small.shape[1]] = small
    return tile
