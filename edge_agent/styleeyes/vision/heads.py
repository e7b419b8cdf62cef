"""The small trained heads of `assets/vision/heads.npz`, read once and checked for shape.

`scripts/train_vision.py` makes the file and `assets/vision/README.md` says from what.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from edge_agent.errors import EnvironmentLacksError
from edge_agent.home import ASSETS
from edge_agent.styleeyes.vision.picture import Floats

HEADS_FILE = ASSETS / "vision" / "heads.npz"
REGION_HEAD_FILE = ASSETS / "vision" / "parser_mlp64.npz"


@dataclass(frozen=True, slots=True)
class RegionHead:
    """Final token → class: two layers (384 → 64 → 8), ReLU between."""

    hidden: Floats
    hidden_bias: Floats
    out: Floats
    out_bias: Floats


@dataclass(frozen=True, slots=True)
class Heads:
    """All trained numbers but the region head.

    `*_centre`, `*_scale`: the mean and deviation of pooled tokens (768 values: mean, then deviation
    over a region); `*_metric`: 768 × n, a discriminant projection in which photos of one style lie
    together; `match_*`: weights of the evidence, standardised by `match_centre` and `match_scale`;
    `sure_*`: from best score, its lead and its evidence to "the best is right"; `basic_*`: the same
    for colour alone; `kind_*`, `line_*`, `color_*`: linear heads and their labels.
    """

    layer_8_centre: Floats
    layer_8_scale: Floats
    layer_8_metric: Floats
    layer_5_centre: Floats
    layer_5_scale: Floats
    layer_5_metric: Floats
    match_centre: Floats
    match_scale: Floats
    match_weights: Floats
    sure_weights: Floats
    basic_centre: Floats
    basic_scale: Floats
    basic_weights: Floats
    basic_sure_weights: Floats
    kind_weights: Floats
    kind_labels: tuple[str, ...]
    line_weights: Floats
    line_labels: tuple[str, ...]
    color_weights: Floats
    color_labels: tuple[str, ...]
    digest: str
    """SHA-256 of the file: part of the name under which features are cached."""


@cache
def load_region_head(path: Path = REGION_HEAD_FILE) -> RegionHead:
    """Raises EnvironmentLacksError where the file is missing or broken."""
    arrays, _digest = _read(path)
    return RegionHead(arrays["W1"], arrays["b1"], arrays["W2"], arrays["b2"])


@cache
def load_heads(path: Path = HEADS_FILE) -> Heads:
    """Raises EnvironmentLacksError where the file is missing or broken."""
    arrays, digest = _read(path)
    values: dict[str, Any] = {"digest": digest}
    try:
        for field in fields(Heads):
            if field.name.endswith("_labels"):
                values[field.name] = tuple(str(label) for label in arrays[field.name])
            elif field.name != "digest":
                values[field.name] = arrays[field.name]
    except KeyError as missing:
        raise _broken(path) from missing
    return Heads(**values)


def _read(path: Path) -> tuple[dict[str, Any], str]:
    try:
        data = path.read_bytes()
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {
                name: file[name].astype(np.float32) if file[name].dtype.kind == "f" else file[name]
                for name in file.files
            }
    except (OSError, ValueError, EOFError) as error:
        raise _broken(path) from error
    return arrays, hashlib.sha256(data).hexdigest()


def _broken(path: Path) -> EnvironmentLacksError:
    return EnvironmentLacksError(
        "VISION_ASSETS",
        f"The file assets/vision/{path.name} is missing or broken.",
        "Restore it from the repository.",
    )
