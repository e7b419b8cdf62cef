from __future__ import annotations

import numpy as np
import pytest

from device.opencv import cv2
from device.quality import Pixels, measure
from tests.device.fakes import flat, noise


def cloth(width: int = 640, height: int = 480) -> Pixels:
    """Checks and a print: edges in all directions, mid tones."""
    y, x = np.mgrid[0:height, 0:width]
    grey = (90 + 60 * ((x // 24 + y // 24) % 2)).astype(np.uint8)
    picture = np.dstack([grey] * 3)
    cv2.putText(
        picture,
        "STYLE 42",
        (width // 8, height // 2),
        cv2.FONT_HERSHEY_SIMPLEX,
        height / 240,
        (30, 40, 200),
        4,
    )
    return picture


def blurred(picture: Pixels, length: int) -> Pixels:
    kernel = np.zeros((length, length), np.float32)
    kernel[length // 2, :] = 1 / length
    return np.asarray(cv2.filter2D(picture, -1, kernel), dtype=np.uint8)


@pytest.mark.parametrize(("width", "height"), [(640, 480), (1280, 720), (1920, 1080)])
def test_sharpness_falls_with_motion_blur(width: int, height: int) -> None:
    picture = cloth(width, height)
    scores = [measure(blurred(picture, length * width // 640 | 1)).sharpness for length in (1, 5, 11, 21)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 1.3 * scores[2]


@pytest.mark.parametrize("gain", [0.5, 0.7, 1.3])
def test_a_change_of_light_is_no_change_of_focus(gain: float) -> None:
    sharp = cloth()
    lit = (sharp * gain).clip(0, 255).astype(np.uint8)
    assert measure(lit).sharpness == pytest.approx(measure(sharp).sharpness, rel=0.15)


def test_noise_does_not_make_a_blurred_picture_look_sharp() -> None:
    grain = np.random.default_rng(2).normal(0, 4, (480, 640, 3))
    noisy = (blurred(cloth(), 21) + grain).clip(0, 255).astype(np.uint8)
    assert measure(noisy).sharpness < measure(cloth()).sharpness


@pytest.mark.parametrize(("value", "word"), [(0, "black"), (10, "black"), (120, "good"), (255, "bright")])
def test_exposure_in_a_word(value: int, word: str) -> None:
    exposure = measure(flat(value)).exposure
    assert exposure.word == word and exposure.brightness == value


def test_mostly_clipped_to_dark_is_dark() -> None:
    picture = flat(5)
    picture[:12] = 130
    assert measure(picture).exposure.word == "dark"


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 3), (641, 479), (17, 1080), (4000, 3000)])
def test_any_size_can_be_measured(width: int, height: int) -> None:
    quality = measure(flat(100, width=width, height=height))
    assert quality.sharpness == 0.0 and quality.exposure.brightness == 100


def test_a_repeat_is_told_from_a_still_scene_with_sensor_noise() -> None:
    assert measure(noise(1)).same_picture(measure(noise(1)))
    assert not measure(noise(1)).same_picture(measure(noise(2)))
    assert not measure(noise(1)).same_picture(measure(noise(1, width=32)))
