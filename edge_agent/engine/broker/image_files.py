"""Checking that bytes are an image of bounded size: the header first, the pixels only then."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from edge_agent.engine.broker.limits import MAX_IMAGE_PIXELS
from edge_agent.errors import StyleEyesError

_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What an image says of itself; width and height in pixels, as stored."""

    mime_type: str
    width: int
    height: int


def read_header(data: bytes) -> ImageHeader | None:
    """The header of a JPEG (ITU T.81), PNG (ISO 15948) or WebP (RFC 9649); None for anything else."""
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return ImageHeader("image/png", width, height)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return None


def check_image(data: bytes, shown: str) -> ImageHeader:
    """The header of an image that really decodes; slow for a large one, so run it in a thread.

    Raises StyleEyesError: `NOT_FOUND` for what is no image, `FILE_TOO_LARGE` past the pixel limit.
    """
    header = read_header(data)
    if header is None or header.width < 1 or header.height < 1:
        raise _no_image(shown)
    if header.width * header.height > MAX_IMAGE_PIXELS:
        raise StyleEyesError(
            "FILE_TOO_LARGE",
            f"`{shown}` has {header.width}×{header.height} pixels; at most {MAX_IMAGE_PIXELS:,} are read.",
            "Store a smaller copy.",
        )
    # OpenCV takes 0.3 s to load, and most tools open no image file.
    import cv2
    import numpy as np

    try:
        # An eighth of the size is enough to know that it decodes, and a JPEG decodes far faster so.
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_REDUCED_GRAYSCALE_8)
    except cv2.error:
        raise _no_image(shown) from None
    if pixels is None:
        raise _no_image(shown)
    return header


def _jpeg(data: bytes) -> ImageHeader | None:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return ImageHeader("image/jpeg", width, height)
        else:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            if length < 2:
                return None
            at += 2 + length
    return None


def _webp(data: bytes) -> ImageHeader | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
    elif kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width = int.from_bytes(data[26:28], "little") & 0x3FFF
        height = int.from_bytes(data[28:30], "little") & 0x3FFF
    else:
        return None
    return ImageHeader("image/webp", width, height)


def _no_image(shown: str) -> StyleEyesError:
    return StyleEyesError(
        "NOT_FOUND",
        f"`{shown}` is not a readable image.",
        "JPEG, PNG and WebP can be opened; the file may be broken or cut short.",
    )
