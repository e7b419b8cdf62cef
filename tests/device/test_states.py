from __future__ import annotations

import pytest

from device.states import CameraState, may_follow

S = CameraState


@pytest.mark.parametrize("state", list(S))
def test_other_words_for_the_same_state_are_always_allowed(state: CameraState) -> None:
    assert may_follow(state, state)


@pytest.mark.parametrize("state", [state for state in S if state is not S.CLOSED])
def test_a_person_may_switch_pause_or_close_at_any_time(state: CameraState) -> None:
    assert all(may_follow(state, wish) for wish in (S.OPENING, S.PAUSED, S.CLOSED))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (S.CLOSED, S.LIVE),
        (S.CLOSED, S.PAUSED),
        (S.PAUSED, S.LIVE),
        (S.ENDED, S.LIVE),
        (S.DENIED, S.RECONNECTING),
        (S.LOST, S.LIVE),
        (S.LIVE, S.WARMING),
        (S.LIVE, S.RECONNECTING),
        (S.BUSY, S.LIVE),
    ],
)
def test_no_state_is_left_out_on_the_way(before: CameraState, after: CameraState) -> None:
    assert not may_follow(before, after)


def test_every_state_can_be_reached_from_closed() -> None:
    reached, new = {S.CLOSED}, {S.CLOSED}
    while new:
        new = {after for before in new for after in S if may_follow(before, after)} - reached
        reached |= new
    assert reached == set(S)
