"""The fault table: what cameras do in the field, played by a camera whose every read a test decides."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import psutil
import pytest

from device.camera import Camera
from device.errors import DeviceError
from device.sources import parse_source
from device.states import CameraState
from tests.device.fakes import FakeClock, FakeMachine, Rig, StateLog, flat, noise, rig_camera

S = CameraState


class Bench:
    """A camera on the rig, plugged in as video0."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        self.rig = Rig(self.clock)
        self.machine = FakeMachine(root)
        self.machine.plug(0)
        self.camera = rig_camera(self.clock, self.rig, self.machine)
        self.log = StateLog(self.camera)

    def go_live(self) -> None:
        self.camera.open(parse_source("usb"))
        self.warm_up()

    def warm_up(self, seed: int = 0) -> None:
        self.rig.give(*(noise(seed + n) for n in range(6)))
        self.log.wait_for(S.LIVE)

    def pass_time(self, seconds: float) -> None:
        """Time passes in the watchdog's steps; a try to reconnect is seen through before time goes on."""
        for _ in range(round(seconds / 0.25)):
            self.clock.advance(0.25)
            tries = len(self.rig.opened)
            was_trying = self.trying
            self.camera.tick()
            if self.trying and not was_trying:
                self.rig.wait_opened(tries + 1)

    @property
    def trying(self) -> bool:
        return self.camera.status.words.endswith("trying now")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.rig.let_go()
    bench.camera.close()


def test_goes_from_opening_over_warming_to_live_and_warm_up_frames_are_not_offered(bench: Bench) -> None:
    bench.camera.open(parse_source("usb"))
    bench.rig.give(*(noise(n) for n in range(3)))
    assert bench.camera.status.state is S.WARMING
    assert bench.camera.newest() is None
    bench.rig.give(noise(3), noise(4))
    assert bench.log.states == [S.OPENING, S.WARMING, S.LIVE]
    newest = bench.camera.newest()
    assert newest is not None and newest.seq == 1


def test_a_dark_start_is_waited_out(bench: Bench) -> None:
    bench.camera.open(parse_source("usb"))
    bench.rig.give(*(noise(n, brightness=5 + 15 * n) for n in range(8)))
    assert bench.camera.newest() is None, "the brightness still climbs"
    bench.rig.give(noise(20), noise(21))
    assert bench.camera.newest() is not None


def test_mjpg_is_asked_for_before_size_before_rate(bench: Bench) -> None:
    from device.opencv import cv2

    bench.go_live()
    order = [prop for prop, _ in bench.rig.current.settings]
    assert order[:4] == [
        cv2.CAP_PROP_FOURCC,
        cv2.CAP_PROP_FRAME_WIDTH,
        cv2.CAP_PROP_FRAME_HEIGHT,
        cv2.CAP_PROP_FPS,
    ]
    mode = bench.camera.mode
    assert mode is not None and str(mode) == "640x480@30 MJPG" and mode.asked == "1280x720@30 MJPG"


def test_unplug_is_told_in_words_and_the_last_frame_expires(bench: Bench) -> None:
    bench.go_live()
    bench.machine.unplug(0)
    bench.pass_time(0.25)
    status = bench.camera.status
    assert status.state is S.LOST and status.words == "lost: Wearable Cam was unplugged"
    assert status.error is not None and status.error.code == "CAMERA_LOST"
    bench.pass_time(0.25)
    assert bench.camera.status.state is S.RECONNECTING
    assert "next try in" in bench.camera.status.words
    assert bench.camera.newest() is not None, "still under 15 s"
    bench.pass_time(15.0)
    assert bench.camera.newest() is None and bench.camera.snapshot().frame is None
    status = bench.camera.status
    assert status.age_ms is not None and status.age_ms > 15000, "how long ago may be said"
    assert bench.camera.held_bytes == 0


def test_replugged_under_another_node_the_same_camera_is_found(bench: Bench) -> None:
    bench.go_live()
    bench.machine.unplug(0)
    bench.pass_time(0.5)
    bench.machine.plug(0, name="Another Cam", serial="B2")
    bench.machine.plug(3)
    bench.pass_time(3.5)  # the old thread hangs in its read: its device is waited for, then it is left behind
    bench.rig.wait_opened(2)
    assert bench.rig.opened[-1].endswith("/video3")
    bench.warm_up(100)
    assert bench.camera.figures.reconnects == 1
    assert bench.log.states[-4:] == [S.LOST, S.RECONNECTING, S.WARMING, S.LIVE]


def test_a_read_that_blocks_for_ever_is_noticed_within_two_seconds_and_its_thread_replaced(
    bench: Bench,
) -> None:
    bench.go_live()
    stuck = bench.rig.current
    bench.pass_time(2.0)
    status = bench.camera.status
    assert status.state is S.STALLED and status.words == "no new picture for 2 s"
    bench.pass_time(7.5)
    bench.rig.wait_opened(2)
    assert not stuck.released
    bench.warm_up(50)
    newest = bench.camera.newest()
    stuck.wakes = True
    bench.rig.give(noise(90))
    bench.rig.wait_released(stuck)
    after = bench.camera.newest()
    assert newest is not None and after is not None and after.seq <= newest.seq + 1


