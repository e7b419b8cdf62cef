"""Which cameras there are, from sysfs and /dev/v4l; nothing is probed by trying to read from it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from device.errors import DeviceError
from device.v4l2 import CameraMode, NodeFacts, ask_node

_NODE = re.compile(r"video(\d+)$")


@dataclass(frozen=True, slots=True)
class CameraDevice:
    """A camera that is plugged in. `stable_id` stays the same over replugging, `node` does not."""

    number: int
    node: Path
    name: str
    stable_id: str
    allowed: bool
    """Whether this user may open it."""
    modes: tuple[CameraMode, ...] = ()

    @property
    def selector(self) -> str:
        """What to type for it."""
        return f"usb:{self.number}"


class DeviceTree:
    """The machine's cameras. `root` and `ask` stand in for the real tree and the driver in tests."""

    def __init__(self, root: Path = Path("/"), ask: Callable[..., NodeFacts | None] = ask_node) -> None:
        self._dev = root / "dev"
        self._sys = root / "sys/class/video4linux"
        self._ask = ask

    def cameras(self, *, with_modes: bool = False) -> list[CameraDevice]:
        """All cameras in the order of their nodes, numbered from 0; metadata nodes are left out.

        Where a node may not be opened, the first node of its device is taken for the camera.
        """
        found: list[CameraDevice] = []
        for node in self._nodes():
            facts = self._ask(node, with_modes=with_modes)
            allowed = facts is not None or os.access(node, os.R_OK | os.W_OK)
            captures = facts.captures if facts is not None else self._attribute(node, "index") in ("0", "")
            if captures:
                name = self._attribute(node, "name") or (facts.card if facts else "") or node.name
                modes = facts.modes if facts else ()
                found.append(CameraDevice(len(found), node, name, self._stable_id(node), allowed, modes))
        return found

    def find(self, selector: str) -> CameraDevice:
        """The camera for what was typed after `usb:` ("" for the first), a /dev path or a by-id name.

        Raises DeviceError NO_CAMERA naming the cameras that there are.
        """
        cameras = self.cameras()
        if not selector or selector.isdecimal():
            number = int(selector or 0)
            if number < len(cameras):
                return cameras[number]
            raise _no_camera(f"usb:{selector}" if selector else "usb", cameras)
        by_id = self._dev / "v4l/by-id" / selector
        path = self._dev.parent / selector.lstrip("/") if selector.startswith("/") else by_id
        if not path.exists():
            raise _no_camera(selector, cameras)
        node = Path(os.path.realpath(path))
        for camera in cameras:
            if camera.node == node:
                return camera
        # A node that sysfs does not show (a container) or that says it does not capture: the person named it.
        return CameraDevice(0, node, node.name, self._stable_id(node), os.access(node, os.R_OK | os.W_OK))

    def node_of(self, stable_id: str) -> Path | None:
        """Where the camera with this stable id is plugged in now; opens nothing, so it may be polled."""
        for node in self._nodes():
            if self._stable_id(node) == stable_id:
                return node
        bare = Path(stable_id)
        return bare if bare.is_absolute() and bare.exists() else None

    def _nodes(self) -> list[Path]:
        """Device nodes that sysfs lists and that exist, by number."""
        try:
            names = [entry.name for entry in self._sys.iterdir() if _NODE.match(entry.name)]
        except OSError:
            names = [entry.name for entry in self._dev.glob("video*") if _NODE.match(entry.name)]
        names.sort(key=lambda name: int(name.removeprefix("video")))
        return [self._dev / name for name in names if (self._dev / name).exists()]

    def _stable_id(self, node: Path) -> str:
        """The by-id name (maker, product and serial), else the USB port's by-path name, else the node."""
        for folder in ("v4l/by-id", "v4l/by-path"):
            try:
                links = sorted((self._dev / folder).iterdir())
            except OSError:
                continue
            for link in links:
                if os.path.realpath(link) == os.path.realpath(node):
                    return link.name
        return str(node)

    def _attribute(self, node: Path, name: str) -> str:
        try:
            text = (self._sys / node.name / name).read_text(errors="replace")
        except OSError:
            return ""
        # A name comes from the device itself, and ends up on a terminal.
        return "".join(letter for letter in text if letter.isprintable()).strip()


def list_cameras() -> list[CameraDevice]:
    """The cameras that are plugged into this machine, without their modes."""
    return DeviceTree().cameras()


def _no_camera(typed: str, cameras: list[CameraDevice]) -> DeviceError:
    if not cameras:
        return DeviceError(
            "NO_CAMERA",
            "no camera was found",
            "plug one in, or try --source synthetic, a video file or images:DIR",
        )
    known = ", ".join(f"{camera.selector} ({camera.name})" for camera in cameras)
    return DeviceError("NO_CAMERA", f"there is no camera {typed}", f"use one of {known}")
