"""The process of one tool revision in one session: loaded once, kept between calls, replaced when it ends."""

from __future__ import annotations

import asyncio

from edge_agent.engine.inspection import InspectedTool
from edge_agent.engine.sandbox.api import Guest, Sandbox
from edge_agent.errors import StyleEyesError


class PinnedGuest:
    """Holds `tool` and its guest. Whoever uses the guest holds `turn`.

    Calls of the same tool wait for each other: a session has one process a tool, its module's variables
    are shared by its calls, and two at once would see each other's.
    """

    def __init__(self, tool: InspectedTool, sandbox: Sandbox, guest: Guest | None = None) -> None:
        self.tool = tool
        self.turn = asyncio.Lock()
        self._sandbox = sandbox
        self._guest = guest
        self._closed = False

    async def ready(self, timeout_s: float) -> Guest:
        """The loaded guest; a new one where the last has ended.

        Raises GuestError where it cannot be loaded, StyleEyesError once the session is closed.
        """
        if self._guest is None or not self._guest.alive:
            self._refuse_closed()
            guest = await self._sandbox.guest()
            try:
                await guest.load(self.tool.source.data, self.tool.file.path.name, timeout_s=timeout_s)
                self._refuse_closed()
            except BaseException:
                await guest.kill()
                raise
            self._guest = guest
        return self._guest

    async def end(self) -> None:
        """Ends the process and lets no new one start."""
        self._closed = True
        guest, self._guest = self._guest, None
        if guest is not None:
            await guest.kill()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StyleEyesError("CANCELLED", "The session was closed before the tool could run.")
