"""A garment in words: kind, colours, what is wrong with the light."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edge_agent.styleeyes.vision.colours import colour_clusters, colour_terms
from edge_agent.styleeyes.vision.heads import Heads
from edge_agent.styleeyes.vision.looks import FrameLook
from edge_agent.styleeyes.vision.picture import Floats
from edge_agent.styleeyes.vision.regions import REGIONS, Region
from edge_agent.styleeyes.vision.vocabulary import region_of_words

_SECOND_COLOUR_SHARE = 0.22
_LINE_SURE = 0.8
_ISSUE_WORDS = {
    "dark": "the picture is dark",
    "bright": "the picture is over-exposed",
    "cast": "the light is strongly coloured",
    "blurred": "the picture is blurred",
}


@dataclass(frozen=True, slots=True)
class GarmentDescription:
    """What is seen in one region of a frame. Sleeve, neckline and material are not stated: they were
    not measured."""

    kind: str | None
    """A catalog word such as "jacket" or "tank top"; None when unknown (basic vision, or nothing seen)."""
    kind_confidence: float
    alternatives: tuple[tuple[str, float], ...]
    """Other kinds it may be, with their probabilities, likeliest first."""
    colors: tuple[tuple[str, float], ...]
    """Up to two colour words with their shares of the region, largest first."""
    color_alternatives: tuple[str, ...]
    """Further words that a catalog may use for the main colour."""
    pattern: str | None
    line: str | None
    """"women" or "men": for whom the garment is cut, where that is fairly sure; says nothing of a person."""
    region: Region | None
    others: tuple[Region, ...]
    """Further regions with a garment in view, largest first."""
    person: bool
    issues: tuple[str, ...]
    """"dark", "bright", "cast", "blurred": see `light`."""
    words: str
    """One phrase for a person, e.g. "a red tank top"."""


def describe(frame: FrameLook, heads: Heads, region: Region | None) -> GarmentDescription:
    """Describes the garment in `region`, or the one that the frame is about."""
    chosen = region if region in frame.look.regions else frame.look.dominant
    others = sorted(
        (r for r in REGIONS if r not in (chosen, "full") and r in frame.look.regions),
        key=lambda r: -frame.classes.area(r),
    )
    if chosen is None:
        words = "; ".join(["no garment in view", *(_ISSUE_WORDS[i] for i in frame.light.issues)])
        return GarmentDescription(
            None, 0.0, (), (), (), None, None, None, (), frame.classes.person, frame.light.issues, words
        )
    kinds = _kinds(frame, heads, chosen)
    colors, further = _colors(frame, heads, chosen)
    kind, confidence = kinds[0] if kinds else (None, 0.0)
    name = " and ".join(color for color, _share in colors)
    phrase = f"{name} {kind or 'garment'}".strip()
    article = "" if (kind or "").endswith("s") else ("an " if phrase[:1] in "aeiou" else "a ")
    words = "; ".join([article + phrase, *(_ISSUE_WORDS[i] for i in frame.light.issues)])
    return GarmentDescription(
        kind=kind,
        kind_confidence=confidence,
        alternatives=tuple(kinds[1:4]),
        colors=colors,
        color_alternatives=further,
        pattern=None,
        line=_line(frame, heads, chosen),
        region=chosen,
        others=tuple(others),
        person=frame.classes.person,
        issues=frame.light.issues,
        words=words,
    )


def color_shares(values: Floats, heads: Heads) -> Floats:
    """Probabilities of the colour words for Lab values (last axis 3)."""
    return softmax(colour_terms(values) @ heads.color_weights)


def color_name(value: Floats, heads: Heads) -> str:
    """The likeliest colour word for one Lab value."""
    return heads.color_labels[int(np.argmax(color_shares(value, heads)))]


def softmax(values: Floats) -> Floats:
    shares = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(shares / shares.sum(-1, keepdims=True), np.float32)


def head_input(frame: FrameLook, region: Region) -> Floats | None:
    """What the kind and line heads read: pooled tokens of both layers and a one; None in basic vision."""
    pooled = frame.pooled.get(region)
    if pooled is None:
        return None
    one = np.ones(1, np.float32)
    return np.concatenate((np.clip(pooled.layer_8, -4, 4), np.clip(pooled.layer_5, -4, 4), one))


def _kinds(frame: FrameLook, heads: Heads, region: Region) -> list[tuple[str, float]]:
    if region == "full":
        return [("dress", 0.7)]
    if region == "shoes":
        return [("shoes", 0.8)]
    values = head_input(frame, region)
    if values is None:
        return []
    allowed = [i for i, label in enumerate(heads.kind_labels) if region_of_words(label) == region]
    shares = softmax((values @ heads.kind_weights)[allowed])
    ranked = sorted(zip(allowed, shares, strict=True), key=lambda item: -item[1])
    return [(heads.kind_labels[index], float(share)) for index, share in ranked]


def _line(frame: FrameLook, heads: Heads, region: Region) -> str | None:
    values = head_input(frame, region)
    if values is None or region not in ("upper", "lower"):
        return None
    shares = softmax(values @ heads.line_weights)
    best = int(np.argmax(shares))
    return heads.line_labels[best] if shares[best] >= _LINE_SURE else None


def _colors(
    frame: FrameLook, heads: Heads, region: Region
) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
    totals: dict[str, float] = {}
    clusters = colour_clusters(frame.pixels, frame.classes.mask(region))
    for value, share in clusters:
        name = color_name(value, heads)
        totals[name] = totals.get(name, 0.0) + share
    ranked = sorted(totals.items(), key=lambda item: -item[1])
    named = tuple(
        (name, round(share, 2))
        for index, (name, share) in enumerate(ranked[:2])
        if index == 0 or share >= _SECOND_COLOUR_SHARE
    )
    shares = color_shares(clusters[0][0], heads)
    taken = {name for name, _share in named}
    further = tuple(
        heads.color_labels[i]
        for i in np.argsort(-shares)[:3]
        if shares[i] > 0.1 and heads.color_labels[i] not in taken
    )
    return named, further
