"""The device's one error type: a stable code, a sentence, and what to do about it."""

from __future__ import annotations


class DeviceError(Exception):
    """A source that cannot be opened or used, or a frame that may not be used any more.

    Codes: SOURCE_INVALID (what was typed makes no sense), SOURCE_NOT_FOUND, SOURCE_UNREADABLE,
    NO_CAMERA, CAMERA_BUSY, CAMERA_DENIED, CAMERA_SILENT (opened, but gives no picture), CAMERA_LOST,
    CAMERA_FAILED (the driver or decoder raised), STREAM_UNREACHABLE, FRAME_EXPIRED. `message` is one
    clear sentence, `hint` says what to type or do; neither ever holds a stream's credentials.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else "")
