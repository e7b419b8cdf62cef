"""Verification of the photos that notes refer to: only what can be opened and belongs here is kept.

A photo is left out when it does not exist, lies outside `data/photos` (links resolved), cannot be
decoded whole, has a size no garment can be seen at, or when the retailer's file name carries the
code of a different style and not that of its own.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

MAX_BYTES = 32 * 1024 * 1024
MIN_SIDE = 48
MAX_SIDE = 12_000
_LONGEST_CODE_IN_PARTS = 5
_PARTS = re.compile(r"[^\W_]+")
# `mh01black`: a code that runs straight into a word.
_CODE_MEETS_WORD = re.compile(r"(?<=\d)(?=[^\W\d_]{2})")


@dataclass(frozen=True, slots=True)
class VerifiedPhoto:
    """A photo that decodes; sizes in pixels and bytes."""

    width: int
    height: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why a photo is not in the catalog: a stable `reason` and a sentence of `detail`."""

    reason: str
    detail: str


def fold_code(text: str) -> str:
    """A style code as it is compared: lower-case letters and digits only (`POL-358` → `pol358`)."""
    return "".join(_PARTS.findall(unicodedata.normalize("NFKC", text).lower()))


def is_telling_code(style_id: str) -> bool:
    """Whether a style id, found in a file name, says something: `2` or `red` do not.

    Letters with digits need three characters, digits alone five, letters alone two parts and eight.
    """
    code = fold_code(style_id)
    if code.isdigit():
        return len(code) >= 5
    if any(character.isdigit() for character in code):
        return len(code) >= 3
    return len(code) >= 8 and len(_PARTS.findall(style_id)) >= 2


def codes_in_file_name(file: str) -> Iterator[str]:
    """Every folded text in a photo's file name that could be a style code, longest first."""
    stem = unicodedata.normalize("NFKC", file.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    parts = [piece for part in _PARTS.findall(stem.lower()) for piece in _CODE_MEETS_WORD.split(part)]
    for length in range(min(_LONGEST_CODE_IN_PARTS, len(parts)), 0, -1):
        for start in range(len(parts) - length + 1):
            yield "".join(parts[start : start + length])


def names_another_style(file: str, style_id: str, known: Callable[[str], str | None]) -> str | None:
    """The other style that a file name names, or None.

    `known(code)` gives the style id behind a folded code, if the catalog has it. A name that
    carries its own style's code beside another (an outfit) belongs to its own.
    """
    own = fold_code(style_id)
    other = None
    for code in codes_in_file_name(file):
        if code == own:
            return None
        if other is None:
            found = known(code)
            other = found if found and is_telling_code(found) else None
    return other


def verify_photo(folder: Path, file: str) -> VerifiedPhoto | LeftOut:
    """Opens and decodes `folder/file`. `folder` must already be resolved."""
    try:
        path = (folder / file).resolve()
        if not path.is_relative_to(folder):
            return LeftOut("outside", "lies outside the photos folder")
        if not path.is_file():
            return LeftOut("missing", "is not in the photos folder")
        size = path.stat().st_size
        if size > MAX_BYTES:
            return LeftOut("size", f"is larger than {MAX_BYTES // 1024**2} MiB")
        data = path.read_bytes()
    except (OSError, ValueError, RuntimeError) as wrong:
        return LeftOut("unreadable", f"cannot be read: {getattr(wrong, 'strerror', None) or wrong}")
    whole = _is_whole(data)
    if whole is None:
        return LeftOut("not-an-image", "is not a JPEG, PNG or WebP image")
    if not whole:
        return LeftOut("damaged", "ends in the middle of the picture")
    pixels = _decode(data)
    if pixels is None:
        return LeftOut("damaged", "cannot be decoded")
    height, width = pixels.shape[:2]
    if min(height, width) < MIN_SIDE or max(height, width) > MAX_SIDE:
        return LeftOut("size", f"is {width}×{height} pixels")
    return VerifiedPhoto(width, height, len(data), hashlib.sha256(data).hexdigest())


def _is_whole(data: bytes) -> bool | None:
    """Whether an image file reaches its end mark; None for other kinds of file.

    Decoders fill what is missing of a cut-off JPEG with grey and report success.
    """
    if data.startswith(b"\xff\xd8\xff"):
        # Inside a scan FF is always followed by 00 or a restart mark, so an end mark is a real one.
        return data.rfind(b"\xff\xd9") > data.rfind(b"\xff\xda")
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"IEND" in data[-4096:]
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return len(data) >= int.from_bytes(data[4:8], "little") + 8
    return None


def _decode(data: bytes) -> np.ndarray | None:
    try:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    except cv2.error:
        # Sizes past OpenCV's own bound, and broken streams in some decoders.
        return None
