"""What the offline model asks of its eyes, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edge_agent.styleeyes.photo_list import CatalogPhoto


@dataclass(frozen=True, slots=True)
class Seen:
    """The garment in one frame, in the catalog's vocabulary.

    `problem` says in words why the frame cannot be judged (too dark, strong colour cast); then the
    rest means nothing. `found` False: no garment in view. `kind` None: not known which.
    """

    kind: str | None
    colors: tuple[str, ...] = ()
    pattern: str | None = None
    other_kinds: tuple[str, ...] = ()
    """What else it may well be, likeliest first."""
    other_colors: tuple[str, ...] = ()
    """What else a catalog may call the main colour."""
    line: str | None = None
    """For whom it is cut, `women` or `men`, where that is fairly sure."""
    part: str | None = None
    """Which part of the outfit it is, in a word that a question may use: `top`, `trousers`."""
    also: tuple[str, ...] = ()
    """What else is in view, in the same words."""
    found: bool = True
    problem: str | None = None

    def words(self) -> str:
        """`black and grey striped jacket`; `garment` where the kind is not known."""
        shown = [" and ".join(self.colors), self.pattern or "", self.kind or "garment"]
        return " ".join(word for word in shown if word)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A style to compare with: its words in the request, and its encoded photos."""

    words: str
    photos: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a candidate's photos compare with the frame. `probability` that it is the same garment;
    `photo` is the index of the photo that agrees best."""

    probability: float
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    photo: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One `Likeness` a candidate, in order, and the probability that it is none of them.

    `exact` is set when the likeliest is above the calibrated threshold for naming an exact style.
    """

    candidates: tuple[Likeness, ...]
    none: float
    exact: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Alike:
    """How well the photos of one style agree with a frame: `score` orders the styles of one frame.

    `color` is what the catalog calls the colour of the photo that agrees best, `part` the part of the
    outfit that was compared, as in `Seen`.
    """

    style_id: str
    score: float
    color: str | None = None
    part: str | None = None


class Sight(Protocol):
    """Local vision. CPU-bound and blocking: call it in a thread, one call at a time."""

    def describe(self, frame: bytes, question: str) -> Seen:
        """The garment in an encoded frame that `question` is about. Raises StyleEyesError where the
        frame does not decode."""
        ...

    def compare(self, frame: bytes, candidates: Sequence[Candidate]) -> Comparison:
        """`frame` against each candidate's photos."""
        ...

    def most_alike(self, frame: bytes, question: str, photos: Sequence[CatalogPhoto]) -> tuple[Alike, ...]:
        """The styles of `photos` by what is known of these photos from looking ahead, best first; a
        style none of whose photos was looked at is left out, and where that is most of them there is
        nothing at all. A style counts in its own part of the outfit alone; where `question` names a
        part, only styles of that part are there."""
        ...

    def look_ahead(self, photo: bytes) -> None:
        """Looks at a catalog photo, so that comparing with it later takes no time."""
        ...

    def close(self) -> None:
        """Lets go of files and memory."""
        ...
