from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_agent.engine.broker.limits import MAX_TEXT_BYTES
from edge_agent.engine.broker.sql_pool import SqlPool
from edge_agent.engine.sandbox.api import CapabilityRequest
from edge_agent.events import CapabilityFinished, CapabilityStarted
from tests.engine.broker.world import ALL, MakeRun

CALLS: list[tuple[str, list[Any], str]] = [
    ("db.query", ["catalog", "SELECT 1"], "databases"),
    ("db.execute", ["notes", "SELECT 1"], "databases"),
    ("images.open", ["photos", "coat.jpg"], "images"),
    ("files.readText", ["guide", "sizes.txt"], "files"),
    ("files.writeText", ["diary", "a.txt", "x"], "files"),
    ("files.list", ["guide"], "files"),
    ("llm.generate", [{"prompt": "p"}], "llm"),
]


@pytest.mark.parametrize(("method", "args", "kind"), CALLS)
async def test_what_is_not_declared_is_denied(
    make_run: MakeRun, method: str, args: list[Any], kind: str
) -> None:
    others = {key: value for key, value in ALL.items() if key != kind}
    for declared in (None, others):
        run = make_run(declared)
        assert await run.code(method, *args) == "CAPABILITY_DENIED"
        assert run.models.asked == []


@pytest.mark.parametrize(("method", "args", "kind"), CALLS[:-1])
async def test_an_alias_of_another_kind_is_denied(
    make_run: MakeRun, method: str, args: list[Any], kind: str
) -> None:
    wrong = "photos" if kind != "images" else "guide"
    assert await make_run().code(method, wrong, *args[1:]) == "CAPABILITY_DENIED"


@pytest.mark.parametrize(
    "method", ["", "db", "db.drop", "__init__", "camera.frame", "llm.generate ", "x" * 9999]
)
async def test_an_unknown_method_is_denied(make_run: MakeRun, method: str) -> None:
    assert await make_run().code(method) == "CAPABILITY_DENIED"


@pytest.mark.parametrize(
    ("args_json", "code"),
    [
        ("", "TOOL_ERROR"),
        ("null", "TOOL_ERROR"),
        ('"x"', "TOOL_ERROR"),
        ("[NaN]", "TOOL_ERROR"),
        ("[1e999]", "TOOL_ERROR"),
        ("[" * 100_000, "TOOL_ERROR"),
        ("[" * 202 + "]" * 202, "TOOL_ERROR"),
        ("[]", "TOOL_ERROR"),
        ('["guide"]', "TOOL_ERROR"),
        ('["guide", 5]', "TOOL_ERROR"),
        ('["guide", "a", "b"]', "TOOL_ERROR"),
        ('["guide", "' + "x" * 2_097_152 + '"]', "INPUT_TOO_LARGE"),
    ],
)
async def test_arguments_that_are_not_sound(make_run: MakeRun, args_json: str, code: str) -> None:
    reply = await make_run().broker.handle(CapabilityRequest("files.readText", args_json))
    assert (reply.ok, reply.code) == (False, code)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([method for method, _, _ in CALLS if not method.startswith("db.")]),
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    ),
)
def test_no_arguments_make_it_raise(make_run: MakeRun, method: str, args: Any) -> None:
    run = make_run()
    text = json.dumps([args] if not isinstance(args, list) else args)
    reply = asyncio.run(run.broker.handle(CapabilityRequest(method, text)))
    assert reply.ok or reply.code
    assert [event.type for event in run.events] == ["capability.started", "capability.finished"]


async def test_every_call_is_a_span_under_the_run(make_run: MakeRun) -> None:
    run = make_run()
    await run.value("files.readText", "guide", "sizes.txt")
    started, finished = run.events
    assert (started.parent, started.span) == ("tool-1", finished.span)
    assert started.body == CapabilityStarted(kind="files.readText", target="guide", detail="sizes.txt")
    assert isinstance(finished.body, CapabilityFinished)
    assert (finished.body.ok, finished.body.bytes, finished.body.error) == (True, 9, None)
    assert finished.body.ms >= 0


async def test_a_refused_call_is_logged_as_well(make_run: MakeRun) -> None:
    run = make_run(None)
    await run.code("db.query", "catalog", "SELECT secret FROM t")
    started, finished = run.events
    assert started.body == CapabilityStarted(kind="db.query", target="catalog", detail="SELECT secret FROM t")
    assert isinstance(finished.body, CapabilityFinished) and finished.body.error is not None
    assert (finished.body.ok, finished.body.error.code) == (False, "CAPABILITY_DENIED")


async def test_a_query_is_logged_with_its_sql_rows_and_bytes(make_run: MakeRun, pool: SqlPool) -> None:
    run = make_run(sql=pool)
    sql = "SELECT name FROM words WHERE words MATCH ? ORDER BY rank LIMIT 3"
    result = await run.value("db.query", "catalog", sql, ["coat"])
    assert result["rows"] == [{"name": "coat 0"}, {"name": "coat 1"}, {"name": "coat 2"}]
    assert run.events[0].body == CapabilityStarted(kind="db.query", target="catalog", detail=sql)
    finished = run.events[1].body
    assert isinstance(finished, CapabilityFinished)
    assert (finished.rows, finished.bytes) == (3, len(json.dumps(result, separators=(",", ":"))))


