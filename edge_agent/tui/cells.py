"""Text whose width every terminal agrees on.

Terminals and libraries measure joined emoji, variation selectors, skin tones, keycaps and flags
differently, and a row that is one cell longer than thought breaks every border after it. For the
screen alone, such sequences are taken apart into characters of undisputed width; the log keeps them.
"""

from __future__ import annotations

import re

_DISPUTED = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")


def steady(text: str) -> str:
    """`text` without joiners, selectors, skin tones and tags; flags become their two letters."""
    if text.isascii():
        return text
    letters = _FLAG_LETTER.sub(lambda match: chr(ord(match[0]) - 0x1F1E6 + ord("A")), text)
    return _DISPUTED.sub("", letters)
