"""Reads a snapshot of notes and photos in order, verifying photos ahead on other threads.

The list of notes and the codes of their styles are kept in temporary tables, so that memory does
not grow with the number of products.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.styleeyes.catalog.notes import (
    NoteError,
    PhotoReference,
    ProductNote,
    read_note,
    style_id_of_file,
)
from edge_agent.styleeyes.catalog.photos import (
    LeftOut,
    VerifiedPhoto,
    fold_code,
    names_another_style,
    verify_photo,
)

_TOLD_EVERY = 500
_NOTES_AHEAD = 32
"""Notes whose photos are being decoded while earlier ones are written."""
_MOST_FAULTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build or an import is; `total` is None while it is not known."""

    stage: str
    done: int
    total: int | None


OnProgress = Callable[[Progress], None]
CheckedPhoto = tuple[PhotoReference, VerifiedPhoto | LeftOut]
_Pending = Future[VerifiedPhoto | LeftOut] | LeftOut


class Snapshot:
    """The notes of `data/products` with the photos of `data/photos`."""

    def __init__(self, data: Path, connection: sqlite3.Connection, on_progress: OnProgress) -> None:
        """`connection` lends its temporary tables. Raises UsageError where there is no note."""
        self._notes = data / "products"
        self._photos = (data / "photos").resolve()
        self._execute = connection.execute
        self._tell = on_progress
        self._faults: list[StyleEyesError] = []
        self._faulty = 0
        self.total = self._list()

    def close(self) -> None:
        self._execute("DROP TABLE temp.note_files")
        self._execute("DROP TABLE temp.note_codes")

    def products(self) -> Iterator[tuple[ProductNote, list[CheckedPhoto]]]:
        """Every note in order of its file name, with its photos verified or left out.

        A broken note does not stop the reading, so that all of them are told at once; it ends
        with UsageError then, and gives out no more products from the first fault on.
        """
        names = self._execute("SELECT name FROM note_files ORDER BY name")
        waiting: deque[tuple[ProductNote, list[tuple[PhotoReference, _Pending]]]] = deque()
        with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2), thread_name_prefix="photo") as pool:
            try:
                for number, (name,) in enumerate(names, 1):
                    self._tell(Progress("products", number, self.total))
                    note = self._read(name)
                    if note is None or self._faults:
                        continue
                    waiting.append((note, [(photo, self._start(note, photo, pool)) for photo in note.photos]))
                    if len(waiting) > _NOTES_AHEAD:
                        yield _settled(*waiting.popleft())
                while waiting and not self._faults:
                    yield _settled(*waiting.popleft())
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        self._raise_faults()

    def _list(self) -> int:
        if not self._notes.is_dir():
            raise _no_products(f"There is no folder {self._notes}.")
        self._execute(
            "CREATE TEMP TABLE note_files (name TEXT PRIMARY KEY, folded TEXT UNIQUE) WITHOUT ROWID"
        )
        self._execute("CREATE TEMP TABLE note_codes (code TEXT PRIMARY KEY, style_id TEXT) WITHOUT ROWID")
        total = 0
        with os.scandir(self._notes) as entries:
            for entry in entries:
                if not entry.name.endswith(".md") or entry.name.startswith("."):
                    continue
                self._list_note(entry.name)
                total += 1
                if total % _TOLD_EVERY == 0:
                    self._tell(Progress("listing", total, None))
        if not total:
            raise _no_products(f"There are no product notes (*.md) in {self._notes}.")
        return total

    def _list_note(self, name: str) -> None:
        style_id = style_id_of_file(name)
        folded = style_id.casefold()
        try:
            self._execute("INSERT INTO note_files VALUES (?, ?)", (name, folded))
        except sqlite3.IntegrityError:
            row = self._execute("SELECT name FROM note_files WHERE folded = ?", (folded,)).fetchone()
            pair = " and ".join(sorted((row[0], name)))
            raise UsageError("INVALID_NOTE", f"{pair} hold one style id.", "Remove one of them.") from None
        # Where two ids fold to one code the lesser stands for it, whatever order the disk gave them in.
        self._execute(
            "INSERT INTO note_codes VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET style_id = min(style_id, excluded.style_id)",
            (fold_code(style_id), style_id),
        )

    def _read(self, name: str) -> ProductNote | None:
        try:
            return read_note(self._notes / name)
        except NoteError as fault:
            self._faulty += 1
            if len(self._faults) < _MOST_FAULTS_SHOWN:
                self._faults.append(fault)
            return None

    def _start(self, note: ProductNote, photo: PhotoReference, pool: ThreadPoolExecutor) -> _Pending:
        other = names_another_style(photo.file, note.style_id, self._style_of_code)
        if other is not None:
            return LeftOut("other-style", f"its file name names style {other}")
        return pool.submit(verify_photo, self._photos, photo.file)

    def _style_of_code(self, code: str) -> str | None:
        row = self._execute("SELECT style_id FROM note_codes WHERE code = ?", (code,)).fetchone()
        return row[0] if row else None

    def _raise_faults(self) -> None:
        if self._faulty == 1:
            raise self._faults[0]
        if self._faults:
            lines = "\n".join(f"  {fault.message}" for fault in self._faults)
            unseen = self._faulty - len(self._faults)
            more = f"\n  and {unseen} more" if unseen else ""
            raise UsageError(
                "INVALID_NOTE",
                f"{self._faulty} notes cannot be read:\n{lines}{more}",
                "Mend them and build again.",
            )


def _settled(
    note: ProductNote, photos: list[tuple[PhotoReference, _Pending]]
) -> tuple[ProductNote, list[CheckedPhoto]]:
    return note, [(ref, answer.result() if isinstance(answer, Future) else answer) for ref, answer in photos]


def _no_products(message: str) -> UsageError:
    return UsageError("NO_PRODUCTS", message, "Import a feed first: styleeyes catalog import FEED --to DATA")
