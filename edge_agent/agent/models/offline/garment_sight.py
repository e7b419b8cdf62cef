"""The real eyes: local garment vision, in the offline model's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from edge_agent.agent.models.offline.sight import Candidate, Comparison, Likeness, Seen
from edge_agent.styleeyes.vision.garment import GarmentVision
from edge_agent.styleeyes.vision.regions import Region
from edge_agent.styleeyes.vision.vocabulary import region_of_words

OTHER_KIND_AT_LEAST = 0.1
"""A kind of garment less likely than this is not worth a search of its own."""

# Blur and over-exposure weaken the evidence, which the calibration knows; these two falsify colour.
_PROBLEMS = {"dark": "the picture is too dark", "cast": "the light is strongly coloured"}


_REGION_WORDS: dict[Region, str] = {"upper": "top", "lower": "trousers", "full": "dress", "shoes": "shoes"}


class GarmentSight:
    """`Sight` by `GarmentVision`."""

    def __init__(self, vision: GarmentVision) -> None:
        self._vision = vision

    def describe(self, frame: bytes, question: str) -> Seen:
        described = self._vision.describe(frame, region_of_words(question))
        return Seen(
            kind=described.kind,
            colors=tuple(name for name, _share in described.colors),
            pattern=described.pattern,
            other_kinds=tuple(kind for kind, p in described.alternatives if p >= OTHER_KIND_AT_LEAST),
            other_colors=described.color_alternatives,
            line=described.line,
            also=tuple(_REGION_WORDS[region] for region in described.others),
            found=described.region is not None,
            problem=_problem(described.issues),
        )

    def compare(self, frame: bytes, candidates: Sequence[Candidate]) -> Comparison:
        regions = Counter(region for c in candidates if (region := region_of_words(c.words)) is not None)
        focus = regions.most_common(1)[0][0] if regions else None
        photos = [candidate.photos for candidate in candidates]
        compared = self._vision.compare(frame, photos, focus)
        return Comparison(
            candidates=tuple(
                Likeness(probability, evidence.agrees, evidence.differs, evidence.photo)
                for probability, evidence in zip(compared.probabilities, compared.candidates, strict=True)
            ),
            none=compared.none_probability,
            exact=compared.confident,
            problem=_problem(compared.issues),
        )

    def look_ahead(self, photo: bytes) -> None:
        self._vision.precompute([photo])

    def close(self) -> None:
        self._vision.close()


def load_garment_sight(folder: Path) -> GarmentSight:
    """Loads the vision kept in `folder` (HOME/vision); takes seconds the first time. Blocking."""
    return GarmentSight(GarmentVision.load(folder))


def _problem(issues: Sequence[str]) -> str | None:
    return next((_PROBLEMS[issue] for issue in issues if issue in _PROBLEMS), None)
