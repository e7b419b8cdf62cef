"""Builds `catalog.sqlite` from a snapshot of notes and photos, and publishes it only when whole.

The file is written beside the target under another name, checked, flushed and then linked to its
name, which fails if that name has been taken meanwhile: nothing is overwritten and nobody ever sees
half a catalog. The same snapshot gives the same bytes with the same SQLite. Memory does not grow
with the number of products: notes are read one by one, word counts are folded into the file.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.files import sync_folder
from edge_agent.styleeyes.catalog import schema
from edge_agent.styleeyes.catalog.entries import ProductEntry, product_entry
from edge_agent.styleeyes.catalog.photos import LeftOut, VerifiedPhoto
from edge_agent.styleeyes.catalog.snapshot import CheckedPhoto, OnProgress, Progress, Snapshot
from edge_agent.styleeyes.catalog.words import cuts_of, search_words

_BATCH = 500
_SHORTEST_FORGIVEN_WORD = 4
_WORDS_IN_MEMORY = 100_000


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What was published. `excluded` counts the photos left out, by reason."""

    path: Path
    products: int
    photos: int
    excluded: dict[str, int]
    snapshot_first: str | None
    snapshot_last: str | None
    snapshot_unknown: int
    bytes: int


def build_catalog(
    data: Path, out: Path, on_progress: OnProgress | None = None, *, replace: bool = False
) -> BuildReport:
    """Builds the catalog of the snapshot in `data` and publishes it as `out`.

    `data` holds `products/*.md` and `photos/`. With `replace` an existing catalog serves until the
    new one takes its name; without, an existing `out` is refused. Raises UsageError for a snapshot
    that cannot be built (every broken note named) and StyleEyesError where the disk fails. Whatever
    is raised, KeyboardInterrupt too, nothing is left behind.
    """
    if not replace:
        _refuse_existing(out)
    temporary: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.", suffix=".building")
        temporary = Path(name)
        os.close(fd)
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            report = _Build(connection, on_progress or (lambda _: None)).run(data, out)
        temporary.chmod(0o644)
        report = dataclasses.replace(report, bytes=temporary.stat().st_size)
        _publish(temporary, out, replace=replace)
    except sqlite3.Error as wrong:
        raise StyleEyesError(
            "CATALOG_WRITE_FAILED",
            f"The catalog could not be written: {wrong}.",
            "Check the free space and the permissions of the target folder.",
        ) from wrong
    except OSError as wrong:
        raise StyleEyesError(
            "CATALOG_WRITE_FAILED",
            f"The catalog could not be built: {wrong.strerror or wrong} ({wrong.filename or out}).",
            "Check the free space and the permissions of both folders.",
        ) from wrong
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return report


def _refuse_existing(out: Path) -> None:
    if os.path.lexists(out):
        raise UsageError(
            "ALREADY_EXISTS",
            f"{out} exists and is not overwritten.",
            "Move it away, name another target, or pass --replace.",
        )


def _publish(temporary: Path, out: Path, *, replace: bool) -> None:
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    if replace:
        temporary.replace(out)
    else:
        try:
            out.hardlink_to(temporary)
        except FileExistsError:
            _refuse_existing(out)
            raise
        except OSError:
            # No hard links here (FAT, some network mounts): take the name first, then rename over it.
            try:
                out.open("xb").close()
            except FileExistsError:
                _refuse_existing(out)
                raise
            temporary.replace(out)
    sync_folder(out.parent)


