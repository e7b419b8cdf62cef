"""How well a catalog photo agrees with a frame, and how sure that makes us.

Four kinds of evidence within one region: the colour histogram under the best of a few exposures, the
distance of the mean colours, and two cosines in a trained metric (layer 8: cut and form; layer 5:
fabric and detail). A linear score, absolute, so that candidates of several rounds can be compared;
then a calibrated probability that the best is right, from its score, its lead and its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edge_agent.styleeyes.vision.colours import GAINS, PLAIN_GAIN
from edge_agent.styleeyes.vision.heads import Heads
from edge_agent.styleeyes.vision.looks import FrameLook, Look
from edge_agent.styleeyes.vision.picture import Floats
from edge_agent.styleeyes.vision.regions import Region

LIGHTNESS_WEIGHT = 0.35
_GAIN_COST = 0.05
_GAIN_COSTS = _GAIN_COST * np.abs(np.log(GAINS)) / np.log(1.5)
COLOUR_TERMS = 2
"""The first so many terms of an evidence are about colour; basic vision has no others."""
_SECOND_SHARE = 0.25
"""How often another candidate is right where the best is not; measured on the training cases."""
_NO_SUCH_REGION = (0.15, -2.6, -0.3, -0.3)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one photo against the frame; all terms grow with agreement."""

    terms: tuple[float, ...]
    """Histogram overlap 0…1, −log(1 + ΔE/5), cosine of form, cosine of detail; basic: the first two."""
    has_region: bool


def gather(frame: FrameLook, photo: Look, region: Region) -> Evidence:
    """Evidence within `region`; a frame or photo without it hardly agrees with anything."""
    ours, theirs = frame.look.regions.get(region), photo.regions.get(region)
    count = COLOUR_TERMS if frame.look.regions and not frame.pooled else len(_NO_SUCH_REGION)
    if ours is None or theirs is None:
        return Evidence(_NO_SUCH_REGION[:count], has_region=False)
    overlaps = frame.exposed[region] @ theirs.histogram - _GAIN_COSTS
    gain = int(np.argmax(overlaps))
    plain = float(overlaps[PLAIN_GAIN])
    distance = float(np.linalg.norm((ours.mean - theirs.mean) * (LIGHTNESS_WEIGHT, 1, 1)))
    terms = [max(plain, float(overlaps[gain])), -float(np.log1p(distance / 5))]
    if ours.form is not None and ours.detail is not None:
        if theirs.form is None or theirs.detail is None:
            return Evidence(_NO_SUCH_REGION[:count], has_region=False)
        terms += [float(ours.form @ theirs.form), float(ours.detail @ theirs.detail)]
    return Evidence(tuple(terms), has_region=True)


@dataclass(frozen=True, slots=True)
class Matcher:
    """Evidence → scores → probabilities."""

    centre: Floats
    scale: Floats
    weights: Floats
    sure_weights: Floats

    @staticmethod
    def of(heads: Heads, *, basic: bool) -> Matcher:
        if basic:
            return Matcher(
                heads.basic_centre, heads.basic_scale, heads.basic_weights, heads.basic_sure_weights
            )
        return Matcher(heads.match_centre, heads.match_scale, heads.match_weights, heads.sure_weights)

    def score(self, evidence: Evidence) -> float:
        """Absolute: comparable between candidates, rounds and searches for one frame."""
        return float(((np.array(evidence.terms) - self.centre) / self.scale) @ self.weights)

    def probabilities(
        self, scores: Sequence[float], terms: Sequence[Sequence[float]]
    ) -> tuple[tuple[float, ...], float]:
        """(one for each candidate, that none is right); together 1. `terms`: each one's evidence."""
        if not scores:
            return (), 1.0
        values = np.array(scores)
        best = int(np.argmax(values))
        right = 1 / (1 + np.exp(-float(sure_terms(values, terms[best]) @ self.sure_weights)))
        shares = np.exp(values - values.max())
        shares[best] = 0
        others = shares / max(float(shares.sum()), 1e-9) * (1 - right) * _SECOND_SHARE
        others[best] = right
        return tuple(float(p) for p in others), float(max(0.0, 1 - others.sum()))


def sure_terms(scores: Floats, best: Sequence[float]) -> Floats:
    """1, the best score, its lead over the second (at most 6), its evidence: what sureness is fitted on."""
    ordered = np.sort(scores)[::-1]
    lead = min(6.0, float(ordered[0] - ordered[1])) if len(ordered) > 1 else 2.0
    return np.array((1.0, ordered[0], lead, *best), np.float32)
