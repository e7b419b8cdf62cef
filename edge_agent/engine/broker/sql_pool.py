"""Database operations, each in a process of its own that can be killed in the middle of native code.

For every (folder, reading or writing) there is one forker and a few workers. An operation takes an idle
worker or a fresh one; a worker whose operation was cancelled is killed at once, and a spare is forked
before the next call needs it. A read that meets a killed writer's journal, or a write-ahead log, which a
read-only process cannot handle, has the file put in order by a writing worker and is tried once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edge_agent.engine.broker.limits import MAX_JSON_BYTES
from edge_agent.engine.broker.sql_process import SqlForker, SqlWorker, WorkerGoneError, gone
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue

MAX_WORKERS = 4
"""Of one folder at once; further operations wait their turn within their deadline."""
_KEPT_IDLE = 2
_CODES = frozenset({"SQL_ERROR", "SQL_DENIED", "NOT_FOUND"})


@dataclass(frozen=True, slots=True)
class SqlOperation:
    """One bound statement. `folder` is a real path, `name` a real path within it."""

    kind: Literal["query", "execute"]
    folder: Path
    name: str
    writable: bool
    sql: str
    params: JsonValue = ()


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The contract's value of `db.query` or `db.execute` as ASCII JSON; `rows` of a query's answer."""

    value_json: str
    rows: int | None


class SqlPool:
    """Runs operations. One an application; belongs to one event loop; `aclose` ends every process.

    `sandboxed` is False only under `WORLDAGENTS_TOOL_SANDBOX=process`.
    """

    def __init__(self, *, sandboxed: bool = True) -> None:
        self._sandboxed = sandboxed
        self._rooms: dict[tuple[Path, bool], _Room] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._mending: dict[tuple[Path, str], asyncio.Lock] = {}

    async def run(self, operation: SqlOperation) -> SqlResult:
        """Runs one operation; cancelling it kills its process at once.

        Raises StyleEyesError: `SQL_DENIED`, `SQL_ERROR` with SQLite's message, `NOT_FOUND` where the
        file went away, `SANDBOX_UNAVAILABLE` where no process can be had.
        """
        room = self._room(operation.folder, operation.writable)
        request: JsonObject = {
            "kind": operation.kind,
            "name": operation.name,
            "sql": operation.sql,
            "params": operation.params,
            "limit": MAX_JSON_BYTES,
        }
        retried = mended = False
        while True:
            try:
                return _result(await room.ask(request))
            except WorkerGoneError as error:
                # Reading again changes nothing; a change may have been made before its process died.
                if operation.writable or retried:
                    raise gone(error) from None
                retried = True
            except _RecoverableError as error:
                if operation.writable or mended or not await self._mend(operation.folder, operation.name):
                    raise error.plainly() from None
                mended = True

    async def warm(self, folder: Path, *, writable: bool) -> None:
        """Has a worker ready for the databases of `folder`, so that the first call need not wait.

        Does nothing where there is no such folder. Raises as `run` where no process can be had.
        """
        try:
            await self._room(folder, writable).warm()
        except WorkerGoneError as error:
            raise gone(error) from None
        except StyleEyesError as error:
            if error.code != "NOT_FOUND":
                raise

    async def aclose(self) -> None:
        """Ends every worker and forker."""
        rooms, self._rooms = list(self._rooms.values()), {}
        await asyncio.gather(*(room.aclose() for room in rooms), *self._retiring)

    def _room(self, folder: Path, writable: bool) -> _Room:
        try:
            found = folder.stat()
        except OSError:
            raise StyleEyesError("NOT_FOUND", "The folder of databases is not there any more.") from None
        key, place = (folder, writable), (found.st_dev, found.st_ino)
        room = self._rooms.get(key)
        if room is not None and room.place != place:
            # A sandbox holds the folder that it was started with, even when another took its name.
            task = asyncio.get_running_loop().create_task(room.aclose())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            room = None
        if room is None:
            room = _Room(folder, place, writable=writable, sandboxed=self._sandboxed)
            self._rooms[key] = room
        return room

    async def _mend(self, folder: Path, name: str) -> bool:
        """Rolls back a hot journal and converts a write-ahead log, in a process that may write.

        The process runs no statement of a tool's. Where the folder was only ever read it ends again.
        """
        async with self._mending.setdefault((folder, name), asyncio.Lock()):
            known = self._rooms.get((folder, True))
            room = known or _Room(folder, (0, 0), writable=True, sandboxed=self._sandboxed)
            try:
                await room.ask({"kind": "recover", "name": name})
            except (StyleEyesError, WorkerGoneError, _RecoverableError):
                return False
            finally:
                if known is None:
                    await room.aclose()
            return True


