"""Which region a catalog's words speak of."""

from __future__ import annotations

import pytest

from edge_agent.styleeyes.vision.vocabulary import region_of_words


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("Atomic Endurance Running Tee (V-neck)", "upper"),
        ("Chaz Kangeroo Hoodie", "upper"),
        ("Pierce Gym Short", "lower"),
        ("Short-sleeve linen shirt", "upper"),
        ("Women > Bottoms > Pants", "lower"),
        ("Slim dress shirt, white", "upper"),
        ("Wrap dress with pockets", "full"),
        ("Running shoes", "shoes"),
        ("Steel water bottle", None),
        ("", None),
    ],
)
def test_the_region_of_a_name(text: str, region: str | None) -> None:
    assert region_of_words(text) == region
