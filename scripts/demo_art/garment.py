"""Garments for the demo pictures: cut, parts and trimmings, drawn from simple outlines.

An outline lives in garment units: x from −1 (the viewer's left) to 1, y from 0 (collar) down to 2.3 (hem).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from scripts.demo_art.fabric import Cloth, Picture, Rgb, folds

Points = NDArray[Any]

_UNIT_HEIGHT = 2.45
_SUPERSAMPLING = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """What a garment is made like; lengths in garment units, angles in degrees."""

    kind: str
    cloth: Cloth
    sleeve: str = "none"
    """`none`, `short` or `long`."""
    neck: str = "crew"
    """`crew`, `v`, `collar`, `hood`, `strap`."""
    closure: str = "none"
    """`none`, `zip` or `buttons`."""
    pockets: str = "none"
    """`none`, `patch`, `kangaroo`, `chest`, `slant`."""
    rib: bool = False
    trim: Rgb = (40, 40, 44)


@dataclass(frozen=True, slots=True)
class Pose:
    """How a garment hangs: seed of its folds, how far sleeves spread, how strongly it creases."""

    seed: int
    sleeve_angle: float = 24.0
    creases: float = 1.0
    back: bool = False


def draw_garment(cut: Cut, pose: Pose, height: int) -> tuple[Picture, Picture]:
    """The garment as (BGR picture, coverage 0…1), `height` pixels high, square."""
    easel = _Easel(height * _SUPERSAMPLING, pose)
    if cut.kind in {"trousers", "shorts"}:
        _trousers(easel, cut, pose)
    elif cut.kind == "skirt":
        _skirt(easel, cut)
    else:
        _top(easel, cut, pose)
    size = (height, height)
    picture = cv2.resize(easel.picture, size, interpolation=cv2.INTER_AREA)
    cover = cv2.resize(easel.cover, size, interpolation=cv2.INTER_AREA)
    return picture.astype(np.float32), cover.astype(np.float32)


class _Easel:
    """Paints part over part, each with its cloth, folds, rounded edges and a shadow on what is below."""

    def __init__(self, size: int, pose: Pose) -> None:
        self.size = size
        self.picture: Picture = np.zeros((size, size, 3), np.float32)
        self.cover = np.zeros((size, size), np.float32)
        self._rng = np.random.default_rng(pose.seed)
        self._creases = pose.creases

    def to_pixels(self, points: Points) -> Points:
        scale = self.size / _UNIT_HEIGHT
        placed: Points = points * scale + np.array([self.size / 2, 0.07 * scale])
        return placed.astype(np.float32)

    def mask(self, outline: Points) -> Picture:
        canvas = np.zeros((self.size, self.size), np.uint8)
        cv2.fillPoly(canvas, [np.round(self.to_pixels(outline) * 16).astype(np.int32)], 255, cv2.LINE_AA, 4)
        return canvas.astype(np.float32) / 255

    def part(self, outline: Points, cloth: Cloth, *, angle: float = 0.0, shadow: bool = True) -> None:
        mask = self.mask(outline)
        texture = cloth.texture(self.size, self.size, self._rng)
        if angle:
            turn = cv2.getRotationMatrix2D((self.size / 2, self.size / 2), angle, 1.0)
            texture = cv2.warpAffine(texture, turn, (self.size, self.size), borderMode=cv2.BORDER_REFLECT)
        depth = cv2.distanceTransform((mask > 0.5).astype(np.uint8), cv2.DIST_L2, 3) / self.size
        rounded = 0.62 + 0.42 * np.clip(depth / 0.045, 0, 1) ** 0.5
        swell = cv2.GaussianBlur(depth.astype(np.float32), (0, 0), self.size / 22)
        side_light = 1 - np.clip(cv2.Sobel(swell, cv2.CV_32F, 1, 0) * 26, -0.12, 0.12)
        shade = folds(self.size, self.size, self._rng, self._creases) * (rounded * side_light)[..., None]
        if shadow:
            offset = np.array([[1, 0, self.size * 0.006], [0, 1, self.size * 0.012]], np.float32)
            dropped = cv2.warpAffine(mask, offset, (self.size, self.size))
            dropped = cv2.GaussianBlur(dropped, (0, 0), self.size / 90)
            self.picture *= (1 - 0.38 * dropped * (1 - mask))[..., None]
        self.picture = self.picture * (1 - mask[..., None]) + np.clip(texture * shade, 0, 1) * mask[..., None]
        self.cover = np.maximum(self.cover, mask)

    def line(self, points: Points, colour: Rgb, width: float = 0.012, *, dashed: bool = False) -> None:
        pixels = self.to_pixels(points)
        thickness = max(1, round(width * self.size / _UNIT_HEIGHT))
        layer = np.zeros((self.size, self.size), np.uint8)
        for index, (a, b) in enumerate(itertools.pairwise(pixels)):
            if not dashed or index % 2 == 0:
                cv2.line(layer, tuple(map(int, a)), tuple(map(int, b)), 255, thickness, cv2.LINE_AA)
        self._lay(layer, colour)

    def disc(self, at: tuple[float, float], radius: float, colour: Rgb) -> None:
        centre = self.to_pixels(np.array([at], np.float32))[0]
        layer = np.zeros((self.size, self.size), np.uint8)
        cv2.circle(
            layer,
            (int(centre[0]), int(centre[1])),
            max(1, round(radius * self.size / _UNIT_HEIGHT)),
            255,
            -1,
            cv2.LINE_AA,
        )
        self._lay(layer, colour)

    def _lay(self, layer: NDArray[np.uint8], colour: Rgb) -> None:
        share = (layer.astype(np.float32) / 255 * self.cover)[..., None]
        self.picture = self.picture * (1 - share) + np.array(colour[::-1], np.float32) / 255 * share


def _curve(*points: tuple[float, float], closed: bool = False) -> Points:
    """A smooth line through the points (Catmull–Rom, 1974)."""
    p = np.array(points, np.float32)
    p = np.vstack([p[-1:], p, p[:2]]) if closed else np.vstack([p[:1], p, p[-1:]])
    t = np.linspace(0, 1, 12, endpoint=False, dtype=np.float32)[:, None]
    pieces = [
        0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:], strict=True)
    ]
    return np.vstack([*pieces, p[-2:-1]]) if not closed else np.vstack(pieces)


def _mirror(points: Points) -> Points:
    return points * np.array([-1, 1], np.float32)


def _both_sides(right: Points) -> Points:
    """A closed outline from its right half, given from top to bottom."""
    return np.vstack([right, _mirror(right)[::-1]])


def _shade(colour: Rgb, by: float) -> Rgb:
    r, g, b = colour
    return int(r * by), int(g * by), int(b * by)


def _darker(cloth: Cloth, by: float) -> Cloth:
    return replace(cloth, weave="jersey", main=_shade(cloth.main, by))


def _sleeve(easel: _Easel, cut: Cut, pose: Pose, side: int) -> None:
    length = 0.52 if cut.sleeve == "short" else 1.42
    angle = np.radians(pose.sleeve_angle + (14 if cut.sleeve == "short" else 0))
    along = np.array([np.sin(angle), np.cos(angle)], np.float32)
    across = np.array([np.cos(angle), -np.sin(angle)], np.float32)
    shoulder = np.array([0.56, 0.2], np.float32)
    top, cuff = 0.2, 0.17 if cut.sleeve == "short" else 0.115
    outer = [
        shoulder + across * w + along * d for d, w in ((-0.05, 0.02), (0.35 * length, 0.10), (length, 0.05))
    ]
    inner = [
        shoulder - across * w + along * d
        for d, w in ((length, 2 * cuff - 0.05), (0.5 * length, 2 * top - 0.14), (0.34, 2 * top - 0.02))
    ]
    outline = np.vstack([_curve(*map(tuple, outer)), _curve(*map(tuple, inner)), [[0.40, 0.16]]]).astype(
        np.float32
    )
    turn = side * pose.sleeve_angle
    easel.part(outline if side > 0 else _mirror(outline), cut.cloth, angle=turn)
    if cut.sleeve == "long" and (cut.rib or cut.neck == "collar"):
        a, b = shoulder + along * length, shoulder + along * (length - 0.13)
        band = np.array(
            [
                a + across * 0.05,
                a - across * (2 * cuff - 0.05),
                b - across * (2 * cuff - 0.04),
                b + across * 0.06,
            ],
            np.float32,
        )
        rib = replace(cut.cloth, weave="ribbed") if cut.rib else _darker(cut.cloth, 0.86)
        easel.part(band if side > 0 else _mirror(band), rib, angle=turn, shadow=False)


def _top(easel: _Easel, cut: Cut, pose: Pose) -> None:
    neck_width = 0.24 if cut.neck != "strap" else 0.3
    if cut.neck == "hood":
        hood = _both_sides(
            _curve((0.0, -0.05), (0.22, -0.02), (0.34, 0.16), (0.36, 0.36), (0.2, 0.46), (0.0, 0.5))
        )
        easel.part(hood, _darker(cut.cloth, 0.72), shadow=False)
    if cut.sleeve != "none":
        _sleeve(easel, cut, pose, 1)
        _sleeve(easel, cut, pose, -1)
    if cut.kind == "dress":
        right = np.vstack(
            [
                [[neck_width, 0.12]],
                _curve((0.42, 0.14), (0.4, 0.42), (0.46, 0.62), (0.38, 1.0), (0.5, 1.4), (0.78, 2.2)),
                _curve((0.78, 2.2), (0.4, 2.26), (0.0, 2.28)),
            ]
        )
    else:
        shoulder = 0.585 if cut.sleeve != "none" else 0.46
        right = np.vstack(
            [
                [[neck_width, 0.1]],
                _curve((shoulder, 0.19), (0.55, 0.5), (0.53, 0.8), (0.52, 1.3), (0.56, 1.82)),
                _curve((0.56, 1.82), (0.3, 1.86), (0.0, 1.87)),
            ]
        )
    easel.part(_both_sides(right.astype(np.float32)), cut.cloth)
    _neckline(easel, cut, pose, neck_width)
    if cut.rib:
        hem = np.array([[-0.55, 1.7], [0.55, 1.7], [0.55, 1.87], [-0.55, 1.87]], np.float32)
        easel.part(hem, replace(cut.cloth, weave="ribbed"), shadow=False)
    if cut.kind == "dress":
        easel.line(_curve((-0.38, 1.0), (0, 1.03), (0.38, 1.0)), cut.trim, 0.03)
    if not pose.back:
        _closure(easel, cut)
        _pockets(easel, cut)


def _neckline(easel: _Easel, cut: Cut, pose: Pose, width: float) -> None:
    depth = {"crew": 0.26, "v": 0.5, "strap": 0.42, "collar": 0.3, "hood": 0.42}[cut.neck]
    depth = 0.15 if pose.back else depth
    lining = _darker(cut.cloth, 0.5)
    opening = _both_sides(_curve((width, 0.08), (width * 0.86, depth * 0.72), (0.0, depth)))
    if cut.neck == "hood" and pose.back:
        hood = _both_sides(_curve((0.0, 0.0), (0.3, 0.06), (0.36, 0.3), (0.2, 0.6), (0.0, 0.66)))
        easel.part(hood, cut.cloth)
        return
    easel.part(opening, lining, shadow=False)
    if cut.neck in {"crew", "v", "strap"}:
        easel.line(
            _curve(
                (-width, 0.1),
                (-width * 0.86, depth * 0.72),
                (0, depth),
                (width * 0.86, depth * 0.72),
                (width, 0.1),
            ),
            _shade(cut.cloth.main, 0.8),
            0.05,
        )
    if cut.neck == "collar":
        flap = np.vstack([_curve((0.03, depth + 0.02), (0.2, 0.1), (0.3, 0.06)), [[0.4, 0.24], [0.22, 0.44]]])
        for half in (flap.astype(np.float32), _mirror(flap.astype(np.float32))):
            easel.part(half, _darker(cut.cloth, 0.9) if cut.cloth.weave != "checked" else cut.cloth)
    if cut.neck == "hood":
        for hand in (1, -1):
            easel.line(
                _curve((0.14 * hand, depth - 0.04), (0.16 * hand, 0.62), (0.13 * hand, 0.8)),
                (235, 233, 228),
                0.02,
            )


def _closure(easel: _Easel, cut: Cut) -> None:
    top = 0.32
    if cut.closure == "zip":
        easel.line(np.array([[0.0, top], [0.0, 1.86]], np.float32), _shade(cut.cloth.main, 0.55), 0.05)
        teeth = np.stack([np.zeros(120), np.linspace(top, 1.86, 120)], 1).astype(np.float32)
        easel.line(teeth, (200, 200, 205), 0.016, dashed=True)
        easel.disc((0.0, top + 0.04), 0.025, (215, 215, 220))
    if cut.closure == "buttons":
        last = 0.62 if cut.kind == "polo" else 1.8
        easel.line(np.array([[0.05, top], [0.05, last]], np.float32), _shade(cut.cloth.main, 0.62), 0.012)
        for y in np.arange(top + 0.06, last, 0.12 if cut.kind == "polo" else 0.22):
            easel.disc((0.0, float(y)), 0.024, cut.trim)


def _pockets(easel: _Easel, cut: Cut) -> None:
    if cut.pockets == "kangaroo":
        outline = np.array([[-0.3, 1.22], [0.3, 1.22], [0.42, 1.62], [-0.42, 1.62]], np.float32)
        easel.part(outline, cut.cloth)
    if cut.pockets in {"patch", "chest"}:
        sides = (1, -1) if cut.pockets == "patch" else (1,)
        for side in sides:
            x, y = 0.28 * side, 0.66
            outline = np.array(
                [[x - 0.13, y], [x + 0.13, y], [x + 0.13, y + 0.24], [x, y + 0.3], [x - 0.13, y + 0.24]],
                np.float32,
            )
            easel.part(outline, cut.cloth)
            if cut.pockets == "patch":
                easel.disc((x, y + 0.06), 0.022, cut.trim)
    if cut.pockets == "slant":
        for side in (1, -1):
            easel.line(
                np.array([[0.3 * side, 1.2], [0.44 * side, 1.52]], np.float32),
                _shade(cut.cloth.main, 0.5),
                0.03,
            )


def _trousers(easel: _Easel, cut: Cut, pose: Pose) -> None:
    length = 2.25 if cut.kind == "trousers" else 1.15
    ankle = 0.2 if cut.rib else 0.24
    hem = ankle if cut.kind == "trousers" else 0.36
    for side in (-1, 1):
        inner = 0.5 * (0.62 - hem) if cut.kind == "trousers" else 0.06
        leg = np.vstack(
            [
                _curve((0.0, 0.12), (0.42, 0.12), (0.5, 0.5), (0.5, 0.9), (inner + hem + 0.12, length)),
                _curve((inner, length + 0.02), (0.08, 1.0), (0.0, 0.8)),
            ]
        ).astype(np.float32)
        easel.part(leg if side > 0 else _mirror(leg), cut.cloth, shadow=side > 0)
        if cut.rib:
            x = inner - 0.01
            cuff = np.array(
                [
                    [x, length - 0.14],
                    [x + hem + 0.14, length - 0.14],
                    [x + hem + 0.12, length],
                    [x, length + 0.02],
                ],
                np.float32,
            )
            easel.part(cuff if side > 0 else _mirror(cuff), replace(cut.cloth, weave="ribbed"), shadow=False)
    band = np.array([[-0.43, 0.06], [0.43, 0.06], [0.45, 0.22], [-0.45, 0.22]], np.float32)
    easel.part(
        band, replace(cut.cloth, weave="ribbed") if cut.rib else _darker(cut.cloth, 0.88), shadow=False
    )
    seam: Rgb = (208, 150, 70) if cut.cloth.weave == "twill" else _shade(cut.cloth.main, 0.6)
    if not pose.back:
        easel.line(_curve((0.02, 0.22), (0.03, 0.55), (0.0, 0.74)), seam, 0.014)
        for side in (1, -1):
            easel.line(_curve((0.2 * side, 0.24), (0.28 * side, 0.4), (0.47 * side, 0.46)), seam, 0.018)
        easel.disc((0.0, 0.14), 0.03, cut.trim)
    else:
        for side in (1, -1):
            outline = np.array(
                [[0.12, 0.4], [0.36, 0.4], [0.36, 0.66], [0.24, 0.72], [0.12, 0.66]], np.float32
            )
            easel.part(outline if side > 0 else _mirror(outline), cut.cloth)
    if cut.rib and not pose.back:
        for side in (1, -1):
            easel.line(
                _curve((0.05 * side, 0.16), (0.08 * side, 0.36), (0.06 * side, 0.5)), (235, 233, 228), 0.02
            )


def _skirt(easel: _Easel, cut: Cut) -> None:
    right = np.vstack(
        [_curve((0.34, 0.3), (0.46, 0.8), (0.82, 1.85)), _curve((0.82, 1.85), (0.4, 1.93), (0.0, 1.95))]
    ).astype(np.float32)
    easel.part(_both_sides(right), cut.cloth)
    band = np.array([[-0.35, 0.22], [0.35, 0.22], [0.36, 0.36], [-0.36, 0.36]], np.float32)
    easel.part(band, _darker(cut.cloth, 0.8), shadow=False)
