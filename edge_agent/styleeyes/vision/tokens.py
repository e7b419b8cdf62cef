"""The encoder at work: a picture becomes patch tokens of three layers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from edge_agent.styleeyes.vision.encoder_recipe import INPUT_NAME, INPUT_SIDE, OUTPUT_NAMES
from edge_agent.styleeyes.vision.picture import Floats, Pixels

GRID = INPUT_SIDE // 14
"""Patches along one side of the stretched picture."""
WIDTH = 384
"""Values of one token."""

_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Patch tokens, each GRID² × WIDTH, row by row: what DINOv2 sees at three depths."""

    final: Floats
    layer_8: Floats
    layer_5: Floats


class Encoder:
    """The prepared DINOv2-small. Thread-safe; one picture a run, so that results never depend on a batch."""

    def __init__(self, path: Path, threads: int = 2) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # The arena would keep the peak of one run for good; spinning would burn a core between runs.
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )

    def tokens(self, pixels: Pixels) -> Tokens:
        """Of the picture stretched to a square, as the region heads were trained."""
        small = cv2.resize(pixels, (INPUT_SIDE, INPUT_SIDE), interpolation=cv2.INTER_AREA)
        scaled = (small[:, :, ::-1].astype(np.float32) / 255 - _MEAN) / _DEVIATION
        batch = np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])
        final, layer_8, layer_5 = self._session.run(list(OUTPUT_NAMES), {INPUT_NAME: batch})
        return Tokens(final[0, 1:], layer_8[0, 1:], layer_5[0, 1:])
