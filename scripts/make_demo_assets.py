#!/usr/bin/env python3
"""Draws the demo anew: the collection's catalog photos and notes, and the clip of a walk along a rail.

    .venv/bin/python scripts/make_demo_assets.py [--to assets/demo]

Everything is drawn from code with fixed seeds; no photograph is used.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import cv2
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.demo_art.collection import COLLECTION, WALK, Style
from scripts.demo_art.garment import Pose
from scripts.demo_art.scene import (
    DWELL_S,
    FPS,
    FRAME_HEIGHT,
    FRAME_WIDTH,
    PAN_S,
    catalog_photo,
    detail_photo,
    walk_along,
)

_PHOTO_SIZE = (420, 540)
_JPEG_QUALITY = 84
_SNAPSHOT_DATE = "2026-11-02"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parent.parent / "assets" / "demo")
    target: Path = parser.parse_args().to
    for folder in (target / "data" / "photos", target / "data" / "products"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for number, style in enumerate(COLLECTION):
        _draw_style(style, number, target / "data")
        print(f"{style.id}  {style.name}", file=sys.stderr)
    _draw_walk(target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size / 2**20:.1f} MiB", file=sys.stderr)


def _draw_style(style: Style, number: int, data: Path) -> None:
    photos = []
    for shade, colour in enumerate(style.colours):
        cut = style.in_colour(colour)
        seed = 1000 + 10 * number + shade
        views = {
            "front": catalog_photo(cut, Pose(seed), *_PHOTO_SIZE),
            "back": catalog_photo(cut, Pose(seed + 500, sleeve_angle=20, back=True), *_PHOTO_SIZE),
        }
        if shade == 0:
            views["detail"] = detail_photo(cut, Pose(seed), *_PHOTO_SIZE)
        for view, picture in views.items():
            name = f"{style.id.lower()}-{colour}_{view}.jpg"
            cv2.imwrite(str(data / "photos" / name), picture, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
            photos.append({"file": name, "view": view, "color": colour})
    front_matter = {
        "style_id": style.id,
        "name": style.name,
        "brand": "Alder & Loom",
        "category": style.category,
        "colors": list(style.colours),
        "materials": list(style.materials),
        "patterns": [style.pattern],
        "gender": style.gender,
        "price": style.price,
        "currency": "EUR",
        "url": f"https://shop.example/styles/{style.id.lower()}",
        "snapshot_date": _SNAPSHOT_DATE,
        "photos": photos,
    }
    head = yaml.safe_dump(
        front_matter, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    (data / "products" / f"{style.id}.md").write_text(f"---\n{head}---\n\n{style.text}\n", encoding="utf-8")


def _draw_walk(target: Path) -> None:
    styles = {style.id: style for style in COLLECTION}
    cuts = [
        (styles[style_id].in_colour(colour), Pose(77 + stop, sleeve_angle=9 + 3 * (stop % 3), creases=1.5))
        for stop, (style_id, colour) in enumerate(WALK)
    ]
    path = target / "clip.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), FPS, (FRAME_WIDTH, FRAME_HEIGHT))
    if not writer.isOpened():
        raise SystemExit("this OpenCV cannot write MP4 video")
    for frame in walk_along(cuts, seed=5):
        writer.write(frame)
    writer.release()
    step = DWELL_S + PAN_S
    truth = {
        "fps": FPS,
        "segments": [
            {
                "fromS": round(i * step, 2),
                "toS": round((i + 1) * step, 2),
                "styleId": style_id,
                "color": colour,
            }
            for i, (style_id, colour) in enumerate(WALK)
        ],
    }
    (target / "clip.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
