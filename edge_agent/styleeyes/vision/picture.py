"""Pictures in and out of the vision room: decoding with limits, and CIE Lab."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.errors import StyleEyesError

Pixels = npt.NDArray[np.uint8]
"""Height × width × 3, BGR."""
Floats = npt.NDArray[np.float32]

MOST_PIXELS = 40_000_000
_DECODE_SIDE = 1024
"""Larger pictures are reduced first: all evidence but blur and noise is taken at 252 pixels and below."""


def decode(data: bytes) -> Pixels:
    """A JPEG, PNG or WebP picture as BGR pixels, at most 1024 a side.

    Raises StyleEyesError("BAD_IMAGE") for anything that is not a picture, or one beyond 40 megapixels.
    """
    pixels = None
    if data:
        try:
            pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        except cv2.error:
            pixels = None
    if pixels is None or min(pixels.shape[:2]) < 8:
        raise StyleEyesError("BAD_IMAGE", "The picture cannot be decoded.", "Use a JPEG, PNG or WebP photo.")
    height, width = pixels.shape[:2]
    if height * width > MOST_PIXELS:
        raise StyleEyesError("BAD_IMAGE", "The picture is larger than 40 megapixels.", "Use a smaller photo.")
    scale = _DECODE_SIDE / max(height, width)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return np.asarray(pixels, np.uint8)


def lab(pixels: Pixels, side: int) -> Floats:
    """CIE L*a*b* (D65; L* 0…100) of the picture stretched to `side` × `side`."""
    small = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.cvtColor(small.astype(np.float32) / 255, cv2.COLOR_BGR2LAB), np.float32)
