"""Waiting and trying again, within the caller's deadline and never silently.

A provider's own words on when to come back (`RetryInfo`, `Retry-After`) go before our back-off. A
wait that could not be over before the deadline is not begun: the failure is told at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from device.clock import Clock
from edge_agent.agent.models.protocol import WaitNotice
from edge_agent.errors import StyleEyesError

FIRST_WAIT_S = 1.0
LONGEST_OWN_WAIT_S = 16.0
LONGEST_WAIT_WITHOUT_DEADLINE_S = 60.0
TIME_TO_ANSWER_S = 1.0
"""A retry that leaves less than this before the deadline is not worth the wait."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed attempt: the error it will be if no more are made, and whether more may help.

    `tries` is how many attempts in all are worth it (1 = never again), `delay` the seconds that the
    server asked for, `why` the short reason on screen: "rate limit".
    """

    error: StyleEyesError
    tries: int = 1
    delay: float | None = None
    why: str = ""


Sleep = Callable[[float], Awaitable[None]]


class Retries:
    """The attempts of one model call. Not shared between calls."""

    def __init__(
        self,
        clock: Clock,
        deadline: float | None,
        on_wait: WaitNotice,
        *,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._deadline = (
            deadline if deadline is not None else clock.monotonic() + LONGEST_WAIT_WITHOUT_DEADLINE_S
        )
        self._on_wait = on_wait
        self._sleep = sleep
        self._jitter = jitter
        self._failed = 0

    async def again_or_raise(self, fault: Fault) -> None:
        """Waits until the next attempt is due, or raises `fault.error`."""
        self._failed += 1
        if self._failed >= fault.tries:
            raise fault.error
        delay = fault.delay if fault.delay is not None else self._back_off()
        if self._clock.monotonic() + delay + TIME_TO_ANSWER_S > self._deadline:
            raise self._too_long(fault.error, delay)
        self._on_wait(delay, fault.why)
        await self._sleep(delay)

    def _back_off(self) -> float:
        doubled: float = FIRST_WAIT_S * 2.0 ** (self._failed - 1)
        return min(doubled, LONGEST_OWN_WAIT_S) * (0.75 + 0.5 * self._jitter())

    @staticmethod
    def _too_long(error: StyleEyesError, delay: float) -> StyleEyesError:
        wait = f"It would take {max(1, round(delay))} s more before another try makes sense."
        return StyleEyesError(error.code, error.message, f"{wait} {error.hint or ''}".strip())
