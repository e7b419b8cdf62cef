"""What the screen needs of a session, and nothing more: the one door between the app and the rest.

`edge_agent.session.session.Session` satisfies it; tests put a scripted session behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from edge_agent.events import SessionStarted, Spine


class CameraStatusView(Protocol):
    """The camera as a person reads it. `age_ms` is that of the newest frame, None without one."""

    @property
    def state(self) -> str: ...
    @property
    def words(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def age_ms(self) -> float | None: ...
    @property
    def fps(self) -> float | None: ...
    @property
    def width(self) -> int | None: ...
    @property
    def height(self) -> int | None: ...
    @property
    def sharpness(self) -> float | None: ...


class FrameView(Protocol):
    """A frame to draw. `received` is monotonic seconds of the session's clock."""

    @property
    def id(self) -> str: ...
    @property
    def received(self) -> float: ...
    @property
    def sharpness(self) -> float | None: ...
    def bgr(self) -> Any:
        """uint8, height × width × 3, blue first; may take milliseconds, so never on the UI thread."""
        ...


class CameraView(Protocol):
    @property
    def status(self) -> CameraStatusView: ...
    def newest(self) -> FrameView | None:
        """The newest frame, at most 15.0 s old; None where there is none."""
        ...


class SessionPort(Protocol):
    """A session that the screen opens, asks, cancels and closes.

    `spine` is there from the start, so that whatever happens while opening is seen; `facts` and
    `camera` once `open` has returned.
    """

    @property
    def spine(self) -> Spine: ...
    @property
    def facts(self) -> SessionStarted: ...
    @property
    def camera(self) -> CameraView: ...

    async def open(self) -> None:
        """Opens camera, tools and model. Raises StyleEyesError or DeviceError; may take seconds."""
        ...

    async def ask(self, question: str, /) -> object:
        """One turn, told through events; a failed turn is an event, not an exception."""
        ...

    def cancel_turn(self) -> None:
        """Stops the running turn and the host's work for it; nothing happens without one."""
        ...

    async def aclose(self) -> None: ...


SessionFactory = Callable[[], SessionPort]
"""Makes a session that is not open yet; cheap."""
