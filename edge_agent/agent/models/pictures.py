"""Pictures made fit for a model: small enough to be quick and cheap, still good enough to compare.

Providers scale pictures down on their side; what is larger than that costs upload time and
nothing else. 1024 pixels on the long side keep a seam or a small logo readable.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from edge_agent.agent.models.protocol import Message, UserMessage
from edge_agent.engine.ports import HostImage
from edge_agent.errors import StyleEyesError

LONG_SIDE = 1024
JPEG_QUALITY = 85
_KEPT = 8


class PictureFitter:
    """Fits pictures, and remembers the last few: a turn sends the same frame with every step."""

    def __init__(self, long_side: int = LONG_SIDE) -> None:
        self._long_side = long_side
        self._done: OrderedDict[bytes, HostImage] = OrderedDict()

    def fit(self, image: HostImage) -> HostImage:
        """`image` as a JPEG of at most `long_side` pixels; a JPEG that already fits stays as it is.

        Raises StyleEyesError MODEL_ERROR where the picture does not decode. CPU-bound: call it in
        a thread.
        """
        known = self._done.get(image.data)
        if known is None:
            known = self._fit(image)
            self._done[image.data] = known
            while len(self._done) > _KEPT:
                self._done.popitem(last=False)
        else:
            self._done.move_to_end(image.data)
        return known

    def forget(self) -> None:
        """Drops every remembered picture."""
        self._done.clear()

    def _fit(self, image: HostImage) -> HostImage:
        longest = max(image.width, image.height)
        if image.mime_type == "image/jpeg" and longest <= self._long_side:
            return image
        pixels = _decoded(image)
        height, width = pixels.shape[:2]
        scale = min(1.0, self._long_side / max(height, width))
        if scale < 1.0:
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
            pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
        ok, encoded = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        if not ok:
            raise _unreadable(image)
        return HostImage(
            data=encoded.tobytes(),
            mime_type="image/jpeg",
            width=pixels.shape[1],
            height=pixels.shape[0],
            source=image.source,
        )


def _decoded(image: HostImage) -> NDArray[np.uint8]:
    """BGR pixels, upright; a see-through background becomes white, as a shop would show it."""
    raw = np.frombuffer(image.data, np.uint8)
    # IMREAD_COLOR turns a JPEG upright by its EXIF note but drops transparency; JPEG has none.
    mode = cv2.IMREAD_COLOR if image.mime_type == "image/jpeg" else cv2.IMREAD_UNCHANGED
    loaded = cv2.imdecode(raw, mode) if raw.size else None
    if loaded is None:
        raise _unreadable(image)
    sixteen_bit = loaded.dtype == np.uint16
    pixels = np.asarray(loaded // 256 if sixteen_bit else loaded, np.uint8)
    if pixels.ndim == 2:
        pixels = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2BGR), np.uint8)
    elif pixels.shape[2] == 4:
        alpha = pixels[:, :, 3:].astype(np.uint16)
        blended = (pixels[:, :, :3].astype(np.uint16) * alpha + 255 * (255 - alpha)) // 255
        pixels = blended.astype(np.uint8)
    return pixels


def _unreadable(image: HostImage) -> StyleEyesError:
    return StyleEyesError(
        "MODEL_ERROR",
        f"The picture {image.source} cannot be read.",
        "Check that the file is a whole JPEG, PNG or WebP picture.",
    )


def fitted(messages: Sequence[Message], fit: Callable[[HostImage], HostImage]) -> list[Message]:
    """`messages` with every picture fitted for the model."""
    return [
        UserMessage(text=message.text, images=[fit(image) for image in message.images])
        if isinstance(message, UserMessage) and message.images
        else message
        for message in messages
    ]


def image_bytes_of(messages: Sequence[Message]) -> int:
    """How much of pictures is sent, in bytes."""
    return sum(len(i.data) for m in messages if isinstance(m, UserMessage) for i in m.images)
