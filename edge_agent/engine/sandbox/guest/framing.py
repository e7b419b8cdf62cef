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


class FrameError(Exception):
    """The other side sent something that is no frame."""


def pack(header: dict[str, Any], body: str = "null") -> bytes:
    """A whole frame, length included. `body` may be any JSON text. Raises FrameError if too large."""
    head = _encode(header)
    payload = f"{head}\n{body}".encode("ascii", ESCAPES)
    if len(payload) > MAX_FRAME or len(head) > MAX_HEADER:
        raise FrameError(f"a frame of {len(payload)} bytes is too large")
    return LENGTH.pack(len(payload)) + payload


def parse(payload: bytes) -> tuple[dict[str, Any], str]:
    """The header and the body's text (not parsed). Raises FrameError."""
    if not payload.isascii():
        raise FrameError("not ASCII")
    head, newline, body = payload.partition(b"\n")
    if not newline or len(head) > MAX_HEADER:
        raise FrameError("no header")
    try:
        header = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise FrameError("the header is not JSON") from error
    if not isinstance(header, dict):
        raise FrameError("the header is not an object")
    return header, body.decode("ascii")


class FrameBuffer:
    """Cuts a stream of bytes into payloads; holds at most one unfinished frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads completed by `data`, in order. Raises FrameError on an oversized length."""
        self._held += data
        done: list[bytes] = []
        start = 0
        while len(self._held) - start >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._held, start)
            if size > MAX_FRAME:
                raise FrameError(f"a frame of {size} bytes is too large")
            end = start + LENGTH.size + size
            if len(self._held) < end:
                break
            done.append(bytes(self._held[start + LENGTH.size : end]))
            start = end
        del self._held[:start]
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
