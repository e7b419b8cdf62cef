"""Recorded video through the real camera and the real decoder, in time that the test makes pass."""

from __future__ import annotations

import wave
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from device.camera import Camera
from device.clock import SystemClock
from device.errors import DeviceError
from device.quality import Pixels
from device.sources import SourceSpec, parse_source
from device.sources.opening import ProducerOpener
from device.sources.producer import Grab, Producer
from device.sources.video import VideoProducer
from device.states import CameraState
from tests.device.fakes import FakeClock, StateLog
from tests.device.recordings import (
    number_of,
    turned_by_a_quarter,
    with_uneven_times,
    write_video,
)

S = CameraState


def played(producer: Producer) -> list[tuple[float, int]]:
    """Position in seconds and number of each picture of a producer, to its end."""
    seen: list[tuple[float, int]] = []
    while producer.grab() is Grab.PICTURE:
        pixels, position = producer.retrieve(), producer.position_s
        assert pixels is not None and position is not None
        seen.append((position, number_of(pixels)))
    return seen


def opened(spec: SourceSpec) -> Producer:
    return ProducerOpener()(spec, None, lambda: False)


class Player:
    """A camera whose time is made to pass by its own pacing."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.camera = Camera(self.clock, wait=self.clock.wait, watch=False)
        self.log = StateLog(self.camera)


@pytest.fixture
def player() -> Iterator[Player]:
    player = Player()
    yield player
    player.camera.close()


def test_every_picture_is_given_in_order_at_its_own_time(tmp_path: Path) -> None:
    seen = played(opened(parse_source(str(write_video(tmp_path / "clip.mp4")))))
    assert [number for _, number in seen] == list(range(30))
    assert [position for position, _ in seen] == pytest.approx([n / 30 for n in range(30)], abs=0.002)


def test_variable_frame_rate_is_paced_by_the_pictures_own_times(tmp_path: Path) -> None:
    holds = [1, 1, 6, 1, 12, 1, 1, 3, 1, 1]
    even = write_video(tmp_path / "even.mp4", frames=10)
    seen = played(opened(parse_source(str(with_uneven_times(even, tmp_path / "uneven.mp4", holds)))))
    starts = [sum(holds[:n]) / 30 for n in range(10)]
    assert [position for position, _ in seen] == pytest.approx(starts, abs=0.002)
    assert [number for _, number in seen] == list(range(10))


@pytest.mark.parametrize("at", [0.0, 0.5, 0.517, 1.9, 3.0])
@pytest.mark.parametrize("suffix", [".mp4", ".avi"])
def test_a_start_in_the_middle_is_exact_to_the_picture(tmp_path: Path, at: float, suffix: str) -> None:
    path = write_video(tmp_path / f"clip{suffix}", frames=31, fps=10)
    producer = opened(parse_source(str(path), at=at))
    position, number = played(producer)[0]
    assert abs(position - at) <= 0.05 + 1e-6
    assert number == round(position * 10)


def test_a_start_in_a_variable_rate_video_is_exact(tmp_path: Path) -> None:
    holds = [1, 9, 1, 1, 1, 8, 1, 1, 1, 6]
    even = write_video(tmp_path / "even.mp4", frames=10, fps=10)
    path = with_uneven_times(even, tmp_path / "uneven.mp4", holds)
    position, number = played(opened(parse_source(str(path), at=2.1)))[0]
    assert position == pytest.approx(2.1, abs=0.01) and number == 6


def test_a_start_behind_the_end_says_where_the_end_is(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4")
    camera = Camera(SystemClock(), watch=False)
    with pytest.raises(DeviceError) as caught:
        camera.open(parse_source(str(path), at=9))
    assert caught.value.code == "SOURCE_INVALID"
    assert caught.value.message == "clip.mp4 ends at 1.0 s, so there is nothing at 9 s"
    camera.close()


def test_a_video_that_a_phone_turned_is_shown_upright(tmp_path: Path) -> None:
    lying = write_video(tmp_path / "lying.mp4", frames=3)
    pixels = _first(parse_source(str(turned_by_a_quarter(lying, tmp_path / "turned.mp4"))))
    assert pixels.shape == (160, 120, 3)
    assert int(pixels[20, 90, 0]) < 20, "the dark corner went from upper left to upper right"
    assert int(pixels[20, 20, 0]) > 100


def _first(spec: SourceSpec) -> Pixels:
    producer = opened(spec)
    assert producer.grab() is Grab.PICTURE
    pixels = producer.retrieve()
    producer.close()
    assert pixels is not None
    return pixels


def test_the_end_is_a_state_and_its_last_frames_stay_for_fifteen_seconds(
    tmp_path: Path, player: Player
) -> None:
    player.camera.open(parse_source(str(write_video(tmp_path / "clip.mp4"))))
    status = player.log.wait_for(S.ENDED)
    assert status.words == "the video is over" and status.ended and status.error is None
    assert player.log.states == [S.OPENING, S.LIVE, S.ENDED]
    newest = player.camera.newest()
    assert newest is not None and number_of(newest.bgr()) == 29
    player.clock.advance(14.9)
    assert player.camera.newest() is newest and player.camera.snapshot().frame is not None
    player.clock.advance(0.2)
    assert player.camera.newest() is None and player.camera.snapshot().frame is None
    player.camera.tick()
    assert player.camera.status.state is S.ENDED


def test_it_is_played_in_real_time(tmp_path: Path, player: Player) -> None:
    began = player.clock.monotonic()
    player.camera.open(parse_source(str(write_video(tmp_path / "clip.mp4", frames=31, fps=10))))
    player.log.wait_for(S.ENDED)
    newest = player.camera.newest()
    assert newest is not None and newest.received - began == pytest.approx(3.0, abs=0.01)
    assert player.camera.figures.lost == 0


def test_a_loop_goes_on_from_the_start_without_a_gap_or_an_end(tmp_path: Path, player: Player) -> None:
    path = write_video(tmp_path / "clip.mp4", frames=10, fps=10)
    player.camera.open(parse_source(str(path), at=0.8, loop=True))
    assert player.clock.reached(player.clock.monotonic() + 30)
    figures = player.camera.figures
    assert player.log.states == [S.OPENING, S.LIVE] and player.camera.status.epoch == 1
    assert figures.received >= 300, "of a clip with ten pictures"
    player.camera.close()
    assert max(figures.intervals()) == pytest.approx(0.1, abs=0.005)
    assert min(figures.intervals()) == pytest.approx(0.1, abs=0.005)


def test_pause_and_resume_go_on_where_the_video_stood(tmp_path: Path, player: Player) -> None:
    player.camera.open(parse_source(str(write_video(tmp_path / "clip.mp4", frames=31, fps=1))))
    assert player.clock.reached(player.clock.monotonic() + 12)
    before = player.camera.newest()
    assert before is not None
    player.camera.pause()
    status = player.camera.status
    assert status.state is S.PAUSED and status.words.startswith("paused")
    assert player.camera.newest() is None and player.camera.snapshot().frame is None
    assert not player.camera.wait_fresh(5)
    player.camera.resume()
    assert player.camera.wait_fresh(5)
    after = player.camera.recent()[0]
    assert after.epoch == 3 and number_of(after.bgr()) >= 11
    player.camera.resume()
    assert player.camera.status.epoch == 3, "resuming what runs does nothing"


def test_a_video_cut_short_plays_what_is_left_and_says_so(tmp_path: Path, player: Player) -> None:
    whole = write_video(tmp_path / "whole.avi", frames=31, fps=10)
    cut = tmp_path / "cut.avi"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 3])
    player.camera.open(parse_source(str(cut)))
    player.log.wait_for(S.ENDED)
    assert player.camera.newest() is not None


def _without_index(path: Path) -> None:
    path.write_bytes(write_video(path.with_name("whole.mp4")).read_bytes()[:4000])


def _sound_only(path: Path) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16000))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("noindex.mp4", _without_index),
        ("sound.wav", _sound_only),
        ("text.mp4", lambda path: path.write_text("this is no video\n" * 50)),
        ("zeros.mp4", lambda path: path.write_bytes(bytes(100_000))),
        ("empty.mp4", lambda path: path.write_bytes(b"")),
        ("folder.png", lambda path: path.mkdir()),
        ("broken.png", lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(90))),
    ],
)
def test_what_holds_no_picture_fails_at_once_in_words(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    camera = Camera(SystemClock())
    with pytest.raises(DeviceError) as caught:
        camera.open(parse_source(str(tmp_path / name)))
    assert caught.value.code == "SOURCE_UNREADABLE" and caught.value.hint
    assert camera.status.state in (S.ENDED, S.CLOSED) and camera.newest() is None
    camera.close()


@pytest.mark.parametrize("text", ["nowhere.mp4", "nowhere.png", "images:nowhere"])
def test_a_missing_file_fails_and_leaves_the_open_source_alone(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, player: Player
) -> None:
    monkeypatch.chdir(tmp_path)
    player.camera.open(parse_source(str(write_video(tmp_path / "clip.mp4"))))
    player.log.wait_for(S.ENDED)
    with pytest.raises(DeviceError) as caught:
        player.camera.open(parse_source(text))
    assert caught.value.code == "SOURCE_NOT_FOUND" and "nowhere" in caught.value.message
    assert player.camera.status.source == "clip.mp4" and player.camera.newest() is not None


def test_a_file_that_vanishes_between_two_repeats_ends_in_words(tmp_path: Path, player: Player) -> None:
    path = write_video(tmp_path / "clip.mp4", frames=10, fps=10)
    player.camera.open(parse_source(str(path), loop=True))
    assert player.camera.wait_fresh(5)
    path.unlink()
    status = player.log.wait_for(S.ENDED)
    assert status.error is not None and status.error.code == "SOURCE_UNREADABLE"


def test_a_frame_of_before_a_seek_is_reached_by_decoding_where_seeking_lands_behind(tmp_path: Path) -> None:
    """A back end whose seek overshoots: the producer opens anew and decodes from the start."""
    from device.opencv import cv2
    from device.sources.opencv_capture import open_capture

    path = write_video(tmp_path / "clip.avi", frames=31, fps=10)
    opens = []

    class Overshooting:
        def __init__(self, address: str, backend: int, parameters: object) -> None:
            self._real = open_capture(address, backend, ())
            opens.append(self)
            for name in ("isOpened", "grab", "retrieve", "get", "release"):
                setattr(self, name, getattr(self._real, name))

        def set(self, prop: int, value: float) -> bool:
            return self._real.set(prop, value + 2000 if prop == cv2.CAP_PROP_POS_MSEC else value)

    producer = VideoProducer(parse_source(str(path), at=1.5), Overshooting, lambda: False)  # type: ignore[arg-type]
    position, number = played(producer)[0]
    assert position == pytest.approx(1.5, abs=0.01) and number == 15
    assert len(opens) == 2
