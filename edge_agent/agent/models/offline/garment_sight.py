"""The real eyes: local garment vision, in the offline model's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from edge_agent.agent.models.offline.sight import Alike, Candidate, Comparison, Likeness, Seen
from edge_agent.styleeyes.photo_list import CatalogPhoto
from edge_agent.styleeyes.vision.garment import GarmentVision
from edge_agent.styleeyes.vision.regions import Region
from edge_agent.styleeyes.vision.vocabulary import region_of_words

OTHER_KIND_AT_LEAST = 0.1
"""A kind of garment less likely than this is not worth a search of its own."""

# Blur and over-exposure weaken the evidence, which the calibration knows; these two falsify colour.
_PROBLEMS = {"dark": "the picture is too dark", "cast": "the light is strongly coloured"}

ELSEWHERE_COSTS = 0.3
"""What a style of another part of the outfit must agree better by than one of the part that the frame is
about. Hardly anything: measured on 201 camera-like pictures of backs and details, of which a quarter
shows more of another garment than of the one that is sold."""
KNOWN_AT_LEAST = 0.5
"""With a smaller share of the styles looked at, the best of them says too little: words choose better."""

_WHOLE: tuple[Region, ...] = ("full",)
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
            part=_REGION_WORDS[described.region] if described.region else None,
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
                Likeness(probability, _nouns(evidence.agrees), _nouns(evidence.differs), evidence.photo)
                for probability, evidence in zip(compared.probabilities, compared.candidates, strict=True)
            ),
            none=compared.none_probability,
            exact=compared.confident,
            problem=_problem(compared.issues),
        )

    def most_alike(self, frame: bytes, question: str, photos: Sequence[CatalogPhoto]) -> tuple[Alike, ...]:
        asked = region_of_words(question)
        described = self._vision.describe(frame, asked)
        if described.region is None:
            return ()
        in_view: list[Region] = [described.region]
        if asked != described.region:
            in_view += [region for region in (*described.others, *_WHOLE) if region != described.region]
        best: dict[str, Alike] = {}
        styles: set[str] = set()
        for region in in_view:
            own: dict[str, list[CatalogPhoto]] = {}
            for photo in photos:
                if region_of_words(photo.words) in (region, None):
                    own.setdefault(photo.sha256, []).append(photo)
                    styles.add(photo.style_id)
            cost = 0.0 if region == described.region else ELSEWHERE_COSTS
            for ranked in self._vision.rank(frame, own, region):
                for photo in own[ranked.photo]:
                    known = best.get(photo.style_id)
                    if known is None or ranked.score - cost > known.score:
                        best[photo.style_id] = Alike(
                            photo.style_id, ranked.score - cost, photo.color, _REGION_WORDS[region]
                        )
        if len(best) < KNOWN_AT_LEAST * len(styles):
            return ()
        return tuple(sorted(best.values(), key=lambda alike: -alike.score))

    def look_ahead(self, photo: bytes) -> None:
        self._vision.precompute([photo])

    def close(self) -> None:
        self._vision.close()


def load_garment_sight(folder: Path) -> GarmentSight:
    """Loads the vision kept in `folder` (HOME/vision); takes seconds the first time. Blocking."""
    return GarmentSight(GarmentVision.load(folder))


def _problem(issues: Sequence[str]) -> str | None:
    return next((_PROBLEMS[issue] for issue in issues if issue in _PROBLEMS), None)


_VERB = re.compile(r" (?:agrees?|differs?)\b")


def _nouns(evidence: Sequence[str]) -> tuple[str, ...]:
    """`colour agrees (red on both)` → `colour (red on both)`: it stands in a list that says the verb."""
    return tuple(_VERB.sub("", words) for words in evidence)
