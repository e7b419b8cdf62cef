"""What the capture thread drives: one producer an open source, touched by that thread alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from device.quality import Pixels


class Grab(Enum):
    """What a step of a source gave."""

    PICTURE = auto()
    NOTHING = auto()
    """The source gave none this time; it may the next."""
    END = auto()


@dataclass(frozen=True, slots=True)
class Mode:
    """What a source was asked for and what it gave, for people and the health report."""

    width: int
    height: int
    fps: float | None
    fourcc: str = ""
    asked: str = ""

    def __str__(self) -> str:
        rate = "" if self.fps is None else f"@{self.fps:g}"
        return f"{self.width}x{self.height}{rate}" + (f" {self.fourcc}" if self.fourcc else "")


class Producer(Protocol):
    """An open source. All methods are called on one thread; `close` comes last and may be repeated."""

    @property
    def mode(self) -> Mode: ...

    @property
    def position_s(self) -> float | None:
        """Where the picture grabbed last stands in the recording; None for what is live."""
        ...

    @property
    def end_words(self) -> str:
        """What a person is told at the end, such as `the video is over`."""
        ...

    def grab(self) -> Grab:
        """Goes on to the next picture, waiting for it where the source is live."""
        ...

    def retrieve(self) -> Pixels | None:
        """The picture grabbed last, None where it turns out to be unusable."""
        ...

    def close(self) -> None: ...


StopAsked = Callable[[], bool]
"""Whether the capture thread is to stop; long work while opening asks it now and then."""
