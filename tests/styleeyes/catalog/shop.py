"""A small shop drawn for tests: notes in a folder, photos that decode, and its catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge_agent.styleeyes.catalog.build import BuildReport, build_catalog
from edge_agent.styleeyes.catalog.notes import PhotoReference, ProductNote, note_file_name, render_note


def photo_bytes(seed: int = 1, size: tuple[int, int] = (64, 80), ending: str = ".jpg") -> bytes:
    """An encoded photo; each seed gives another picture."""
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
    done, encoded = cv2.imencode(ending, cv2.resize(pixels, size))
    assert done
    return encoded.tobytes()


class Shop:
    """A snapshot folder that tests fill."""

    def __init__(self, data: Path) -> None:
        self.data = data
        (data / "products").mkdir(parents=True)
        (data / "photos").mkdir()

    def write(self, text: str, name: str) -> Path:
        path = self.data / "products" / name
        path.write_text(text, "utf-8")
        return path

    def add(self, note: ProductNote, *, photos: bool = True) -> ProductNote:
        """Writes a note and, unless told otherwise, a photo for each of its references."""
        self.write(render_note(note), note_file_name(note.style_id))
        if photos:
            for number, photo in enumerate(note.photos):
                self.photo(photo.file, seed=number + len(photo.file))
        return note

    def photo(self, name: str, seed: int = 1) -> Path:
        path = self.data / "photos" / name
        path.write_bytes(photo_bytes(seed))
        return path

    @property
    def catalog(self) -> Path:
        return self.data / "databases" / "catalog.sqlite"

    def build(self) -> BuildReport:
        return build_catalog(self.data, self.catalog)

    def leftovers(self) -> list[str]:
        """Files beside the catalog that are not the catalog."""
        folder = self.catalog.parent
        return [p.name for p in folder.iterdir() if p != self.catalog] if folder.is_dir() else []


def note(style_id: str, name: str, *, photos: tuple[str, ...] = (), **more: Any) -> ProductNote:
    """A note with the given photo files, all of them main views in the note's first colour."""
    colors: tuple[str, ...] = more.setdefault("colors", ("red",))
    references = tuple(PhotoReference(file, "main", colors[0]) for file in photos)
    return ProductNote(style_id, name, photos=references, **more)
