"""The guest's part without its process: what is refused, and how values become JSON."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge_agent.engine.sandbox.guest.sql_statements import (
    Databases,
    StatementError,
    bindings,
    distinct,
    plain,
)

LIMIT = 262_144

DENIED_EVERYWHERE = [
    "ATTACH 'other.sqlite' AS o",
    "attach database ':memory:' as m",
    "DETACH main",
    "PRAGMA user_version",
    "/* x */ -- y\n ; pragma writable_schema = 1",
    "PRAGMA data_version",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('products')",
    "EXPLAIN PRAGMA user_version",
    "VACUUM",
    "VACUUM INTO 'copy.sqlite'",
    "SELECT load_extension('x')",
    "SELECT LOAD_EXTENSION('x', 'y')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE products",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "CREATE TEMP TABLE t(a)",
    "CREATE TEMP VIEW v AS SELECT 1",
    "UPDATE sqlite_master SET sql = 'x'",
    "DELETE FROM sqlite_master",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'x')",
    "CREATE VIRTUAL TABLE d USING dbstat",
    "CREATE VIRTUAL TABLE d USING rtree(id, a, b)",
    "CREATE VIRTUAL TABLE d USING csv(filename='/etc/passwd')",
]
DENIED_READING = [
    "INSERT INTO products(name) VALUES ('x')",
    "UPDATE products SET name = 'x'",
    "DELETE FROM products",
    "REPLACE INTO products(id, name) VALUES (1, 'x')",
    "WITH x AS (SELECT 1) DELETE FROM products",
    "CREATE TABLE t(a)",
    "CREATE INDEX i ON products(name)",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "DROP TABLE products",
    "ALTER TABLE products ADD COLUMN x",
    "ANALYZE",
    "REINDEX",
]
ALLOWED_READING = [
    "SELECT 1",
    "select * from products where id = 1",
    "VALUES (1), (2)",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT x FROM n",
    "SELECT name, bm25(words), highlight(words, 0, '[', ']') FROM words WHERE words MATCH 'coat' LIMIT 1",
    "SELECT json_extract('{\"a\":1}', '$.a'), value FROM json_each('[1,2]')",
    "SELECT count(*) OVER (ORDER BY id) FROM products",
    "EXPLAIN QUERY PLAN SELECT * FROM products",
    "SELECT sql FROM sqlite_master",
    "SELECT 'PRAGMA; ATTACH' -- pragma\n;",
    "  /* leading */ SELECT 1;  -- trailing",
]
ALLOWED_WRITING = [
    "CREATE TABLE IF NOT EXISTS worn(id INTEGER PRIMARY KEY, day TEXT)",
    "CREATE UNIQUE INDEX i ON products(id, name)",
    "CREATE VIEW v AS SELECT name FROM products",
    "CREATE TRIGGER t AFTER INSERT ON products BEGIN INSERT INTO words(name) VALUES (new.name); END",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "CREATE VIRTUAL TABLE g USING fts4(a)",
    "INSERT INTO products(name) VALUES ('x') ON CONFLICT DO NOTHING RETURNING id",
    "INSERT INTO words(words) VALUES ('optimize')",
    "UPDATE products SET name = upper(name) WHERE id < 5",
    "DELETE FROM products WHERE id = 1",
    "ALTER TABLE products ADD COLUMN x",
    "ALTER TABLE products RENAME COLUMN name TO title",
    "DROP TABLE products",
    "ANALYZE",
    "REINDEX",
]


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "databases"


@pytest.fixture
def reading(folder: Path) -> Any:
    opened = Databases(folder, writable=False)
    yield opened
    opened.close()


@pytest.fixture
def writing(folder: Path) -> Any:
    opened = Databases(folder, writable=True)
    yield opened
    opened.close()


def rows(databases: Databases, sql: str, params: Any = ()) -> Any:
    return json.loads(databases.query("catalog.sqlite", sql, list(params), LIMIT))["rows"]


def code(databases: Databases, sql: str, params: Any = ()) -> str:
    with pytest.raises(StatementError) as caught:
        databases.query("catalog.sqlite", sql, list(params), LIMIT)
    return caught.value.code


@pytest.mark.parametrize("sql", DENIED_EVERYWHERE)
def test_refused_in_both_modes(reading: Databases, writing: Databases, folder: Path, sql: str) -> None:
    before = (folder / "catalog.sqlite").read_bytes()
    # A module that this SQLite lacks is SQLite's own error, once the authorizer has had its say.
    assert code(reading, sql) == "SQL_DENIED"
    assert code(writing, sql) == "SQL_DENIED"
    assert (folder / "catalog.sqlite").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["catalog.sqlite", "notes.sqlite"]


@pytest.mark.parametrize("sql", DENIED_READING)
def test_refused_when_reading(reading: Databases, sql: str) -> None:
    assert code(reading, sql) == "SQL_DENIED"


@pytest.mark.parametrize("sql", ALLOWED_READING)
def test_allowed_when_reading(reading: Databases, sql: str) -> None:
    assert rows(reading, sql) is not None


@pytest.mark.parametrize("sql", ALLOWED_WRITING)
def test_allowed_when_writing(writing: Databases, sql: str) -> None:
    assert json.loads(writing.execute("catalog.sqlite", sql, []))["changes"] >= 0


def test_the_file_is_opened_for_reading_as_well(reading: Databases) -> None:
    """Were the authorizer blind, SQLite itself would still refuse."""
    connection, _ = reading._connection("catalog.sqlite")
    connection.set_authorizer(None)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM products")


@pytest.mark.parametrize(
    "sql", ["", "  ", ";", "-- only\n", "/* open", "SELEC 1", "SELECT \0", "SELECT readfile('x')"]
)
def test_what_is_no_statement_is_an_sql_error(reading: Databases, sql: str) -> None:
    assert code(reading, sql) == "SQL_ERROR"


def test_values_as_the_contract_wants_them(reading: Databases) -> None:
    sql = (
        "SELECT x'00ff' AS blob, 9007199254740991 AS safe, 9007199254740992 AS big, -9007199254740992 AS low,"
        " 9e999 AS inf, -9e999 AS minus, CAST(x'ff41' AS TEXT) AS bad, NULL AS empty, 1.5 AS half,"
        " '✓' AS mark"
    )
    assert rows(reading, sql) == [
        {
            "blob": {"$base64": "AP8="},
            "safe": 9007199254740991,
            "big": "9007199254740992",
            "low": "-9007199254740992",
            "inf": None,
            "minus": None,
            "bad": "�A",
            "empty": None,
            "half": 1.5,
            "mark": "✓",
        }
    ]
    assert plain(math.nan) is None


def test_repeated_column_names_are_made_distinct(reading: Databases) -> None:
    assert rows(reading, "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a") == [
        {"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}
    ]


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "b", ""])))
def test_distinct_names_are_distinct_and_as_many(names: list[str]) -> None:
    made = distinct(names)
    assert len(set(made)) == len(made) == len(names)
    assert all(new == old or new.startswith(f"{old}_") for new, old in zip(made, names, strict=True))


def test_parameters_by_place_and_by_name(reading: Databases) -> None:
    assert rows(reading, "SELECT ? AS a, ? AS b", [True, None]) == [{"a": 1, "b": None}]
    text = reading.query(
        "catalog.sqlite",
        "SELECT :a AS a, @b AS b, $c AS c",
        {"a": 1, "@b": "x", "$c": {"$base64": "AP8="}},
        LIMIT,
    )
    assert json.loads(text)["rows"] == [{"a": 1, "b": "x", "c": {"$base64": "AP8="}}]


@pytest.mark.parametrize(
    "params",
    [[], [1, 2], {"a": 1}, [[1]], [{"a": 1}], [{"$base64": "?"}], [{"$base64": "", "x": 1}], [2**63]],
)
def test_parameters_that_do_not_fit_are_an_sql_error(reading: Databases, params: Any) -> None:
    with pytest.raises(StatementError) as caught:
        reading.query("catalog.sqlite", "SELECT ? AS a", params, LIMIT)
    assert caught.value.code == "SQL_ERROR"


def test_half_of_a_surrogate_pair_becomes_a_replacement_character(reading: Databases) -> None:
    assert rows(reading, "SELECT ? AS a, '\ud800' AS b", ["x\udfff"]) == [{"a": "x�", "b": "�"}]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=30)
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_a_bound_value_comes_back_as_it_was(reading: Databases, value: Any) -> None:
    assert rows(reading, "SELECT ? AS v", [value]) == [{"v": value}]


@pytest.mark.parametrize("text", ["x", "é", "✓", "🧥", '"', "\x01"])
def test_an_answer_is_cut_at_the_limit_with_whole_rows(reading: Databases, text: str) -> None:
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000) SELECT i, ? AS t FROM n"
    answer = reading.query("catalog.sqlite", sql, [text * 50], LIMIT)
    value = json.loads(answer)
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    row = len(json.dumps(value["rows"][-1], ensure_ascii=False, separators=(",", ":")).encode())
    assert value["truncated"] is True
    assert value["rowCount"] == len(value["rows"]) == value["rows"][-1]["i"]
    assert size <= LIMIT < size + row + 10


def test_the_limit_holds_on_both_sides(reading: Databases) -> None:
    sql = "SELECT ? AS t"
    low, high = LIMIT - 200, LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if truncated(reading, sql, "x" * middle) else (middle, high)
    kept = reading.query("catalog.sqlite", sql, ["x" * low], LIMIT)
    assert LIMIT - 10 <= len(kept) <= LIMIT
    assert json.loads(reading.query("catalog.sqlite", sql, ["x" * high], LIMIT)) == {
        "columns": ["t"],
        "rows": [],
        "rowCount": 0,
        "truncated": True,
    }


def truncated(reading: Databases, sql: str, text: str) -> bool:
    return bool(json.loads(reading.query("catalog.sqlite", sql, [text], LIMIT))["truncated"])


def test_an_endless_query_is_left_once_the_answer_is_full(reading: Databases) -> None:
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    assert json.loads(reading.query("catalog.sqlite", sql, [], LIMIT))["truncated"] is True


def test_column_names_longer_than_an_answer_are_refused(reading: Databases) -> None:
    assert code(reading, f'SELECT 1 AS "{"c" * LIMIT}"') == "SQL_ERROR"


def test_changes_and_rowids(writing: Databases) -> None:
    def run(sql: str) -> Any:
        return json.loads(writing.execute("notes.sqlite", sql, []))

    assert run("INSERT INTO notes(text) VALUES ('a'), ('b')") == {"changes": 2, "lastInsertRowid": 2}
    assert run("UPDATE notes SET text = 'c'") == {"changes": 2, "lastInsertRowid": None}
    assert run("INSERT INTO notes(text) VALUES ('d') RETURNING id") == {"changes": 1, "lastInsertRowid": 3}
    assert run("DELETE FROM notes WHERE id = 9") == {"changes": 0, "lastInsertRowid": None}
    assert run("INSERT INTO notes(id) VALUES (9007199254740993)")["lastInsertRowid"] == "9007199254740993"
    assert run("SELECT 1") == {"changes": 0, "lastInsertRowid": None}


def test_a_returning_query_changes_all_rows_even_when_cut(writing: Databases) -> None:
    writing.execute("catalog.sqlite", "UPDATE products SET name = ?", ["x" * 20_000])
    sql = "UPDATE products SET name = name || 'y' RETURNING name"
    assert json.loads(writing.query("catalog.sqlite", sql, [], LIMIT))["truncated"] is True
    assert rows(writing, "SELECT count(*) AS n FROM products WHERE name LIKE '%y'") == [{"n": 100}]


def test_a_failed_statement_leaves_no_lock(writing: Databases, folder: Path) -> None:
    with pytest.raises(StatementError):
        writing.execute(
            "notes.sqlite", "INSERT INTO notes(id, text) SELECT 1, 'a' UNION ALL SELECT 1, 'b'", []
        )
    with sqlite3.connect(folder / "notes.sqlite", timeout=0) as other:
        other.execute("INSERT INTO notes(text) VALUES ('free')")
        assert other.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    other.close()


def test_a_file_that_was_replaced_is_opened_anew(reading: Databases, folder: Path) -> None:
    assert rows(reading, "SELECT count(*) AS n FROM products") == [{"n": 100}]
    with sqlite3.connect(folder / "new.sqlite") as made:
        made.execute("CREATE TABLE products(a)")
    made.close()
    (folder / "new.sqlite").replace(folder / "catalog.sqlite")
    assert rows(reading, "SELECT count(*) AS n FROM products") == [{"n": 0}]
    (folder / "catalog.sqlite").unlink()
    assert code(reading, "SELECT 1") == "NOT_FOUND"


def test_only_a_few_files_are_kept_open(reading: Databases, folder: Path) -> None:
    for number in range(12):
        (folder / f"{number}.sqlite").touch()
        reading.query(f"{number}.sqlite", "SELECT 1", [], LIMIT)
    assert len(reading._open) <= 4


def test_what_is_no_database_is_an_sql_error(reading: Databases, folder: Path) -> None:
    (folder / "text.sqlite").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StatementError) as caught:
        reading.query("text.sqlite", "SELECT * FROM t", [], LIMIT)
    assert (caught.value.code, caught.value.message) == ("SQL_ERROR", "file is not a database")


@pytest.mark.parametrize("params", [5, "x", None, True])
def test_parameters_must_be_an_array_or_an_object(params: Any) -> None:
    with pytest.raises(StatementError):
        bindings(params)


VOCABULARY = """
    SELECT INSERT UPDATE DELETE DROP CREATE ALTER TABLE INDEX VIEW TRIGGER INTO FROM WHERE SET VALUES ATTACH
    DETACH DATABASE PRAGMA VACUUM BEGIN COMMIT SAVEPOINT RELEASE EXPLAIN QUERY PLAN WITH AS TEMP products
    words sqlite_master pragma_table_list name id * ( ) , ; = 1 'x' "x" -- /* */ ? :a writable_schema
    REINDEX ANALYZE load_extension fts3_tokenizer zeroblob hex count MATCH LIMIT 5 ORDER BY UNION ALL
    RETURNING
"""


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(VOCABULARY.split()), max_size=12).map(" ".join))
def test_no_words_in_any_order_change_a_file_opened_for_reading(
    reading: Databases, folder: Path, sql: str
) -> None:
    before = (folder / "catalog.sqlite").read_bytes()
    try:
        json.loads(reading.query("catalog.sqlite", sql, [], LIMIT))
    except StatementError as error:
        assert error.code in ("SQL_ERROR", "SQL_DENIED")
        assert error.message
    assert (folder / "catalog.sqlite").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["catalog.sqlite", "notes.sqlite"]
