"""Looks at every picture once, with the product's own eyes, and keeps what they saw in a work folder."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.styleeyes.vision.encoder_recipe import RECIPE
from edge_agent.styleeyes.vision.heads import Heads, load_region_head
from edge_agent.styleeyes.vision.looks import LOOK_VERSION, FrameLook, Looker
from edge_agent.styleeyes.vision.picture import Pixels
from edge_agent.styleeyes.vision.tokens import Encoder

Values = npt.NDArray[np.float64]


def plain_heads() -> Heads:
    """Heads that leave pooled tokens as they are, for looking before anything is trained."""
    empty = np.zeros(1, np.float32)
    arrays = dict.fromkeys((name for name in Heads.__dataclass_fields__), empty)
    values = dict(arrays) | {name: () for name in arrays if name.endswith("_labels")} | {"digest": ""}
    for layer in ("layer_8", "layer_5"):
        values[f"{layer}_centre"] = np.zeros(768, np.float32)
        values[f"{layer}_scale"] = np.ones(768, np.float32)
        values[f"{layer}_metric"] = np.zeros((768, 1), np.float32)
    return Heads(**values)  # type: ignore[arg-type]


class Views:
    """`view(name)`: a photo by path, `frame:PATH` for a photo held before a camera, and
    `light:KIND:PATH` for a query in other light."""

    def __init__(self, work: Path, encoder: Encoder | None) -> None:
        self._folder = work / f"{RECIPE.replace('/', '-')}-{LOOK_VERSION}-{'full' if encoder else 'basic'}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._looker = Looker(encoder, load_region_head(), plain_heads())
        self._seen: dict[tuple[str, bool], FrameLook] = {}

    def view(self, name: str, *, closer: bool) -> FrameLook:
        key = (name, closer)
        if key not in self._seen:
            file = self._folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.pkl"
            if file.is_file():
                self._seen[key] = pickle.loads(file.read_bytes())
            else:
                seen = self._looker.view(picture(name), closer=closer)
                seen = replace(seen, look=replace(seen.look, regions=dict(seen.look.regions)))
                file.write_bytes(pickle.dumps(seen))
                self._seen[key] = seen
        return self._seen[key]

    def warm(self, names: Iterable[tuple[str, bool]]) -> None:
        wanted = list(dict.fromkeys(names))
        for index, (name, closer) in enumerate(wanted):
            self.view(name, closer=closer)
            if index % 100 == 0:
                print(f"looked at {index} of {len(wanted)}", flush=True)


def picture(name: str) -> bytes:
    """The JPEG of a named picture; changes are drawn from the name, so they repeat."""
    scheme, _, rest = name.partition(":")
    draw = np.random.default_rng(zlib.crc32(name.rsplit("/", 1)[-1].encode()))
    if scheme == "frame":
        return _jpeg(held_up(_read(rest), draw), int(draw.integers(60, 95)))
    if scheme == "light":
        kind, _, path = rest.partition(":")
        return _jpeg(relit(_read(path), kind, draw), 90)
    return Path(name).read_bytes()


def _read(path: str) -> Pixels:
    return np.asarray(cv2.imread(path), np.uint8)


def _jpeg(pixels: Pixels, quality: int) -> bytes:
    return bytes(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])[1])


def held_up(photo: Pixels, draw: np.random.Generator) -> Pixels:
    """A photo before clutter, tilted, in other light, with motion and noise: what a recorded rack shows."""
    height, width = 480, 640
    tone = draw.integers(60, 220, 3)
    rough = tone + draw.normal(0, 45, (int(draw.integers(8, 20)), int(draw.integers(10, 26)), 3))
    behind = cv2.resize(
        np.clip(rough, 0, 255).astype(np.uint8), (width, height), interpolation=cv2.INTER_CUBIC
    )
    rows, columns = photo.shape[:2]
    turn = cv2.getRotationMatrix2D(
        (columns / 2, rows / 2), draw.uniform(-6, 6), draw.uniform(0.78, 1.0) * height / rows
    )
    turn[0, 2] += width / 2 - columns / 2 + draw.uniform(-60, 60)
    turn[1, 2] += height / 2 - rows / 2 + draw.uniform(-20, 20)
    covered = cv2.warpAffine(np.full((rows, columns), 255, np.uint8), turn, (width, height))
    placed = cv2.warpAffine(photo, turn, (width, height), flags=cv2.INTER_AREA)
    frame: Values = np.where(covered[..., None] > 127, placed, behind).astype(np.float64)
    frame = frame * draw.uniform(0.65, 1.15) * np.exp(draw.normal(0, 0.035, 3))
    if draw.random() < 0.5:
        frame = _shaken(frame, int(draw.integers(3, 8)), draw.uniform(0, 180))
    frame = frame + draw.normal(0, draw.uniform(0, 5), frame.shape)
    return np.clip(frame, 0, 255).astype(np.uint8)


LIGHTS = ("warm", "cool", "dark", "bright", "motion", "small", "turned")


def relit(photo: Pixels, kind: str, draw: np.random.Generator) -> Pixels:
    """One kind of trouble of LIGHTS: the robustness variants that are reported."""
    values: Values = photo.astype(np.float64)
    if kind == "warm":
        values = values * (0.8, 1.0, 1.12)
    elif kind == "cool":
        values = values * (1.12, 1.0, 0.84)
    elif kind == "dark":
        values = values * 0.45 + draw.normal(0, 8, values.shape)
    elif kind == "bright":
        values = values * 1.3 + 10
    elif kind == "motion":
        values = _shaken(values, 11, 20)
    elif kind == "small":
        scale = 160 / max(photo.shape[:2])
        small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        reduced = _jpeg(np.asarray(small, np.uint8), 60)
        return np.asarray(cv2.imdecode(np.frombuffer(reduced, np.uint8), cv2.IMREAD_COLOR), np.uint8)
    elif kind == "turned":
        rows, columns = photo.shape[:2]
        turn = cv2.getRotationMatrix2D((columns / 2, rows / 2), 12, 0.95)
        return np.asarray(
            cv2.warpAffine(photo, turn, (columns, rows), borderMode=cv2.BORDER_REPLICATE), np.uint8
        )
    return np.clip(values, 0, 255).astype(np.uint8)


def _shaken(values: Values, length: int, angle: float) -> Values:
    line = np.zeros((length, length), np.float64)
    line[length // 2] = 1
    centre = (length / 2 - 0.5, length / 2 - 0.5)
    turned = cv2.warpAffine(line, cv2.getRotationMatrix2D(centre, angle, 1), (length, length))
    kernel = np.asarray(turned, np.float64)
    return np.asarray(cv2.filter2D(values, -1, kernel / max(float(kernel.sum()), 1e-3)), np.float64)