async def test_databases_by_mode(make_run: MakeRun, pool: SqlPool) -> None:
    run = make_run(sql=pool)
    done = await run.value("db.execute", "notes", "INSERT INTO notes(text) VALUES (:t)", {"t": "hi"})
    assert done == {"changes": 1, "lastInsertRowid": 1}
    assert (await run.value("db.query", "notes", "SELECT text FROM notes"))["rows"] == [{"text": "hi"}]
    assert await run.code("db.execute", "catalog", "DELETE FROM products") == "CAPABILITY_DENIED"
    assert await run.code("db.query", "catalog", "DELETE FROM products") == "SQL_DENIED"
    assert await run.code("db.query", "catalog", "SELECT * FROM nothing") == "SQL_ERROR"
    assert await run.code("db.query", "catalog", "SELECT 1", "params") == "TOOL_ERROR"
    reply = await run.call("db.query", "missing", "SELECT 1")
    assert reply.code == "NOT_FOUND"
    assert "data/databases/none.sqlite" in (reply.message or "")


@pytest.mark.parametrize("kind", ["outside", "tools", "fifo", "folder"])
async def test_a_database_must_be_a_file_inside_its_folder(make_run: MakeRun, data: Path, kind: str) -> None:
    path = data / "databases" / "none.sqlite"
    if kind == "outside":
        (data.parent / "other.sqlite").touch()
        path.symlink_to(data.parent / "other.sqlite")
    elif kind == "tools":
        (data / "tools" / "x").touch()
        path.symlink_to("../tools/x")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    expected = "CAPABILITY_DENIED" if kind in ("outside", "tools") else "NOT_FOUND"
    assert await make_run().code("db.query", "missing", "SELECT 1") == expected


async def test_a_database_may_be_a_link_inside_its_folder(
    make_run: MakeRun, data: Path, pool: SqlPool
) -> None:
    (data / "databases" / "none.sqlite").symlink_to("catalog.sqlite")
    answer = await make_run(sql=pool).value("db.query", "missing", "SELECT count(*) AS n FROM products")
    assert answer["rows"] == [{"n": 100}]


async def test_images_open(make_run: MakeRun, data: Path) -> None:
    run = make_run()
    handle = await run.value("images.open", "photos", "deep/coat.png")
    assert (
        handle.items()
        >= {
            "kind": "image",
            "width": 10,
            "height": 20,
            "mimeType": "image/png",
            "source": "photos/deep/coat.png",
        }.items()
    )
    assert set(handle) == {"kind", "id", "width", "height", "mimeType", "source"}
    (data / "photos" / "text.jpg").write_text("no image")
    (data / "photos" / "link.jpg").symlink_to(data.parent.parent / "secret.jpg")
    assert await run.code("images.open", "photos", "text.jpg") == "NOT_FOUND"
    assert await run.code("images.open", "photos", "none.jpg") == "NOT_FOUND"
    assert await run.code("images.open", "photos", "COAT.JPG") == "NOT_FOUND"
    assert await run.code("images.open", "photos", "link.jpg") == "CAPABILITY_DENIED"
    assert await run.code("images.open", "photos", "../secret.jpg") == "CAPABILITY_DENIED"


async def test_text_files(make_run: MakeRun, data: Path) -> None:
    run = make_run()
    assert await run.value("files.readText", "guide", "sizes.txt") == "S M L ✓"
    assert await run.value("files.writeText", "diary", "a/b.txt", "été") is None
    assert await run.value("files.list", "diary") == ["a/b.txt"]
    assert await run.value("files.readText", "diary", "a/b.txt") == "été"
    assert await run.code("files.writeText", "guide", "x.txt", "x") == "CAPABILITY_DENIED"
    assert await run.code("files.writeText", "diary", "x.txt", "\ud800") == "TOOL_ERROR"
    assert await run.code("files.writeText", "diary", "x.txt", 5) == "TOOL_ERROR"
    (data / "guide" / "binary").write_bytes(b"\xff\xfe")
    assert await run.code("files.readText", "guide", "binary") == "TOOL_ERROR"


async def test_a_text_file_holds_256_kib_of_utf8_and_no_more(make_run: MakeRun, data: Path) -> None:
    run = make_run()
    largest = "é" * (MAX_TEXT_BYTES // 2)
    await run.value("files.writeText", "diary", "big.txt", largest)
    assert await run.value("files.readText", "diary", "big.txt") == largest
    assert await run.code("files.writeText", "diary", "big.txt", largest + "x") == "FILE_TOO_LARGE"
    (data / "guide" / "big.txt").write_bytes(b"x" * (MAX_TEXT_BYTES + 1))
    assert await run.code("files.readText", "guide", "big.txt") == "FILE_TOO_LARGE"


async def test_cancelling_a_call_ends_its_work_and_its_span(make_run: MakeRun) -> None:
    run = make_run()
    run.models.waits = asyncio.Event()
    task = asyncio.create_task(run.call("llm.generate", {"prompt": "p"}))
    await run.models.called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    finished = run.events[-1].body
    assert isinstance(finished, CapabilityFinished) and finished.error is not None
    assert finished.error.code == "CANCELLED"


async def test_a_fault_of_the_host_becomes_a_reply(make_run: MakeRun) -> None:
    run = make_run()

    async def broken(*_args: Any, **_options: Any) -> Any:
        raise ZeroDivisionError("at /root/secret/path")

    run.models.generate = broken  # type: ignore[method-assign]
    reply = await run.call("llm.generate", {"prompt": "p"})
    assert (reply.ok, reply.code) == (False, "TOOL_ERROR")
    assert "ZeroDivisionError" in (reply.message or "")
    assert "/root" not in (reply.message or "")
    assert run.events[-1].type == "capability.finished"


async def test_eight_calls_at_once(make_run: MakeRun, pool: SqlPool) -> None:
    run = make_run(sql=pool)
    calls = [run.value("db.query", "catalog", "SELECT ? AS n", [n]) for n in range(8)]
    assert [answer["rows"][0]["n"] for answer in await asyncio.gather(*calls)] == list(range(8))
