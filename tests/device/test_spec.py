from __future__ import annotations

from pathlib import Path

import pytest

from device.errors import DeviceError
from device.sources import SourceKind, parse_source


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        ("usb", SourceKind.USB, ""),
        (" usb ", SourceKind.USB, ""),
        ("USB:2", SourceKind.USB, "2"),
        ("/dev/video3", SourceKind.USB, "/dev/video3"),
        ("/dev/v4l/by-id/usb-X-video-index0", SourceKind.USB, "/dev/v4l/by-id/usb-X-video-index0"),
        ("usb-Maker_Cam_A1-video-index0", SourceKind.USB, "usb-Maker_Cam_A1-video-index0"),
        ("synthetic", SourceKind.SYNTHETIC, ""),
        ("rtsp://cam.local/stream", SourceKind.STREAM, "rtsp://cam.local/stream"),
        ("HTTPS://cam.local:8443/video", SourceKind.STREAM, "HTTPS://cam.local:8443/video"),
    ],
)
def test_what_people_type(text: str, kind: SourceKind, address: str) -> None:
    spec = parse_source(text)
    assert (spec.kind, spec.address) == (kind, address)


def test_files_are_videos_pictures_or_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "album").mkdir()
    walk = parse_source("a:b walk.mp4", at=1.5, loop=True)
    assert (walk.kind, walk.path, walk.at, walk.loop) == (
        SourceKind.VIDEO,
        tmp_path / "a:b walk.mp4",
        1.5,
        True,
    )
    assert walk.label == "a:b walk.mp4"
    assert parse_source("coat.JPG").kind is SourceKind.STILL
    assert parse_source("album").kind is SourceKind.IMAGES
    assert parse_source("images:album").path == tmp_path / "album"


def test_size_and_rate_of_the_synthetic_picture() -> None:
    spec = parse_source("synthetic:1920x1080@60")
    assert (spec.width, spec.height, spec.fps) == (1920, 1080, 60.0)
    assert parse_source("synthetic:640x480").fps == 30.0


@pytest.mark.parametrize(
    "text",
    ["", "   ", "usb:one", "usb:-1", "images:", "ftp://x/y", "rtsp://", "http:///x", "synthetic:big",
     "synthetic:9999x9999", "a\0b", "rtsp://[::1/x", "http://h:99999/x"],
)  # fmt: skip
def test_nonsense_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(DeviceError) as caught:
        parse_source(text)
    assert caught.value.code == "SOURCE_INVALID" and caught.value.hint


@pytest.mark.parametrize(
    ("source", "at"), [("a.mp4", -1.0), ("a.mp4", float("nan")), ("usb", 3.0), ("a.png", 0.0)]
)
def test_a_position_is_for_recorded_video(source: str, at: float) -> None:
    with pytest.raises(DeviceError) as caught:
        parse_source(source, at=at)
    assert caught.value.code == "SOURCE_INVALID"


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("rtsp://admin:hunter2@10.0.0.5:554/live", "rtsp://•••@10.0.0.5:554/live"),
        ("http://cam/video?user=a&pwd=hunter2", "http://cam/video?•••"),
        ("http://hunter2@cam/", "http://•••@cam/"),
        ("http://cam/video#hunter2", "http://cam/video"),
        ("rtsp://u:hunter2@[fe80::1]:554/x", "rtsp://•••@[fe80::1]:554/x"),
    ],
)
def test_credentials_of_a_stream_are_nowhere_to_be_seen(url: str, label: str) -> None:
    spec = parse_source(url)
    assert spec.label == label
    assert "hunter2" not in repr(spec) and "hunter2" not in str(spec)
    assert spec.address == url


def test_an_address_with_a_password_and_a_bad_port_does_not_show_it() -> None:
    with pytest.raises(DeviceError) as caught:
        parse_source("rtsp://u:hunter2@cam:notaport/x")
    assert "hunter2" not in str(caught.value)
