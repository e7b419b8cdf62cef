from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from device.camera import Camera
from device.clock import SystemClock
from device.errors import DeviceError
from device.quality import Pixels
from device.sources import parse_source
from device.states import CameraState
from device.status import CameraStatus
from tests.device.fakes import FakeClock, FakeMachine, Rig, StateLog, noise, rig_camera, striped

S = CameraState


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rig(clock: FakeClock) -> Rig:
    return Rig(clock)


@pytest.fixture
def camera(clock: FakeClock, rig: Rig, tmp_path: Path) -> Iterator[Camera]:
    machine = FakeMachine(tmp_path)
    machine.plug(0)
    camera = rig_camera(clock, rig, machine)
    yield camera
    rig.let_go()
    camera.close()


def test_before_anything_is_open(camera: Camera) -> None:
    status = camera.status
    assert (status.state, status.words, status.source) == (S.CLOSED, "closed: no source is open", "")
    assert status.age_ms is None and status.sharpness is None and status.fps == 0
    assert camera.newest() is None and camera.snapshot().frame is None
    assert camera.wait_fresh(5.0) is False
    camera.pause()
    camera.resume()
    camera.close()
    assert camera.status.state is S.CLOSED


def test_status_of_a_live_camera(camera: Camera, clock: FakeClock, rig: Rig) -> None:
    camera.open(parse_source("usb"))
    rig.give(*(noise(n) for n in range(40)))
    clock.advance(0.01)
    status = camera.status
    assert (status.state, status.words, status.ended, status.error) == (S.LIVE, "live", False, None)
    assert status.source == "Wearable Cam (usb:0)"
    assert status.age_ms == pytest.approx(10.0)
    assert status.fps == pytest.approx(30.0, abs=0.1)
    assert (status.width, status.height) == (64, 48)
    newest = camera.newest()
    assert newest is not None and status.sharpness == newest.sharpness


