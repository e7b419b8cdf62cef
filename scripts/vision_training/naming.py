"""Fits and measures the words: kind, for whom it is cut, colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edge_agent.styleeyes.vision.colours import colour_clusters, colour_terms
from edge_agent.styleeyes.vision.looks import FrameLook
from edge_agent.styleeyes.vision.vocabulary import region_of_words
from scripts.vision_training.cases import FOLDS, Photo, Style, fold_of
from scripts.vision_training.fitting import Array, classes
from scripts.vision_training.matching import Metrics
from scripts.vision_training.views import Views

COLOR_NAMES = ("black", "blue", "brown", "gray", "green", "orange", "purple", "red", "white", "yellow")
_RETAIL_COLORS = {"lavender": "purple"}
# Words that the retail catalog lacks, by a few Lab values each: Berlin & Kay's pink, and the trade's beige.
_SWATCHES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "brown": ((30, 12, 16), (38, 15, 24), (25, 10, 10), (45, 14, 24), (33, 18, 20), (50, 12, 26)),
    "beige": ((80, 3, 14), (74, 4, 18), (85, 2, 12), (70, 5, 20), (78, 2, 10)),
}


def _input(view: FrameLook, region: str, metrics: Metrics) -> Array | None:
    pooled = view.pooled.get(region)  # type: ignore[call-overload]
    if pooled is None:
        return None
    layers = (
        np.clip((values - metric.centre) / metric.scale, -4, 4)
        for values, metric in ((pooled.layer_8, metrics.layer_8), (pooled.layer_5, metrics.layer_5))
    )
    return np.concatenate((*layers, np.ones(1)))


def kind_rows(
    views: Views, photos: Sequence[Photo], styles: dict[str, Style], metrics: Metrics
) -> tuple[Array, list[Photo], list[bool]]:
    """Inputs of the kind and line heads, the photo of each, and whether it was a camera frame."""
    rows, owners, framed = [], [], []
    for photo in photos:
        views_of = [(views.view(str(photo.path), closer=False), False)]
        if not photo.main:
            views_of.append((views.view(f"frame:{photo.path}", closer=True), True))
        for view, is_frame in views_of:
            values = _input(view, styles[photo.style].region, metrics)
            if values is not None:
                rows.append(values)
                owners.append(photo)
                framed.append(is_frame)
    return np.array(rows), owners, framed


def kinds_allowed(names: Sequence[str], region: str) -> np.ndarray:
    return np.array([region_of_words(name) == region for name in names])


def cross_validated_words(
    rows: Array,
    owners: Sequence[Photo],
    framed: Sequence[bool],
    labels: Sequence[str],
    names: Sequence[str],
    regions: Sequence[str] | None,
    ridge: float,
) -> dict[str, float]:
    """Accuracy on photos and on frames; no style is in both sides of a fold."""
    folds = np.array([fold_of(photo.style) for photo in owners])
    right = np.zeros(len(owners), bool)
    second = np.zeros(len(owners), bool)
    for fold in range(FOLDS):
        learnt = folds != fold
        weights = classes(
            rows[learnt], [x for x, u in zip(labels, learnt, strict=True) if u], names, ridge=ridge
        )
        for index in np.flatnonzero(~learnt).tolist():
            values = rows[index] @ weights
            if regions is not None:
                values = np.where(kinds_allowed(names, regions[index]), values, -1e9)
            order = np.argsort(-values)
            right[index] = names[order[0]] == labels[index]
            second[index] = labels[index] in (names[order[0]], names[order[1]])
    frames = np.array(framed)
    return {
        "photos": round(float(right[~frames].mean()), 3),
        "frames": round(float(right[frames].mean()), 3),
        "framesInFirstTwo": round(float(second[frames].mean()), 3),
        "nPhotos": int((~frames).sum()),
        "nFrames": int(frames.sum()),
    }


def color_rows(
    views: Views, photos: Sequence[Photo], styles: dict[str, Style]
) -> tuple[Array, list[str], list[str], list[bool]]:
    """Lab of the main cluster, the catalog's word, the style, and whether it was a camera frame."""
    values, words, owners, framed = [], [], [], []
    for photo in photos:
        views_of = [(views.view(str(photo.path), closer=False), False)]
        if not photo.main:
            views_of.append((views.view(f"frame:{photo.path}", closer=True), True))
        for view, is_frame in views_of:
            region = styles[photo.style].region
            if region not in view.look.regions:
                continue
            clusters = colour_clusters(view.pixels, view.classes.mask(region))  # type: ignore[arg-type]
            values.append(clusters[0][0])
            words.append(_RETAIL_COLORS.get(photo.color, photo.color))
            owners.append(photo.style)
            framed.append(is_frame)
    return np.array(values, np.float64), words, owners, framed


def fit_colors(values: Array, words: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    extra_values = [v for swatches in _SWATCHES.values() for v in swatches for _ in range(2)]
    extra_words = [word for word, swatches in _SWATCHES.items() for _v in swatches for _ in range(2)]
    names = (*COLOR_NAMES, "beige")
    rows = colour_terms(np.vstack((values, np.array(extra_values, np.float64))))
    return classes(rows.astype(np.float64), [*words, *extra_words], names, ridge=3e-4, steps=2500), names


def cross_validated_colors(
    values: Array, words: Sequence[str], owners: Sequence[str], framed: Sequence[bool]
) -> dict[str, float]:
    folds = np.array([fold_of(style) for style in owners])
    right = np.zeros(len(words), bool)
    second = np.zeros(len(words), bool)
    for fold in range(FOLDS):
        learnt = folds != fold
        weights, names = fit_colors(values[learnt], [w for w, u in zip(words, learnt, strict=True) if u])
        order = np.argsort(-(colour_terms(values[~learnt]) @ weights), axis=1)
        truth = [w for w, u in zip(words, learnt, strict=True) if not u]
        right[~learnt] = [names[o[0]] == w for o, w in zip(order, truth, strict=True)]
        second[~learnt] = [w in (names[o[0]], names[o[1]]) for o, w in zip(order, truth, strict=True)]
    frames = np.array(framed)
    return {
        "photos": round(float(right[~frames].mean()), 3),
        "frames": round(float(right[frames].mean()), 3),
        "framesInFirstTwo": round(float(second[frames].mean()), 3),
    }