def test_a_driver_that_always_hangs_does_not_pile_up_threads(bench: Bench) -> None:
    bench.go_live()
    bench.pass_time(300)
    assert len(bench.rig.opened) <= 5
    assert "its driver hangs" in bench.camera.status.words


def test_one_picture_repeated_for_ever_is_frozen_within_two_seconds_and_never_looks_fresh(
    bench: Bench,
) -> None:
    bench.go_live()
    same = noise(7)
    bench.rig.give(same)
    seen_at = bench.clock.monotonic()
    for _ in range(7):
        bench.rig.give(*[same] * 8)
        bench.camera.tick()
    assert bench.clock.monotonic() - seen_at < 2.0
    status = bench.camera.status
    assert status.state is S.FROZEN and status.words == "frozen: the same picture for 2 s"
    newest = bench.camera.newest()
    assert newest is not None and newest.age_s == pytest.approx(bench.clock.monotonic() - seen_at)
    bench.rig.give(noise(8))
    assert bench.log.states[-2:] == [S.FROZEN, S.LIVE]


def test_a_frozen_camera_is_opened_anew_and_its_old_picture_is_not_taken_for_new(bench: Bench) -> None:
    bench.go_live()
    same = noise(7)
    bench.rig.give(*[same] * 170)
    bench.camera.tick()
    assert bench.camera.status.state is S.LOST
    bench.rig.give(same)  # the reader wakes and lets go of the device
    bench.pass_time(4.0)
    bench.rig.wait_opened(2)
    before = bench.camera.figures.offered
    bench.rig.give(*[same] * 60)
    assert bench.camera.figures.offered == before
    bench.warm_up(200)


def test_reads_that_fail_at_full_speed_cost_little_and_end_in_lost(bench: Bench) -> None:
    bench.go_live()
    bench.rig.interval = 0.0
    began = bench.clock.monotonic()
    bench.rig.give(*[None] * 25)
    bench.log.wait_for(S.LOST)
    assert bench.clock.monotonic() - began >= 0.45, "it waits between failed reads"
    assert bench.rig.current.released
    bench.pass_time(1.0)
    bench.rig.wait_opened(2)
    bench.warm_up(30)


def test_a_few_failed_reads_are_passed_over(bench: Bench) -> None:
    bench.go_live()
    bench.rig.give(None, None, noise(31), None, noise(32))
    assert bench.camera.status.state is S.LIVE and S.LOST not in bench.log.states


def test_a_read_that_returns_true_after_a_ten_second_timeout_is_not_believed(bench: Bench) -> None:
    bench.go_live()

    def late() -> np.ndarray:
        bench.clock.advance(10.0)
        return noise(77)

    newest = bench.camera.newest()
    bench.rig.give(late)
    assert bench.camera.newest() is newest


def test_black_frames_are_offered_only_after_the_warm_up_and_said_in_words(bench: Bench) -> None:
    bench.camera.open(parse_source("usb"))
    bench.rig.give(*(flat(n % 3) for n in range(40)))
    assert bench.camera.newest() is None
    bench.rig.give(*(flat(n % 3) for n in range(10)))
    assert bench.camera.status.words == "live, but the picture is black: is the lens covered?"


def test_a_covered_lens_is_frozen_but_not_opened_over_and_over(bench: Bench) -> None:
    bench.go_live()
    for _ in range(60):
        bench.rig.give(*[flat(0)] * 8)
        bench.camera.tick()
    assert bench.camera.status.state is S.FROZEN
    assert bench.camera.status.words.endswith("and it is black: is the lens covered?")
    assert len(bench.rig.opened) == 1


@pytest.mark.parametrize("shape", [(48, 64), (48, 64, 1), (48, 64, 4)])
def test_grey_and_four_channel_pictures_become_bgr(bench: Bench, shape: tuple[int, ...]) -> None:
    bench.go_live()
    bench.rig.give(np.full(shape, 90, dtype=np.uint8))
    newest = bench.camera.newest()
    assert newest is not None and newest.bgr().shape == (48, 64, 3) and int(newest.bgr()[0, 0, 1]) == 90


def test_a_change_of_resolution_in_mid_stream(bench: Bench) -> None:
    bench.go_live()
    bench.rig.give(*(noise(50 + n) for n in range(20)))
    bench.rig.give(*(noise(n, width=128, height=96) for n in range(40)))
    status = bench.camera.status
    assert (status.width, status.height) == (128, 96)
    frame = bench.camera.snapshot().frame
    assert frame is not None and frame.bgr().shape == (96, 128, 3)
    sizes = {(kept.width, kept.bgr().shape[1]) for kept in bench.camera.recent()}
    assert sizes == {(64, 64), (128, 128)}


@pytest.mark.parametrize("jump", [timedelta(hours=5), timedelta(hours=-5)])
def test_a_jump_of_the_wall_clock_changes_no_age(bench: Bench, jump: timedelta) -> None:
    bench.go_live()
    before = bench.camera.status.age_ms
    bench.clock.wall_moment += jump
    bench.camera.tick()
    assert bench.camera.status.age_ms == before
    assert bench.camera.newest() is not None and bench.camera.status.state is S.LIVE


