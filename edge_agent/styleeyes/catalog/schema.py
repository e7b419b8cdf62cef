"""What is in a `catalog.sqlite`, its format version, and how a catalog file is opened for reading.

| table | one row | |
|---|---|---|
| `meta` | key | `format`, `products`, `photos`, `excluded_photos`, `snapshot_first/last/unknown` |
| `products` | style | `colors`, `materials`, `patterns`, `sizes` are JSON arrays; `price` in `currency` |
| `photos` | verified photo | best view first by `position`; `file` is relative to `data/photos` |
| `excluded_photos` | photo left out | with its reason |
| `variants` | orderable version | |
| `product_colors` | style and colour | `color` folded, `family` one of the colour families |
| `product_kinds` | style and kind of garment | `kind` is a term of `search_words` |
| `codes` | style id, variant id, GTIN | folded to letters and digits |
| `product_words` | style (rowid = products.id) | FTS5 over words in their preferred form |
| `product_script`, `script_pieces` | style whose text has no spaces between words | trigram index |
| `search_words` | what people type | → the preferred term, its kind and relation |
| `vocabulary` | a word that occurs in some product | in how many |
| `slips` | a word of the vocabulary less one letter | finds words one edit away |
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from edge_agent.errors import UsageError

FORMAT = 1
APPLICATION_ID = 0x53457943
"""`SEyC` in the file's header: tells our catalogs from any other SQLite file."""

PRODUCT_COLUMNS = """
    id INTEGER PRIMARY KEY, style_id TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL, brand TEXT,
    category TEXT, gender TEXT, colors TEXT NOT NULL, materials TEXT NOT NULL, patterns TEXT NOT NULL,
    sizes TEXT NOT NULL, description TEXT NOT NULL, price REAL, currency TEXT, url TEXT,
    snapshot_date TEXT, imported_from TEXT, photo_count INTEGER NOT NULL DEFAULT 0"""

TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE products ({PRODUCT_COLUMNS});
CREATE TABLE photos (
    id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL, style_id TEXT NOT NULL, position INTEGER NOT NULL,
    file TEXT NOT NULL, view TEXT, color TEXT, width INTEGER NOT NULL, height INTEGER NOT NULL,
    bytes INTEGER NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE excluded_photos (style_id TEXT NOT NULL, file TEXT NOT NULL, reason TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE TABLE variants (product_id INTEGER NOT NULL, variant_id TEXT NOT NULL, color TEXT, sizes TEXT NOT NULL,
    price REAL, gtin TEXT);
CREATE TABLE product_colors (product_id INTEGER NOT NULL, color TEXT NOT NULL, family TEXT NOT NULL,
    PRIMARY KEY (product_id, color, family)) WITHOUT ROWID;
CREATE TABLE product_kinds (product_id INTEGER NOT NULL, kind TEXT NOT NULL,
    PRIMARY KEY (product_id, kind)) WITHOUT ROWID;
CREATE TABLE codes (code TEXT NOT NULL, product_id INTEGER NOT NULL,
    PRIMARY KEY (code, product_id)) WITHOUT ROWID;
CREATE VIRTUAL TABLE product_words USING fts5(
    name, kind, colors, brand, materials, patterns, gender, description,
    content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE product_script (product_id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE script_pieces USING fts5(
    text, content='product_script', content_rowid='product_id', tokenize='trigram');
CREATE TABLE search_words (form TEXT NOT NULL, term TEXT NOT NULL, kind TEXT NOT NULL, relation TEXT NOT NULL,
    PRIMARY KEY (form, term)) WITHOUT ROWID;
CREATE TABLE vocabulary (word TEXT PRIMARY KEY, products INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE slips (cut TEXT NOT NULL, word TEXT NOT NULL, PRIMARY KEY (cut, word)) WITHOUT ROWID;
"""

INDEXES = (
    "CREATE INDEX photos_by_product ON photos (product_id, position)",
    "CREATE INDEX excluded_by_style ON excluded_photos (style_id)",
    "CREATE INDEX variants_by_product ON variants (product_id)",
)
"""Made after the rows, which is quicker than keeping them while rows come in."""


INSERT_PRODUCT = "INSERT INTO products VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_PHOTO = (
    "INSERT INTO photos (product_id, style_id, position, file, view, color, width, height, bytes, sha256)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_EXCLUDED = "INSERT INTO excluded_photos VALUES (?, ?, ?, ?)"
INSERT_VARIANT = "INSERT INTO variants VALUES (?, ?, ?, ?, ?, ?)"
INSERT_COLOR = "INSERT OR IGNORE INTO product_colors VALUES (?, ?, ?)"
INSERT_KIND = "INSERT INTO product_kinds VALUES (?, ?)"
INSERT_CODE = "INSERT INTO codes VALUES (?, ?)"
INSERT_WORDS = (
    "INSERT INTO product_words"
    " (rowid, name, kind, colors, brand, materials, patterns, gender, description)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_SCRIPT = "INSERT INTO product_script VALUES (?, ?)"
INSERT_PIECES = "INSERT INTO script_pieces (rowid, text) VALUES (?, ?)"
INSERT_SEARCH_WORD = "INSERT INTO search_words VALUES (?, ?, ?, ?)"
INSERT_SLIP = "INSERT INTO slips VALUES (?, ?)"
COUNT_WORD = (
    "INSERT INTO vocabulary VALUES (?, ?) ON CONFLICT DO UPDATE SET products = products + excluded.products"
)


def open_catalog(path: Path) -> sqlite3.Connection:
    """Opens a published catalog read-only.

    Raises UsageError for a missing file, one that is no catalog, and one of a newer format.
    """
    if not path.is_file():
        raise UsageError(
            "NOT_FOUND", f"There is no catalog at {path}.", "Build one: styleeyes catalog build DATA"
        )
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError:
        application, version = 0, 0
    if application == APPLICATION_ID and 1 <= version <= FORMAT:
        return connection
    connection.close()
    if application == APPLICATION_ID:
        raise UsageError(
            "CATALOG_TOO_NEW",
            f"{path.name} has catalog format {version}; this program reads up to {FORMAT}.",
            "Update StyleEyes, or build the catalog again with this version.",
        )
    raise UsageError(
        "NOT_A_CATALOG", f"{path.name} is not a StyleEyes catalog.", "Build one: styleeyes catalog build DATA"
    )
