"""Writing files so that a crash or a full disk never leaves half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replaces `path` by `data`: written beside it, flushed to disk, then renamed.

    On any failure the old file is untouched and nothing is left beside it. Raises OSError.
    """
    with _written_beside(path, data, mode) as temporary:
        temporary.replace(path)


def write_new(path: Path, data: bytes) -> None:
    """Writes a file that must not exist yet, whole or not at all. Raises FileExistsError, OSError."""
    with _written_beside(path, data, 0o644) as temporary:
        os.link(temporary, path)  # unlike a rename, this fails where the name is taken


@contextmanager
def _written_beside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A whole, durable copy of `data` in the folder of `path`, to be published; never left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
    temporary = Path(name)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.chmod(mode)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes a rename in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def resolves_within(path: Path, folder: Path) -> bool:
    """Whether `path`, with every link resolved, lies in `folder` (resolved likewise).

    A circle of links lies nowhere.
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # pathlib raises RuntimeError for a circle
        return False
