from __future__ import annotations

from dataclasses import replace

import pytest

from device.capture import Heartbeat, Phase
from device.watchdog import TICK_S, Signs, Verdict, judge, retry_delay

GOOD = Signs(
    now=100.0,
    heartbeat=Heartbeat(Phase.READING, 99.99),
    arrived=99.99,
    same_since=99.99,
    interval=1 / 30,
    live=True,
    black=False,
)


def test_all_is_well() -> None:
    assert judge(GOOD) is Verdict.FINE


def _noticed_after(changed: Signs, verdict: Verdict) -> float:
    """The seconds of trouble after which a watchdog that looks every tick says so, at worst."""
    for tick in range(200):
        passed = tick * TICK_S
        signs = replace(changed, now=changed.now + passed)
        if signs.same_since is not None and changed.arrived == changed.now:
            signs = replace(signs, arrived=signs.now)
        if judge(signs) is verdict:
            return passed + TICK_S
    raise AssertionError("never noticed")


def test_a_stall_and_a_blocked_read_are_noticed_within_two_seconds() -> None:
    assert _noticed_after(replace(GOOD, arrived=99.999), Verdict.STALLED) <= 2.0


def test_a_frozen_picture_is_noticed_within_two_seconds() -> None:
    assert _noticed_after(replace(GOOD, arrived=100.0, same_since=100.0), Verdict.FROZEN) <= 2.0


def test_a_live_source_is_given_up_in_time_but_a_recording_never() -> None:
    quiet = replace(GOOD, now=106.0)
    assert judge(quiet) is Verdict.GIVE_UP
    assert judge(replace(quiet, live=False)) is Verdict.STALLED
    assert judge(replace(quiet, now=1000.0, live=False)) is Verdict.STALLED


def test_a_recorded_picture_that_waits_for_its_time_is_no_stall() -> None:
    held = replace(GOOD, now=104.0, live=False, heartbeat=Heartbeat(Phase.HOLDING, 99.99))
    assert judge(held) is Verdict.FINE


def test_a_repeated_picture_of_a_recording_is_not_frozen() -> None:
    still = replace(GOOD, arrived=100.0, same_since=60.0)
    assert judge(replace(still, live=False)) is Verdict.FINE
    assert judge(still) is Verdict.GIVE_UP


def test_a_black_picture_without_noise_is_frozen_but_not_given_up() -> None:
    assert judge(replace(GOOD, arrived=100.0, same_since=20.0, black=True)) is Verdict.FROZEN


def test_a_camera_with_one_picture_in_two_seconds_is_not_stalled_between_them() -> None:
    slow = replace(GOOD, interval=2.0, arrived=98.0)
    assert judge(slow) is Verdict.FINE
    assert judge(replace(slow, now=105.0)) is Verdict.STALLED


def test_a_driver_that_hangs_while_opening_is_given_up() -> None:
    opening = replace(GOOD, heartbeat=Heartbeat(Phase.OPENING, 95.0), arrived=95.0)
    assert judge(opening) is Verdict.FINE
    assert judge(replace(opening, now=103.5)) is Verdict.GIVE_UP


@pytest.mark.parametrize("jitter", [0.8, 1.0, 1.2])
def test_back_off_doubles_from_half_a_second_to_eight(jitter: float) -> None:
    delays = [retry_delay(attempt, lambda low, high: jitter) for attempt in range(1, 8)]
    assert delays == pytest.approx([jitter * base for base in (0.5, 1, 2, 4, 8, 8, 8)])
    assert retry_delay(5000, lambda low, high: jitter) == pytest.approx(8 * jitter)


def test_jitter_is_a_fifth() -> None:
    assert retry_delay(1, lambda low, high: low) == pytest.approx(0.4)
    assert retry_delay(1, lambda low, high: high) == pytest.approx(0.6)
