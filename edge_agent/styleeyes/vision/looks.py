"""What is kept of a picture: for each region its colour and form, small enough to cache by the thousand."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from edge_agent.styleeyes.vision.colours import exposures, region_colour
from edge_agent.styleeyes.vision.heads import Heads, RegionHead
from edge_agent.styleeyes.vision.light import Light, light_of
from edge_agent.styleeyes.vision.picture import Floats, Pixels, decode
from edge_agent.styleeyes.vision.regions import (
    REGIONS,
    PatchClasses,
    Region,
    parse_by_colour,
    parse_tokens,
)
from edge_agent.styleeyes.vision.tokens import GRID, Encoder, Tokens

LOOK_VERSION = 2
"""Part of the cache's name: raise it when a look would come out otherwise."""


@dataclass(frozen=True, slots=True)
class RegionLook:
    """One region: `histogram` and `mean` as in `colours`; `form` and `detail` are unit vectors from
    layers 8 and 5 in the trained metric, or None in basic vision."""

    histogram: Floats
    mean: Floats
    form: Floats | None
    detail: Floats | None


@dataclass(frozen=True, slots=True)
class Look:
    """A catalog photo as the matcher sees it. Only regions that are in view are there."""

    regions: Mapping[Region, RegionLook]
    dominant: Region | None

    def packed(self) -> bytes:
        """For the cache; read back by `unpack_look`, in a fraction of a millisecond.

        Deflated: the place of `dominant` in REGIONS (or _NO_REGION), then for each region its place, the
        lengths of histogram and vectors, the histogram in bytes, the mean, and the vectors at half
        precision.
        """
        parts = [bytes([REGIONS.index(self.dominant) if self.dominant else _NO_REGION])]
        for region, look in self.regions.items():
            vectors = [v.astype("<f2") for v in (look.form, look.detail) if v is not None]
            lengths = [len(vector) for vector in vectors] if len(vectors) == 2 else [0, 0]
            parts.append(_REGION_HEAD.pack(REGIONS.index(region), len(look.histogram), *lengths))
            parts.append(np.round(look.histogram * 255).astype(np.uint8).tobytes())
            parts.append(look.mean.astype("<f4").tobytes())
            parts.extend(vector.tobytes() for vector in vectors if any(lengths))
        return zlib.compress(b"".join(parts), 1)


_NO_REGION = 255
_REGION_HEAD = struct.Struct("<BHHH")
_MEAN_BYTES = 12
_PART_TYPES: tuple[np.dtype[Any], ...] = tuple(np.dtype(kind) for kind in ("u1", "<f4", "<f2", "<f2"))


def unpack_look(data: bytes) -> Look:
    """The look of `Look.packed`. Raises ValueError for anything else."""
    try:
        raw = zlib.decompress(data)
        dominant = None if raw[0] == _NO_REGION else REGIONS[raw[0]]
        regions: dict[Region, RegionLook] = {}
        at = 1
        while at < len(raw):
            place, *lengths = _REGION_HEAD.unpack_from(raw, at)
            at += _REGION_HEAD.size
            ends = np.cumsum([at, lengths[0], _MEAN_BYTES, 2 * lengths[1], 2 * lengths[2]]).tolist()
            histogram, mean, form, detail = (
                np.frombuffer(raw[ends[i] : ends[i + 1]], kind).astype(np.float32)
                for i, kind in enumerate(_PART_TYPES)
            )
            has_form = lengths[1] > 0
            regions[REGIONS[place]] = RegionLook(
                np.asarray(histogram / 255, np.float32),
                mean,
                form if has_form else None,
                detail if has_form else None,
            )
            at = ends[-1]
        if at != len(raw):
            raise ValueError("cut short")
    except (zlib.error, struct.error, IndexError) as error:
        raise ValueError("not a packed look") from error
    return Look(MappingProxyType(regions), dominant)


@dataclass(frozen=True, slots=True)
class PooledTokens:
    """Mean and deviation of a region's tokens, 768 values a layer, standardised."""

    layer_8: Floats
    layer_5: Floats


