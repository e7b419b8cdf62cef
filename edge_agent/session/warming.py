"""Looking at the catalog's photos behind the wearer's back, so that questions find them looked at."""

from __future__ import annotations

import asyncio

from device.clock import Clock
from edge_agent.agent.models.protocol import ChatModel, LooksAhead
from edge_agent.errors import StyleEyesError
from edge_agent.events import Notice, Preparing, Spine, new_span
from edge_agent.home import AgentFolder
from edge_agent.styleeyes.photo_list import read_photo_list

WHAT = "catalog photos"
TELL_EVERY_S = 1.0
"""Progress is told no oftener than this, so that the log does not fill with it."""


async def look_at_catalog(
    model: ChatModel, agent: AgentFolder, *, idle: asyncio.Event, spine: Spine, clock: Clock, parent: str
) -> None:
    """Has a model that can look ahead look at the agent's catalog photos; nothing for any other model.

    It goes on only while `idle` is set. Progress and trouble are events; nothing is raised for them.
    """
    if not isinstance(model, LooksAhead) or not agent.catalog.exists():
        return
    span = new_span("ahead")
    told_at = clock.monotonic()

    def tell(done: int, total: int) -> None:
        spine.emit(Preparing(what=WHAT, done=done, total=total), span=span, parent=parent)

    try:
        photos = await asyncio.to_thread(read_photo_list, agent.catalog, agent.data / "photos")
        if not photos:
            return
        tell(0, len(photos))

        async def between(done: int) -> None:
            nonlocal told_at
            now = clock.monotonic()
            if done == len(photos) or now - told_at >= TELL_EVERY_S:
                told_at = now
                tell(done, len(photos))
            await idle.wait()

        await model.look_ahead(photos, between)
    except StyleEyesError as error:
        notice = Notice(level="warn", code=error.code, message=error.message, hint=error.hint)
        spine.emit(notice, span=new_span("notice"), parent=parent)
