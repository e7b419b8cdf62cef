"""Benchmarks of the vision room: time to describe and to match, memory of all models, first preparation."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROUNDS = 7
_PROBE = """
import json, sys, psutil
from pathlib import Path
import cv2, numpy, onnxruntime
process = psutil.Process()
before = process.memory_info().rss
from edge_agent.styleeyes.vision.garment import GarmentVision
vision = GarmentVision.load(Path(sys.argv[1]))
vision.compare(Path(sys.argv[2]).read_bytes(), [[Path(sys.argv[2]).read_bytes()]])
print(json.dumps((process.memory_info().rss - before) / 2**20))
"""


def measure() -> dict[str, dict[str, Any]]:
    """Flat figures: name → value, unit, aim, ok; `value` is null with a reason where there are no weights."""
    from edge_agent.styleeyes.vision.garment import GarmentVision

    with tempfile.TemporaryDirectory(prefix="styleeyes-bench-") as place:
        folder = Path(place) / "vision"
        begun = time.perf_counter()
        vision = GarmentVision.load(folder)
        prepared = time.perf_counter() - begun
        aims = {
            "vision.describe": ("ms", 150.0),
            "vision.match_four_uncached": ("ms", 450.0),
            "vision.match_four_cached": ("ms", 200.0),
            "vision.frame_cpu": ("ms", None),
            "vision.photo_cpu": ("ms", None),
            "vision.memory": ("MiB", 250.0),
            "vision.prepare_once": ("s", None),
        }
        if vision.level != "full":
            return {
                name: {"value": None, "unit": unit, "aim": aim, "ok": None, "reason": vision.reason}
                for name, (unit, aim) in aims.items()
            }
        values = {"vision.prepare_once": prepared} | _times(vision)
        vision.close()
        picture = Path(place) / "picture.jpg"
        picture.write_bytes(_picture(0))
        values["vision.memory"] = _memory(folder, picture)
    return {
        name: {
            "value": round(values[name], 1),
            "unit": unit,
            "aim": aim,
            "ok": None if aim is None else values[name] <= aim,
        }
        for name, (unit, aim) in aims.items()
    }


def _times(vision: Any) -> dict[str, float]:
    photos = [[_picture(seed)] for seed in range(1, 5)]

    def uncached(seed: int) -> None:
        vision.forget()
        vision.compare(_picture(seed), photos)

    uncached(99)
    cpu = time.process_time
    return {
        "vision.describe": _median_ms(lambda round_: vision.describe(_picture(100 + round_))),
        "vision.match_four_uncached": _median_ms(lambda round_: uncached(200 + round_)),
        "vision.match_four_cached": _median_ms(lambda round_: vision.compare(_picture(300 + round_), photos)),
        "vision.frame_cpu": _median_ms(lambda round_: vision.describe(_picture(400 + round_)), cpu),
        "vision.photo_cpu": _median_ms(lambda round_: vision.precompute([_picture(500 + round_)]), cpu),
    }


def _median_ms(call: Callable[[int], object], clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for round_ in range(_ROUNDS):
        begun = clock()
        call(round_)
        times.append(1000 * (clock() - begun))
    return statistics.median(times)


def _memory(folder: Path, picture: Path) -> float:
    """What loading and using everything adds to a process that already has OpenCV and ONNX Runtime."""
    root = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-c", _PROBE, str(folder), str(picture)]
    done = subprocess.run(argv, cwd=root, capture_output=True, check=True, timeout=120)
    return float(json.loads(done.stdout))


def _picture(seed: int) -> bytes:
    """A drawn top that fills the picture, as a 640 × 480 JPEG."""
    import cv2
    import numpy as np

    draw = np.random.default_rng(seed)
    canvas = np.full((480, 640, 3), 245, np.uint8)
    outline = np.array([(200, 30), (290, 55), (350, 55), (440, 30), (590, 170), (520, 250), (460, 190)])
    outline = np.vstack((outline, [(460, 470), (180, 470), (180, 190), (120, 250), (50, 170)]))
    cv2.fillPoly(canvas, [outline.astype(np.int32)], [int(v) for v in draw.integers(30, 200, 3)])
    noisy = np.clip(canvas + draw.normal(0, 6, canvas.shape), 0, 255).astype(np.uint8)
    return bytes(cv2.imencode(".jpg", noisy)[1])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    print(json.dumps(measure(), indent=1))
