"""What a person is told about the camera, in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from device.errors import DeviceError
from device.quality import ExposureWord
from device.states import CameraState

_EXPOSURE_WORDS: dict[ExposureWord, str] = {
    "good": "live",
    "dark": "live, but the picture is very dark",
    "bright": "live, but much of the picture is too bright",
    "black": "live, but the picture is black: is the lens covered?",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """A state and what belongs to it. `since` and `retry_at` are monotonic seconds."""

    state: CameraState
    since: float
    detail: str = ""
    error: DeviceError | None = None
    attempt: int = 0
    retry_at: float | None = None

    def words(self, label: str, exposure: ExposureWord, now: float) -> str:
        """One short line for the screen; without the label where the line speaks of the picture."""
        passed = f"{max(0.0, now - self.since):.0f} s"
        match self.state:
            case CameraState.OPENING:
                return f"opening {label}"
            case CameraState.WARMING:
                return "warming up: its first pictures are not used"
            case CameraState.LIVE:
                return _EXPOSURE_WORDS[exposure]
            case CameraState.STALLED:
                return f"no new picture for {passed}"
            case CameraState.FROZEN:
                covered = " and it is black: is the lens covered?" if exposure == "black" else ""
                return f"frozen: the same picture for {passed}{covered}"
            case CameraState.LOST:
                return f"lost: {self._reason(label)}"
            case CameraState.RECONNECTING:
                return f"reconnecting, attempt {self.attempt}: {self.detail}{self._next_try(now)}"
            case CameraState.BUSY:
                return f"busy: {self._reason(label)}"
            case CameraState.ENDED:
                return self.detail or self._reason(label)
            case CameraState.DENIED:
                return f"denied: {self._reason(label)}"
            case CameraState.PAUSED:
                return "paused: the camera is off and no picture is kept"
            case CameraState.CLOSED:
                return "closed: no source is open"

    def _reason(self, label: str) -> str:
        return self.error.message if self.error is not None else label

    def _next_try(self, now: float) -> str:
        if self.retry_at is None:
            return "trying now"
        left = max(0.0, self.retry_at - now)
        return f"next try in {ceil(left)} s"


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """The camera at one moment. `age_ms` says how long ago the last frame came, None where none has
    come from this source; over 15,000 that frame cannot be had any more.

    `fps` is measured over the last two seconds, 0 where nothing comes. `sharpness` is the newest
    frame's and compares within one source. `error` is why the source does not work, where it does not.
    """

    state: CameraState
    words: str
    source: str
    epoch: int
    age_ms: float | None = None
    fps: float = 0.0
    width: int = 0
    height: int = 0
    sharpness: float | None = None
    ended: bool = False
    error: DeviceError | None = None
