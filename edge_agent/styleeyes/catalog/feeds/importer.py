"""Imports a feed into a snapshot folder: notes written or renewed, photos put beside them."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.files import write_atomically
from edge_agent.styleeyes.catalog.feeds.formats import open_feed
from edge_agent.styleeyes.catalog.feeds.grouping import StyleGroups
from edge_agent.styleeyes.catalog.feeds.items import RowProblem
from edge_agent.styleeyes.catalog.feeds.styles import note_of_style
from edge_agent.styleeyes.catalog.notes import (
    NoteError,
    ProductNote,
    is_untouched_import,
    note_file_name,
    read_note,
    render_note,
    seal,
)
from edge_agent.styleeyes.catalog.snapshot import OnProgress, Progress

_PROBLEMS_KEPT = 1000
_PHOTO_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
_LONGEST_FILE_NAME = 240


@dataclass(slots=True)
class ImportReport:
    """What an import did. `problems` holds the first thousand, in order; the counts hold all."""

    feed: str
    kind: str
    items: int = 0
    styles: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: list[str] = field(default_factory=list)
    """Styles whose note is hand-made or was edited since: left alone."""
    photos_placed: int = 0
    photos_missing: int = 0
    undated: int = 0
    cut_short: bool = False
    """The feed could not be read to its end."""
    errors: int = 0
    warnings: int = 0
    problems: list[RowProblem] = field(default_factory=list)

    def add(self, problem: RowProblem) -> None:
        self.cut_short = self.cut_short or problem.ends_reading
        if problem.severity == "error":
            self.errors += 1
        else:
            self.warnings += 1
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(problem)


def import_feed(
    feed: Path,
    data: Path,
    *,
    photos: Path | None = None,
    snapshot_date: str | None = None,
    on_progress: OnProgress | None = None,
) -> ImportReport:
    """Reads `feed` and brings `data/products` and `data/photos` up to date with it.

    Rows that cannot be used are reported and the rest goes on. Notes of an earlier import are
    renewed; notes made or edited by hand are never touched. Photos are looked for by base name
    anywhere under `photos`. Raises UsageError for a feed that cannot be read at all, and
    StyleEyesError where `data` cannot be written.
    """
    tell = on_progress or (lambda _: None)
    folder = _PhotoFolder(photos) if photos is not None else None
    with StyleGroups() as groups, open_feed(feed) as opened:
        report = ImportReport(feed.name, opened.kind)
        for reading in opened.items:
            if isinstance(reading, RowProblem):
                report.add(reading)
                continue
            groups.add(reading)
            report.items += 1
            tell(Progress("reading", opened.position(), opened.size))
        if not report.items:
            first = f" The first problem: {report.problems[0]}." if report.problems else ""
            raise UsageError("EMPTY_FEED", f"{feed.name} holds no usable items.{first}", "Check the export.")
        try:
            _write_styles(groups, data, folder, report, snapshot_date, tell)
        except OSError as wrong:
            raise StyleEyesError(
                "IMPORT_WRITE_FAILED",
                f"The import stopped: {wrong.strerror or wrong} ({wrong.filename or data}).",
                "Mend that and import again: what was written is renewed, not doubled.",
            ) from wrong
    return report


def _write_styles(
    groups: StyleGroups,
    data: Path,
    folder: _PhotoFolder | None,
    report: ImportReport,
    snapshot_date: str | None,
    tell: OnProgress,
) -> None:
    (data / "products").mkdir(parents=True, exist_ok=True)
    (data / "photos").mkdir(exist_ok=True)
    total = groups.count_styles()
    for number, (style_id, items) in enumerate(groups.styles(), 1):
        name = note_file_name(style_id.strip())
        if len(name.encode()) > _LONGEST_FILE_NAME:
            report.add(RowProblem(items[0].line, f"style id {style_id[:40]}… is too long"))
            continue
        made = note_of_style(style_id, items, report.feed, snapshot_date, groups.is_ambiguous)
        for problem in made.problems:
            report.add(problem)
        note = seal(made.note)
        report.styles += 1
        report.undated += note.snapshot_date is None
        _write_note(data / "products" / name, note, report)
        if folder is not None:
            _place_photos(note, data / "photos", folder, report)
        tell(Progress("writing", number, total))


def _write_note(path: Path, note: ProductNote, report: ImportReport) -> None:
    if os.path.lexists(path):
        existing = _renewable(path)
        if existing is None:
            report.kept.append(note.style_id)
            return
        if existing == note:
            report.unchanged += 1
            return
        report.updated += 1
    else:
        report.created += 1
    write_atomically(path, render_note(note).encode())


def _renewable(path: Path) -> ProductNote | None:
    """The note that an import may replace; None for one that is a person's."""
    try:
        note = read_note(path)
    except NoteError:
        # Somebody is in the middle of writing it, or it is no note at all: not ours to replace.
        return None
    return note if is_untouched_import(note) else None


class _PhotoFolder:
    """Photos of a folder and its subfolders by base name, whatever the case."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError(
                "NOT_FOUND", f"There is no folder {root}.", "Name the folder that holds the photos."
            )
        self._found: dict[str, Path] = {}
        for path in sorted(self._walk(root)):
            self._found.setdefault(path.name.lower(), path)

    @staticmethod
    def _walk(root: Path) -> Iterator[Path]:
        for folder, _, names in os.walk(root):
            for name in names:
                if name.lower().endswith(_PHOTO_ENDINGS):
                    yield Path(folder, name)

    def find(self, name: str) -> Path | None:
        return self._found.get(name.lower())


def _place_photos(note: ProductNote, target: Path, folder: _PhotoFolder, report: ImportReport) -> None:
    for photo in note.photos:
        source = folder.find(photo.file)
        if source is None:
            report.photos_missing += 1
            continue
        _place(source, target / photo.file)
        report.photos_placed += 1


def _place(source: Path, target: Path) -> None:
    """Puts a photo at `target` by hard link, or by copy where that is not possible. Atomic."""
    if target.exists() and (target.samefile(source) or filecmp.cmp(source, target, shallow=False)):
        return
    temporary = target.with_name(f".{target.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        real = source.resolve()
        linked = False
        with suppress(OSError):
            temporary.hardlink_to(real)
            linked = True
        if not linked:
            shutil.copyfile(real, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def state_date(text: str, today: str) -> str:
    """The operator's word about a feed's date: `today` or an ISO date. Raises UsageError."""
    if text.lower() == "today":
        return today
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError("INVALID_DATE", f"{text!r} is not a date.", "Write 2026-09-14, or today.") from None
