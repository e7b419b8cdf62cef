"""Opening files that a tool names, inside the one folder it declared, whatever links or races say.

A name is first resolved, links and all, and must stay inside the folder. The resolved path is then
walked from descriptor to descriptor without following any link, so nothing that changes between the
check and the open can lead outside. Only regular files are ever opened: a FIFO or a device could
block or act.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge_agent.engine.broker.capabilities import is_plain_path
from edge_agent.engine.broker.limits import MAX_LIST_DEPTH, MAX_LIST_ENTRIES
from edge_agent.errors import StyleEyesError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DeclaredFolder:
    """One folder under an agent's data folder, as a capability declared it.

    `relative` is a plain path (see `is_plain_path`). Methods raise StyleEyesError: `NOT_FOUND` for what
    is not there or not a regular file, `CAPABILITY_DENIED` for what leads out of the folder,
    `FILE_TOO_LARGE` past a limit, `TOOL_ERROR` where the disk refuses.
    """

    def __init__(self, data: Path, relative: str, *, refused: frozenset[str] = frozenset()) -> None:
        """`refused` are first components of `data/` that even a link may not lead to."""
        self._data = os.path.realpath(data)
        self._relative = relative
        self._refused = refused

    def read(self, name: str, limit: int) -> bytes:
        """The file's bytes, at most `limit` of them."""
        root, inner = self._locate(name)
        with _open_folder(self._data, (*root, *inner[:-1]), self._shown(name)) as folder:
            return _read_regular(folder, inner[-1], limit, self._shown(name))

    def write(self, name: str, data: bytes) -> None:
        """Replaces the file by `data`, whole or not at all; makes missing folders on the way."""
        root, inner = self._locate(name)
        shown = self._shown(name)
        try:
            with _open_folder(self._data, (*root, *inner[:-1]), shown, create=True) as folder:
                _replace(folder, inner[-1], data, shown)
        except OSError as error:
            raise _disk(shown, error) from None

    def names(self) -> list[str]:
        """The regular files in the folder and below, as plain paths, sorted; at most 1000."""
        try:
            root = self._root()
            with _open_folder(self._data, root, self._relative) as folder:
                found = list(_walk(folder, "", MAX_LIST_DEPTH))
        except StyleEyesError as error:
            if error.code == "NOT_FOUND":
                return []
            raise
        return sorted(found)[:MAX_LIST_ENTRIES]

    def locate(self, name: str) -> tuple[Path, str]:
        """An existing regular file for somebody else to open: the folder's real path, and the file's
        real path within it."""
        root, inner = self._locate(name)
        folder, path = "/".join((self._data, *root)), "/".join(inner)
        try:
            mode = os.lstat(f"{folder}/{path}").st_mode
        except OSError as error:
            raise _missing(self._shown(name), error) from None
        if not stat.S_ISREG(mode):
            raise _missing(self._shown(name))
        return Path(folder), path

    def _locate(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folder's parts below `data/`, and the file's parts below the folder, links resolved."""
        if not is_plain_path(name):
            raise StyleEyesError(
                "CAPABILITY_DENIED",
                f"{name[:120]!r} is not a plain name inside `{self._relative}`.",
                "Give the name relative to the declared folder, without `..`, a leading `/` or dot.",
            )
        root = self._root()
        return root, self._resolved("/".join((self._data, *root)), name, self._shown(name))

    def _root(self) -> tuple[str, ...]:
        parts = self._resolved(self._data, self._relative, self._relative)
        if parts[0] in self._refused:
            raise _outside(self._relative)
        return parts

    def _resolved(self, folder: str, relative: str, shown: str) -> tuple[str, ...]:
        """The parts below `folder`, a real path, of what `relative` leads to."""
        try:
            real = os.path.realpath(f"{folder}/{relative}")
        except OSError as error:
            raise _missing(shown, error) from None
        below = real.removeprefix(folder.rstrip("/") + "/")
        if below == real or not below:
            raise _outside(shown)
        return tuple(below.split("/"))

    def _shown(self, name: str) -> str:
        return f"{self._relative}/{name}"


@contextmanager
def _open_folder(data: str, parts: tuple[str, ...], shown: str, *, create: bool = False) -> Iterator[int]:
    try:
        current = os.open(data, _FOLDER)
    except OSError as error:
        raise _missing(shown, error) from None
    try:
        for part in parts:
            try:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=current)
                below = os.open(part, _FOLDER, dir_fd=current)
            except OSError as error:
                raise _missing(shown, error) from None
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _read_regular(folder: int, name: str, limit: int, shown: str) -> bytes:
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as error:
        raise _missing(shown, error) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _missing(shown)
        # Read, not measured: a file can grow between the two.
        with os.fdopen(descriptor, "rb", closefd=False) as source:
            content = source.read(limit + 1)
    except OSError as error:
        raise _disk(shown, error) from None
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise StyleEyesError(
            "FILE_TOO_LARGE", f"`{shown}` is larger than {limit:,} bytes.", "Split or shrink the file."
        )
    return content


def _replace(folder: int, name: str, data: bytes, shown: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise _missing(shown)
    temporary = f".{secrets.token_hex(8)}.new"
    descriptor = os.open(temporary, _NEW, 0o644, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _walk(folder: int, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if not is_plain_path(entry.name):
            continue
        if entry.is_file(follow_symlinks=False):
            yield prefix + entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):
                below = os.open(entry.name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(below, f"{prefix}{entry.name}/", depth - 1)
                finally:
                    os.close(below)


def _outside(shown: str) -> StyleEyesError:
    return StyleEyesError(
        "CAPABILITY_DENIED",
        f"`{shown}` leads out of the folder that the tool declared.",
        "Put the file itself there: a link may not leave its folder.",
    )


def _missing(shown: str, error: BaseException | None = None) -> StyleEyesError:
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC):
        return _disk(shown, error)
    if error is None or (isinstance(error, OSError) and error.errno == errno.EISDIR):
        return StyleEyesError("NOT_FOUND", f"`{shown}` is not a regular file.")
    return StyleEyesError("NOT_FOUND", f"There is no `{shown}` in the agent's data folder.")


def _disk(shown: str, error: OSError) -> StyleEyesError:
    return StyleEyesError("TOOL_ERROR", f"`{shown}` could not be used: {error.strerror or 'disk error'}.")
