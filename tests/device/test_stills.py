from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from device.camera import Camera
from device.opencv import cv2
from device.sources import parse_source
from device.sources.stills import StillsProducer
from device.states import CameraState
from tests.device.fakes import FakeClock, StateLog, flat


def write(path: Path, value: int, width: int = 64, height: int = 48) -> Path:
    path.write_bytes(cv2.imencode(path.suffix, flat(value, width=width, height=height))[1].tobytes())
    return path


def shown(producer: StillsProducer, pictures: int) -> list[int]:
    values: list[int] = []
    for _ in range(pictures):
        producer.grab()
        pixels = producer.retrieve()
        assert pixels is not None
        values.append(int(pixels[0, 0, 0]))
    return values


def test_pictures_of_a_folder_are_shown_for_two_seconds_each_and_over_again(tmp_path: Path) -> None:
    write(tmp_path / "b.png", 200)
    write(tmp_path / "a.PNG", 50)
    (tmp_path / "notes.txt").write_text("no picture")
    write(tmp_path / ".hidden.png", 1)
    producer = StillsProducer(parse_source(f"images:{tmp_path}"))
    assert shown(producer, 40) == [50] * 10 + [200] * 10 + [50] * 10 + [200] * 10
    assert producer.mode.fps == 5.0


def test_a_picture_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"broken")
    write(tmp_path / "b.png", 90)
    (tmp_path / "c.png").write_bytes(b"broken too")
    assert set(shown(StillsProducer(parse_source(str(tmp_path))), 40)) == {90}


def test_a_still_picture_is_live_for_as_long_as_it_is_shown_and_never_frozen(tmp_path: Path) -> None:
    clock = FakeClock()
    camera = Camera(clock, wait=clock.wait, watch=False)
    log = StateLog(camera)
    camera.open(parse_source(str(write(tmp_path / "färbe ä.png", 90))))
    for _ in range(30):
        assert clock.reached(clock.monotonic() + 2)
        camera.tick()
    assert log.states == [CameraState.OPENING, CameraState.LIVE]
    newest = camera.newest()
    assert newest is not None and newest.age_s < 15
    assert camera.figures.repeated == 0
    camera.close()


def test_a_phones_photo_is_brought_to_the_size_of_a_frame(tmp_path: Path) -> None:
    producer = StillsProducer(parse_source(str(write(tmp_path / "photo.jpg", 90, 4000, 3000))))
    assert (producer.mode.width, producer.mode.height) == (1920, 1440)


def test_odd_and_tiny_sizes_stay_as_they_are(tmp_path: Path) -> None:
    producer = StillsProducer(parse_source(str(write(tmp_path / "odd.png", 90, 7, 3))))
    assert (producer.mode.width, producer.mode.height) == (7, 3)


def test_a_picture_of_unreasonable_size_is_refused_rather_than_decoded(tmp_path: Path) -> None:
    header = bytearray(cv2.imencode(".png", np.zeros((1, 1, 3), np.uint8))[1].tobytes())
    header[16:24] = (60000).to_bytes(4, "big") * 2
    (tmp_path / "a.png").write_bytes(bytes(header))
    write(tmp_path / "b.png", 77)
    assert set(shown(StillsProducer(parse_source(str(tmp_path))), 3)) == {77}


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
def test_kinds_of_pictures(tmp_path: Path, suffix: str) -> None:
    (value,) = shown(StillsProducer(parse_source(str(write(tmp_path / f"x{suffix}", 90)))), 1)
    assert abs(value - 90) <= 2
