"""What the offline model asks of its eyes, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """The garment in one frame, in the catalog's vocabulary.

    `problem` says in words why the frame cannot be judged (too dark, strong colour cast); then the
    rest means nothing. `kind` None: no garment found, or not sure which.
    """

    kind: str | None
    colors: tuple[str, ...] = ()
    pattern: str | None = None
    problem: str | None = None

    def words(self) -> str:
        """`black and grey striped jacket`; `garment` where the kind is not known."""
        shown = [" and ".join(self.colors), self.pattern or "", self.kind or "garment"]
        return " ".join(word for word in shown if word)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a candidate's photos compare with the frame. `probability` that it is the same garment."""

    probability: float
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One `Likeness` a candidate, in order, and the probability that it is none of them.

    `exact` is set when the first is above the calibrated threshold and clear of the runner-up.
    """

    candidates: tuple[Likeness, ...]
    none: float
    exact: bool
    reason: str
    problem: str | None = None


class Sight(Protocol):
    """Local vision. CPU-bound and blocking: call it in a thread, one call at a time."""

    def describe(self, frame: bytes) -> Seen:
        """The garment in an encoded frame. Raises StyleEyesError where it does not decode."""
        ...

    def compare(self, frame: bytes, candidates: Sequence[Sequence[bytes]]) -> Comparison:
        """`frame` against each candidate's encoded photos."""
        ...
