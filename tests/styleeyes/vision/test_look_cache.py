"""The cache of looks: survives restarts, forgets other models, shrugs at damage."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from edge_agent.styleeyes.vision import look_cache
from edge_agent.styleeyes.vision.look_cache import LookCache
from edge_agent.styleeyes.vision.looks import Look, RegionLook, unpack_look


def a_look(seed: int = 0, *, form: bool = True) -> Look:
    draw = np.random.default_rng(seed)
    vector = draw.normal(size=96).astype(np.float32)
    region = RegionLook(
        histogram=draw.random(3200).astype(np.float32),
        mean=np.array([50, 10, -20], np.float32),
        form=vector if form else None,
        detail=vector if form else None,
    )
    return Look(MappingProxyType({"upper": region}), "upper")


@pytest.mark.parametrize("form", [True, False])
def test_a_packed_look_comes_back(form: bool) -> None:
    look = a_look(form=form)

    back = unpack_look(look.packed())

    assert back.dominant == "upper" and set(back.regions) == {"upper"}
    assert np.allclose(back.regions["upper"].histogram, look.regions["upper"].histogram, atol=1 / 255)
    assert (back.regions["upper"].form is not None) is form


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 broken", a_look().packed()[:-40]])
def test_damaged_bytes_are_no_look(data: bytes) -> None:
    with pytest.raises(ValueError):
        unpack_look(data)


def test_looks_survive_a_restart(tmp_path: Path) -> None:
    first = LookCache(tmp_path, "v1")
    first.put("a", a_look())
    first.close()

    assert LookCache(tmp_path, "v1").get("a") is not None


def test_looks_of_another_model_are_dropped(tmp_path: Path) -> None:
    first = LookCache(tmp_path, "v1")
    first.put("a", a_look())
    first.close()

    second = LookCache(tmp_path, "v2")
    assert second.get("a") is None and len(second) == 0


def test_a_damaged_file_costs_only_the_looks(tmp_path: Path) -> None:
    (tmp_path / "looks.sqlite").write_bytes(b"this is no database at all" * 100)

    cache = LookCache(tmp_path, "v1")
    cache.put("a", a_look())
    cache.close()

    assert LookCache(tmp_path, "v1").get("a") is not None


def test_a_folder_that_cannot_be_written_leaves_the_memory(tmp_path: Path) -> None:
    (tmp_path / "features").write_text("a file where the folder should be")

    cache = LookCache(tmp_path / "features", "v1")
    cache.put("a", a_look())

    assert cache.get("a") is not None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_cache, "MOST_IN_MEMORY", 3)
    cache = LookCache(None, "v1")

    for index in range(5):
        cache.put(str(index), a_look(index))

    assert [cache.get(str(index)) is not None for index in range(5)] == [False, False, True, True, True]
