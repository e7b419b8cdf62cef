from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.engine.broker.image_files import ImageHeader, check_image, read_header
from edge_agent.errors import StyleEyesError
from tests.engine.broker.world import picture


@pytest.mark.parametrize(
    ("kind", "mime"), [(".jpg", "image/jpeg"), (".png", "image/png"), (".webp", "image/webp")]
)
def test_the_header_tells_kind_and_size(kind: str, mime: str) -> None:
    data = picture(70, 50, kind)
    assert read_header(data) == ImageHeader(mime, 70, 50)
    assert check_image(data, "x") == ImageHeader(mime, 70, 50)


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"\xff\xd8\xff", b"<svg/>", b"\x89PNG\r\n\x1a\n", b"RIFF....WEBP"]
)
def test_what_is_no_image_is_not_found(data: bytes) -> None:
    with pytest.raises(StyleEyesError) as caught:
        check_image(data, "photos/x")
    assert caught.value.code == "NOT_FOUND"
    assert "photos/x" in caught.value.message


def test_a_png_that_claims_to_be_huge_is_refused_by_its_header() -> None:
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    with pytest.raises(StyleEyesError) as caught:
        check_image(bomb, "x")
    assert caught.value.code == "FILE_TOO_LARGE"


def test_a_header_without_pixels_is_no_image() -> None:
    with pytest.raises(StyleEyesError) as caught:
        check_image(picture(64, 64, ".png")[:40], "x")
    assert caught.value.code == "NOT_FOUND"


@given(
    st.binary(max_size=200), st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBPVP8 "])
)
def test_no_bytes_make_the_header_reader_fail(tail: bytes, head: bytes) -> None:
    header = read_header(head + tail)
    assert header is None or header.mime_type.startswith("image/")
