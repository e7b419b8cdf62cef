"""Describing and comparing with the real encoder, and without any."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from edge_agent.errors import StyleEyesError
from edge_agent.styleeyes.vision.garment import GarmentVision
from edge_agent.styleeyes.vision.looks import FrameLook, content_hash

from .conftest import BLACK, BLUE, GREEN, RED, garment_picture


@pytest.fixture(params=["full", "basic"])
def vision(request: pytest.FixtureRequest) -> GarmentVision:
    found: GarmentVision = request.getfixturevalue(f"{request.param}_vision")
    return found


@pytest.mark.parametrize(
    ("color", "word"), [(RED, "red"), (BLUE, "blue"), (GREEN, "green"), (BLACK, "black")]
)
def test_the_colour_is_named(vision: GarmentVision, color: tuple[int, int, int], word: str) -> None:
    seen = vision.describe(garment_picture(color))

    assert seen.colors[0][0] == word
    assert word in seen.words
    assert not seen.person


def test_shorts_are_a_lower_garment_and_a_top_an_upper_one(full_vision: GarmentVision) -> None:
    assert full_vision.describe(garment_picture(BLUE)).region == "upper"
    assert full_vision.describe(garment_picture(BLUE, shorts=True)).region == "lower"


def test_basic_vision_names_no_kind(basic_vision: GarmentVision) -> None:
    seen = basic_vision.describe(garment_picture(RED))

    assert (seen.kind, seen.kind_confidence) == (None, 0.0)
    assert "garment" in seen.words


def test_the_same_colour_is_found_among_others(vision: GarmentVision) -> None:
    candidates = [[garment_picture(color, seed=7)] for color in (GREEN, RED, BLACK)]

    found = vision.compare(garment_picture(RED, seed=3), candidates)

    assert max(range(3), key=lambda i: found.probabilities[i]) == 1
    assert sum(found.probabilities) + found.none_probability == pytest.approx(1)
    assert any("red on both" in words for words in found.candidates[1].agrees)
    assert any("colour differs" in words for words in found.candidates[0].differs)


def test_none_is_said_when_none_fits(vision: GarmentVision) -> None:
    found = vision.compare(
        garment_picture(RED), [[garment_picture(c, shorts=True)] for c in (GREEN, BLUE, BLACK)]
    )

    assert found.best is None and not found.confident
    assert found.none_probability > 0.5


def test_scores_do_not_depend_on_the_other_candidates(vision: GarmentVision) -> None:
    frame = garment_picture(RED, seed=3)
    red, green = [garment_picture(RED, seed=7)], [garment_picture(GREEN, seed=7)]

    together = vision.compare(frame, [green, red], "upper")
    alone = vision.compare(frame, [red], "upper")

    assert together.candidates[1].score == pytest.approx(alone.candidates[0].score)


def test_the_best_photo_of_a_candidate_counts(vision: GarmentVision) -> None:
    photos = [garment_picture(GREEN), b"no picture", garment_picture(RED, seed=7)]

    found = vision.compare(garment_picture(RED, seed=3), [photos, [garment_picture(BLACK)]])

    assert found.candidates[0].photo == 2


def test_candidates_without_a_readable_photo_are_none(vision: GarmentVision) -> None:
    found = vision.compare(garment_picture(RED), [[], [b"no picture"]])

    assert (found.best, found.none_probability, found.probabilities) == (None, 1.0, (0.0, 0.0))


def test_a_dark_frame_is_said_and_never_exact(vision: GarmentVision) -> None:
    pixels = cv2.imdecode(np.frombuffer(garment_picture(RED), np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    dark = bytes(cv2.imencode(".jpg", (pixels * 0.12).astype(np.uint8))[1])

    assert "dark" in vision.describe(dark).issues
    found = vision.compare(dark, [[garment_picture(RED)]])
    assert "dark" in found.issues and not found.confident


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff\xe0 broken", b"GIF89a"])
def test_what_is_no_picture_is_refused(vision: GarmentVision, data: bytes) -> None:
    with pytest.raises(StyleEyesError, match="BAD_IMAGE"):
        vision.describe(data)


def test_photos_are_ranked_by_the_same_scores(full_vision: GarmentVision) -> None:
    frame = garment_picture(RED, seed=3)
    photos = [garment_picture(color, seed=9) for color in (GREEN, RED, BLUE)]
    assert full_vision.precompute([*photos, b"no picture"]) == 3

    ranked = full_vision.rank(frame, [*map(content_hash, photos), content_hash(b"unseen")], "upper")

    assert ranked[0].photo == content_hash(photos[1])
    assert len(ranked) == 3
    compared = full_vision.compare(frame, [[photos[1]]], "upper").candidates[0].score
    assert ranked[0].score == pytest.approx(compared, abs=0.02)


def test_a_frame_that_was_described_costs_nothing_to_match(
    vision: GarmentVision, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, photo = garment_picture(RED, seed=41), garment_picture(BLUE, seed=42)
    looks = []
    view = vision._looker.view

    def watched(data: bytes, *, closer: bool) -> FrameLook:
        looks.append(data)
        return view(data, closer=closer)

    monkeypatch.setattr(vision._looker, "view", watched)
    vision.describe(frame)
    vision.compare(bytes(bytearray(frame)), [[photo]])
    vision.rank(frame, [content_hash(photo)])

    assert looks == [frame]


def test_threads_get_the_same_answers(full_vision: GarmentVision) -> None:
    frames = [garment_picture(color, seed=seed) for color in (RED, BLUE) for seed in (31, 32)]
    alone = [full_vision.describe(frame) for frame in frames]
    full_vision.forget()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(full_vision.describe, frames)) == alone
