"""The few kinds of fit that the heads need, in plain numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def discriminant(vectors: Array, styles: Sequence[str], *, kept: int, shrink: float, size: int) -> Array:
    """A projection in which vectors of one style lie together (regularised linear discriminant).

    PCA to `kept` dimensions, whitening of the scatter within styles (shrunk towards a sphere), then
    the `size` directions in which the styles' means differ most.
    """
    _u, _s, rows = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    first = rows[:kept].T
    reduced = vectors @ first
    names = np.array(styles)
    within = np.zeros((kept, kept))
    count = 0
    for style in sorted(set(styles)):
        group = reduced[names == style]
        if len(group) > 1:
            group = group - group.mean(0)
            within += group.T @ group
            count += len(group) - 1
    within /= max(count, 1)
    within = (1 - shrink) * within + shrink * np.trace(within) / kept * np.eye(kept)
    whitening = np.linalg.cholesky(np.linalg.inv(within))
    white = reduced @ whitening
    means = np.stack([white[names == style].mean(0) for style in sorted(set(styles))])
    _u, _s, directions = np.linalg.svd(means - means.mean(0), full_matrices=False)
    return np.asarray(first @ whitening @ directions[:size].T)


def choice_weights(
    cases: Sequence[Array], answers: Sequence[int | None], weights: Sequence[float], *, ridge: float
) -> Array:
    """Conditional logit with "none" as one more choice: (weights…, the score of none)."""
    width = cases[0].shape[1]
    found = np.zeros(width + 1)
    penalty = np.append(np.full(width, ridge), 1e-6)
    for _ in range(60):
        slope = penalty * found
        curve = np.diag(penalty)
        for rows, answer, weight in zip(cases, answers, weights, strict=True):
            choices = np.zeros((len(rows) + 1, width + 1))
            choices[:-1, :width] = rows
            choices[-1, width] = 1
            shares = softmax(choices @ found)
            wanted = np.zeros(len(shares))
            wanted[len(rows) if answer is None else answer] = 1
            slope += weight * choices.T @ (shares - wanted)
            curve += weight * choices.T @ ((np.diag(shares) - np.outer(shares, shares)) @ choices)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-6:
            break
    return found


def logistic(
    rows: Array, right: Array, weights: Array, *, ridge: float, offset: Array | float = 0.0
) -> Array:
    """Weights of a logistic regression; the first column of `rows` is 1 and is not held small.

    `offset` is added to every row's score.
    """
    found = np.zeros(rows.shape[1])
    penalty = np.full(rows.shape[1], ridge)
    penalty[0] = 1e-6
    for _ in range(60):
        chance = 1 / (1 + np.exp(-rows @ found - offset))
        slope = rows.T @ (weights * (chance - right)) + penalty * found
        curve = (rows.T * (weights * chance * (1 - chance))) @ rows + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-7:
            break
    return found


def classes(
    rows: Array, labels: Sequence[str], names: Sequence[str], *, ridge: float, steps: int = 400
) -> Array:
    """Weights (width × classes) of a multinomial logistic regression, classes weighted alike in part."""
    index = np.array([names.index(label) for label in labels])
    wanted = np.eye(len(names))[index]
    share = np.bincount(index, minlength=len(names)) / len(index)
    weights = (1 / np.sqrt(np.maximum(share, 1e-3)))[index]
    weights /= weights.mean()
    found = np.zeros((rows.shape[1], len(names)))
    look = found.copy()
    largest = np.linalg.norm(rows, 2) ** 2 / len(rows) * weights.max() / 2 + ridge
    for step in range(steps):
        slope = rows.T @ (weights[:, None] * (softmax(rows @ look) - wanted)) / len(rows) + ridge * look
        following = look - slope / largest
        look = following + step / (step + 3) * (following - found)
        found = following
    return found


def softmax(values: Array) -> Array:
    shares = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(shares / shares.sum(-1, keepdims=True))


def wilson(successes: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if count == 0:
        return 0.0, 1.0
    z = 1.96
    share = successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return float(middle - half), float(middle + half)
