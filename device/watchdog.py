"""What the watchdog decides, from times alone: stalled, frozen, to be given up; and when to try again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from device.capture import Heartbeat, Phase

TICK_S = 0.25
_NOTICE_S = 1.5
"""With a tick every quarter second, trouble is noticed within 1.75 s."""

GIVE_UP_S = 5.0
"""A live source that has been quiet or frozen for so long is opened anew."""

OPEN_DEADLINE_S = 8.0
"""Longer than a stream's own time limit for opening, so that this is for drivers that hang."""

_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.5, 8.0


class Verdict(Enum):
    FINE = auto()
    STALLED = auto()
    FROZEN = auto()
    GIVE_UP = auto()


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a running source; times in monotonic seconds.

    `arrived` is when the last picture came (opened, where none has), `same_since` when the picture
    that came last was first seen, `interval` the source's own usual time between pictures.
    """

    now: float
    heartbeat: Heartbeat
    arrived: float
    same_since: float | None
    interval: float
    live: bool
    black: bool


def judge(signs: Signs) -> Verdict:
    """The watchdog's view. A recording may repeat pictures and is never given up: a slow disk comes back."""
    if signs.heartbeat.phase is Phase.HOLDING:
        return Verdict.FINE
    in_phase = signs.now - signs.heartbeat.since
    if signs.heartbeat.phase is Phase.OPENING:
        return Verdict.GIVE_UP if signs.live and in_phase > OPEN_DEADLINE_S else Verdict.FINE
    # A camera that gives one picture in two seconds by nature is not stalled between them.
    quiet_limit = _NOTICE_S if signs.interval <= 0.5 else 3.0 * min(signs.interval, 3.0)
    quiet = signs.now - signs.arrived
    if quiet > quiet_limit:
        return Verdict.GIVE_UP if signs.live and quiet > max(GIVE_UP_S, 2 * quiet_limit) else Verdict.STALLED
    if signs.live and signs.same_since is not None:
        same_for = signs.arrived - signs.same_since
        # A covered lens is black and may well be without noise; opening it anew would not uncover it.
        if same_for > GIVE_UP_S and not signs.black:
            return Verdict.GIVE_UP
        if same_for > _NOTICE_S:
            return Verdict.FROZEN
    return Verdict.FINE


def retry_delay(attempt: int, jitter: Callable[[float, float], float]) -> float:
    """Seconds before the `attempt`-th try (from 1): 0.5, 1, 2, 4, 8, 8 … each varied by up to a fifth,
    so that several cameras on one hub do not all come back in the same moment."""
    base = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2.0 ** min(attempt - 1, 10))
    return float(base * jitter(0.8, 1.2))