@dataclass(slots=True)
class _Build:
    """One run over a snapshot into an open, empty database."""

    connection: sqlite3.Connection
    tell: OnProgress
    excluded: Counter[str] = field(default_factory=Counter)
    photos: int = 0
    _words: Counter[str] = field(default_factory=Counter)

    def run(self, data: Path, out: Path) -> BuildReport:
        execute = self.connection.execute
        # Nobody else sees this file before it is whole, so it needs no journal and no early flush.
        execute("PRAGMA journal_mode=OFF")
        execute("PRAGMA synchronous=OFF")
        execute("PRAGMA cache_size=-65536")
        execute("PRAGMA temp_store=FILE")
        execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
        execute(f"PRAGMA user_version={schema.FORMAT}")
        self.connection.executescript(schema.TABLES)
        execute("BEGIN")
        snapshot = Snapshot(data, self.connection, self.tell)
        products = self._write_products(snapshot)
        self.tell(Progress("indexing", products, products))
        self._write_words()
        for index in schema.INDEXES:
            execute(index)
        report = self._write_meta(out, products)
        snapshot.close()
        execute("COMMIT")
        self.tell(Progress("checking", products, products))
        answer = execute("PRAGMA integrity_check").fetchone()[0]
        if answer != "ok":
            raise StyleEyesError(
                "CATALOG_DAMAGED",
                f"The new catalog is damaged: {answer}.",
                "Check the disk, then build again.",
            )
        execute("PRAGMA journal_mode=DELETE")
        return report

    def _write_products(self, snapshot: Snapshot) -> int:
        number = 0
        batch: list[ProductEntry] = []
        for number, (note, photos) in enumerate(snapshot.products(), 1):
            self._leave_out(note.style_id, photos)
            good = [(reference, answer) for reference, answer in photos if isinstance(answer, VerifiedPhoto)]
            self.photos += len(good)
            batch.append(product_entry(number, note, good))
            if len(batch) == _BATCH:
                self._write(batch)
                batch.clear()
        self._write(batch)
        return number

    def _leave_out(self, style_id: str, photos: list[CheckedPhoto]) -> None:
        for reference, answer in photos:
            if isinstance(answer, LeftOut):
                self.excluded[answer.reason] += 1
                self.connection.execute(
                    schema.INSERT_EXCLUDED, (style_id, reference.file, answer.reason, answer.detail)
                )

    def _write(self, batch: list[ProductEntry]) -> None:
        many = self.connection.executemany
        many(schema.INSERT_PRODUCT, (entry.product for entry in batch))
        many(schema.INSERT_PHOTO, (row for entry in batch for row in entry.photos))
        many(schema.INSERT_VARIANT, (row for entry in batch for row in entry.variants))
        many(schema.INSERT_COLOR, (row for entry in batch for row in entry.colors))
        many(schema.INSERT_KIND, (row for entry in batch for row in entry.kinds))
        many(schema.INSERT_CODE, (row for entry in batch for row in entry.codes))
        many(schema.INSERT_WORDS, (entry.words for entry in batch))
        scripts = [(entry.product[0], entry.script) for entry in batch if entry.script is not None]
        many(schema.INSERT_SCRIPT, scripts)
        many(schema.INSERT_PIECES, scripts)
        for entry in batch:
            self._words.update(entry.vocabulary)
        if len(self._words) > _WORDS_IN_MEMORY:
            self._fold_words()

    def _fold_words(self) -> None:
        self.connection.executemany(schema.COUNT_WORD, sorted(self._words.items()))
        self._words.clear()

    def _write_words(self) -> None:
        """What people type, which words occur, and the slips of the pen that are forgiven."""
        execute, many = self.connection.execute, self.connection.executemany
        self._fold_words()
        rows = ((row.form, row.term, row.kind, row.relation) for row in search_words())
        many(schema.INSERT_SEARCH_WORD, rows)
        forgiven = execute(
            "SELECT word FROM vocabulary UNION"
            " SELECT s.form FROM search_words s JOIN vocabulary v ON v.word = s.term"
            " WHERE s.relation = 'same' AND instr(s.form, ' ') = 0 ORDER BY 1"
        )
        long_enough = (word for (word,) in forgiven if len(word) >= _SHORTEST_FORGIVEN_WORD)
        many(schema.INSERT_SLIP, ((cut, word) for word in long_enough for cut in cuts_of(word)))
        execute("INSERT INTO product_words (product_words) VALUES ('optimize')")
        execute("INSERT INTO script_pieces (script_pieces) VALUES ('optimize')")

    def _write_meta(self, out: Path, products: int) -> BuildReport:
        first, last, unknown = self.connection.execute(
            "SELECT min(snapshot_date), max(snapshot_date), count(*) - count(snapshot_date) FROM products"
        ).fetchone()
        meta = {
            "format": schema.FORMAT,
            "products": products,
            "photos": self.photos,
            "excluded_photos": self.excluded.total(),
            "snapshot_first": first,
            "snapshot_last": last,
            "snapshot_unknown": unknown,
        }
        self.connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
        counts = dict(sorted(self.excluded.items()))
        return BuildReport(out, products, self.photos, counts, first, last, unknown, bytes=0)
