"""Frames between host, launcher and guest: a length, a JSON header line, a JSON body line.

A frame is four bytes of length (big endian) and so many bytes of ASCII: `header "\\n" body`. The
header is a small JSON object; the body is any JSON and is passed on as text, so that it is parsed
only where its meaning is known. Both ends hold the same limits. Runs on both sides of the border.
"""

from __future__ import annotations

import codecs
import json
import re
import struct
from typing import Any

MAX_FRAME = 2 * 1024 * 1024
"""Bytes. 262,144 bytes of UTF-8 grow at most sixfold as ASCII JSON; the rest is for the envelope."""
MAX_HEADER = 16 * 1024
MAX_DEPTH = 200
"""Nested arrays and objects in any body; Python's own JSON gives up near a thousand."""

WRAPPER_LINES = 1
"""Lines of a module's script before the author's first."""

LENGTH = struct.Struct(">I")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


ESCAPES = "json-escapes"
"""An error handler for `encode("ascii", …)` that writes what is not ASCII as `\\uXXXX`."""


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wide = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{wide[i]:02x}{wide[i + 1]:02x}" for i in range(0, len(wide), 2)), error.end


codecs.register_error(ESCAPES, _escape)
# Codecs are imported when first used, which a confined process could not do any more.
for _codec in ("ascii", "utf-8", "utf-16-be"):
    codecs.lookup(_codec)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().raw_decode


class FrameError(Exception):
    """The other side sent something that is no frame."""


def pack(header: dict[str, Any], body: str = "null") -> bytes:
    """A whole frame, length included. `body` may be any JSON text. Raises FrameError if too large."""
    return pack_text(_encode(header), body)


def pack_text(head: str, body: str = "null") -> bytes:
    """As `pack`, with a header that is JSON text already: for frames of which there are many."""
    payload = f"{head}\n{body}".encode("ascii", ESCAPES)
    if len(payload) > MAX_FRAME or len(head) > MAX_HEADER:
        raise FrameError(f"a frame of {len(payload)} bytes is too large")
    return LENGTH.pack(len(payload)) + payload


def parse(payload: bytes) -> tuple[dict[str, Any], str]:
    """The header and the body's text (not parsed). Raises FrameError."""
    try:
        text = payload.decode("ascii")
    except UnicodeDecodeError as error:
        raise FrameError("not ASCII") from error
    head, newline, body = text.partition("\n")
    if not newline or len(head) > MAX_HEADER:
        raise FrameError("no header")
    try:
        header, end = _decode(head)
    except (ValueError, RecursionError) as error:
        raise FrameError("the header is not JSON") from error
    if end != len(head) or not isinstance(header, dict):
        raise FrameError("the header is not an object")
    return header, body


class FrameBuffer:
    """Cuts a stream of bytes into payloads; holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._wanted = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads completed by `data`, in order. Raises FrameError on an oversized length."""
        if self._held:
            self._held += data
            # As long as one frame is unfinished, nothing of it is looked at or copied twice.
            if len(self._held) < self._wanted:
                return []
            data = bytes(self._held)
            self._held.clear()
        done: list[bytes] = []
        start, have = 0, len(data)
        while have - start >= LENGTH.size:
            (size,) = LENGTH.unpack_from(data, start)
            if size > MAX_FRAME:
                raise FrameError(f"a frame of {size} bytes is too large")
            end = start + LENGTH.size + size
            if have < end:
                break
            done.append(data[start + LENGTH.size : end])
            start = end
        if start < have:
            self._held += data[start:]
            short = have - start < LENGTH.size
            self._wanted = LENGTH.size if short else LENGTH.size + size
        return done


def too_deep(text: str, limit: int = MAX_DEPTH) -> bool:
    """Whether JSON text nests arrays and objects deeper than `limit`; linear in its length."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        first = match.group()[0]
        if first in "[{":
            depth += 1
            if depth > limit:
                return True
        elif first in "]}":
            depth -= 1
    return False
