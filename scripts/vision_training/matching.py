"""Fits and measures the matching part: metrics, evidence weights, sureness; folds never share a style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edge_agent.styleeyes.vision.evidence import COLOUR_TERMS, Evidence, Matcher, gather, sure_terms
from edge_agent.styleeyes.vision.looks import FrameLook, Look
from edge_agent.styleeyes.vision.picture import Floats
from edge_agent.styleeyes.vision.regions import Region
from scripts.vision_training.cases import FOLDS, Case, Photo, Style, fold_of
from scripts.vision_training.fitting import Array, choice_weights, discriminant, logistic, wilson
from scripts.vision_training.views import Views

KEPT, SHRINK, SIZE = 256, 0.6, 96
RIDGE = 1.0
MADE_WEIGHT = 0.1
"""A made case against a given one: they are many, and harder than what a search brings."""
BASIC_TERMS = COLOUR_TERMS


@dataclass(frozen=True, slots=True)
class LayerMetric:
    centre: Array
    scale: Array
    projection: Array

    def __call__(self, pooled: Floats) -> Floats:
        vector = (pooled - self.centre) / self.scale @ self.projection
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


@dataclass(frozen=True, slots=True)
class Metrics:
    layer_8: LayerMetric
    layer_5: LayerMetric


def fit_metrics(
    views: Views, photos: Sequence[Photo], styles: dict[str, Style], left_out: int | None
) -> Metrics:
    """From the retail photos and frames made of them, without the styles of one fold."""
    layers: tuple[list[Floats], list[Floats]] = ([], [])
    labels = []
    for photo in photos:
        if fold_of(photo.style) == left_out:
            continue
        seen = [views.view(str(photo.path), closer=False)]
        if not photo.main:
            seen.append(views.view(f"frame:{photo.path}", closer=True))
        for view in seen:
            pooled = view.pooled.get(styles[photo.style].region)  # type: ignore[call-overload]
            if pooled is not None:
                layers[0].append(pooled.layer_8)
                layers[1].append(pooled.layer_5)
                labels.append(photo.style)
    made = []
    for rows in layers:
        values = np.array(rows, np.float64)
        centre, scale = values.mean(0), values.std(0) + 1e-6
        projection = discriminant((values - centre) / scale, labels, kept=KEPT, shrink=SHRINK, size=SIZE)
        made.append(LayerMetric(centre, scale, projection))
    return Metrics(*made)


def projected(view: FrameLook, metrics: Metrics) -> FrameLook:
    """The view as it would look with these metrics."""
    regions = {
        region: replace(
            look,
            form=metrics.layer_8(view.pooled[region].layer_8),
            detail=metrics.layer_5(view.pooled[region].layer_5),
        )
        for region, look in view.look.regions.items()
    }
    return replace(view, look=Look(regions, view.look.dominant))


def evidence_rows(views: Views, case: Case, metrics: Metrics, *, know_region: bool = True) -> Array:
    """Candidates × terms."""
    closer = not case.name.startswith("made-") or case.query.startswith("frame:")
    frame = projected(views.view(case.query, closer=closer), metrics)
    looks = [projected(views.view(name, closer=False), metrics).look for name in case.candidates]
    region = chosen_region(frame, looks, case.region if know_region else None)
    return np.array([gather(frame, look, region).terms for look in looks], np.float64)


def basic_rows(views: Views, case: Case) -> Array:
    """Candidates × terms by colour alone, in the regions that OpenCV finds."""
    frame = views.view(case.query, closer=True)
    looks = [views.view(name, closer=False).look for name in case.candidates]
    region = chosen_region(frame, looks, None)
    return np.array([gather(frame, look, region).terms for look in looks], np.float64)


def chosen_region(frame: FrameLook, looks: Sequence[Look], region: str | None) -> Region:
    from edge_agent.styleeyes.vision.comparison import shared_region

    chosen = shared_region(frame, [[look] for look in looks], region)  # type: ignore[arg-type]
    return chosen if chosen is not None else "upper"


@dataclass(frozen=True, slots=True)
class Fit:
    matcher: Matcher
    none_score: float


def fit_matcher(rows: Sequence[Array], cases: Sequence[Case], terms: int) -> Fit:
    """Weights of the evidence by conditional logit, then sureness by logistic regression."""
    weights = [MADE_WEIGHT if case.name.startswith("made-") else 1.0 for case in cases]
    values = [r[:, :terms] for r in rows]
    together = np.vstack(values)
    centre, scale = together.mean(0), together.std(0) + 1e-6
    standard = [(v - centre) / scale for v in values]
    found = choice_weights(standard, [case.answer for case in cases], weights, ridge=RIDGE)
    scores = [s @ found[:-1] for s in standard]
    sure = _sureness(scores, values, cases, weights)
    matcher = Matcher(*(np.asarray(v, np.float32) for v in (centre, scale, found[:-1], sure)))
    return Fit(matcher, float(found[-1]))


def _sureness(
    scores: Sequence[Array], values: Sequence[Array], cases: Sequence[Case], weights: Sequence[float]
) -> Array:
    """From best score, lead and evidence to "the best is right".

    Cases in which none is right are few, so each case also teaches what it looks like when the right
    candidate is not there; how often that happens is then taken from the cases as they are.
    """
    rows, right, shares, real = [], [], [], []
    for found, terms, case, weight in zip(scores, values, cases, weights, strict=True):
        best = int(np.argmax(found))
        rows.append(sure_terms(np.asarray(found, np.float32), terms[best].tolist()))
        right.append(best == case.answer)
        shares.append(weight)
        real.append(True)
        if case.answer is not None and len(found) > 2:
            left = np.delete(np.arange(len(found)), case.answer)
            best = int(left[np.argmax(found[left])])
            rows.append(sure_terms(np.asarray(found[left], np.float32), terms[best].tolist()))
            right.append(False)
            shares.append(weight)
            real.append(False)
    inputs, truth = np.array(rows, np.float64), np.array(right, np.float64)
    amounts, given = np.array(shares), np.array(real)
    centre, scale = inputs.mean(0), inputs.std(0) + 1e-9
    centre[0], scale[0] = 0, 1
    sure = logistic((inputs - centre) / scale, truth, amounts, ridge=1.0) / scale
    sure[0] -= sure[1:] @ centre[1:]
    told = inputs[given] @ sure
    offset = logistic(np.ones((len(told), 1)), truth[given], amounts[given], ridge=0.0, offset=told)
    sure[0] += offset[0]
    return np.asarray(sure, np.float64)


Judged = dict[str, tuple[Array, float]]
"""Case name → (scores, probability that the best is right)."""


def judge(matcher: Matcher, rows: Array, terms: int) -> tuple[Array, float]:
    scores = np.array([matcher.score(Evidence(tuple(r[:terms]), has_region=True)) for r in rows])
    probabilities, _none = matcher.probabilities(list(scores), [r[:terms].tolist() for r in rows])
    return scores, max(probabilities)


def cross_validate(
    cases: Sequence[Case], rows_of: Callable[[Case], Array], terms: int, tested: Sequence[Case] | None = None
) -> Judged:
    """Each case judged by weights that saw no case of its fold; its evidence by metrics likewise."""
    judged: Judged = {}
    for fold in range(FOLDS):
        rest = [case for case in cases if case.fold != fold]
        matcher = fit_matcher([rows_of(case) for case in rest], rest, terms).matcher
        for case in tested if tested is not None else cases:
            if case.fold == fold:
                judged[case.name] = judge(matcher, rows_of(case), terms)
    return judged


def summary(
    cases: Sequence[Case], judged: Judged, *, same_at: float, confident_at: float
) -> dict[str, object]:
    """Shares with their 95 % intervals."""

    def share(hits: Sequence[bool]) -> dict[str, object]:
        low, high = wilson(sum(hits), len(hits))
        return {
            "value": round(sum(hits) / max(len(hits), 1), 3),
            "ci95": (round(low, 3), round(high, 3)),
            "n": len(hits),
        }

    top, with_none, false_match, wrong_exact, exact_right = [], [], [], [], []
    for case in cases:
        scores, chance = judged[case.name]
        best = int(np.argmax(scores))
        said = best if chance >= same_at else None
        with_none.append(said == case.answer)
        exact = chance >= confident_at
        wrong_exact.append(exact and best != case.answer)
        if case.answer is None:
            false_match.append(said is not None)
        else:
            top.append(best == case.answer)
            exact_right.append(exact and best == case.answer)
    return {
        "top1": share(top),
        "withNone": share(with_none),
        "noneMatched": share(false_match),
        "wrongExact": share(wrong_exact),
        "exactRight": share(exact_right),
    }


def store(heads: dict[str, np.ndarray], metrics: Metrics, full: Fit, basic: Fit) -> None:
    for name, metric in (("layer_8", metrics.layer_8), ("layer_5", metrics.layer_5)):
        heads[f"{name}_centre"] = metric.centre.astype(np.float32)
        heads[f"{name}_scale"] = metric.scale.astype(np.float32)
        heads[f"{name}_metric"] = metric.projection.astype(np.float16)
    for prefix, fit in (("match", full), ("basic", basic)):
        heads[f"{prefix}_centre"] = fit.matcher.centre
        heads[f"{prefix}_scale"] = fit.matcher.scale
        heads[f"{prefix}_weights"] = fit.matcher.weights
    heads["sure_weights"] = full.matcher.sure_weights
    heads["basic_sure_weights"] = basic.matcher.sure_weights
