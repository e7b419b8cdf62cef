"""The colour of a region: a Lab histogram, its mean, and names for its main colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.styleeyes.vision.picture import Floats, Pixels, lab

BINS = (8, 20, 20)
_SIDE = 112
_LOWEST = np.array((0, -75, -75), np.float32)
_HIGHEST = np.array((100, 75, 75), np.float32)
_PLACES = np.array(BINS, np.float32) / (_HIGHEST - _LOWEST)
_LAST = np.array(BINS, np.float32) - np.float32(1e-3)
GAINS = (0.65, 0.8, 1.0, 1.25, 1.5)
"""Exposures of the frame that are tried: light differs between camera and studio."""
PLAIN_GAIN = GAINS.index(1.0)


def _smoothing(count: int) -> npt.NDArray[np.float64]:
    """A Gaussian of one bin's deviation, cut at three, as a matrix over `count` bins."""
    away = np.arange(count)[:, None] - np.arange(count)
    bell = np.where(np.abs(away) <= 3, np.exp(-0.5 * away**2), 0)
    return np.asarray(bell / np.exp(-0.5 * np.arange(-3, 4) ** 2).sum())


_SMOOTHINGS = tuple(_smoothing(count) for count in BINS)


@dataclass(frozen=True, slots=True)
class RegionColour:
    """`histogram`: square roots of the smoothed Lab histogram's shares, so that a dot product of two
    is their Bhattacharyya coefficient; `mean`: mean L*, a*, b*."""

    histogram: Floats
    mean: Floats


def pixel_weights(mask: Floats) -> Floats:
    """The patch mask as weights of 112 × 112 pixels that sum to 1, sharpened at the border."""
    fine = cv2.resize(mask, (_SIDE, _SIDE), interpolation=cv2.INTER_LINEAR)
    weights = np.clip((fine - 0.25) / 0.5, 0, 1)
    if weights.sum() < 20:
        weights = fine + 1e-4
    return np.asarray((weights / weights.sum()).ravel(), np.float32)


def region_colour(pixels: Pixels, mask: Floats) -> RegionColour:
    """Colour of the masked part of the picture."""
    values = lab(pixels, _SIDE).reshape(-1, 3)
    weights = pixel_weights(mask)
    return RegionColour(_histogram(_bins(values), weights), np.asarray(weights @ values, np.float32))


def exposures(pixels: Pixels, masks: Sequence[Floats]) -> list[Floats]:
    """For each mask, one histogram for each of GAINS, as if the picture had been exposed so."""
    small = cv2.resize(pixels, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    coded = np.arange(256, dtype=np.float64) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    weights = [pixel_weights(mask) for mask in masks]
    rows: list[list[Floats]] = [[] for _ in masks]
    for gain in GAINS:
        light = np.clip(linear * gain, 0, 1)
        curve = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
        exposed = curve.astype(np.float32)[small]
        values = np.asarray(cv2.cvtColor(exposed, cv2.COLOR_BGR2LAB).reshape(-1, 3), np.float32)
        bins = _bins(values)
        for row, shares in zip(rows, weights, strict=True):
            row.append(_histogram(bins, shares))
    return [np.stack(row) for row in rows]


def _bins(values: Floats) -> npt.NDArray[np.int64]:
    """The number of the bin that each Lab value falls into."""
    places = (values - _LOWEST) * _PLACES
    places = np.minimum(np.maximum(places, 0, out=places), _LAST, out=places).astype(np.int64)
    return np.asarray((places[:, 0] * BINS[1] + places[:, 1]) * BINS[2] + places[:, 2])


def _histogram(bins: npt.NDArray[np.int64], weights: Floats) -> Floats:
    light, a, b = _SMOOTHINGS
    counts = np.bincount(bins, weights, int(np.prod(BINS))).reshape(BINS)
    table = light @ (a @ (counts @ b)).reshape(BINS[0], -1)
    return np.sqrt(table / max(float(table.sum()), 1e-9)).ravel().astype(np.float32)


def colour_clusters(pixels: Pixels, mask: Floats, count: int = 3) -> tuple[tuple[Floats, float], ...]:
    """The region's main colours: (mean Lab, share), largest first."""
    values = lab(pixels, _SIDE).reshape(-1, 3)
    weights = pixel_weights(mask)
    inside = weights > 0.5 * weights.max()
    points = values[inside]
    if len(points) < 4 * count:
        return ((np.asarray(weights @ values, np.float32), 1.0),)
    cv2.setRNGSeed(1)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 15, 0.5)
    # Lightness counts less: a fold's shadow is no second colour.
    scaled = np.ascontiguousarray(points * np.array((0.5, 1, 1), np.float32))
    _, labels, _ = cv2.kmeans(scaled, count, np.empty((0,)), criteria, 2, cv2.KMEANS_PP_CENTERS)
    flat = labels.ravel()
    found = [
        (np.median(points[flat == k], axis=0).astype(np.float32), float((flat == k).mean()))
        for k in range(count)
        if (flat == k).any()
    ]
    return tuple(sorted(found, key=lambda item: -item[1]))


def colour_terms(value: Floats) -> Floats:
    """Lab → the terms of the colour-name head: linear, quadratic, chroma and hue."""
    light, a, b = value[..., 0] / 50 - 1, value[..., 1] / 40, value[..., 2] / 40
    chroma = np.hypot(a, b)
    hue = np.arctan2(b, a)
    coloured = np.clip(chroma * 2, 0, 1)
    waves = [np.cos(k * hue) * coloured for k in (1, 2, 3)] + [np.sin(k * hue) * coloured for k in (1, 2, 3)]
    terms = [np.ones_like(a), light, a, b, chroma, light * light, light * a, light * b, light * chroma]
    terms += [a * a, a * b, b * b, np.exp(-((chroma / 0.15) ** 2)), *waves]
    return np.stack(terms, -1).astype(np.float32)