@dataclass(frozen=True, slots=True)
class FrameLook:
    """A camera frame as the matcher and the describer see it."""

    look: Look
    pixels: Pixels
    classes: PatchClasses
    light: Light
    pooled: Mapping[Region, PooledTokens]
    """Empty in basic vision."""
    exposed: Mapping[Region, Floats]
    """Histograms under each of `colours.GAINS`."""


class Looker:
    """Makes looks. Without an encoder it works by colour alone."""

    def __init__(self, encoder: Encoder | None, region_head: RegionHead, heads: Heads) -> None:
        self._encoder = encoder
        self._region_head = region_head
        self._heads = heads

    def photo(self, data: bytes) -> Look:
        """The look of a catalog photo. Raises StyleEyesError("BAD_IMAGE")."""
        pixels = decode(data)
        classes, tokens = self._see(pixels)
        return self._look(pixels, classes, self._pooled(classes, tokens))

    def frame(self, data: bytes) -> FrameLook:
        """The look of a camera frame, which is looked at a second time, closer, where the garment is
        small. Raises StyleEyesError("BAD_IMAGE")."""
        return self.view(data, closer=True)

    def view(self, data: bytes, *, closer: bool) -> FrameLook:
        """Everything that is to be had of a picture, with or without the second, closer look."""
        pixels = decode(data)
        light = light_of(pixels)
        classes, tokens = self._see(pixels)
        if closer and tokens is not None and (part := classes.zoom(pixels)) is not None:
            near, near_tokens = self._see(part)
            if near.dominant() is not None:
                pixels, classes, tokens = part, near, near_tokens
        pooled = self._pooled(classes, tokens)
        look = self._look(pixels, classes, pooled)
        rows = exposures(pixels, [classes.mask(region) for region in look.regions])
        return FrameLook(look, pixels, classes, light, pooled, dict(zip(look.regions, rows, strict=True)))

    def _see(self, pixels: Pixels) -> tuple[PatchClasses, Tokens | None]:
        if self._encoder is None:
            return parse_by_colour(pixels, GRID), None
        tokens = self._encoder.tokens(pixels)
        return parse_tokens(tokens.final, self._region_head), tokens

    def _pooled(self, classes: PatchClasses, tokens: Tokens | None) -> dict[Region, PooledTokens]:
        if tokens is None:
            return {}
        heads = self._heads
        found: dict[Region, PooledTokens] = {}
        for region in REGIONS:
            if not classes.holds(region):
                continue
            mask = classes.mask(region)
            layer_8 = (pool(tokens.layer_8, mask) - heads.layer_8_centre) / heads.layer_8_scale
            layer_5 = (pool(tokens.layer_5, mask) - heads.layer_5_centre) / heads.layer_5_scale
            found[region] = PooledTokens(layer_8, layer_5)
        return found

    def _look(self, pixels: Pixels, classes: PatchClasses, pooled: Mapping[Region, PooledTokens]) -> Look:
        regions: dict[Region, RegionLook] = {}
        for region in REGIONS:
            if not classes.holds(region):
                continue
            colour = region_colour(pixels, classes.mask(region))
            form = detail = None
            if region in pooled:
                form = _unit(pooled[region].layer_8 @ self._heads.layer_8_metric)
                detail = _unit(pooled[region].layer_5 @ self._heads.layer_5_metric)
            regions[region] = RegionLook(colour.histogram, colour.mean, form, detail)
        return Look(MappingProxyType(regions), classes.dominant())


def pool(tokens: Floats, mask: Floats) -> Floats:
    """Mean and deviation of the tokens inside a grid × grid mask, one after the other."""
    weights = np.clip((mask.ravel() - 0.3) / 0.4, 0, 1)
    if weights.sum() < 1.5:
        weights = mask.ravel() + 1e-3
    weights = weights / weights.sum()
    mean = weights @ tokens
    deviation = np.sqrt(weights @ (tokens - mean) ** 2)
    return np.concatenate((mean, deviation)).astype(np.float32)


def content_hash(data: bytes) -> str:
    """SHA-256 in hex: the name of a photo in every cache."""
    return hashlib.sha256(data).hexdigest()


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)
