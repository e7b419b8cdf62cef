"""`ctx.images`: opening a picture of a declared folder as a handle."""

from __future__ import annotations

import asyncio

from edge_agent.engine.broker.folders import DeclaredFolder
from edge_agent.engine.broker.image_files import check_image
from edge_agent.engine.broker.limits import MAX_IMAGE_FILE_BYTES
from edge_agent.engine.ports import HostImage


async def open_image(folder: DeclaredFolder, alias: str, name: str) -> HostImage:
    """Reads and checks `name`; the source that tool and log see is `alias/name`.

    Raises StyleEyesError as `DeclaredFolder.read` and `check_image` do.
    """

    def read() -> HostImage:
        data = folder.read(name, MAX_IMAGE_FILE_BYTES)
        header = check_image(data, f"{alias}/{name}")
        return HostImage(data, header.mime_type, header.width, header.height, f"{alias}/{name}")

    return await asyncio.to_thread(read)
