from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from device.discovery import DeviceTree
from device.v4l2 import CameraMode, NodeFacts
from edge_agent.cli.camera import camera
from tests.device.fakes import FakeMachine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    machine = FakeMachine(tmp_path)
    monkeypatch.setattr("edge_agent.cli.camera.DeviceTree", lambda: machine.tree)
    return machine


def test_list_shows_what_to_type_name_stable_id_and_modes(machine: FakeMachine) -> None:
    machine.plug(0, "Wearable Cam", "A1")
    modes = (CameraMode("MJPG", 1280, 720, 30.0), CameraMode("MJPG", 640, 480, None))
    machine.facts["video0"] = NodeFacts("Wearable Cam", "usb-1", True, modes)
    result = CliRunner().invoke(camera, ["list"])
    assert result.exit_code == 0
    assert result.stdout.startswith("usb:0  Wearable Cam\n")
    assert "usb-Maker_A1-video-index0" in result.stdout
    assert "MJPG: 1280x720@30, 640x480\n" in result.stdout
    lines = [json.loads(line) for line in CliRunner().invoke(camera, ["list", "--json"]).stdout.splitlines()]
    assert lines[0]["source"] == "usb:0" and lines[0]["modes"][0]["fps"] == 30.0
    assert lines[-1] == {"type": "result", "ok": True, "cameras": 1}


def test_list_without_a_camera_says_what_to_do(machine: FakeMachine) -> None:
    result = CliRunner().invoke(camera, ["list"])
    assert result.exit_code == 0 and result.stdout == ""
    assert "no camera was found" in result.stderr and "synthetic" in result.stderr


def test_check_reports_on_a_source_as_text_and_json() -> None:
    result = CliRunner().invoke(camera, ["check", "synthetic:320x240@30", "--seconds", "0.5"])
    assert result.exit_code == 0
    assert result.stdout.startswith("synthetic:320x240@30: ")
    assert "exposure      good" in result.stdout and "opening → live" in result.stdout
    result = CliRunner().invoke(camera, ["check", "synthetic", "--seconds", "0.5", "--json"])
    (line,) = result.stdout.splitlines()
    report = json.loads(line)
    assert report["type"] == "result" and report["ok"] is True
    assert report["mode"] == "1280x720@30" and report["exposure"] == "good" and report["cpuShare"] > 0


@pytest.mark.parametrize(
    ("source", "status", "code"), [("nowhere.mp4", 2, "SOURCE_NOT_FOUND"), ("usb", 3, "NO_CAMERA")]
)
def test_check_of_what_is_not_there_ends_with_the_documented_status(
    source: str, status: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device.camera.DeviceTree", lambda: DeviceTree(tmp_path))
    result = CliRunner().invoke(camera, ["check", source, "--json"])
    assert result.exit_code == status
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["ok"] is False and last["error"]["code"] == code and last["error"]["hint"]
