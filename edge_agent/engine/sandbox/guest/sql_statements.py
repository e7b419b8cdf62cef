"""One bound SQL statement on one SQLite file: what is allowed, and how values become JSON.

Runs inside an SQL worker, so it imports the standard library alone. Reading is enforced twice: the
file is opened read-only, and an authorizer refuses everything that is not reading. In write mode the
authorizer lets through what changes rows (INSERT, UPDATE, DELETE) and what shapes a store of one's own
(tables, indexes, views, triggers, FTS tables, ANALYZE, REINDEX). Never allowed: ATTACH and
DETACH (which VACUUM and VACUUM INTO need), PRAGMA, transactions across calls, temporary objects (a call
must leave nothing behind in a worker that others use), `load_extension`, and `fts3_tokenizer`, which
Debian's SQLite still has and which reads and sets raw pointers.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
import re
import sqlite3
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

BUSY_TIMEOUT_S = 10.0
"""How long a statement waits for another's lock; a run's deadline usually ends it sooner."""
_MAX_VALUE_BYTES = 8 * 1024 * 1024
_MAX_VARIABLES = 32_766
_MAX_SAFE_INTEGER = 2**53 - 1
_KEPT_STATEMENTS = 16
_LONGEST_KEPT = 8_192
"""Characters of a statement that may stay prepared: a long one can take megabytes, of 64 for the process."""
_KEPT_OPEN = 4

_LEADING = re.compile(r"(?:\s+|;|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_REFUSED_WORDS = {"PRAGMA", "ATTACH", "DETACH", "VACUUM"}
_DENIED_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer"})
_VIRTUAL_TABLES = frozenset({"fts4", "fts5"})
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_schema"})

_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_CHANGING = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_SHAPING = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_VIEW,
        sqlite3.SQLITE_DROP_TRIGGER,
        sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_ANALYZE,
        sqlite3.SQLITE_REINDEX,
    }
)
# What opening a hot journal or a write-ahead log for reading ends in; the last where no file may grow.
_MENDABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR})
_ACTION_WORDS = {
    sqlite3.SQLITE_ATTACH: "ATTACH and VACUUM",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_TRANSACTION: "a transaction across calls",
    sqlite3.SQLITE_SAVEPOINT: "a savepoint",
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER TABLE",
    sqlite3.SQLITE_CREATE_TABLE: "CREATE TABLE",
    sqlite3.SQLITE_DROP_TABLE: "DROP TABLE",
}


class StatementError(Exception):
    """A refusal or failure as the caller sees it.

    `recoverable` says that the file needs one read-write open before it can be read: a killed writer's
    journal, or a write-ahead log. `worn` says that this process should not be used again.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        recoverable: bool = False,
        worn: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.recoverable = recoverable
        self.worn = worn


class _Guard:
    """The authorizer of one connection; remembers what the last statement was refused or changed."""

    def __init__(self, writable: bool) -> None:
        self._writable = writable
        self.refused: str | None = None
        self.inserts = False
        self.changes = False

    def reset(self) -> None:
        self.refused = None
        self.inserts = self.changes = False

    def __call__(
        self, action: int, first: str | None, second: str | None, _db: str | None, via: str | None
    ) -> int:
        if action in _READING:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() not in _DENIED_FUNCTIONS:
                return sqlite3.SQLITE_OK
            return self._refuse(f"the function {second}")
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version" and second is None:
            return sqlite3.SQLITE_OK  # FTS5 asks for it; a tool's own PRAGMA is refused by its first word
        if action == sqlite3.SQLITE_UPDATE and first in _SCHEMA_TABLES:
            return sqlite3.SQLITE_OK  # declaring a virtual table asks this; SQLite refuses the real one
        if self._writable and action in _CHANGING:
            self.changes = True
            self.inserts = self.inserts or (action == sqlite3.SQLITE_INSERT and via is None)
            return sqlite3.SQLITE_OK
        if self._writable and action in _SHAPING:
            self.changes = True
            return sqlite3.SQLITE_OK
        if self._writable and action == sqlite3.SQLITE_CREATE_VTABLE:
            if (second or "").lower() in _VIRTUAL_TABLES:
                self.changes = True
                return sqlite3.SQLITE_OK
            return self._refuse(f"a virtual table of {second}")
        return self._refuse(_ACTION_WORDS.get(action, "what this statement does"))

    def _refuse(self, what: str) -> int:
        self.refused = self.refused or what
        return sqlite3.SQLITE_DENY