def test_a_snapshot_is_the_sharpest_of_the_last_moments_and_its_status_belongs_to_it(
    camera: Camera, rig: Rig
) -> None:
    from device.opencv import cv2

    def sharp(seed: int) -> Pixels:
        return (np.dstack([striped(8)] * 3) // 2 + noise(seed, width=96, height=72) // 4).astype(np.uint8)

    def soft(seed: int) -> Pixels:
        return np.asarray(cv2.blur(sharp(seed), (7, 7)), dtype=np.uint8)

    camera.open(parse_source("usb"))
    rig.give(*(soft(n) for n in range(40)), sharp(99), *(soft(n) for n in range(100, 112)))
    snapshot, newest = camera.snapshot(), camera.newest()
    assert snapshot.frame is not None and newest is not None and snapshot.status.state is S.LIVE
    assert snapshot.frame.sharpness > 2 * newest.sharpness
    assert 0.3 < snapshot.frame.age_s < 0.5
    rig.give(*(soft(n) for n in range(200, 240)))
    later = camera.snapshot().frame
    assert later is not None and later.seq > snapshot.frame.seq


def test_pause_closes_at_once_and_nothing_can_be_had(camera: Camera, rig: Rig) -> None:
    log = StateLog(camera)
    camera.open(parse_source("usb"))
    rig.give(*(noise(n) for n in range(8)))
    held, capture = camera.newest(), rig.current
    assert held is not None
    rig.let_go()
    camera.pause()
    assert capture.released
    assert log.states[-1] is S.PAUSED and camera.status.source == "Wearable Cam (usb:0)"
    assert camera.newest() is None and camera.snapshot().frame is None and camera.held_bytes == 0
    with pytest.raises(DeviceError):
        held.bgr()
    rig.shut = False
    camera.resume()
    rig.give(*(noise(n) for n in range(8)))
    assert camera.status.state is S.LIVE and camera.status.epoch == 3


def test_resuming_a_camera_that_is_gone_stays_paused(clock: FakeClock, rig: Rig, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.plug(0)
    camera = rig_camera(clock, rig, machine)
    camera.open(parse_source("usb"))
    rig.give(*(noise(n) for n in range(8)))
    rig.let_go()
    camera.pause()
    machine.unplug(0)
    with pytest.raises(DeviceError, match="no camera"):
        camera.resume()
    assert camera.status.state is S.PAUSED


def test_closing_does_not_wait_for_a_driver_that_hangs_for_long(camera: Camera, rig: Rig) -> None:
    camera.open(parse_source("usb"))
    rig.give(noise(1))
    closing = threading.Thread(target=camera.close)
    closing.start()
    closing.join(4.0)
    assert not closing.is_alive(), "two seconds for the thread, no more"
    assert camera.status.state is S.CLOSED


def test_a_wait_for_a_fresh_frame_ends_when_one_comes_or_none_can(camera: Camera, rig: Rig) -> None:
    results: list[bool] = []
    waiter = threading.Thread(target=lambda: results.append(camera.wait_fresh(10)))
    camera.open(parse_source("usb"))
    waiter.start()
    rig.give(*(noise(n) for n in range(8)))
    waiter.join(10)
    rig.let_go()
    camera.pause()
    waiter = threading.Thread(target=lambda: results.append(camera.wait_fresh(10)))
    waiter.start()
    waiter.join(5)
    assert results == [True, False]


def test_subscribers_get_changes_in_order_and_may_ask_the_camera(camera: Camera, rig: Rig) -> None:
    heard: list[tuple[CameraState, CameraState]] = []

    def listen(status: CameraStatus) -> None:
        heard.append((status.state, camera.status.state))

    unsubscribe = camera.subscribe(listen)
    camera.open(parse_source("usb"))
    rig.give(*(noise(n) for n in range(8)))
    assert [state for state, _ in heard] == [S.OPENING, S.WARMING, S.LIVE]
    unsubscribe()
    rig.let_go()
    camera.close()
    assert len(heard) == 3


def test_many_threads_at_once_do_not_deadlock_or_show_an_old_picture() -> None:
    camera = Camera(SystemClock())
    stop = threading.Event()
    wrong: list[str] = []

    def look() -> None:
        while not stop.is_set():
            frame = camera.snapshot().frame
            if frame is not None and frame.age_s > 15:
                wrong.append("old")
            _ = camera.status.words, camera.figures.rate(0.0), camera.recent(), camera.held_bytes

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    for turn in range(12):
        camera.open(parse_source("synthetic:160x120@60"))
        assert camera.wait_fresh(5)
        if turn % 3 == 0:
            camera.pause()
            camera.resume()
    stop.set()
    for looker in lookers:
        looker.join(10)
        assert not looker.is_alive()
    camera.close()
    assert wrong == []


def test_the_watchdog_thread_ends_with_the_session() -> None:
    before = set(threading.enumerate())
    camera = Camera(SystemClock())
    camera.open(parse_source("synthetic:64x64@8"))
    assert {thread.name for thread in set(threading.enumerate()) - before} == {
        "styleeyes-capture",
        "styleeyes-watchdog",
    }
    camera.close()
    assert set(threading.enumerate()) <= before


def test_the_device_room_loads_neither_the_app_nor_opencv_until_it_is_used() -> None:
    """In a fresh process, since this one has long loaded both."""
    program = (
        "import sys, device.camera, device.discovery, device.health, device.sources\n"
        "loaded = set(sys.modules)\n"
        "assert 'cv2' not in loaded and 'textual' not in loaded, 'too early'\n"
        "assert not any(name.split('.')[0] == 'edge_agent' for name in loaded), 'the app'\n"
        "from device.clock import SystemClock\n"
        "camera = device.camera.Camera(SystemClock())\n"
        "camera.open(device.sources.parse_source('synthetic'))\n"
        "assert camera.wait_fresh(10)\n"
    )
    root = Path(__file__).resolve().parents[2]
    # The camera is left open on purpose: its threads must not keep the process alive.
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, cwd=root)
