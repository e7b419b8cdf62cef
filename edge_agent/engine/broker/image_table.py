"""The images of one tool run: opaque handles outside, encoded pixels here."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from edge_agent.engine.broker.limits import MAX_RUN_IMAGE_BYTES
from edge_agent.engine.ports import HostImage
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue


class ImageTable:
    """Gives out image handles and knows which image each one stands for.

    One table belongs to one run and dies with it, so a handle that was forged, or kept from another
    run, stands for nothing. An id carries 96 random bits; the other fields of a handle are only for
    the tool to read and are never looked at again.
    """

    def __init__(self) -> None:
        self._images: dict[str, HostImage] = {}
        self._bytes = 0

    def add(self, image: HostImage, extra: Mapping[str, JsonValue] | None = None) -> JsonObject:
        """A new handle for `image`, with `extra` fields. Raises StyleEyesError("FILE_TOO_LARGE")."""
        if self._bytes + len(image.data) > MAX_RUN_IMAGE_BYTES:
            raise StyleEyesError(
                "FILE_TOO_LARGE",
                f"This run's images are over {MAX_RUN_IMAGE_BYTES // 2**20} MiB together.",
                "Open fewer or smaller images.",
            )
        self._bytes += len(image.data)
        key = f"img-{secrets.token_hex(12)}"
        self._images[key] = image
        return {
            "kind": "image",
            "id": key,
            "width": image.width,
            "height": image.height,
            "mimeType": image.mime_type,
            "source": image.source,
            **(extra or {}),
        }

    def find(self, handle: JsonValue) -> HostImage | None:
        """The image that `handle` stands for, or None where it is no handle of this run."""
        if not isinstance(handle, Mapping) or handle.get("kind") != "image":
            return None
        key = handle.get("id")
        return self._images.get(key) if isinstance(key, str) else None
