from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.pacing import Pacer


def test_pictures_are_due_at_their_own_times_however_uneven() -> None:
    pacer = Pacer(30.0)
    positions = [15.0, 15.04, 15.5, 15.51, 17.0]
    assert [pacer.due(position, 100.0) - 100.0 for position in positions] == pytest.approx(
        [0.0, 0.04, 0.5, 0.51, 2.0]
    )


@pytest.mark.parametrize("broken", [14.0, 15.04, float("nan"), float("-inf"), 9e9])
def test_a_broken_timestamp_counts_as_one_picture_on(broken: float) -> None:
    pacer = Pacer(25.0)
    pacer.due(15.0, 100.0)
    assert pacer.due(15.04, 100.0) == pytest.approx(100.04)
    assert pacer.due(broken, 100.0) == pytest.approx(100.08)


def test_a_repetition_goes_on_one_picture_after_the_end() -> None:
    pacer = Pacer(25.0)
    pacer.due(0.0, 100.0)
    pacer.due(0.04, 100.0)
    pacer.restart()
    assert pacer.due(0.0, 100.1) == pytest.approx(100.08)
    assert pacer.due(0.04, 100.1) == pytest.approx(100.12)


def test_after_the_machine_slept_it_goes_on_from_there() -> None:
    pacer = Pacer(25.0)
    pacer.due(0.0, 100.0)
    assert pacer.due(0.04, 160.0) == 160.0
    assert not pacer.skips(160.0)


def test_a_slow_machine_skips_pictures_but_still_shows_some() -> None:
    pacer = Pacer(25.0)
    pacer.due(0.0, 100.0)
    skipped = []
    for n in range(1, 13):
        pacer.due(0.04 * n, 101.0)
        skipped.append(pacer.skips(101.0))
    assert skipped == ([True] * 5 + [False]) * 2


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60))
def test_due_times_never_go_back(positions: list[float]) -> None:
    pacer = Pacer(30.0)
    due = [pacer.due(position, 50.0) for position in positions]
    assert due == sorted(due)
    assert not due or due[-1] <= 50.0 + 5.0 * len(due)
