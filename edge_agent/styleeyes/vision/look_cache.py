"""Looks of catalog photos by content hash: in memory, and in one SQLite file beside HOME's weights."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from pathlib import Path

from edge_agent.styleeyes.vision.looks import Look, unpack_look

MOST_IN_MEMORY = 2000
MOST_ON_DISK = 20_000
_TRIM_EVERY = 256


class LookCache:
    """Thread-safe. Losing it costs time only: a damaged file is thrown away, a full disk is borne.

    `version` names the model that made the looks; those of other versions are dropped.
    """

    def __init__(self, folder: Path | None, version: str) -> None:
        self._lock = threading.Lock()
        self._memory: OrderedDict[str, Look] = OrderedDict()
        self._version = version
        self._path = folder / "looks.sqlite" if folder else None
        self._disk = self._open()
        self._written = 0

    def get(self, key: str) -> Look | None:
        with self._lock:
            if (look := self._memory.get(key)) is not None:
                self._memory.move_to_end(key)
                return look
            if self._disk is None:
                return None
            try:
                row = self._disk.execute("SELECT look FROM looks WHERE hash = ?", (key,)).fetchone()
            except sqlite3.Error:
                self._disk = self._renew()
                return None
            if row is None:
                return None
            try:
                look = unpack_look(row[0])
            except ValueError:
                return None
            self._remember(key, look)
            return look

    def put(self, key: str, look: Look) -> None:
        with self._lock:
            self._remember(key, look)
            if self._disk is None:
                return
            try:
                self._disk.execute("INSERT OR REPLACE INTO looks VALUES (?, ?)", (key, look.packed()))
                self._written += 1
                if self._written % _TRIM_EVERY == 0:
                    self._disk.execute(
                        "DELETE FROM looks WHERE rowid <= (SELECT max(rowid) FROM looks) - ?", (MOST_ON_DISK,)
                    )
            except sqlite3.OperationalError:
                return  # A full or read-only disk, or another process writing: the memory still serves.
            except sqlite3.DatabaseError:
                self._disk = self._renew()

    def __len__(self) -> int:
        with self._lock:
            if self._disk is None:
                return len(self._memory)
            return int(self._disk.execute("SELECT count(*) FROM looks").fetchone()[0])

    def clear(self) -> None:
        """Drops every look."""
        with self._lock:
            self._memory.clear()
            if self._disk is not None:
                try:
                    self._disk.execute("DELETE FROM looks")
                except sqlite3.Error:
                    self._disk = self._renew()

    def close(self) -> None:
        with self._lock:
            if self._disk is not None:
                self._disk.close()
                self._disk = None

    def _remember(self, key: str, look: Look) -> None:
        self._memory[key] = look
        self._memory.move_to_end(key)
        while len(self._memory) > MOST_IN_MEMORY:
            self._memory.popitem(last=False)

    def _open(self) -> sqlite3.Connection | None:
        if self._path is None:
            return None
        connection: sqlite3.Connection | None = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=2.0, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("CREATE TABLE IF NOT EXISTS looks (hash TEXT UNIQUE, look BLOB NOT NULL)")
            connection.execute("CREATE TABLE IF NOT EXISTS version (value TEXT)")
            if connection.execute("SELECT value FROM version").fetchall() != [(self._version,)]:
                connection.execute("DELETE FROM looks")
                connection.execute("DELETE FROM version")
                connection.execute("INSERT INTO version VALUES (?)", (self._version,))
        except sqlite3.OperationalError:
            if connection is not None:
                connection.close()
            return None
        except sqlite3.DatabaseError:
            if connection is not None:
                connection.close()
            return self._renew()
        except OSError:
            return None
        return connection

    def _renew(self) -> sqlite3.Connection | None:
        """Throws a damaged file away and starts an empty one; None where that fails too."""
        if self._path is None:
            return None
        damaged = self._path
        try:
            for suffix in ("", "-wal", "-shm"):
                damaged.with_name(damaged.name + suffix).unlink(missing_ok=True)
            self._path = None
            connection = sqlite3.connect(damaged, timeout=2.0, isolation_level=None, check_same_thread=False)
            connection.execute("CREATE TABLE looks (hash TEXT UNIQUE, look BLOB NOT NULL)")
            connection.execute("CREATE TABLE version (value TEXT)")
            connection.execute("INSERT INTO version VALUES (?)", (self._version,))
        except (OSError, sqlite3.Error):
            return None
        return connection
