from __future__ import annotations

import struct
from pathlib import Path

import pytest

from device.discovery import DeviceTree
from device.errors import DeviceError
from device.v4l2 import CameraMode, NodeFacts, ask_node
from tests.device.fakes import FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def test_no_cameras_no_list_and_a_hint(machine: FakeMachine, tmp_path: Path) -> None:
    assert machine.tree.cameras() == []
    assert DeviceTree(tmp_path / "nowhere").cameras() == []
    with pytest.raises(DeviceError) as caught:
        machine.tree.find("")
    assert caught.value.code == "NO_CAMERA" and "synthetic" in (caught.value.hint or "")


def test_metadata_nodes_are_left_out_and_do_not_count(machine: FakeMachine) -> None:
    machine.plug(0, "Front", "F1")
    machine.plug(1, "Front", "F1", captures=False)
    machine.plug(10, "Back", "B1")
    machine.plug(2, "Glasses", "G1")
    cameras = machine.tree.cameras()
    assert [(camera.selector, camera.name, camera.node.name) for camera in cameras] == [
        ("usb:0", "Front", "video0"),
        ("usb:1", "Glasses", "video2"),
        ("usb:2", "Back", "video10"),
    ]
    assert cameras[0].stable_id == "usb-Maker_F1-video-index0"


def test_a_node_that_may_not_be_opened_is_listed_by_what_sysfs_says(machine: FakeMachine) -> None:
    machine.plug(0, "Front", "F1")
    machine.plug(1, "Front", "F1", captures=False)
    machine.facts = {}
    assert [camera.node.name for camera in machine.tree.cameras()] == ["video0"]


@pytest.mark.parametrize("by", ["1", "usb-Maker_G1-video-index0", "node", "link"])
def test_a_camera_is_found_by_number_name_node_and_link(
    machine: FakeMachine, tmp_path: Path, by: str
) -> None:
    machine.plug(0, "Front", "F1")
    machine.plug(4, "Glasses", "G1")
    selector = {"node": "/dev/video4", "link": "/dev/v4l/by-id/usb-Maker_G1-video-index0"}.get(by, by)
    assert machine.tree.find(selector).name == "Glasses"


@pytest.mark.parametrize("selector", ["7", "/dev/video9", "usb-Maker_X-video-index0"])
def test_a_camera_that_is_not_there_names_those_that_are(machine: FakeMachine, selector: str) -> None:
    machine.plug(0, "Front", "F1")
    with pytest.raises(DeviceError) as caught:
        machine.tree.find(selector)
    assert caught.value.code == "NO_CAMERA" and caught.value.hint == "use one of usb:0 (Front)"


def test_the_same_camera_is_found_after_replugging_and_another_is_not_taken_for_it(
    machine: FakeMachine,
) -> None:
    machine.plug(0, "Front", "F1")
    stable = machine.tree.find("").stable_id
    machine.unplug(0)
    machine.plug(0, "Other", "O1")
    assert machine.tree.node_of(stable) is None
    machine.plug(5, "Front", "F1")
    node = machine.tree.node_of(stable)
    assert node is not None and node.name == "video5"


def test_a_camera_without_serial_is_known_by_its_node(machine: FakeMachine) -> None:
    node = machine.plug(0, "Cheap", serial=None)
    assert machine.tree.find("0").stable_id == str(node)
    assert machine.tree.node_of(str(node)) == node
    machine.unplug(0)
    assert machine.tree.node_of(str(node)) is None


def test_a_name_from_a_device_cannot_speak_to_the_terminal(machine: FakeMachine) -> None:
    machine.plug(0, "Cam\x1b]0;owned\x07\u202e")
    assert machine.tree.cameras()[0].name == "Cam]0;owned"


class FakeDriver:
    """Answers V4L2 requests as a camera with two MJPG sizes and a raw range would."""

    def __init__(self, capabilities: int) -> None:
        self._capabilities = capabilities

    def __call__(self, fd: int, request: int, buffer: bytearray) -> None:
        match request:
            case 0x80685600:
                struct.pack_into(
                    "16s32s32sIII",
                    buffer,
                    0,
                    b"uvc",
                    b"Cam \xc3\xa9",
                    b"usb-1",
                    0x50000,
                    0x84A00001,
                    self._capabilities,
                )
            case 0xC0405602:
                index, kind = struct.unpack_from("II", buffer)
                self._end_unless(kind == 1 and index < 2)
                buffer[44:48] = (b"MJPG", b"YUYV")[index]
            case 0xC02C564A:
                index, fourcc = struct.unpack_from("I4s", buffer)
                if fourcc == b"MJPG":
                    self._end_unless(index < 2)
                    struct.pack_into("3I", buffer, 8, 1, *((1280, 720), (640, 480))[index])
                else:
                    struct.pack_into("7I", buffer, 8, 3, 16, 800, 2, 16, 600, 2)
            case 0xC034564B:
                index, _, width, _ = struct.unpack_from("I4sII", buffer)
                self._end_unless(index < 2)
                struct.pack_into("3I", buffer, 16, 1, 1, (30, 60)[index] if width == 640 else (15, 30)[index])
            case _:
                raise OSError(25, "Inappropriate ioctl")

    @staticmethod
    def _end_unless(there: bool) -> None:
        if not there:
            raise OSError(22, "Invalid argument")


def test_modes_are_read_from_the_driver(tmp_path: Path) -> None:
    node = tmp_path / "video0"
    node.touch()
    facts = ask_node(node, with_modes=True, ioctl=FakeDriver(0x04200001))
    assert facts == NodeFacts(
        "Cam é",
        "usb-1",
        True,
        (
            CameraMode("MJPG", 1280, 720, 30.0),
            CameraMode("MJPG", 640, 480, 60.0),
            CameraMode("YUYV", 800, 600, 30.0),
        ),
    )


def test_a_metadata_node_says_so(tmp_path: Path) -> None:
    node = tmp_path / "video1"
    node.touch()
    facts = ask_node(node, with_modes=True, ioctl=FakeDriver(0x04A00000))
    assert facts is not None and not facts.captures and facts.modes == ()


def test_what_is_no_v4l2_node_has_no_facts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert ask_node(tmp_path / "file") is None
    assert ask_node(tmp_path / "missing") is None
