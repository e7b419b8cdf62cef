"""The camera's named states and the transitions between them that are allowed."""

from __future__ import annotations

from enum import StrEnum


class CameraState(StrEnum):
    """What the camera is doing. Frames of at most 15.0 s can be had in any state but the last two."""

    OPENING = "opening"
    WARMING = "warming"
    """Open, but its first pictures are dark or stale; they are not offered."""
    LIVE = "live"
    STALLED = "stalled"
    """No picture came for a while, or the driver does not return from a read."""
    FROZEN = "frozen"
    """Pictures come, but it is the same one again and again."""
    LOST = "lost"
    RECONNECTING = "reconnecting"
    BUSY = "busy"
    """Another program holds the camera; tried again by itself."""
    ENDED = "ended"
    """A recording is over."""
    DENIED = "denied"
    PAUSED = "paused"
    CLOSED = "closed"


_S = CameraState
_ALWAYS = frozenset({_S.OPENING, _S.PAUSED, _S.CLOSED})
"""What a person may ask for at any time: another source, a pause, an end."""

_BY_ITSELF: dict[CameraState, frozenset[CameraState]] = {
    _S.OPENING: frozenset({_S.WARMING, _S.LIVE, _S.STALLED, _S.LOST, _S.BUSY, _S.DENIED, _S.ENDED}),
    _S.WARMING: frozenset({_S.LIVE, _S.STALLED, _S.FROZEN, _S.LOST, _S.ENDED}),
    _S.LIVE: frozenset({_S.STALLED, _S.FROZEN, _S.LOST, _S.ENDED}),
    _S.STALLED: frozenset({_S.LIVE, _S.FROZEN, _S.LOST, _S.ENDED}),
    _S.FROZEN: frozenset({_S.LIVE, _S.STALLED, _S.LOST}),
    _S.LOST: frozenset({_S.RECONNECTING}),
    _S.BUSY: frozenset({_S.RECONNECTING}),
    _S.RECONNECTING: frozenset({_S.WARMING, _S.LIVE, _S.LOST, _S.BUSY, _S.DENIED}),
    _S.ENDED: frozenset(),
    _S.DENIED: frozenset(),
    _S.PAUSED: frozenset(),
    _S.CLOSED: frozenset(),
}


def may_follow(before: CameraState, after: CameraState) -> bool:
    """Whether `after` may come next; a state may always follow itself (other words, same state)."""
    if before is after:
        return True
    if before is _S.CLOSED:
        return after is _S.OPENING
    return after in _ALWAYS or after in _BY_ITSELF[before]
