from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device.buffer import JPEG_BYTES_AT_MOST, FreshnessBuffer
from device.errors import DeviceError
from device.frame import Epoch, Frame
from device.glance import glance_at
from device.quality import Exposure, Pixels, Quality, measure
from tests.device.fakes import FakeClock, flat, noise

GOOD = Exposure(brightness=120.0, dark_share=0.0, bright_share=0.0)


class Filled:
    """A buffer with an epoch begun, and pictures of chosen sharpness put into it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.buffer = FreshnessBuffer(self.clock)
        self.epoch = self.buffer.begin_epoch()

    def put(
        self,
        sharpness: float = 5.0,
        *,
        exposure: Exposure = GOOD,
        pixels: Pixels | None = None,
        epoch: Epoch | None = None,
    ) -> Frame | None:
        picture = noise(1) if pixels is None else pixels
        return self.buffer.publish(
            picture,
            Quality(sharpness, exposure, glance_at(picture[:, :, 1]), picture[:, :, 1]),
            epoch=epoch or self.epoch,
            received=self.clock.monotonic(),
            captured_at=self.clock.wall(),
        )


@pytest.fixture
def filled() -> Filled:
    return Filled()


def test_a_frame_can_be_had_for_exactly_fifteen_seconds(filled: Filled) -> None:
    filled.put()
    filled.clock.advance(15.0)
    frame = filled.buffer.newest()
    assert frame is not None and frame.jpeg()[:2] == b"\xff\xd8"
    filled.clock.advance(0.001)
    assert filled.buffer.newest() is None
    assert filled.buffer.best() is None and filled.buffer.recent() == []
    assert filled.buffer.held_bytes == 0


@pytest.mark.parametrize("encoded_before", [False, True])
def test_a_frame_that_was_kept_cannot_be_used_after_fifteen_seconds(
    filled: Filled, encoded_before: bool
) -> None:
    frame = filled.put()
    assert frame is not None
    if encoded_before:
        frame.jpeg()
    filled.clock.advance(15.01)
    for use in (frame.bgr, frame.jpeg):
        with pytest.raises(DeviceError) as caught:
            use()
        assert caught.value.code == "FRAME_EXPIRED"
    assert frame.held_bytes == 0


def test_a_new_epoch_empties_the_buffer_and_voids_frames_that_are_held(filled: Filled) -> None:
    held = filled.put()
    old = filled.epoch
    filled.epoch = filled.buffer.begin_epoch()
    assert filled.buffer.newest() is None and filled.buffer.age_s is None
    assert held is not None and not held.usable
    with pytest.raises(DeviceError):
        held.bgr()
    assert filled.put(epoch=old) is None, "a late picture of the old source"
    assert filled.buffer.newest() is None
    frame = filled.put()
    assert frame is not None and (frame.epoch, frame.seq, frame.id) == (2, 1, "f2-1")


def test_one_frame_a_quarter_second_is_kept_as_jpeg_and_it_is_the_best_of_its_slot(filled: Filled) -> None:
    for n in range(62):
        filled.put(9.0 if n % 8 == 3 else 5.0)
        filled.clock.advance(1 / 32)
    *kept, _, _ = filled.buffer.recent()
    assert len(kept) == 7
    assert all(frame.sharpness == 9.0 for frame in kept)
    raw = noise(1).nbytes
    assert all(frame.held_bytes < raw for frame in kept)
    assert kept[0].bgr().shape == (48, 64, 3)


def test_raw_pictures_are_kept_of_two_frames_only(filled: Filled) -> None:
    for _ in range(400):
        filled.put()
        filled.clock.advance(1 / 30)
    raw = noise(1).nbytes
    jpegs = sum(len(frame.jpeg()) for frame in filled.buffer.recent()[:-2])
    assert filled.buffer.held_bytes <= 2 * raw + jpegs + 2 * raw


def test_the_buffer_stays_under_64_mib_at_1080p30_whatever_the_pictures(filled: Filled) -> None:
    worst = np.random.default_rng(5).integers(0, 255, (1080, 1920, 3)).astype(np.uint8)
    most = 0
    for _ in range(26):
        filled.put(pixels=worst.copy())
        filled.clock.advance(0.26)
        most = max(most, filled.buffer.held_bytes)
    assert len(filled.buffer.recent()) < 24, "noise is the worst that JPEG can be given, so the oldest went"
    assert most <= JPEG_BYTES_AT_MOST + 2 * worst.nbytes
    assert most + 2 * worst.nbytes <= 64 * 1024 * 1024, "with the picture that is being made, and its copy"


def test_slots_grow_where_encoding_is_slow(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Frame.keep_encoded_only

    def slow(frame: Frame) -> None:
        filled.clock.advance(0.15)
        encode(frame)

    monkeypatch.setattr(Frame, "keep_encoded_only", slow)
    began = filled.clock.monotonic()
    while filled.clock.monotonic() - began < 10.0:
        filled.put()
        filled.clock.advance(1 / 30)
    spent = 0.15 * (len(filled.buffer.recent()) - 2)
    assert spent <= 0.16 * 10.0


def test_the_best_frame_of_the_last_second_is_taken(filled: Filled) -> None:
    for sharpness in (5.0, 9.0, 5.0, 4.0):
        filled.put(sharpness)
        filled.clock.advance(0.2)
    best = filled.buffer.best()
    assert best is not None and best.sharpness == 9.0
    for _ in range(4):
        filled.put(5.0)
        filled.clock.advance(0.2)
    best = filled.buffer.best()
    assert best is not None and best.sharpness == 5.0, "over a second before the newest"


def test_a_dead_source_leaves_its_last_moments_until_they_are_too_old(filled: Filled) -> None:
    filled.put(9.0)
    filled.clock.advance(0.3)
    filled.put(4.0)
    filled.clock.advance(14.5)
    best = filled.buffer.best()
    assert best is not None and best.sharpness == 9.0
    filled.clock.advance(0.3)
    best = filled.buffer.best()
    assert best is not None and best.sharpness == 4.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0.1, 20), st.booleans()), max_size=40))
def test_nothing_older_than_fifteen_seconds_comes_out_by_any_path(
    steps: list[tuple[float, float, bool]],
) -> None:
    filled = Filled()
    published: list[Frame] = []
    for pause, sharpness, switch in steps:
        filled.clock.advance(pause)
        if switch:
            filled.epoch = filled.buffer.begin_epoch()
        frame = filled.put(sharpness, pixels=flat(100, width=16, height=16))
        assert frame is not None
        published.append(frame)
        filled.clock.advance(pause)
        out = [filled.buffer.newest(), filled.buffer.best(), *filled.buffer.recent()]
        for given_out in out:
            if given_out is not None:
                assert given_out.age_s <= 15.0 and given_out.epoch == filled.epoch.number
                given_out.jpeg()
        for held in published:
            fresh = held.age_s <= 15.0 and held.epoch == filled.epoch.number
            assert held.usable is fresh


def test_frames_are_shared_and_cannot_be_written_to(filled: Filled) -> None:
    frame = filled.put()
    assert frame is not None
    with pytest.raises(ValueError, match="read-only"):
        frame.bgr()[0, 0, 0] = 1


def test_readers_and_the_writer_do_not_disturb_each_other(filled: Filled) -> None:
    """The newest pixels are read while the same frame is being turned into JPEG alone."""
    stop = threading.Event()
    looked: list[int] = []

    def read() -> None:
        while not stop.is_set():
            for frame in filled.buffer.recent():
                try:
                    looked.append(frame.bgr().shape[0] if frame.jpeg() else 0)
                except DeviceError as gone:
                    looked.append(48 if gone.code == "FRAME_EXPIRED" else 0)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(300):
        filled.put(float(n % 7))
        filled.clock.advance(0.05)
    stop.set()
    for reader in readers:
        reader.join(10)
    assert set(looked) == {48}


def test_quality_of_a_frame_is_that_which_was_measured(filled: Filled) -> None:
    picture = noise(3)
    quality = measure(picture)
    frame = filled.buffer.publish(
        picture,
        quality,
        epoch=filled.epoch,
        received=filled.clock.monotonic(),
        captured_at=filled.clock.wall(),
    )
    assert frame is not None
    assert (frame.sharpness, frame.exposure) == (quality.sharpness, quality.exposure)
    assert (frame.width, frame.height) == (64, 48)
