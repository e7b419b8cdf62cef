"""The photos that a catalog refers to: what can be looked at ahead of a question."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import EnvironmentLacksError
from edge_agent.styleeyes.catalog.schema import open_catalog

# The first view of every colour comes before any second view, so that a list that is cut short, or
# looked at only in part, still holds something of everything.
_PHOTOS = """
  SELECT p.style_id, p.name, p.category, photos.color, photos.file, photos.sha256
    FROM photos JOIN products p ON p.id = photos.product_id
   ORDER BY row_number() OVER (PARTITION BY product_id, photos.color ORDER BY position), p.id, position"""


@dataclass(frozen=True, slots=True)
class CatalogPhoto:
    """One photo: of which style and colour, where it lies, and the hash of its content.

    `words` are the product's name and category; they tell which part of the body it covers.
    """

    style_id: str
    words: str
    color: str | None
    path: Path
    sha256: str


def read_photo_list(catalog: Path, folder: Path) -> tuple[CatalogPhoto, ...]:
    """The photos of `catalog` that lie inside `folder` (an agent's `data/photos`).

    A reference that leads out of the folder, by `..` or by a link, is left out. Raises UsageError for
    what is no catalog, EnvironmentLacksError for one that cannot be read.
    """
    inside = folder.resolve()
    connection = open_catalog(catalog)
    try:
        rows = connection.execute(_PHOTOS).fetchall()
    except sqlite3.DatabaseError as error:
        raise EnvironmentLacksError(
            "CATALOG_UNREADABLE",
            f"The photos of {catalog.name} cannot be read ({error}).",
            "Build the catalog again: styleeyes catalog build DATA --replace",
        ) from error
    finally:
        connection.close()
    return tuple(
        CatalogPhoto(style, f"{name}, {category}" if category else name, color, path, sha256)
        for style, name, category, color, file, sha256 in rows
        if (path := (inside / file).resolve()).is_relative_to(inside)
    )
