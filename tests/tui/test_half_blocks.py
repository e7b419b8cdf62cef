"""Pictures as half-block cells."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.tui.half_blocks import fit, strips


@pytest.mark.parametrize(
    ("picture", "cells", "fitted"),
    [
        ((1280, 720), (60, 20), (60, 17)),
        ((1280, 720), (28, 40), (28, 8)),
        ((720, 1280), (60, 20), (22, 20)),
        ((100, 100), (40, 10), (20, 10)),
        ((1280, 720), (0, 5), (0, 0)),
        ((5000, 1), (10, 10), (10, 1)),
    ],
)
def test_fit_keeps_the_aspect(
    picture: tuple[int, int], cells: tuple[int, int], fitted: tuple[int, int]
) -> None:
    assert fit(*picture, *cells) == fitted


def test_upper_and_lower_pixel_of_a_cell_are_its_two_colours() -> None:
    bgr = np.zeros((4, 6, 3), np.uint8)
    bgr[0::2] = (0, 0, 255)
    bgr[1::2] = (255, 0, 0)
    lines = strips(bgr, 6, 2)
    assert [line.text for line in lines] == ["▀" * 6] * 2
    (segment,) = list(lines[0])
    assert segment.style is not None and segment.style.color is not None and segment.style.bgcolor is not None
    assert segment.style.color.triplet == (255, 0, 0)
    assert segment.style.bgcolor.triplet == (0, 0, 255)


def test_black_and_white_stay_pure_and_greys_stay_grey() -> None:
    for level in (0, 37, 128, 200, 255):
        (line,) = strips(np.full((2, 3, 3), level, np.uint8), 3, 1)
        (segment,) = list(line)
        assert segment.style is not None and segment.style.color is not None
        triplet = segment.style.color.triplet
        assert triplet is not None and len(set(triplet)) == 1
        assert abs(triplet[0] - level) <= 3
    assert triplet == (255, 255, 255)


def test_every_line_is_as_wide_as_asked() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (90, 160, 3), np.uint8)
    assert [line.cell_length for line in strips(noise, 33, 9)] == [33] * 9
