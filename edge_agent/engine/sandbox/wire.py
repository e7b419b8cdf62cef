"""Frames from and to one untrusted process, on the event loop, without ever waiting for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

from edge_agent.engine.sandbox.guest import framing

_LOGGER = logging.getLogger(__name__)
_READ_BYTES = 64 * 1024

FrameHandler = Callable[[dict[str, Any], str], None]
"""Called with a frame's header and body text, on the event loop."""


class Wire:
    """A stream socket that carries frames.

    At most 64 KiB are read a turn of the event loop, so that one flooding process cannot starve the
    others. `on_close` is called once, with what was wrong, or None where the other side just ended.
    """

    def __init__(
        self,
        channel: socket.socket,
        on_frame: FrameHandler,
        on_close: Callable[[str | None], None],
    ) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._on_frame = on_frame
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._buffer = framing.FrameBuffer()
        self._unsent = bytearray()
        self._drained = asyncio.Event()
        self._drained.set()
        self._open = True
        self._loop.add_reader(channel, self._read)

    def send(self, frame: bytes) -> None:
        """Sends or holds `frame`; nothing where the wire is closed."""
        if not self._open:
            return
        if not self._unsent:
            try:
                sent = self._channel.send(frame)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._fail(None)
                return
            if sent == len(frame):
                return
            frame = frame[sent:]
            self._loop.add_writer(self._channel, self._write)
            self._drained.clear()
        self._unsent += frame

    async def drain(self) -> None:
        """Returns when nothing is held back (or the wire closed)."""
        if self._unsent:
            await self._drained.wait()

    def close(self) -> None:
        """Closes the socket; `on_close` is not called for this."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()
        self._unsent.clear()
        self._drained.set()

    def _read(self) -> None:
        try:
            data = self._channel.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._fail(None)
            return
        try:
            for payload in self._buffer.feed(data):
                header, body = framing.parse(payload)
                if self._open:
                    self._on_frame(header, body)
        except framing.FrameError as error:
            self._fail(f"it sent no frame: {error}")
        except Exception:  # the border to untrusted words: a fault of ours must not hang a run
            _LOGGER.exception("a frame could not be handled")
            self._fail("it sent a frame that cannot be handled")

    def _write(self) -> None:
        try:
            with contextlib.suppress(BlockingIOError):
                del self._unsent[: self._channel.send(self._unsent)]
        except OSError:
            self._fail(None)
            return
        if not self._unsent:
            self._loop.remove_writer(self._channel)
            self._drained.set()

    def _fail(self, problem: str | None) -> None:
        if self._open:
            self.close()
            self._on_close(problem)
