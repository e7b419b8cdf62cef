from __future__ import annotations

from dataclasses import replace

import pytest

from device.camera import Camera
from device.clock import SystemClock
from device.errors import DeviceError
from device.health import HealthReport, advice_on, check_health
from device.sources import parse_source
from device.sources.producer import Mode
from device.states import CameraState

GOOD = HealthReport(
    source="usb",
    mode=Mode(1280, 720, 30.0, "MJPG", "1280x720@30 MJPG"),
    seconds=10.0,
    first_picture_ms=400.0,
    fps=29.9,
    jitter_ms=2.0,
    longest_gap_ms=40.0,
    received=299,
    lost=0,
    repeated=0,
    reconnects=0,
    width=1280,
    height=720,
    exposure="good",
    brightness=120.0,
    sharpness=6.0,
    age_p99_ms=33.0,
    cpu_share=0.2,
    states=("opening", "warming", "live"),
)


def test_a_good_camera_needs_no_advice() -> None:
    assert advice_on(GOOD) == [] and GOOD.healthy


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(GOOD, mode=Mode(1280, 720, 10.0, "YUYV"), fps=5.0), "YUYV at 5 fps: ask for MJPG"),
        (replace(GOOD, fps=14.8), "15 of 30 frames a second come: give it more light"),
        (replace(GOOD, lost=30), "30 frames were lost"),
        (replace(GOOD, repeated=60), "60 pictures were exact repeats"),
        (replace(GOOD, reconnects=2), "it was lost 2 times"),
        (replace(GOOD, exposure="black"), "is the lens covered"),
        (replace(GOOD, exposure="dark"), "more light"),
        (replace(GOOD, exposure="bright"), "too bright"),
        (replace(GOOD, sharpness=0.4), "wipe the lens"),
        (replace(GOOD, cpu_share=0.9), "90% of a core"),
    ],
)
def test_each_trouble_has_its_advice(changed: HealthReport, words: str) -> None:
    (advice,) = advice_on(changed)
    assert words in advice


def test_a_report_of_a_running_source_is_what_was_seen() -> None:
    camera = Camera(SystemClock())
    report = check_health(camera, parse_source("synthetic:320x240@30"), SystemClock(), seconds=1.2)
    assert report.states == ("opening", "live") and report.source == "synthetic:320x240@30"
    assert (report.width, report.height, report.exposure) == (320, 240, "good")
    assert report.fps == pytest.approx(30.0, rel=0.2)
    assert report.received >= 20 and report.sharpness > 1
    assert 0 < report.cpu_share < 2
    assert camera.status.state is CameraState.CLOSED


def test_a_source_that_cannot_be_opened_has_no_report() -> None:
    camera = Camera(SystemClock())
    with pytest.raises(DeviceError):
        check_health(camera, parse_source("nowhere.mp4"), SystemClock())
    assert camera.status.state is CameraState.CLOSED
