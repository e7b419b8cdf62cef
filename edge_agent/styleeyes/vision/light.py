"""Whether a picture's light lets colours be judged: dark, over-exposed, cast, blurred."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from edge_agent.styleeyes.vision.picture import Pixels, lab

_SIDE = 96
_DARK_BELOW = 22.0
_DARK_TOP_BELOW = 42.0
_BRIGHT_SHARE = 0.55
_CAST_CHROMA = 17.0
_BLURRED_BELOW = 12.0


@dataclass(frozen=True, slots=True)
class Light:
    """`issues` holds "dark", "bright", "cast" and "blurred", in this order, as far as they apply."""

    issues: tuple[str, ...]
    lightness: float
    """Mean L* of the picture, 0 to 100."""

    @property
    def hides_colour(self) -> bool:
        """Whether colours in the picture cannot be trusted."""
        return "dark" in self.issues or "cast" in self.issues


def light_of(pixels: Pixels) -> Light:
    """Judges the whole picture.

    A cast shows where things are light and should be nearly white: in the lightest tenth, when
    hardly any of it is neutral and the hue is one and the same.
    """
    values = lab(pixels, _SIDE).reshape(-1, 3)
    lightness = values[:, 0]
    issues = []
    if lightness.mean() < _DARK_BELOW and np.quantile(lightness, 0.95) < _DARK_TOP_BELOW:
        issues.append("dark")
    grey = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
    if (grey >= 250).mean() > _BRIGHT_SHARE and lightness.mean() > 90:
        issues.append("bright")
    top = values[lightness >= np.quantile(lightness, 0.9)]
    colour = top[:, 1:]
    mean = colour.mean(0)
    same_hue = np.linalg.norm(mean) / max(float(np.linalg.norm(colour, axis=1).mean()), 1e-6)
    neutral = (np.linalg.norm(values[:, 1:], axis=1) < 8).mean()
    if np.linalg.norm(mean) > _CAST_CHROMA and same_hue > 0.9 and neutral < 0.03:
        issues.append("cast")
    scale = 480 / max(grey.shape)
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else grey
    if cv2.Laplacian(small, cv2.CV_32F).var() < _BLURRED_BELOW:
        issues.append("blurred")
    return Light(tuple(issues), float(lightness.mean()))
