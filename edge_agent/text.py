"""Untrusted text made safe to show and store.

Text from models, tools, files and cameras can carry terminal escapes, C0/C1 controls and
bidirectional overrides (which reorder what a person reads, CVE-2021-42574). `sanitise` is the one
place that removes them; the event spine applies it to every string of every event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# CSI, OSC/DCS/SOS/PM/APC strings (terminated by BEL or ST, or running to the end), and two-byte
# escapes (ECMA-48 section 5); then the other controls but tab and newline, the bidirectional
# controls, and lone surrogates, which cannot be written as UTF-8.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufeff\ud800-\udfff]"
)


def sanitise(text: str) -> str:
    """`text` without escape sequences, control, bidirectional and unpaired surrogate characters.

    Newlines and tabs stay; CR LF becomes LF. The result is safe for a terminal and for UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def visible(name: str) -> str:
    """A file's name as text that is safe like `sanitise`d text and loses nothing: what cannot be printed
    is written as an escape, `\\x9d`. (Removing it would make one name look like another.)
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


class SecretMask:
    """Replaces known secrets (keys, credentials) in text by a fixed mark."""

    MARK = "•••"
    _SHORTEST = 6

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({s for s in secrets if len(s) >= self._SHORTEST}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(self.MARK, text) if self._pattern else text


def one_line(text: str, limit: int = 160) -> str:
    """`text` on one line, at most `limit` characters, an ellipsis where it was cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
