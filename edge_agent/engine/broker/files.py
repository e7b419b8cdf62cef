"""`ctx.files`: UTF-8 text files of a declared folder."""

from __future__ import annotations

import asyncio

from edge_agent.engine.broker.folders import DeclaredFolder
from edge_agent.engine.broker.limits import MAX_TEXT_BYTES
from edge_agent.errors import StyleEyesError


async def read_text(folder: DeclaredFolder, name: str) -> str:
    """The file's text. Raises StyleEyesError as `DeclaredFolder.read` does; `TOOL_ERROR` if not UTF-8."""
    data = await asyncio.to_thread(folder.read, name, MAX_TEXT_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StyleEyesError(
            "TOOL_ERROR",
            f"`{name[:120]}` is not UTF-8 text (byte {error.start}).",
            "`ctx.files` reads text only; store the file as UTF-8.",
        ) from None


async def write_text(folder: DeclaredFolder, name: str, text: str) -> int:
    """Replaces the file by `text`, whole or not at all; gives the bytes written.

    Raises StyleEyesError: `FILE_TOO_LARGE` past 262,144 bytes, else as `DeclaredFolder.write` does.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise StyleEyesError(
            "TOOL_ERROR", "The text holds half of a surrogate pair, which UTF-8 cannot store."
        ) from None
    if len(data) > MAX_TEXT_BYTES:
        raise StyleEyesError(
            "FILE_TOO_LARGE",
            f"The text is {len(data):,} bytes; a text file holds at most {MAX_TEXT_BYTES:,}.",
            "Write less, or split it over several files.",
        )
    # Cancelling leaves the thread to end by itself: a write that was begun is never half of one.
    await asyncio.to_thread(folder.write, name, data)
    return len(data)


async def list_names(folder: DeclaredFolder) -> list[str]:
    """The names of the folder's files, sorted; an absent folder is an empty one."""
    return await asyncio.to_thread(folder.names)
