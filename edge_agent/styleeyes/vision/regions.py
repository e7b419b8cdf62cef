"""Where the garments are: soft classes for each patch of a picture, and the regions made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import cv2
import numpy as np

from edge_agent.styleeyes.vision.heads import RegionHead
from edge_agent.styleeyes.vision.picture import Floats, Pixels

Region = Literal["upper", "lower", "full", "shoes"]
"""What a garment covers; a dress or an overall is `full`."""
REGIONS: tuple[Region, ...] = get_args(Region)

BACKGROUND, SKIN, UPPER, OUTER, LOWER, DRESS, SHOES, ACCESSORY = range(8)
"""Classes of the region heads, in the order of their outputs."""

# A jacket and what is under it are told apart badly, and the lower half of a top is often taken for
# a dress: regions are sums of classes.
_WEIGHTS: dict[Region, tuple[tuple[int, float], ...]] = {
    "upper": ((UPPER, 1.0), (OUTER, 1.0), (DRESS, 0.5)),
    "lower": ((LOWER, 1.0), (DRESS, 0.5)),
    "full": ((UPPER, 1.0), (OUTER, 1.0), (LOWER, 1.0), (DRESS, 1.0)),
    "shoes": ((SHOES, 1.0), (ACCESSORY, 0.3)),
}
_PERSON_SHARE = 0.012
_ZOOM_BELOW = 0.35
_LEAST_ASPECT = 0.75
_LEAST_AREA = 0.008


@dataclass(frozen=True, slots=True)
class PatchClasses:
    """`shares`: grid × grid × 8, the soft class of each patch of the stretched picture."""

    shares: Floats

    def mask(self, region: Region) -> Floats:
        """Grid × grid, from 0 to 1: how much of each patch belongs to the region."""
        parts = (weight * self.shares[..., index] for index, weight in _WEIGHTS[region])
        return np.asarray(np.clip(sum(parts), 0, 1), np.float32)

    def area(self, region: Region) -> float:
        """Share of the picture that the region covers."""
        return float(self.mask(region).mean())

    def holds(self, region: Region) -> bool:
        return self.area(region) >= _LEAST_AREA

    @property
    def person(self) -> bool:
        """Whether skin or hair is in view."""
        return float((self.shares[..., SKIN] > 0.5).mean()) > _PERSON_SHARE

    def dominant(self) -> Region | None:
        """The garment that the picture is about: the largest, nearer the middle first; None without any."""
        grid = self.shares.shape[0]
        away = np.abs(np.linspace(-1, 1, grid))
        centre = 1.0 - 0.5 * np.maximum(away[:, None], away[None, :])
        mass = (self.shares * centre[..., None]).mean((0, 1))
        upper, lower, dress, shoes = mass[UPPER] + mass[OUTER], mass[LOWER], mass[DRESS], mass[SHOES]
        if max(upper, lower, dress, shoes) < _LEAST_AREA:
            return None
        if dress > 1.2 * (upper + lower):
            return "full"
        sizes: dict[Region, float] = {"upper": upper + 0.3 * dress, "lower": lower, "shoes": shoes}
        return max(sizes, key=lambda region: sizes[region])

    def zoom(self, pixels: Pixels) -> Pixels | None:
        """The part around the person or garment where that is small in the picture, else None."""
        seen = (self.shares[..., BACKGROUND] < 0.5).astype(np.uint8)
        count, _labels, stats, _centres = cv2.connectedComponentsWithStats(seen, connectivity=8)
        if count < 2:
            return None
        left, top, width, height = stats[1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])), :4]
        grid = self.shares.shape[0]
        if width * height > _ZOOM_BELOW * grid * grid or width * height < 6:
            return None
        rows, columns = pixels.shape[:2]
        wide, high = (width + 2) * columns / grid, (height + 2) * rows / grid
        # A crop much narrower than product photos would be stretched out of its shape.
        wide, high = max(wide, _LEAST_ASPECT * high), max(high, _LEAST_ASPECT * wide)
        middle_x, middle_y = (left + width / 2) * columns / grid, (top + height / 2) * rows / grid
        x0, x1 = (round(min(columns, max(0, middle_x + side * wide / 2))) for side in (-1, 1))
        y0, y1 = (round(min(rows, max(0, middle_y + side * high / 2))) for side in (-1, 1))
        return pixels[y0:y1, x0:x1] if min(x1 - x0, y1 - y0) >= 32 else None


def parse_tokens(final: Floats, head: RegionHead) -> PatchClasses:
    """Classes by the region head from the encoder's final tokens."""
    hidden = np.maximum(final @ head.hidden + head.hidden_bias, 0)
    logits = hidden @ head.out + head.out_bias
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    grid = round(len(shares) ** 0.5)
    return PatchClasses(shares.reshape(grid, grid, -1).astype(np.float32))


def parse_by_colour(pixels: Pixels, grid: int) -> PatchClasses:
    """Basic vision without weights: GrabCut takes the background away, a colour rule the skin.

    What is left counts as one garment, which cannot be told to be an upper or a lower one.
    """
    side = 6 * grid
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    mask = np.zeros((side, side), np.uint8)
    edge = max(2, side // 16)
    models = (np.zeros((1, 65)), np.zeros((1, 65)))
    cv2.setRNGSeed(1)
    inner = (edge, edge, side - 2 * edge, side - 2 * edge)
    cv2.grabCut(small, mask, inner, *models, 3, cv2.GC_INIT_WITH_RECT)
    front = ((mask == cv2.GC_FGD) | (mask == cv2.GC_PR_FGD)).astype(np.float32)
    if front.mean() < 0.02:
        front[side // 4 : -side // 4, side // 4 : -side // 4] = 1
    # Skin in YCrCb: Chai & Ngan 1999, with a floor on brightness.
    y, cr, cb = np.moveaxis(cv2.cvtColor(small, cv2.COLOR_BGR2YCrCb).astype(np.int16), 2, 0)
    skin = ((cr >= 135) & (cr <= 173) & (cb >= 85) & (cb <= 127) & (y > 60)).astype(np.float32) * front
    if skin.sum() > 0.8 * front.sum():
        skin[:] = 0
    shares = np.zeros((grid, grid, 8), np.float32)
    shares[..., SKIN] = cv2.resize(skin, (grid, grid), interpolation=cv2.INTER_AREA)
    shares[..., UPPER] = cv2.resize(front - skin, (grid, grid), interpolation=cv2.INTER_AREA)
    shares[..., BACKGROUND] = 1 - shares[..., SKIN] - shares[..., UPPER]
    return PatchClasses(shares)
