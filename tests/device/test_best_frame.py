from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from device.best_frame import best_frame
from device.glance import Glance, glance_at
from device.quality import Exposure
from tests.device.fakes import striped

COAT, TROUSERS = glance_at(striped(8)), glance_at(striped(30))


@dataclass(frozen=True)
class Shot:
    received: float
    sharpness: float
    exposure: Exposure = Exposure(120.0, 0.0, 0.0)  # noqa: RUF009 - frozen
    glance: Glance = COAT


def test_no_frames_no_choice() -> None:
    assert best_frame(()) is None


def test_a_much_sharper_older_frame_wins() -> None:
    blurred_by_a_step = Shot(10.0, 4.3)
    assert best_frame((Shot(9.2, 6.5), blurred_by_a_step)) == Shot(9.2, 6.5)


def test_a_slightly_sharper_older_frame_does_not() -> None:
    assert best_frame((Shot(9.2, 6.5), Shot(10.0, 5.8))) == Shot(10.0, 5.8)


def test_of_equals_the_newest_wins() -> None:
    assert best_frame((Shot(9.9, 6.0), Shot(10.0, 6.0), Shot(9.95, 6.0))) == Shot(10.0, 6.0)


def test_what_is_older_than_the_last_moments_does_not_count() -> None:
    assert best_frame((Shot(8.9, 60.0), Shot(10.0, 4.0))) == Shot(10.0, 4.0)


def test_a_sharp_but_badly_exposed_frame_loses() -> None:
    flash = Exposure(230.0, 0.0, 0.6)
    assert best_frame((Shot(9.9, 20.0, flash), Shot(10.0, 5.0))) == Shot(10.0, 5.0)


def test_before_a_white_wall_all_frames_are_well_exposed() -> None:
    wall = Exposure(200.0, 0.0, 0.55)
    assert best_frame((Shot(9.9, 9.0, wall), Shot(10.0, 5.0, wall))) == Shot(9.9, 9.0, wall)


def test_where_every_frame_is_black_one_is_still_chosen() -> None:
    black = Exposure(2.0, 1.0, 0.0)
    assert best_frame((Shot(9.9, 0.1, black), Shot(10.0, 0.1, black))) == Shot(10.0, 0.1, black)


def test_a_sharp_frame_of_what_was_looked_at_before_is_not_taken() -> None:
    before, after = Shot(9.6, 20.0, glance=COAT), Shot(10.0, 4.0, glance=TROUSERS)
    assert best_frame((before, Shot(9.9, 3.0, glance=TROUSERS), after)) == after


def test_light_and_a_little_motion_are_no_other_view() -> None:
    coat = striped(8)
    assert glance_at(coat // 2).same_view(COAT)
    assert glance_at(np.roll(coat, 2, axis=1)).same_view(COAT)
    assert not TROUSERS.same_view(COAT)
