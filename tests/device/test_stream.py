"""Network streams through the real FFmpeg against a server on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from device.camera import Camera
from device.clock import SystemClock
from device.opencv import cv2
from device.sources import parse_source
from device.states import CameraState
from tests.device.fakes import StateLog, noise

S = CameraState
PASSWORD = "hunter2-secret"


class MjpegServer(ThreadingHTTPServer):
    """An IP camera's `multipart/x-mixed-replace` stream; each picture is a new one."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.stopping = threading.Event()
        self.paths: list[str] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away is no fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, MjpegServer)
        server.paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        number = 0
        while not server.stopping.wait(1 / 30):
            number += 1
            picture = cv2.imencode(".jpg", noise(number, width=320, height=240))[1].tobytes()
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
            self.wfile.write(head.encode() + picture + b"\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[MjpegServer]:
    server = MjpegServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.stopping.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_mjpeg_stream_goes_live_is_lost_and_tells_no_password(server: MjpegServer) -> None:
    camera = Camera(SystemClock(), jitter=lambda low, high: 0.1)
    log = StateLog(camera)
    port = server.server_address[1]
    camera.open(parse_source(f"http://user:{PASSWORD}@127.0.0.1:{port}/video?token={PASSWORD}"))
    assert camera.wait_fresh(10)
    newest = camera.newest()
    assert newest is not None and (newest.width, newest.height) == (320, 240)
    assert log.states == [S.OPENING, S.WARMING, S.LIVE]
    assert server.paths[0].startswith("/video?token="), "the address is used as typed"
    server.stopping.set()
    status = log.wait_for(S.LOST)
    assert status.words == f"lost: http://•••@127.0.0.1:{port}/video?••• gives no pictures any more"
    assert camera.newest() is not None, "its last frame stays for 15 s"
    camera.close()
    assert PASSWORD not in repr(log.statuses)


def test_a_stream_that_cannot_be_reached_is_tried_again() -> None:
    camera = Camera(SystemClock(), jitter=lambda low, high: 0.01)
    log = StateLog(camera)
    camera.open(parse_source(f"rtsp://user:{PASSWORD}@127.0.0.1:1/live"))
    status = log.wait_for(S.RECONNECTING)
    assert status.error is not None and status.error.code == "STREAM_UNREACHABLE"
    assert camera.newest() is None
    camera.close()
    assert PASSWORD not in repr(log.statuses) and PASSWORD not in str(status.error)
