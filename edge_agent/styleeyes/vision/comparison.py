"""A frame against candidates: which shows the same garment, how sure, and why, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.styleeyes.vision.description import color_name
from edge_agent.styleeyes.vision.evidence import Evidence, Matcher, gather
from edge_agent.styleeyes.vision.heads import Heads
from edge_agent.styleeyes.vision.looks import FrameLook, Look, RegionLook
from edge_agent.styleeyes.vision.regions import Region

SAME_AT = 0.7
"""Below this calibrated probability the answer is "none of these": a wrong "the same" is worse than a
wrong "none"."""
CONFIDENT_AT = 0.9
"""From this probability on, and in fair light, an exact style may be named."""
_COLOUR_AGREES = -1.05
_COLOUR_DIFFERS = -1.5
_FORM_AGREES = 0.45
_FORM_DIFFERS = 0.15


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """Of one candidate: `score` is absolute (comparable across rounds for one frame); `photo` is the
    index of its best photo, None when it has none that can be read."""

    score: float
    photo: int | None
    agrees: tuple[str, ...]
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`probabilities` (one a candidate) and `none_probability` sum to 1."""

    probabilities: tuple[float, ...]
    none_probability: float
    best: int | None
    """The candidate that shows the same garment, None when none fits."""
    confident: bool
    """Whether the evidence carries an exact style, not just a similar one."""
    region: Region | None
    candidates: tuple[CandidateEvidence, ...]
    issues: tuple[str, ...]
    """What is wrong with the frame's light."""


def compare(
    frame: FrameLook,
    candidates: Sequence[Sequence[Look | None]],
    heads: Heads,
    *,
    basic: bool,
    focus: Region | None = None,
) -> Comparison:
    """Compares within one region: `focus`, else the one that frame and candidates share.

    A photo that could not be read is None and says nothing for or against its candidate.
    """
    region = shared_region(frame, candidates, focus)
    matcher = Matcher.of(heads, basic=basic)
    if region is None or not any(look for photos in candidates for look in photos):
        nothing = tuple(CandidateEvidence(LOWEST_SCORE, None, (), ()) for _ in candidates)
        return Comparison((0.0,) * len(candidates), 1.0, None, False, region, nothing, frame.light.issues)
    judged, terms = zip(
        *(_judge(frame, photos, region, matcher, heads) for photos in candidates), strict=True
    )
    probabilities, none = matcher.probabilities([evidence.score for evidence in judged], terms)
    first = max(range(len(judged)), key=lambda i: judged[i].score)
    found = probabilities[first] >= SAME_AT
    confident = probabilities[first] >= CONFIDENT_AT and not frame.light.issues and not basic
    return Comparison(
        probabilities,
        none,
        first if found else None,
        confident,
        region,
        tuple(judged),
        frame.light.issues,
    )


LOWEST_SCORE = -20.0


def shared_region(
    frame: FrameLook, candidates: Sequence[Sequence[Look | None]], focus: Region | None
) -> Region | None:
    """The region to compare in: like with like, since most photos show a person in two garments."""
    if focus in frame.look.regions:
        return focus
    shown = Counter(
        look.dominant for photos in candidates for look in photos if look is not None and look.dominant
    )
    for region, _count in shown.most_common():
        if region in frame.look.regions and focus is None:
            return region
    return frame.look.dominant


def _judge(
    frame: FrameLook, photos: Sequence[Look | None], region: Region, matcher: Matcher, heads: Heads
) -> tuple[CandidateEvidence, tuple[float, ...]]:
    """The candidate's evidence, and the terms of its best photo."""
    best: tuple[float, int, Evidence, Look] | None = None
    for index, look in enumerate(photos):
        if look is None:
            continue
        evidence = gather(frame, look, region)
        score = matcher.score(evidence)
        if best is None or score > best[0]:
            best = (score, index, evidence, look)
    if best is None:
        return CandidateEvidence(LOWEST_SCORE, None, (), ("no photo that can be compared",)), ()
    score, index, evidence, look = best
    agrees, differs = _words(frame.look.regions[region], look.regions.get(region), evidence, heads)
    return CandidateEvidence(score, index, agrees, differs), evidence.terms


def _words(
    ours: RegionLook, theirs: RegionLook | None, evidence: Evidence, heads: Heads
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if theirs is None or not evidence.has_region:
        return (), ("shows another kind of garment",)
    agrees, differs = [], []
    seen, pictured = color_name(ours.mean, heads), color_name(theirs.mean, heads)
    colour = evidence.terms[1]
    if colour >= _COLOUR_AGREES:
        both = f"{seen} on both" if seen == pictured else f"{seen} and {pictured}, nearly alike"
        agrees.append(f"colour agrees ({both})")
    elif colour < _COLOUR_DIFFERS:
        shade = "another shade of " + seen if seen == pictured else f"{pictured} in the photo, {seen} here"
        differs.append(f"colour differs ({shade})")
    for value, name in zip(evidence.terms[2:], ("cut and form", "fabric and details"), strict=False):
        if value >= _FORM_AGREES:
            agrees.append(f"{name} agree")
        elif value < _FORM_DIFFERS:
            differs.append(f"{name} differ")
    return tuple(agrees), tuple(differs)
