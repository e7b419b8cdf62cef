"""What is wrong with a picture's light, on pictures whose light is known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.styleeyes.vision.light import light_of, noise_of
from edge_agent.styleeyes.vision.picture import Pixels, decode

from .conftest import BLUE, RED, garment_picture


def seen(color: tuple[int, int, int] = RED) -> Pixels:
    return decode(garment_picture(color, side=480))


def noisy(pixels: Pixels, share: float, deviation: float) -> Pixels:
    draw = np.random.default_rng(5)
    return np.clip(pixels * share + draw.normal(0, deviation, pixels.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("color", [RED, BLUE])
def test_fair_light_has_no_issues(color: tuple[int, int, int]) -> None:
    assert light_of(seen(color)).issues == ()


@pytest.mark.parametrize(("share", "deviation"), [(0.45, 8.0), (0.45, 0.0), (0.3, 4.0), (0.12, 0.0)])
def test_what_a_camera_sees_without_light_is_dark(share: float, deviation: float) -> None:
    assert "dark" in light_of(noisy(seen(), share, deviation)).issues


def test_dark_is_still_seen_after_hard_compression() -> None:
    coded = cv2.imencode(".jpg", noisy(seen(), 0.45, 8), [cv2.IMWRITE_JPEG_QUALITY, 70])[1]

    assert "dark" in light_of(decode(bytes(coded))).issues


def test_a_deep_colour_that_fills_a_lit_picture_is_not_dark() -> None:
    assert "dark" not in light_of(noisy(np.full((480, 640, 3), (30, 30, 150), np.uint8), 1, 1)).issues


def test_noise_alone_is_not_dark() -> None:
    assert "dark" not in light_of(noisy(seen(), 1, 8)).issues


@pytest.mark.parametrize("deviation", [2.0, 5.0, 9.0])
def test_noise_is_measured_in_grey_levels(deviation: float) -> None:
    grey = np.full((320, 480), 120, np.uint8)

    assert noise_of(noisy(grey, 1, deviation)) == pytest.approx(deviation, rel=0.15)


def test_texture_beside_smooth_cloth_is_no_noise() -> None:
    grey = np.full((480, 640), 90, np.uint8)
    grey[::2, :320:2] = 200

    assert noise_of(grey) < 0.5


def test_tiny_pictures_have_no_measurable_noise() -> None:
    assert noise_of(np.zeros((8, 8), np.uint8)) == 0.0
