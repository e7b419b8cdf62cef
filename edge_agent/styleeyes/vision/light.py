"""Whether a picture's light lets colours be judged: dark, over-exposed, cast, blurred."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from edge_agent.styleeyes.vision.picture import Floats, Pixels, lab

_SIDE = 96
_DARK_BELOW = 22.0
_DARK_TOP_BELOW = 42.0
_DIM_TOP_BELOW = 60.0
_NOISE_SEEN = 2.5
_UNLIT_TOP_BELOW = 50.0
_UNLIT_CHROMA = 15.0
_BRIGHT_SHARE = 0.55
_CAST_CHROMA = 17.0
_BLURRED_BELOW = 12.0
_NOISE_BLOCK = 16


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
    tenth, twentieth, hundredth = np.quantile(lightness, (0.9, 0.95, 0.99))
    grey = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY), np.uint8)
    issues = []
    if _is_dark(values, float(twentieth), float(hundredth), grey):
        issues.append("dark")
    if lightness.mean() > 90 and (grey >= 250).mean() > _BRIGHT_SHARE:
        issues.append("bright")
    colour = values[lightness >= tenth, 1:]
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


def _is_dark(values: Floats, twentieth: float, hundredth: float, grey: Pixels) -> bool:
    """A camera without light shows nothing bright, and noise where its sensor is turned up.

    Nearly black throughout; or nothing but dim greys; or dim with noise that can be seen.
    """
    lightness = values[:, 0]
    if lightness.mean() < _DARK_BELOW and twentieth < _DARK_TOP_BELOW:
        return True
    if hundredth >= _DIM_TOP_BELOW:
        return False
    top = values[lightness >= hundredth, 1:]
    unlit = hundredth < _UNLIT_TOP_BELOW and float(np.linalg.norm(top, axis=1).mean()) < _UNLIT_CHROMA
    return unlit or noise_of(grey) >= _NOISE_SEEN


def noise_of(grey: Pixels) -> float:
    """The deviation of pixel noise in grey levels: of the finest diagonal detail in smooth places.

    The mean size of the Haar transform's diagonal coefficients (0.798 of a Gaussian's deviation) in
    blocks of 32 × 32 pixels, of which the smoothest fifth counts.
    """
    height, width = (side // (2 * _NOISE_BLOCK) * 2 * _NOISE_BLOCK for side in grey.shape[:2])
    if not height or not width:
        return 0.0
    levels = grey[:height, :width].astype(np.int16)
    rows = levels[::2] - levels[1::2]
    detail = np.abs(rows[:, ::2] - rows[:, 1::2]).astype(np.float32) / 2
    blocks = detail.reshape(
        height // (2 * _NOISE_BLOCK), _NOISE_BLOCK, width // (2 * _NOISE_BLOCK), _NOISE_BLOCK
    )
    return float(np.quantile(blocks.mean((1, 3)), 0.2)) / 0.798
