from __future__ import annotations

from itertools import pairwise

import pytest

from device.camera import Camera
from device.opencv import cv2
from device.quality import measure
from device.sources import parse_source
from device.sources.synthetic import SyntheticProducer, burnt_position_s
from tests.device.fakes import FakeClock


@pytest.mark.parametrize("size", ["64x64@8", "640x480@30", "1920x1080@30"])
def test_its_time_can_be_read_from_the_picture_even_after_jpeg(size: str) -> None:
    producer = SyntheticProducer(parse_source(f"synthetic:{size}"))
    for _ in range(70):
        producer.grab()
    pixels = producer.retrieve()
    assert pixels is not None
    assert burnt_position_s(pixels) == pytest.approx(producer.position_s, abs=0.001)
    coded = cv2.imdecode(cv2.imencode(".jpg", pixels)[1], cv2.IMREAD_COLOR)
    assert coded is not None and burnt_position_s(coded) == burnt_position_s(pixels)  # type: ignore[arg-type]


def test_it_moves_and_is_well_exposed() -> None:
    producer = SyntheticProducer(parse_source("synthetic"))
    qualities = []
    for _ in range(5):
        producer.grab()
        pixels = producer.retrieve()
        assert pixels is not None
        qualities.append(measure(pixels))
    assert not any(a.same_picture(b) for a, b in pairwise(qualities))
    assert {quality.exposure.word for quality in qualities} == {"good"}


def test_the_newest_frame_is_the_one_that_was_due_last() -> None:
    clock = FakeClock()
    camera = Camera(clock, wait=clock.wait, watch=False)
    camera.open(parse_source("synthetic:320x240@30"))
    assert camera.wait_fresh(5)
    first = camera.recent()[0]
    offset = first.received - burnt_position_s(first.bgr())
    assert clock.reached(clock.monotonic() + 20)
    camera_frames = camera.recent()
    for frame in camera_frames:
        assert frame.received - burnt_position_s(frame.bgr()) == pytest.approx(offset, abs=0.002)
    camera.close()
