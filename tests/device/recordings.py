"""Real recordings made for tests: written by OpenCV, then bent where OpenCV cannot write such a thing."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from device.opencv import cv2
from device.quality import Pixels


def numbered(number: int, *, width: int = 160, height: int = 120) -> Pixels:
    """A picture that tells its number: the brightness of its upper left quarter is 8 × number + 4."""
    picture = np.full((height, width, 3), 128, dtype=np.uint8)
    picture[: height // 2, : width // 2] = 8 * number + 4
    return picture


def number_of(pixels: Pixels) -> int:
    """The number that a `numbered` picture carries after coding and decoding."""
    height, width = pixels.shape[:2]
    return int(pixels[height // 8 : height // 4, width // 8 : width // 4].mean()) // 8


def write_video(
    path: Path, *, frames: int = 30, fps: float = 30.0, width: int = 160, height: int = 120
) -> Path:
    writer = cv2.VideoWriter(
        str(path),
        cv2.CAP_FFMPEG,
        cv2.VideoWriter.fourcc(*("MJPG" if path.suffix == ".avi" else "mp4v")),
        fps,
        (width, height),
    )
    assert writer.isOpened()
    for number in range(frames):
        writer.write(numbered(number, width=width, height=height))
    writer.release()
    return path


def with_uneven_times(source: Path, target: Path, holds: list[int]) -> Path:
    """A copy of an MP4 in which picture n is shown `holds[n]` times as long as before.

    Rewrites the time-to-sample box (`stts`, ISO/IEC 14496-12) and the sizes of the boxes around it;
    the index lies behind the media data in OpenCV's files, so that no offset changes.
    """
    data = bytearray(source.read_bytes())
    at = data.index(b"stts") - 4
    (size,) = struct.unpack_from(">I", data, at)
    count, delta = struct.unpack_from(">II", data, at + 16)
    assert count == len(holds), "one entry for all pictures"
    entries = b"".join(struct.pack(">II", 1, delta * hold) for hold in holds)
    box = struct.pack(">I4sII", 16 + len(entries), b"stts", 0, len(holds)) + entries
    grown = len(box) - size
    data[at : at + size] = box
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        place = data.index(name) - 4
        (old,) = struct.unpack_from(">I", data, place)
        struct.pack_into(">I", data, place, old + grown)
    for name, offset in ((b"mdhd", 16), (b"mvhd", 16), (b"tkhd", 20)):
        place = data.index(name) + 4 + offset
        (duration,) = struct.unpack_from(">I", data, place)
        struct.pack_into(">I", data, place, duration * sum(holds) // len(holds))
    without_edit_list = bytes(data).replace(b"edts", b"free")
    target.write_bytes(without_edit_list)
    return target


def turned_by_a_quarter(source: Path, target: Path) -> Path:
    """A copy of an MP4 whose track header asks players to turn it 90° clockwise, as phones write it."""
    data = bytearray(source.read_bytes())
    matrix_at = data.index(b"tkhd") + 4 + 40
    one = 0x00010000
    width = struct.unpack_from(">I", data, matrix_at + 36)[0]
    struct.pack_into(">9i", data, matrix_at, 0, one, 0, -one, 0, 0, width & 0x7FFFFFFF, 0, 0x40000000)
    target.write_bytes(bytes(data))
    return target
