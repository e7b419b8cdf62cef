"""How good a picture is: sharpness and exposure, measured cheaply on every frame.

Measured on the green plane (close to luma in weight) taken at every n-th pixel so that the longer
side is about 640: 0.7 ms for 1080p. Averaging instead would hide a blur of a few pixels, and costs
five times as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from device.glance import Glance, glance_at

Pixels = npt.NDArray[np.uint8]
"""Height × width × 3, blue-green-red, 8 bits."""

_LONG_SIDE = 640
_DARK_AT_MOST = 12
_BRIGHT_AT_LEAST = 250
_BLACK_SHARE = 0.98
_CLIPPED_SHARE = 0.6

ExposureWord = Literal["good", "dark", "bright", "black"]


@dataclass(frozen=True, slots=True)
class Exposure:
    """Mean brightness 0…255 and the shares (0…1) of pixels clipped to dark and to bright."""

    brightness: float
    dark_share: float
    bright_share: float

    @property
    def clipped_share(self) -> float:
        return self.dark_share + self.bright_share

    @property
    def word(self) -> ExposureWord:
        if self.dark_share >= _BLACK_SHARE:
            return "black"
        if self.dark_share >= _CLIPPED_SHARE:
            return "dark"
        return "bright" if self.bright_share >= _CLIPPED_SHARE else "good"


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """`sharpness` compares frames of one source only; `sample` is the plane it was measured on."""

    sharpness: float
    exposure: Exposure
    glance: Glance
    sample: Pixels

    def same_picture(self, other: Quality) -> bool:
        """Whether both show the very same picture, pixel for pixel.

        A live sensor's noise makes that as good as impossible, so a run of equal pictures means a
        driver that repeats its last one.
        """
        return self.sample.shape == other.sample.shape and bool(np.array_equal(self.sample, other.sample))


def measure(pixels: Pixels) -> Quality:
    """Sharpness and exposure of a picture of any size.

    Sharpness is 100 × the deviation of the Laplacian of a slightly smoothed plane (a Laplacian of
    Gaussian, so that sensor noise counts little; variance of the Laplacian as a focus measure is
    Pech-Pacheco et al., ICPR 2000) over the deviation of the plane itself, which takes out contrast
    and gain, so that a change of light does not look like a change of focus.
    """
    from device.opencv import cv2

    height, width = pixels.shape[:2]
    step = max(1, round(max(height, width) / _LONG_SIDE))
    sample: Pixels = np.ascontiguousarray(pixels[::step, ::step, 1])
    laplacian = cv2.Laplacian(cv2.GaussianBlur(sample, (3, 3), 0), cv2.CV_16S)
    edges = float(cv2.meanStdDev(laplacian)[1][0, 0])
    mean, deviation = cv2.meanStdDev(sample)
    counts = cv2.calcHist([sample], [0], None, [256], [0, 256]).ravel()
    exposure = Exposure(
        brightness=float(mean[0, 0]),
        dark_share=float(counts[: _DARK_AT_MOST + 1].sum()) / sample.size,
        bright_share=float(counts[_BRIGHT_AT_LEAST:].sum()) / sample.size,
    )
    # The constant keeps a picture without contrast (a wall, a covered lens) from scoring its own noise.
    return Quality(100.0 * edges / (float(deviation[0, 0]) + 5.0), exposure, glance_at(sample), sample)


def as_bgr(pixels: npt.NDArray[np.uint8]) -> Pixels:
    """What a back end handed out as height × width × 3; grey and BGRA pictures are converted."""
    from device.opencv import cv2

    if pixels.ndim == 2 or pixels.shape[2] == 1:
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR), dtype=np.uint8)
    if pixels.shape[2] == 4:
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGRA2BGR), dtype=np.uint8)
    return pixels
