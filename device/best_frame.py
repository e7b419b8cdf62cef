"""Which of the last moments' frames a snapshot takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from device.glance import Glance
from device.quality import Exposure

MOMENTS_S = 1.0
"""How far back from the newest frame a snapshot looks. A wearer asks about what is in view now: a
second back is still the same look, and a hand's blur or a step lasts less."""

_SHARPNESS_AGE_PRICE = 0.25
"""A frame older by a second must be this much sharper to win. Subpixel motion alone changes the
score by some 20 % (measured on handheld clips), motion blur by 45 % and more."""

_CLIPPED_MARGIN = 0.15
"""How much more of a frame may be clipped than of the best exposed one. Relative, because a garment
before a white wall is well exposed with half of its picture at white."""


class Candidate(Protocol):
    """What is known of a frame when choosing."""

    @property
    def received(self) -> float: ...
    @property
    def sharpness(self) -> float: ...
    @property
    def exposure(self) -> Exposure: ...
    @property
    def glance(self) -> Glance: ...


_Frame = TypeVar("_Frame", bound=Candidate)


def best_frame(frames: Sequence[_Frame]) -> _Frame | None:
    """The sharpest well-exposed frame of the last moments before the newest of `frames`.

    Only frames of the view that the newest one shows count: whoever turned to another garment asks about
    that one, however blurred it still is. A much sharper frame wins over a newer one, a slightly sharper
    one does not; of equals the newest wins. None for no frames.
    """
    if not frames:
        return None
    newest = max(frames, key=lambda frame: frame.received)
    now = newest.received
    recent = [
        frame
        for frame in frames
        if now - frame.received <= MOMENTS_S and frame.glance.same_view(newest.glance)
    ]
    clipped_at_most = min(frame.exposure.clipped_share for frame in recent) + _CLIPPED_MARGIN
    well_exposed = [frame for frame in recent if frame.exposure.clipped_share <= clipped_at_most]
    return max(
        well_exposed,
        key=lambda f: (f.sharpness / (1.0 + _SHARPNESS_AGE_PRICE * (now - f.received)), f.received),
    )
