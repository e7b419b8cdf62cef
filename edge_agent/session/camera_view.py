"""The camera as turns and tools see it: one good frame, fresh or not at all."""

from __future__ import annotations

import asyncio

from device.camera import Camera
from device.clock import iso_utc
from device.errors import DeviceError
from device.frame import FRESH_S, Frame
from device.status import CameraStatus
from edge_agent.engine.ports import CameraSnapshot, HostImage
from edge_agent.events import FrameRef


class CameraView:
    """A `CameraPort` over the live camera.

    Outside a turn each snapshot is the sharpest well-exposed frame of the last moments. Within a turn
    it is the frame picked when the wearer asked: by the time a second tool starts they may look
    elsewhere, and all tools of an answer should speak of one picture. Once that frame is 15.0 s old,
    or its source is gone, it is dropped and the last moments count again.
    """

    def __init__(self, camera: Camera) -> None:
        self._camera = camera
        self._in_turn = False
        self._turn_frame: Frame | None = None

    def begin_turn(self) -> None:
        """From now on the first frame that is taken serves until `end_turn`."""
        self._in_turn = True
        self._turn_frame = None

    def end_turn(self) -> None:
        self._in_turn = False
        self._turn_frame = None

    async def snapshot(self) -> CameraSnapshot:
        return await asyncio.to_thread(self._take)

    def _take(self) -> CameraSnapshot:
        for frame in (self._turn_frame, self._camera.snapshot().frame):
            if frame is None:
                continue
            try:
                jpeg = frame.jpeg()
            except DeviceError:
                # It grew too old or lost its source between the look and the use.
                continue
            if self._in_turn:
                self._turn_frame = frame
            return _with_frame(frame, jpeg)
        return _without_frame(self._camera.status)


def _with_frame(frame: Frame, jpeg: bytes) -> CameraSnapshot:
    age_ms = round(frame.age_s * 1000, 1)
    return CameraSnapshot(
        state="fresh",
        reason=f"frame {frame.id}, {age_ms / 1000:.1f} s old",
        age_ms=age_ms,
        image=HostImage(jpeg, "image/jpeg", frame.width, frame.height, "camera"),
        ref=FrameRef(
            id=frame.id,
            age_ms=age_ms,
            width=frame.width,
            height=frame.height,
            sharpness=round(frame.sharpness, 3),
            epoch=frame.epoch,
            captured_at=iso_utc(frame.captured_at),
        ),
    )


def _without_frame(status: CameraStatus) -> CameraSnapshot:
    if status.age_ms is not None and status.age_ms > FRESH_S * 1000:
        reason = f"the last frame came {status.age_ms / 1000:.0f} s ago, which is too old ({status.words})"
        return CameraSnapshot("stale", reason, status.age_ms, None, None)
    return CameraSnapshot("none", status.words, status.age_ms, None, None)