class Databases:
    """The SQLite files of one folder, opened when first used and kept open.

    `root` is the folder, `writable` whether its files are opened for writing. One statement at a time.
    """

    def __init__(self, root: Path, *, writable: bool) -> None:
        self._root = root
        self._writable = writable
        self._open: dict[str, tuple[sqlite3.Connection, _Guard, tuple[int, int]]] = {}

    def query(self, name: str, sql: str, params: Any, limit: int) -> str:
        """The rows as JSON `{columns, rows, rowCount, truncated}` of at most `limit` UTF-8 bytes."""
        with self._statement(name, sql, params) as (cursor, guard):
            columns = distinct([entry[0] for entry in cursor.description or ()])
            rows, truncated = _fetch(cursor, columns, limit, drain=guard.changes)
        head = json.dumps(columns, separators=(",", ":"))
        last = "true" if truncated else "false"
        return f'{{"columns":{head},"rows":[{",".join(rows)}],"rowCount":{len(rows)},"truncated":{last}}}'

    def execute(self, name: str, sql: str, params: Any) -> str:
        """Runs to the end: `{changes, lastInsertRowid}`, the latter null where nothing was inserted."""
        with self._statement(name, sql, params) as (cursor, guard):
            for _ in cursor:
                pass
            changes = max(cursor.rowcount, 0)
            rowid = plain(cursor.lastrowid) if guard.inserts and changes else None
        return json.dumps({"changes": changes, "lastInsertRowid": rowid}, separators=(",", ":"))

    def recover(self, name: str) -> str:
        """Rolls back what a killed writer left, and stores the file without a write-ahead log."""
        self._forget(name)
        with _speaking(None), contextlib.closing(self._connect(name)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            if mode == "wal":
                mode = connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
        return json.dumps({"journalMode": mode})

    def close(self) -> None:
        for name in list(self._open):
            self._forget(name)

    @contextlib.contextmanager
    def _statement(self, name: str, sql: str, params: Any) -> Any:
        sql = sound_text(sql)
        _refuse_by_word(sql)
        bound = bindings(params)
        with _speaking(None):
            connection, guard = self._connection(name)
        guard.reset()
        stale = False
        cursor = connection.cursor()
        try:
            with _speaking(guard):
                cursor.execute(sql, bound)
                yield cursor, guard
            stale = len(sql) > _LONGEST_KEPT and not self._writable
        except StatementError as error:
            stale = error.recoverable
            raise
        finally:
            cursor.close()
            if connection.in_transaction:
                connection.rollback()
            if stale:
                self._forget(name)

    def _connection(self, name: str) -> tuple[sqlite3.Connection, _Guard]:
        identity = self._identity(name)
        known = self._open.get(name)
        if known is not None and known[2] == identity:
            return known[0], known[1]
        self._forget(name)  # the file was replaced by another
        while len(self._open) >= _KEPT_OPEN:
            self._forget(next(iter(self._open)))
        connection = self._connect(name)
        try:
            if self._writable:
                with contextlib.suppress(sqlite3.OperationalError):  # in use as it is: left as it is
                    connection.execute("PRAGMA journal_mode=DELETE").fetchone()
            guard = _Guard(self._writable)
            connection.set_authorizer(guard)
        except BaseException:
            connection.close()
            raise
        self._open[name] = (connection, guard, identity)
        return connection, guard

    def _connect(self, name: str) -> sqlite3.Connection:
        mode = "rw" if self._writable else "ro"
        path = quote(str(self._root / name))
        connection = sqlite3.connect(
            f"file:{path}?mode={mode}",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            # What a statement changes is told while it is prepared, so one that may change something is
            # prepared each time. SQLite itself prepares (and authorizes) again where the schema changed.
            cached_statements=0 if self._writable else _KEPT_STATEMENTS,
        )
        try:
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, _MAX_VARIABLES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
            connection.execute("PRAGMA temp_store=MEMORY")  # the root has no folder for temporary files
            connection.execute("PRAGMA cell_size_check=ON")
            # trusted_schema stays on: off, FTS5 of SQLite 3.40 may not be filled by a trigger. The
            # authorizer judges what views and triggers call as it judges the statement itself.
        except BaseException:
            connection.close()
            raise
        return connection

    def _identity(self, name: str) -> tuple[int, int]:
        try:
            found = (self._root / name).stat()
        except OSError:
            raise StatementError("NOT_FOUND", "The database file is not there any more.") from None
        if not stat.S_ISREG(found.st_mode):
            raise StatementError("NOT_FOUND", "The database is not a regular file.")
        return found.st_dev, found.st_ino

    def _forget(self, name: str) -> None:
        known = self._open.pop(name, None)
        if known is not None:
            known[0].close()


@contextlib.contextmanager
def _speaking(guard: _Guard | None) -> Any:
    """Turns what SQLite raises into a StatementError with SQLite's own message."""
    try:
        yield
    except MemoryError:
        raise StatementError(
            "SQL_ERROR",
            "The statement needed more memory than a database operation may use.",
            "Ask for less at once: fewer columns, a LIMIT, an index for the ORDER BY.",
            worn=True,
        ) from None
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _explained(error, guard) from None
    except OverflowError:
        raise StatementError("SQL_ERROR", "A bound integer does not fit SQLite's 64 bits.") from None


def _explained(error: Exception, guard: _Guard | None) -> StatementError:
    text = str(error)
    if guard is not None and guard.refused is not None and "authorized" in text:
        return StatementError(
            "SQL_DENIED", f"RefusedError: {guard.refused} is not allowed here.", _hint(guard)
        )
    if "one statement at a time" in text:
        return StatementError(
            "SQL_DENIED", "Only one statement a call is allowed.", "Make one call a statement."
        )
    if "may not be modified" in text:
        return StatementError("SQL_DENIED", f"RefusedError: {text}.")
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return StatementError(
        "SQL_ERROR",
        text[:500] or "SQLite gave no message.",
        recoverable=primary in _MENDABLE,
        worn=primary == sqlite3.SQLITE_NOMEM,
    )


def _hint(guard: _Guard) -> str | None:
    if guard.refused in ("INSERT", "UPDATE", "DELETE", "ALTER TABLE", "CREATE TABLE", "DROP TABLE"):
        return 'The database is declared for reading; declare it with mode: "write" to change it.'
    return None


def _refuse_by_word(sql: str) -> None:
    start = _LEADING.match(sql)
    word = _WORD.match(sql, start.end() if start else 0)
    if word is None:
        if start is not None and start.end() == len(sql):
            raise StatementError("SQL_ERROR", "There is no statement in the SQL text.")
        return
    if word.group().upper() in _REFUSED_WORDS:
        raise StatementError("SQL_DENIED", f"RefusedError: {word.group().upper()} is not allowed here.")


def _fetch(cursor: sqlite3.Cursor, columns: list[str], limit: int, *, drain: bool) -> tuple[list[str], bool]:
    """Whole rows as ASCII JSON while the complete answer stays within `limit` bytes of UTF-8.

    Fetching stops at the first row that does not fit, unless the statement changes something, which
    it may only be sure to have done at its end (`drain`).
    """
    # The answer's fixed part, with the longest rowCount and word that it can have.
    used = len(json.dumps(columns, ensure_ascii=False, separators=(",", ":")).encode()) + len(
        '{"columns":,"rows":[],"rowCount":1234567,"truncated":false}'
    )
    if used > limit:
        raise StatementError("SQL_ERROR", "The column names alone are longer than an answer may be.")
    rows: list[str] = []
    for row in cursor:
        values = dict(zip(columns, map(plain, row), strict=True))
        if _surely_longer(values, limit - used):
            break
        text = json.dumps(values, separators=(",", ":"))
        size = len(text)
        if "\\u" in text:
            size = len(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode())
        used += size + (1 if rows else 0)
        if used > limit:
            break
        rows.append(text)
    else:
        return rows, False
    if drain:
        for _ in cursor:
            pass
    return rows, True


def _surely_longer(values: dict[str, Any], left: int) -> bool:
    """Whether a row's texts alone pass what is left, seen without writing the row out."""
    return sum(len(value) for value in values.values() if isinstance(value, str)) > left


def plain(value: Any) -> Any:
    """A SQLite value as JSON: see the tool contract on BLOBs, big integers and odd numbers."""
    if isinstance(value, bytes):
        return {"$base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def distinct(names: list[str]) -> list[str]:
    """Column names made distinct: a repeated `id` becomes `id_2`, `id_3` …"""
    taken = set(names)
    seen: set[str] = set()
    out = []
    for name in names:
        chosen, count = name, 1
        while chosen in seen or (count > 1 and chosen in taken):
            count += 1
            chosen = f"{name}_{count}"
        seen.add(chosen)
        out.append(chosen)
    return out


def bindings(params: Any) -> list[Any] | dict[str, Any]:
    """JSON parameters as SQLite takes them; a name may carry its `:`, `@` or `$`."""
    if isinstance(params, list):
        return [_bound(value, f"params[{index}]") for index, value in enumerate(params)]
    if isinstance(params, dict):
        return {
            name[1:] if name[:1] in (":", "@", "$") else name: _bound(value, f"params.{name[:40]}")
            for name, value in params.items()
        }
    raise StatementError("SQL_ERROR", "`params` must be an array or an object.")


def _bound(value: Any, at: str) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, dict) and value.keys() == {"$base64"} and isinstance(value["$base64"], str):
        try:
            return base64.b64decode(value["$base64"], validate=True)
        except (binascii.Error, ValueError):
            raise StatementError("SQL_ERROR", f"`{at}` is not valid base64.") from None
    raise StatementError(
        "SQL_ERROR",
        f"`{at}` is an object or array; bind null, a boolean, a number or a string.",
        'Bind bytes as {"$base64": "…"}, and anything else as JSON.stringify(value).',
    )


def sound_text(text: str) -> str:
    """`text` with unpaired surrogates, which UTF-8 cannot hold, replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
