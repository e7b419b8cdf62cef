"""Cloth for the demo pictures: weave, pattern and colour as a flat texture, and how folds shade it.

All pictures are float32 BGR in 0…1 of shape height×width×3; randomness comes from a seeded generator,
so the assets can be drawn anew to the same pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[Any]
"""Floats from 0 to 1. (OpenCV's stubs do not carry a dtype through, so none is claimed here.)"""
Rgb = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Cloth:
    """A fabric: its weave or pattern, its main colour and the pattern's second colour."""

    weave: str
    main: Rgb
    second: Rgb = (245, 243, 238)

    def texture(self, height: int, width: int, rng: np.random.Generator) -> Picture:
        """The cloth laid flat."""
        return _WEAVES[self.weave](self, height, width, rng)


def _bgr(colour: Rgb) -> Picture:
    return np.array(colour[::-1], np.float32) / 255


def _flat(colour: Rgb, height: int, width: int) -> Picture:
    return np.broadcast_to(_bgr(colour), (height, width, 3)).astype(np.float32)


def smooth_noise(height: int, width: int, cells: tuple[int, int], rng: np.random.Generator) -> Picture:
    """Smooth values about 0 with a deviation near 1; `cells` = (down, across)."""
    coarse = rng.standard_normal((cells[0] + 3, cells[1] + 3)).astype(np.float32)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.float32)


def _grain(picture: Picture, strength: float, rng: np.random.Generator) -> Picture:
    height, width = picture.shape[:2]
    grain = rng.standard_normal((height, width, 1)).astype(np.float32)
    grained: Picture = picture * (1 + strength * grain)
    return grained


def _jersey(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    return _grain(_flat(cloth.main, height, width), 0.025, rng)


def _twill(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    diagonal = 0.05 * np.sin((x + y) * 1.7)[..., None]
    worn = 0.10 * smooth_noise(height, width, (5, 4), rng)[..., None]
    slub = 0.06 * smooth_noise(height, width, (height // 3, 6), rng)[..., None]
    return _grain(_flat(cloth.main, height, width) * (1 + diagonal + worn + slub), 0.05, rng)


def _cable(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    pitch = width / 22
    twist = np.sin(y / pitch * 1.6) * pitch * 0.25
    rope = np.abs(np.sin((x + twist) / pitch * np.pi))
    stitch = 0.06 * np.sin(y * 1.3) * np.sin(x * 1.3)
    return _grain(_flat(cloth.main, height, width) * (0.66 + 0.36 * rope + stitch)[..., None], 0.03, rng)


def _quilted(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    pitch = width / 7
    a, b = np.sin((x + y) / pitch * np.pi), np.sin((x - y) / pitch * np.pi)
    puff = np.sqrt(np.abs(a) * np.abs(b))
    light = 0.62 + 0.5 * puff + 0.10 * np.sign(a) * np.sign(b) * (1 - puff)
    return _grain(_flat(cloth.main, height, width) * light[..., None].astype(np.float32), 0.015, rng)


def _puffer(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y = np.mgrid[0:height, 0:width][0].astype(np.float32)
    band = height / 9
    wave = smooth_noise(height, width, (9, 14), rng) * band * 0.07
    across = np.abs(np.sin((y + wave) / band * np.pi)) ** 0.6
    lit: Picture = _flat(cloth.main, height, width) * (0.5 + 0.58 * across)[..., None]
    return lit.astype(np.float32)


def _striped(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y = np.mgrid[0:height, 0:width][0].astype(np.float32)
    dark = np.clip(np.sin(y / height * np.pi * 30) * 8 - 2, 0, 1)[..., None]
    blended = _flat(cloth.second, height, width) * (1 - dark) + _flat(cloth.main, height, width) * dark
    return _grain(blended.astype(np.float32), 0.02, rng)


def _checked(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    pitch = width / 15
    across, down = (np.clip(np.sin(v / pitch * np.pi) * 6, 0, 1) for v in (x, y))
    dark = ((across + down) / 2)[..., None]
    fine = 0.5 * (np.abs(np.sin(x / pitch * np.pi)) < 0.07) + 0.5 * (np.abs(np.sin(y / pitch * np.pi)) < 0.07)
    blended = _flat(cloth.main, height, width) * (1 - dark) + _flat(cloth.second, height, width) * dark
    lined = blended * (1 - 0.35 * fine[..., None])
    return _grain(lined.astype(np.float32), 0.03, rng)


def _scattered(cloth: Cloth, height: int, width: int, rng: np.random.Generator, flower: bool) -> Picture:
    layer = np.zeros((height, width), np.uint8)
    pitch = width / 11
    for row in range(int(height / pitch) + 2):
        for column in range(13):
            shift = 0.5 if row % 2 else 0.0
            jitter = rng.uniform(-0.18, 0.18, 2) if flower else (0.0, 0.0)
            centre = ((column + shift + jitter[0]) * pitch, (row + jitter[1]) * pitch)
            if flower:
                for petal in range(5):
                    angle = petal * 2 * np.pi / 5 + row
                    at = (
                        int(centre[0] + np.cos(angle) * pitch * 0.17),
                        int(centre[1] + np.sin(angle) * pitch * 0.17),
                    )
                    cv2.circle(layer, at, int(pitch * 0.14), 255, -1, cv2.LINE_AA)
            else:
                cv2.circle(layer, (int(centre[0]), int(centre[1])), int(pitch * 0.2), 255, -1, cv2.LINE_AA)
    share = (layer.astype(np.float32) / 255)[..., None]
    blended = _flat(cloth.main, height, width) * (1 - share) + _flat(cloth.second, height, width) * share
    return _grain(blended.astype(np.float32), 0.02, rng)


def _dotted(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    return _scattered(cloth, height, width, rng, flower=False)


def _floral(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    return _scattered(cloth, height, width, rng, flower=True)


def _ribbed(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    x = np.mgrid[0:height, 0:width][1].astype(np.float32)
    return _grain(_flat(cloth.main, height, width) * (0.86 + 0.14 * np.sin(x * 0.9))[..., None], 0.02, rng)


def _pleated(cloth: Cloth, height: int, width: int, rng: np.random.Generator) -> Picture:
    x = np.mgrid[0:height, 0:width][1].astype(np.float32)
    phase = (x / width * 14) % 1
    return _grain(_flat(cloth.main, height, width) * (0.6 + 0.45 * phase)[..., None], 0.02, rng)


_WEAVES: dict[str, Callable[[Cloth, int, int, np.random.Generator], Picture]] = {
    "jersey": _jersey,
    "twill": _twill,
    "cable": _cable,
    "quilted": _quilted,
    "puffer": _puffer,
    "striped": _striped,
    "checked": _checked,
    "dotted": _dotted,
    "floral": _floral,
    "ribbed": _ribbed,
    "pleated": _pleated,
}


def folds(height: int, width: int, rng: np.random.Generator, strength: float) -> Picture:
    """How folds lighten and darken cloth: long soft waves down it and a few creases; about 1."""
    drape = smooth_noise(height, width, (3, 8), rng)
    crease = np.exp(-np.abs(smooth_noise(height, width, (6, 6), rng)) * 7)
    crumple = smooth_noise(height, width, (9, 9), rng)
    light = 1 + strength * (0.10 * drape - 0.13 * crease + 0.05 * crumple)
    soft: Picture = cv2.GaussianBlur(light.astype(np.float32), (0, 0), max(1.0, width / 160))
    return soft[..., None]
