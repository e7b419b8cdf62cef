"""Real worker processes, in real Bubblewrap where not said otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from edge_agent.engine.broker.sql_pool import MAX_WORKERS, SqlPool
from edge_agent.engine.broker.sql_process import SqlForker, SqlWorker, WorkerGoneError
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject
from tests.engine.broker.world import change, query

NATIVE = "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')"
"""Seconds in one call of one C function, where neither interrupt() nor a progress handler helps."""
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def workers() -> list[psutil.Process]:
    """Processes below this one that run the worker script: Bubblewrap's, the forkers, the workers."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE or "sql_worker.py" in " ".join(child.cmdline()):
                found.append(child)
    return found


async def rows(pool: SqlPool, operation: Any) -> Any:
    return json.loads((await pool.run(operation)).value_json)["rows"]


async def code(pool: SqlPool, operation: Any) -> str:
    with pytest.raises(StyleEyesError) as caught:
        await pool.run(operation)
    return caught.value.code


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], bool], what: str) -> None:
    """A bounded wait for other processes, which report their end to nobody here."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.005)


async def started(pool: SqlPool, operation: Any) -> asyncio.Task[Any]:
    """`operation` as a task, once a worker has been burning for it for a while."""
    await pool.warm(operation.folder, writable=operation.writable)
    before = {process.pid: _cpu(process) for process in workers()}
    task = asyncio.create_task(pool.run(operation))

    def burning() -> bool:
        assert not task.done()
        return any(_cpu(process) - before.get(process.pid, 0) > 0.05 for process in workers())

    await until(burning, "no worker works")
    return task


def leaves() -> list[psutil.Process]:
    """Workers themselves, not forkers or Bubblewrap."""
    found = []
    for process in workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            if not process.children() and process.name() != "bwrap":
                found.append(process)
    return found


def busiest() -> psutil.Process:
    return max(leaves(), key=_cpu)


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _cpu(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


async def test_reading_and_writing(any_pool: SqlPool, data: Path) -> None:
    assert await rows(any_pool, query(data, "SELECT name FROM products WHERE id = ?", [7])) == [
        {"name": "coat 6"}
    ]
    result = await any_pool.run(change(data, "INSERT INTO notes(text) VALUES (?)", ["worn once"]))
    assert json.loads(result.value_json) == {"changes": 1, "lastInsertRowid": 1}
    read = query(data, "SELECT text FROM notes", name="notes.sqlite")
    assert await rows(any_pool, read) == [{"text": "worn once"}]
    assert await code(any_pool, query(data, "DELETE FROM products")) == "SQL_DENIED"
    assert await code(any_pool, query(data, "SELECT 1", name="none.sqlite")) == "NOT_FOUND"


@pytest.mark.parametrize("sql", [NATIVE, ENDLESS])
async def test_cancelling_kills_even_native_code_and_the_next_call_works(
    any_pool: SqlPool, sql: str, data: Path
) -> None:
    task = await started(any_pool, query(data, sql))
    alive = {process.pid for process in workers()}
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < 1  # the statement itself takes seconds, or for ever
    assert await rows(any_pool, query(data, "SELECT 1 AS n")) == [{"n": 1}]
    await until(lambda: not alive <= {process.pid for process in workers()}, "nothing was killed")


async def test_a_writer_killed_from_outside_is_told_and_replaced(pool: SqlPool, data: Path) -> None:
    task = await started(pool, change(data, f"INSERT INTO notes(text) {ENDLESS}"))
    busiest().kill()
    with pytest.raises(StyleEyesError) as caught:
        await task
    assert caught.value.code == "SQL_ERROR"
    assert "ended unexpectedly" in caught.value.message
    assert await rows(pool, query(data, "SELECT 1 AS n")) == [{"n": 1}]


async def test_a_reader_killed_from_outside_is_run_once_more_and_then_told(pool: SqlPool, data: Path) -> None:
    task = await started(pool, query(data, ENDLESS))
    first = busiest()
    first.kill()
    await until(lambda: busiest().pid != first.pid and _cpu(busiest()) > 0.05, "not run again")
    busiest().kill()
    with pytest.raises(StyleEyesError) as caught:
        await task
    assert "ended unexpectedly" in caught.value.message
    assert await rows(pool, query(data, "SELECT 1 AS n")) == [{"n": 1}]


async def test_everything_killed_between_calls_is_started_anew(any_pool: SqlPool, data: Path) -> None:
    await rows(any_pool, query(data, "SELECT 1 AS n"))
    doomed = workers()
    assert doomed
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    await until(lambda: not any(_runs(process) for process in doomed), "still there")
    assert await rows(any_pool, query(data, "SELECT 2 AS n")) == [{"n": 2}]


async def test_nothing_is_left_after_closing(any_pool: SqlPool, data: Path) -> None:
    descriptors = _descriptors()
    await asyncio.gather(*(rows(any_pool, query(data, "SELECT 1 AS n")) for _ in range(6)))
    task = await started(any_pool, query(data, NATIVE))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await any_pool.aclose()
    await until(lambda: not workers(), "processes are left")
    assert _descriptors() == descriptors


async def test_operations_beyond_the_workers_wait_their_turn(pool: SqlPool, data: Path) -> None:
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) SELECT max(i) AS m FROM n"
    )
    answers = await asyncio.gather(*(rows(pool, query(data, slow)) for _ in range(3 * MAX_WORKERS)))
    assert answers == [[{"m": 20_000}]] * (3 * MAX_WORKERS)
    assert len(leaves()) <= MAX_WORKERS + 1


async def test_two_writers_at_once_lose_nothing(pool: SqlPool, data: Path) -> None:
    other = SqlPool()
    try:
        await asyncio.gather(
            *(
                writer.run(change(data, "INSERT INTO notes(text) VALUES (?)", [f"{name} {n}"]))
                for n in range(25)
                for name, writer in (("a", pool), ("b", other))
            )
        )
    finally:
        await other.aclose()
    counted = query(data, "SELECT count(DISTINCT text) AS n FROM notes", name="notes.sqlite")
    assert await rows(pool, counted) == [{"n": 50}]


async def test_a_writer_killed_in_the_middle_leaves_the_database_whole(pool: SqlPool, data: Path) -> None:
    await pool.run(change(data, "INSERT INTO notes(text) VALUES ('before')"))
    endless = f"INSERT INTO notes(text) {ENDLESS.replace('max(i)', 'i')}"
    task = await started(pool, change(data, endless))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    read = query(data, "SELECT text FROM notes", name="notes.sqlite")
    assert await rows(pool, read) == [{"text": "before"}]
    await pool.run(change(data, "INSERT INTO notes(text) VALUES ('after')"))
    assert await rows(pool, read) == [{"text": "before"}, {"text": "after"}]


KILLED_WRITER = """
import os, sqlite3, sys
made = sqlite3.connect(sys.argv[1], isolation_level=None)
made.execute("PRAGMA cache_size = 5")
made.execute("BEGIN")
made.execute("UPDATE products SET name = 'half-done' || hex(zeroblob(2000))")
os.kill(os.getpid(), 9)
"""


async def test_a_hot_journal_is_rolled_back_before_reading(any_pool: SqlPool, data: Path) -> None:
    path = data / "databases" / "catalog.sqlite"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert path.with_name("catalog.sqlite-journal").stat().st_size > 0
    found = await rows(any_pool, query(data, "SELECT count(*) AS n FROM products WHERE name LIKE 'coat %'"))
    assert found == [{"n": 100}]
    assert not path.with_name("catalog.sqlite-journal").exists()


@pytest.mark.parametrize("with_log", [False, True])
async def test_an_uploaded_write_ahead_log_database_is_converted(
    any_pool: SqlPool, with_log: bool, data: Path, tmp_path: Path
) -> None:
    made = sqlite3.connect(tmp_path / "up.sqlite", isolation_level=None)
    made.execute("PRAGMA journal_mode = WAL")
    made.execute("CREATE TABLE t(a)")
    made.execute("INSERT INTO t VALUES (42)")
    if not with_log:
        made.close()
    for name in ("up.sqlite", "up.sqlite-wal") if with_log else ("up.sqlite",):
        shutil.copy(tmp_path / name, data / "databases" / name)
    made.close()
    assert await rows(any_pool, query(data, "SELECT a FROM t", name="up.sqlite")) == [{"a": 42}]
    assert (data / "databases" / "up.sqlite").read_bytes()[18:20] == b"\x01\x01"  # rollback journal, not WAL
    assert not list((data / "databases").glob("up.sqlite-*"))


async def test_a_folder_that_was_replaced_is_served_anew(pool: SqlPool, data: Path) -> None:
    assert await rows(pool, query(data, "SELECT count(*) AS n FROM products")) == [{"n": 100}]
    databases = data / "databases"
    databases.rename(data / "old")
    databases.mkdir()
    with sqlite3.connect(databases / "catalog.sqlite") as made:
        made.execute("CREATE TABLE products(a)")
    made.close()
    assert await rows(pool, query(data, "SELECT count(*) AS n FROM products")) == [{"n": 0}]
    shutil.rmtree(databases)
    assert await code(pool, query(data, "SELECT 1")) == "NOT_FOUND"
    await pool.warm(databases, writable=False)
    await until(lambda: len(leaves()) <= 3, "the old folder's processes are left")


async def test_closing_ends_an_operation_that_runs(pool: SqlPool, data: Path) -> None:
    task = await started(pool, query(data, ENDLESS))
    await pool.aclose()
    with pytest.raises(StyleEyesError) as caught:
        await task
    assert caught.value.code == "SQL_ERROR"
    await until(lambda: not workers(), "processes are left")


async def test_a_reader_waits_for_a_writer(pool: SqlPool, data: Path) -> None:
    await pool.warm((data / "databases").resolve(), writable=False)
    holder = sqlite3.connect(data / "databases" / "catalog.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    task = asyncio.create_task(rows(pool, query(data, "SELECT count(*) AS n FROM products")))
    done, _ = await asyncio.wait([task], timeout=0.2)
    assert not done
    holder.execute("ROLLBACK")
    holder.close()
    assert await task == [{"n": 100}]


async def test_memory_is_bounded_and_the_next_call_works(pool: SqlPool, data: Path) -> None:
    greedy = (
        "WITH RECURSIVE n(i, b) AS (SELECT 1, hex(zeroblob(500000)) UNION ALL SELECT i + 1, b || i FROM n"
        " LIMIT 500) SELECT i FROM n ORDER BY b"
    )
    assert await code(pool, query(data, greedy)) == "SQL_ERROR"
    assert await code(pool, query(data, "SELECT zeroblob(100000000)")) == "SQL_ERROR"
    assert await rows(pool, query(data, "SELECT 1 AS n")) == [{"n": 1}]


async def test_what_a_reading_worker_can_see_and_do(pool: SqlPool, data: Path) -> None:
    """Looked at from the host, through /proc: the mounts, the descriptors, the filter, the limits."""
    await rows(pool, query(data, "SELECT 1 AS n"))
    await rows(pool, change(data, "SELECT 1 AS n", kind="query"))
    databases = (data / "databases").resolve()
    assert {_looked_at(process.pid, databases) for process in leaves()} == {"ro", "rw"}


def _looked_at(pid: int, databases: Path) -> str:
    """Checks one worker; gives how its folder of databases is mounted."""
    about = Path(f"/proc/{pid}")
    mounts = [line.split() for line in (about / "mounts").read_text().splitlines()]
    (options,) = [mount[3].split(",")[0] for mount in mounts if mount[1] == "/db"]
    root = about / "root"
    assert sorted(path.name for path in (root / "db").iterdir()) == ["catalog.sqlite", "notes.sqlite"]
    for hidden in ("etc", "tmp", "home", "proc", str(databases).lstrip("/")):
        assert not (root / hidden).exists()
    descriptors = [str(path.readlink()) for path in (about / "fd").iterdir()]
    assert sum(target.startswith("socket:") for target in descriptors) == 1
    assert all(target.startswith(("socket:", "/dev/null", "/db/")) for target in descriptors)
    status = (about / "status").read_text()
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000000000000000" in status
    assert ("Max file size             0" in (about / "limits").read_text()) == (options == "ro")
    return options


async def test_a_hostile_worker_cannot_confuse_the_host(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SqlPool(sandboxed=False)
    for answer in (
        b"",
        b"?",
        b"+",
        b"+[]",
        b"+" + b"[" * 5000,
        b"-",
        b"-{}",
        b'-{"code":"X","message":"m"}',
        b"+\xff",
    ):

        async def lies(_self: SqlWorker, _request: JsonObject, answer: bytes = answer) -> bytes:
            return answer

        monkeypatch.setattr(SqlWorker, "ask", lies)
        assert await code(pool, query(data, "SELECT 1")) == "SQL_ERROR"
    await pool.aclose()


async def test_an_answer_of_impossible_length_is_a_dead_worker(data: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    child = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    )
    worker = SqlWorker(ours, os.pidfd_open(child.pid))
    theirs.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(WorkerGoneError):
        await worker.ask({})
    worker.kill()
    assert await asyncio.to_thread(child.wait, 5) == -signal.SIGKILL
    theirs.close()
    assert child.stdin
    child.stdin.close()


async def test_a_cancelled_fork_leaves_no_worker_and_the_next_one_its_own(data: Path) -> None:
    forker = await SqlForker.start((data / "databases").resolve(), writable=False, sandboxed=False)
    try:
        task = asyncio.create_task(forker.fork())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        worker = await forker.fork()
        answer = await worker.ask(
            {"kind": "query", "name": "catalog.sqlite", "sql": "SELECT 5 AS n", "params": [], "limit": 1000}
        )
        assert json.loads(answer[1:])["rows"] == [{"n": 5}]
        await until(lambda: len(workers()) <= 2, "the cancelled fork left a worker")
        worker.kill()
    finally:
        await forker.aclose()


HOST = """
import asyncio, sys
from pathlib import Path
from edge_agent.engine.broker.sql_pool import SqlOperation, SqlPool

async def main():
    pool = SqlPool(sandboxed=sys.argv[2] == "bubblewrap")
    slow = SqlOperation("query", Path(sys.argv[1]), "catalog.sqlite", False, sys.argv[3])
    await pool.warm(slow.folder, writable=False)
    await pool.warm(slow.folder, writable=True)
    asyncio.create_task(pool.run(slow))
    await asyncio.sleep(0.05)
    print("running", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "process"])
def test_nothing_outlives_a_killed_app(kind: str, data: Path, needs_bubblewrap: None) -> None:
    folder = str((data / "databases").resolve())
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, folder, kind, ENDLESS], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout
    assert host.stdout.readline() == "running\n"
    below = psutil.Process(host.pid).children(recursive=True)
    assert len(below) >= 4
    host.kill()
    host.wait(10)
    host.stdout.close()
    end = time.monotonic() + 10
    while any(_runs(process) for process in below):
        assert time.monotonic() < end, "an orphan lives on"
        time.sleep(0.005)


async def test_without_bubblewrap_it_says_so_and_runs_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    pool = SqlPool()
    assert await code(pool, query(data, "SELECT 1")) == "SANDBOX_UNAVAILABLE"
    await pool.aclose()
    assert not workers()
