"""`ctx.db`: one bound statement on a declared database, run by a process that can be killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edge_agent.engine.broker.capabilities import DATABASE_FOLDER, TOOL_FOLDER, DatabaseGrant
from edge_agent.engine.broker.folders import DeclaredFolder
from edge_agent.engine.broker.requests import Arguments, wrong_argument
from edge_agent.engine.broker.sql_pool import SqlOperation, SqlPool, SqlResult
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonValue


async def run_statement(
    arguments: Arguments, grant: DatabaseGrant, alias: str, data: Path, pool: SqlPool
) -> SqlResult:
    """Runs `db.query` or `db.execute`.

    Raises StyleEyesError: `SQL_DENIED`, `SQL_ERROR`, `NOT_FOUND` for a missing database,
    `CAPABILITY_DENIED` for `execute` on a database declared for reading.
    """
    arguments.at_most(3)
    sql = arguments.text(1, "sql")
    params = _params(arguments.get(2), arguments.method)
    if arguments.method == "db.execute" and grant.mode != "write":
        raise StyleEyesError(
            "CAPABILITY_DENIED",
            f"The database `{alias}` is declared for reading only.",
            'Declare it with mode: "write" to use ctx.db.execute.',
        )
    database = _find(data, grant, alias)
    return await pool.run(
        SqlOperation(
            kind="query" if arguments.method == "db.query" else "execute",
            folder=database.folder,
            name=database.name,
            writable=grant.mode == "write",
            sql=sql,
            params=params,
        )
    )


class _Database:
    """A database file by its folder's real path and its own real path within it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name


def _find(data: Path, grant: DatabaseGrant, alias: str) -> _Database:
    folder = DeclaredFolder(data, DATABASE_FOLDER, refused=frozenset({TOOL_FOLDER}))
    try:
        root, name = folder.locate(grant.name)
    except StyleEyesError as error:
        if error.code != "NOT_FOUND":
            raise
        raise StyleEyesError(
            "NOT_FOUND",
            f"The database `{alias}` does not exist: there is no data/{grant.path}.",
            "Put a SQLite file there; an empty file is an empty database.",
        ) from None
    return _Database(root, name)


def _params(value: JsonValue, method: str) -> JsonValue:
    if value is None:
        return []
    if isinstance(value, list | Mapping):
        return value
    raise wrong_argument(method, "`params` must be an array or an object")
