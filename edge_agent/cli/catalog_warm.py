"""The work of `styleeyes catalog warm`: every catalog photo is looked at once, ahead of all questions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_agent.cli.progress import ProgressLine
from edge_agent.home import Home
from edge_agent.styleeyes.catalog.snapshot import Progress
from edge_agent.styleeyes.photo_list import CatalogPhoto, read_photo_list
from edge_agent.styleeyes.vision.garment import GarmentVision, Level


@dataclass(frozen=True, slots=True)
class WarmReport:
    """`looked_at` of `photos` could be read; `reason` says why the level is basic, where it is."""

    photos: int
    looked_at: int
    level: Level
    reason: str | None


def warm_catalog(home: Home, catalog: Path, photos: Path) -> WarmReport:
    """Looks at the photos, with progress on stderr. What is done is kept at once, so that an interrupted
    run goes on where it was. Raises as `read_photo_list` and `GarmentVision.load` do."""
    listed = read_photo_list(catalog, photos)
    with ProgressLine() as line:
        vision = GarmentVision.load(
            home.vision, lambda share, words: line(Progress(words, round(100 * share), 100))
        )
        try:

            def told(looked_at: int) -> None:
                line(Progress("looking at photos", looked_at, len(listed)))

            looked_at = vision.precompute(_contents(listed), told)
        finally:
            vision.close()
    return WarmReport(len(listed), looked_at, vision.level, vision.reason)


def _contents(photos: Sequence[CatalogPhoto]) -> Iterator[bytes]:
    for photo in photos:
        with contextlib.suppress(OSError):
            yield photo.path.read_bytes()