class _RecoverableError(Exception):
    """A failure that one read-write open of the file may mend."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._message = message

    def plainly(self) -> StyleEyesError:
        return StyleEyesError(
            "SQL_ERROR",
            self._message,
            "The file could not be opened, nor be put in order by a writing process: look at its owner,"
            " its permissions, and whether another program holds it.",
        )


class _Room:
    """The workers of one folder, for reading or for writing."""

    def __init__(self, folder: Path, place: tuple[int, int], *, writable: bool, sandboxed: bool) -> None:
        """`place` is the folder's device and inode when the room was made."""
        self.place = place
        self._folder = folder
        self._writable = writable
        self._sandboxed = sandboxed
        self._forker: SqlForker | None = None
        self._launch: asyncio.Task[SqlForker] | None = None
        self._slots = asyncio.Semaphore(MAX_WORKERS)
        self._idle: list[SqlWorker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def ask(self, request: JsonObject) -> bytes:
        """A worker's `+` answer, without the sign. Raises as `SqlPool.run`, or _RecoverableError,
        or WorkerGoneError where the process ended first."""
        async with self._slots, self._worker() as worker:
            answer = await worker.ask(request)
            if answer[:1] == b"+":
                return answer[1:]
            failure = _failure(answer[1:])
            if failure.get("worn"):
                worker.kill()
        message = str(failure["message"])
        if failure.get("recoverable"):
            raise _RecoverableError(message)
        hint = failure.get("hint")
        raise StyleEyesError(str(failure["code"]), message, hint if isinstance(hint, str) else None)

    async def warm(self) -> None:
        async with self._slots, self._worker():
            pass

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[SqlWorker]:
        worker = self._take() or await self._fork()
        try:
            yield worker
        except BaseException:  # cancelled, or gone: either way its next answer would be somebody else's
            worker.kill()
            raise
        finally:
            if self._closed or len(self._idle) >= _KEPT_IDLE or not worker.alive:
                worker.kill()
            else:
                self._idle.append(worker)
            self._provide_spare()

    def _take(self) -> SqlWorker | None:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.kill()
        return None

    def _provide_spare(self) -> None:
        if self._closed or self._tasks or len(self._idle) >= _KEPT_IDLE:
            return
        task = asyncio.get_running_loop().create_task(self._add_spare())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add_spare(self) -> None:
        # A spare is a convenience: the call that needs a worker reports why there is none.
        with contextlib.suppress(StyleEyesError, WorkerGoneError):
            worker = await self._fork()
            # In front, so that the worker which has its files open is taken first.
            self._idle.insert(0, worker)

    async def _fork(self) -> SqlWorker:
        for _ in range(2):  # a second time where the forker itself was killed
            if self._closed:
                raise WorkerGoneError("the databases were closed")
            forker = await self._started()
            try:
                return await forker.fork()
            except WorkerGoneError as error:
                failure = error
                await self._stop(forker)
        raise failure

    async def _started(self) -> SqlForker:
        if self._forker is not None and self._forker.alive:
            return self._forker
        if self._launch is None:
            self._launch = asyncio.get_running_loop().create_task(self._launched())
        # Shielded: a caller that is cancelled must not leave a process behind that nobody knows.
        return await asyncio.shield(self._launch)

    async def _launched(self) -> SqlForker:
        try:
            if self._forker is not None:
                await self._stop(self._forker)
            self._forker = await SqlForker.start(
                self._folder, writable=self._writable, sandboxed=self._sandboxed
            )
            return self._forker
        finally:
            self._launch = None

    async def _stop(self, forker: SqlForker) -> None:
        if self._forker is forker:
            self._forker = None
        await forker.aclose()

    async def aclose(self) -> None:
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._idle:
            self._idle.pop().kill()
        if self._launch is not None:
            await asyncio.gather(self._launch, return_exceptions=True)
        if self._forker is not None:
            await self._stop(self._forker)


def _failure(text: bytes) -> Mapping[str, JsonValue]:
    """A worker's `-` answer; a worker is not trusted to keep to its form."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if (
        isinstance(value, dict)
        and value.get("code") in _CODES
        and isinstance(message := value.get("message"), str)
        and message
    ):
        return value
    return {"code": "SQL_ERROR", "message": "The database process gave no sound answer.", "worn": True}


def _result(answer: bytes) -> SqlResult:
    """A worker's value, checked: it goes on to a guest as JSON, and its size to the log."""
    try:
        text = answer.decode("ascii")
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise StyleEyesError("SQL_ERROR", "The database process gave no sound answer.")
    rows = value.get("rowCount")
    return SqlResult(text, rows if isinstance(rows, int) else None)
