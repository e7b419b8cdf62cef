"""The real eyes behind the offline model: colour-only vision on drawn garments, no weights needed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import cv2
import pytest

from edge_agent.agent.models.offline.garment_sight import GarmentSight
from edge_agent.agent.models.offline.model import OfflineModel
from edge_agent.agent.models.offline.sight import Candidate
from edge_agent.engine.ports import GenerateRequest, HostImage
from edge_agent.home import ASSETS
from edge_agent.styleeyes.photo_list import CatalogPhoto
from edge_agent.styleeyes.vision.garment import GarmentVision
from tests.agent.fakes import FakeClock, demo_frame
from tests.agent.test_offline import SCHEMA

PHOTOS = ASSETS / "demo" / "data" / "photos"


@pytest.fixture(scope="module")
def sight() -> GarmentSight:
    return GarmentSight(GarmentVision.load(None))


def test_a_frame_is_described_with_colours_and_without_a_made_up_kind(sight: GarmentSight) -> None:
    seen = sight.describe(demo_frame().data, "What am I looking at?")
    assert seen.found
    assert seen.colors
    assert seen.kind is None
    assert seen.problem is None


def test_a_dark_picture_is_a_problem_not_an_answer(sight: GarmentSight) -> None:
    pixels = cv2.imread(str(sorted(PHOTOS.glob("*.jpg"))[0]))
    assert pixels is not None
    dark = cv2.imencode(".jpg", pixels // 12)[1].tobytes()
    assert sight.describe(dark, "What is this?").problem == "the picture is too dark"
    assert sight.compare(dark, [Candidate("jacket", [dark])]).problem == "the picture is too dark"


async def test_the_photo_of_the_garment_itself_beats_one_of_another_colour_and_basic_vision_asks_for_the_tag(
    sight: GarmentSight,
) -> None:
    model = OfflineModel(lambda: sight, FakeClock())
    green, black = (PHOTOS / f"fj-201-{color}_front.jpg" for color in ("green", "black"))
    images = [_image(path) for path in (green, black, green)]
    prompt = (
        "Image 1: camera frame\nImage 2: candidate B (Jacket, black)\nImage 3: candidate A (Jacket, green)"
    )
    request = GenerateRequest(prompt=prompt, images=images, schema=SCHEMA)
    reply = await model.generate(request, on_wait=lambda seconds, why: None)
    verdict = reply.json
    assert isinstance(verdict, dict)
    rated = {row["styleId"]: row for row in verdict["candidates"]}
    assert rated["A"]["agrees"]
    assert verdict["best"] in ("A", None)
    assert verdict["askToSeeTag"] is True


def _image(path: Path) -> HostImage:
    return HostImage(path.read_bytes(), "image/jpeg", 480, 640, path.name)


def test_styles_are_ordered_by_photos_once_most_are_looked_at_and_not_before() -> None:
    sight = GarmentSight(GarmentVision.load(None))
    files = {"A": "black_front", "B": "green_front", "C": "black_back"}
    listed = [
        CatalogPhoto(style, "Jacket", file.split("_")[0], path, _sha256(path))
        for style, file in files.items()
        for path in [PHOTOS / f"fj-201-{file}.jpg"]
    ]
    frame = listed[1].path.read_bytes()
    for known, photo in enumerate(listed):
        best = sight.most_alike(frame, "What is this jacket?", listed)
        assert len(best) == (known if known >= 2 else 0)
        sight.look_ahead(photo.path.read_bytes())
    best = sight.most_alike(frame, "What is this jacket?", listed)
    assert len(best) == 3
    assert (best[0].style_id, best[0].color) == ("B", "green")


def test_a_style_counts_in_its_own_part_of_the_outfit_alone() -> None:
    sight = GarmentSight(GarmentVision.load(None))
    path = PHOTOS / "fj-201-green_front.jpg"
    sight.look_ahead(path.read_bytes())
    listed = [
        CatalogPhoto(style, words, "green", path, _sha256(path))
        for style, words in (("A", "Jacket"), ("B", "Ankle boots"))
    ]
    best = sight.most_alike(path.read_bytes(), "What is this jacket?", listed)
    assert [alike.style_id for alike in best] == ["A"]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
