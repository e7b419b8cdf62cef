"""Where the demo garments are seen: a studio ground for catalog photos, a shop rail for the clip."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from scripts.demo_art.fabric import Picture, smooth_noise
from scripts.demo_art.garment import Cut, Pose, draw_garment

Frame = NDArray[np.uint8]

FPS = 15
FRAME_WIDTH, FRAME_HEIGHT = 640, 480
DWELL_S = 3.4
PAN_S = 0.6

_BAY = 760
"""Width of rail that one garment takes, in pixels of the shop picture."""
_SHOP_HEIGHT = 620


def to_bytes(picture: Picture) -> Frame:
    """0…1 floats as an 8-bit picture."""
    return np.asarray((np.clip(picture, 0, 1) * 255).round(), np.uint8)


def catalog_photo(cut: Cut, pose: Pose, width: int, height: int) -> Frame:
    """A studio photo: the garment on a near-white ground with a soft shadow."""
    ground = np.linspace(0.965, 0.915, height, dtype=np.float32)[:, None, None]
    picture = np.broadcast_to(ground, (height, width, 3)).copy()
    side = int(width * 0.98)
    garment, cover = draw_garment(cut, pose, side)
    rows = np.flatnonzero(cover.max(axis=1) > 0.5)
    top = (height - (rows[-1] - rows[0])) // 2 - rows[0]
    _lay_on(picture, garment, cover, (width - side) // 2, top, shadow=0.25)
    return to_bytes(picture)


def detail_photo(cut: Cut, pose: Pose, width: int, height: int) -> Frame:
    """A close-up of the front, slightly turned."""
    garment, cover = draw_garment(cut, pose, int(width * 2.1))
    picture = garment * cover[..., None] + 0.94 * (1 - cover[..., None])
    side = picture.shape[0]
    turn = cv2.getRotationMatrix2D((side * 0.5, side * 0.36), 8, 1.0)
    turn[:, 2] += [width / 2 - side * 0.5, height / 2 - side * 0.36]
    return to_bytes(cv2.warpAffine(picture, turn, (width, height), borderValue=(0.94, 0.94, 0.94)))


def walk_along(cuts: list[tuple[Cut, Pose]], seed: int) -> Iterator[Frame]:
    """Frames of somebody who walks along a shop rail and stops before each garment.

    Handheld sway, blur while moving, slow changes of light and sensor noise; FPS a second.
    """
    rng = np.random.default_rng(seed)
    shop = _shop(cuts, rng)
    dwell, pan = round(DWELL_S * FPS), round(PAN_S * FPS)
    total = len(cuts) * (dwell + pan)
    sway = [smooth_noise(1, total, (1, total // 9), rng)[0] for _ in range(4)]
    light = smooth_noise(1, total, (1, total // 45), rng)[0]
    for index in range(total):
        bay, step = divmod(index, dwell + pan)
        moving = max(0, step - dwell) / pan
        eased = moving * moving * (3 - 2 * moving)
        speed = 6 * moving * (1 - moving) * _BAY / pan if 0 < moving < 1 else 0.0
        centre_x = (bay + 0.5 + (eased if bay + 1 < len(cuts) else 0)) * _BAY + 7 * sway[0][index]
        centre_y = _SHOP_HEIGHT * 0.53 + 5 * sway[1][index]
        zoom = 0.86 + 0.012 * sway[2][index]
        left = max(0, int(centre_x) - _BAY)
        view = cv2.getRotationMatrix2D((centre_x - left, centre_y), 0.8 * sway[3][index], zoom)
        view[:, 2] += [FRAME_WIDTH / 2 - (centre_x - left), FRAME_HEIGHT / 2 - centre_y]
        nearby = shop[:, left : left + 2 * _BAY]
        frame = cv2.warpAffine(nearby, view, (FRAME_WIDTH, FRAME_HEIGHT), borderMode=cv2.BORDER_REFLECT)
        if bay + 1 < len(cuts) and speed > 2:
            frame = cv2.blur(frame, (max(1, int(speed * zoom * 0.7)), 1))
        warm = np.array([0.985, 1.0, 1.015], np.float32) ** (1 + light[index])
        noise = 0.008 * rng.standard_normal((FRAME_HEIGHT, FRAME_WIDTH, 1)).astype(np.float32)
        yield to_bytes(frame * warm * (1 + 0.035 * light[index]) + noise)


def _shop(cuts: list[tuple[Cut, Pose]], rng: np.random.Generator) -> Picture:
    width = _BAY * len(cuts)
    wall = np.full((_SHOP_HEIGHT, width, 3), (0.72, 0.76, 0.79), np.float32)
    wall *= (1 + 0.03 * smooth_noise(_SHOP_HEIGHT, width, (3, 5 * len(cuts)), rng))[..., None]
    wall *= np.linspace(1.08, 0.86, _SHOP_HEIGHT, dtype=np.float32)[:, None, None]
    floor = int(_SHOP_HEIGHT * 0.93)
    boards = 1 + 0.05 * smooth_noise(_SHOP_HEIGHT - floor, width, (6, 9 * len(cuts)), rng)
    wall[floor:] = np.array((0.30, 0.42, 0.55), np.float32) * boards[..., None]
    rail = 52
    cv2.rectangle(wall, (0, rail - 7), (width, rail + 7), (0.22, 0.36, 0.5), -1)
    cv2.line(wall, (0, rail - 3), (width, rail - 3), (0.36, 0.52, 0.68), 3)
    side = 500
    for bay, (cut, pose) in enumerate(cuts):
        left = bay * _BAY + (_BAY - side) // 2
        garment, cover = draw_garment(cut, pose, side)
        rows = np.flatnonzero(cover.max(axis=1) > 0.5)
        top = rail + 44 - rows[0]
        _hanger(wall, left + side // 2, rail, rail + 58)
        _lay_on(wall, garment, cover, left, top, shadow=0.45)
    return wall


def _hanger(picture: Picture, x: int, rail: int, shoulder: int) -> None:
    wood, metal = (0.30, 0.45, 0.62), (0.62, 0.64, 0.66)
    cv2.ellipse(picture, (x, rail - 2), (12, 14), 0, 160, 400, metal, 4, cv2.LINE_AA)
    cv2.line(picture, (x, rail + 10), (x, shoulder - 20), metal, 4, cv2.LINE_AA)
    for side in (-1, 1):
        cv2.line(picture, (x, shoulder - 22), (x + side * 96, shoulder + 14), wood, 9, cv2.LINE_AA)


def _lay_on(picture: Picture, garment: Picture, cover: Picture, left: int, top: int, shadow: float) -> None:
    height, width = picture.shape[:2]
    side = cover.shape[0]
    place = np.array([[1, 0, left], [0, 1, top]], np.float32)
    placed = cv2.warpAffine(garment, place, (width, height))
    share = cv2.warpAffine(cover, place, (width, height))
    fall = np.array([[1, 0, left + side * 0.02], [0, 1, top + side * 0.025]], np.float32)
    dark = cv2.GaussianBlur(cv2.warpAffine(cover, fall, (width, height)), (0, 0), side / 45)
    picture *= (1 - shadow * dark * (1 - share))[..., None]
    picture *= 1 - share[..., None]
    picture += placed * share[..., None]
