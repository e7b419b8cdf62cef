"""A picture at a glance, 16 × 12 cells: enough to tell whether two frames look at the same thing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_COLUMNS, _ROWS = 16, 12
_SAME_VIEW = 0.65
"""Least likeness of one view. On handheld clips frames of one garment within a second have 0.6 to 1.0,
frames before and after a change 0.55 at most; where in doubt a snapshot stays with what is newer."""

_FAINT = 3.0
"""Cells that differ by a few grey levels are no evidence of anything: a wall, a covered lens."""


@dataclass(frozen=True, slots=True, eq=False)
class Glance:
    """Grey levels of the cells, their mean taken out, so that a change of light is no change of view."""

    cells: npt.NDArray[np.float32]

    def likeness(self, other: Glance) -> float:
        """The correlation of two glances, 1 for the same view; faint ones are alike."""
        faint = _FAINT**2 * self.cells.size
        scale = float(np.linalg.norm(self.cells) * np.linalg.norm(other.cells))
        return (float(np.dot(self.cells, other.cells)) + faint) / (scale + faint)

    def same_view(self, other: Glance) -> bool:
        return self.likeness(other) >= _SAME_VIEW


def glance_at(plane: npt.NDArray[np.uint8]) -> Glance:
    """The glance of a grey picture of any size."""
    from device.opencv import cv2

    cells = cv2.resize(plane, (_COLUMNS, _ROWS), interpolation=cv2.INTER_AREA).astype(np.float32).ravel()
    return Glance(cells - cells.mean())