def test_a_busy_camera_names_the_program_and_is_tried_again(bench: Bench, tmp_path: Path) -> None:
    node = tmp_path / "dev/video0"
    bench.rig.refuses = True
    with node.open() as held:
        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(held.fileno(),))
    try:
        bench.camera.open(parse_source("usb"))
        status = bench.log.wait_for(S.BUSY)
        assert status.words == "busy: the camera Wearable Cam (usb:0) is in use by cat"
    finally:
        other.communicate()
    bench.rig.refuses = False
    bench.pass_time(1.0)
    bench.rig.wait_opened(2)
    bench.warm_up()
    assert bench.log.states == [S.OPENING, S.BUSY, S.RECONNECTING, S.WARMING, S.LIVE]


def test_a_denied_camera_says_how_to_be_allowed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    bench.rig.refuses = True
    monkeypatch.setattr("device.sources.usb.os.open", refuse)
    bench.camera.open(parse_source("usb"))
    status = bench.log.wait_for(S.DENIED)
    assert status.error is not None and "group video" in (status.error.hint or "")
    assert bench.camera.wait_fresh(5.0) is False


def test_back_off_grows_to_eight_seconds_and_starts_over_after_success(bench: Bench) -> None:
    bench.go_live()
    bench.rig.refuses = True
    bench.rig.give(*[None] * 25)
    bench.log.wait_for(S.LOST)
    attempts: list[float] = []
    for _ in range(160):
        opened = len(bench.rig.opened)
        bench.pass_time(0.25)
        if len(bench.rig.opened) > opened:
            attempts.append(bench.clock.monotonic())
            bench.log.wait_for(S.LOST)
    gaps = np.diff(attempts)
    assert gaps[:5] == pytest.approx([1, 2, 4, 8, 8], abs=0.5)
    bench.rig.refuses = False
    bench.pass_time(9.0)
    bench.rig.wait_opened(len(attempts) + 2)
    bench.warm_up(400)
    bench.rig.give(*[None] * 25)
    assert "attempt 1" in _next_reconnecting(bench)


def _next_reconnecting(bench: Bench) -> str:
    bench.log.wait_for(S.LOST)
    bench.pass_time(0.25)
    return bench.log.wait_for(S.RECONNECTING).words


def test_a_camera_that_never_opens_is_called_busy_after_a_deadline(tmp_path: Path) -> None:
    clock = FakeClock()
    machine = FakeMachine(tmp_path)
    machine.plug(0)
    hanging = threading.Event()

    def hang(spec: object, node: str | None, stop_asked: object) -> None:
        hanging.wait(30)
        raise DeviceError("CAMERA_SILENT", "woke at last")

    camera = Camera(clock, open_producer=hang, devices=machine.tree, wait=clock.wait, watch=False)  # type: ignore[arg-type]
    camera.open(parse_source("usb"))
    clock.advance(8.5)
    camera.tick()
    assert camera.status.state is S.BUSY and "does not answer" in camera.status.words
    hanging.set()
    camera.close()


def test_only_the_capture_thread_touches_the_capture_object(bench: Bench) -> None:
    bench.go_live()
    capture = bench.rig.current
    bench.rig.let_go()
    bench.camera.close()
    assert capture.released
    assert len(capture.threads) == 1 and threading.get_ident() not in capture.threads


def test_a_hundred_switches_leave_no_old_picture_no_thread_and_no_file(tmp_path: Path) -> None:
    from device.opencv import cv2

    sources = []
    for value in (40, 200):
        path = tmp_path / f"{value}.png"
        cv2.imwrite(str(path), flat(value))
        sources.append((value, parse_source(str(path))))
    camera = Camera(clock := FakeClock(), wait=lambda event, seconds: event.wait(0.001), watch=False)
    threads, process = threading.active_count(), psutil.Process()
    files = process.num_fds()
    kept = []
    for turn in range(100):
        value, source = sources[turn % 2]
        camera.open(source)
        assert camera.wait_fresh(5)
        newest = camera.newest()
        assert newest is not None and int(newest.bgr()[0, 0, 0]) == value
        assert camera.status.epoch == turn + 1 == newest.epoch
        kept.append(newest)
        clock.advance(0.1)
    for frame in kept[:-1]:
        with pytest.raises(DeviceError, match="is gone"):
            frame.jpeg()
    assert threading.active_count() <= threads + 1
    camera.close()
    assert threading.active_count() == threads and process.num_fds() <= files + 1


def test_an_hour_of_a_moving_picture_keeps_memory_flat() -> None:
    clock = FakeClock()
    camera = Camera(clock, wait=clock.wait, watch=False)
    camera.open(parse_source("synthetic:64x64@4"))
    process = psutil.Process()
    assert clock.reached(1000.0 + 300)
    held, before = camera.held_bytes, process.memory_info().rss
    assert clock.reached(1000.0 + 3600)
    assert camera.held_bytes < 1.5 * held
    assert process.memory_info().rss - before < 8 * 1024 * 1024
    camera.close()
    assert camera.held_bytes == 0
