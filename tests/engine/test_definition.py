"""The exports of a tool: what is taken and what is refused, on both sides of each border."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.engine.definition import parse_definition
from edge_agent.errors import StyleEyesError

SCHEMA = {"type": "object", "additionalProperties": False}
GOOD: dict[str, Any] = {
    "schemaVersion": "worldagents.tool.v1",
    "metadata": {"title": "T", "description": "D"},
    "inputSchema": SCHEMA,
    "execute": True,
}


def refusal(**changes: Any) -> StyleEyesError:
    exports = {**GOOD, **changes}
    with pytest.raises(StyleEyesError) as caught:
        parse_definition(json.dumps({name: value for name, value in exports.items() if value is not ...}))
    assert caught.value.code == "INVALID_TOOL"
    return caught.value


def test_the_least_tool() -> None:
    definition = parse_definition(json.dumps(GOOD))
    assert (definition.title, definition.description, definition.timeout_ms) == ("T", "D", 30_000)
    assert definition.capabilities.members == ()


@pytest.mark.parametrize("version", [..., "", "worldagents.tool.v2", "worldagents.tool.v1 ", 1, None])
def test_schema_version_is_exact(version: Any) -> None:
    assert "worldagents.tool.v1" in refusal(schemaVersion=version).message


@pytest.mark.parametrize("timeout", [1, 120_000, 10_000.0])
def test_timeouts_within_the_border(timeout: float) -> None:
    assert parse_definition(json.dumps({**GOOD, "timeoutMs": timeout})).timeout_ms == timeout


@pytest.mark.parametrize("timeout", [0, -1, 120_001, 0.5, 1e300, "1", True, None, [], {}])
def test_timeouts_past_the_border(timeout: Any) -> None:
    assert "`timeoutMs` must be an integer from 1 to 120000" in refusal(timeoutMs=timeout).message


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (..., "`metadata` must be"),
        ("T", "`metadata` must be"),
        ({"title": "T"}, "`metadata.description`"),
        ({"title": " \n", "description": "D"}, "`metadata.title`"),
        ({"title": "\u202e\x1b[1m", "description": "D"}, "`metadata.title`"),
        ({"title": 1, "description": "D"}, "`metadata.title`"),
        ({"title": "T", "description": "D", "icon": "i"}, "`metadata.icon`"),
    ],
)
def test_metadata(metadata: Any, words: str) -> None:
    assert words in refusal(metadata=metadata).message


def test_titles_are_safe_for_a_screen() -> None:
    dressed = {"title": "\x1b]0;owned\x07Nice\u202e", "description": " D\x9b31m "}
    definition = parse_definition(json.dumps({**GOOD, "metadata": dressed}))
    assert (definition.title, definition.description) == ("Nice", "D")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (..., "must be a JSON Schema object"),
        (True, "must be a JSON Schema object"),
        ({"additionalProperties": False}, '"object"'),
        ({"type": ["object"], "additionalProperties": False}, '"object"'),
        ({"type": "object"}, "`inputSchema.additionalProperties` must be false"),
        ({"type": "object", "additionalProperties": 0}, "`inputSchema.additionalProperties` must be false"),
        ({"type": "object", "additionalProperties": {}}, "`inputSchema.additionalProperties` must be false"),
        ({**SCHEMA, "properties": []}, "not a JSON Schema"),
        ({**SCHEMA, "properties": {"a": {"type": "strin"}}}, "not a JSON Schema"),
        ({**SCHEMA, "required": "a"}, "not a JSON Schema"),
        ({**SCHEMA, "properties": {"a": {"minLength": -1}}}, "not a JSON Schema"),
        ({**SCHEMA, "properties": {"a": {"$ref": "https://example.org/a.json"}}}, "only `#/…`"),
        ({**SCHEMA, "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "only `#/…`"),
        ({**SCHEMA, "properties": {"a": {"$ref": "#/$defs/none"}}}, "not there"),
        ({**SCHEMA, "properties": {"a": {"pattern": "(?=a)b"}}}, "`inputSchema`"),
        ({**SCHEMA, "properties": {"a": {"pattern": "(a)\\1"}}}, "`inputSchema`"),
        ({**SCHEMA, "properties": {"a": {"pattern": "("}}}, "`inputSchema`"),
    ],
)
def test_input_schemas_that_are_refused(schema: Any, words: str) -> None:
    assert words in refusal(inputSchema=schema).message


@pytest.mark.parametrize("depth", [10, 500])
def test_deep_schemas_are_bounded(depth: int) -> None:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    schema = {**SCHEMA, "properties": {"a": inner}}
    if depth < 30:
        assert parse_definition(json.dumps({**GOOD, "inputSchema": schema})).input_schema == schema
    else:
        assert "nested deeper" in refusal(inputSchema=schema).message


async def test_a_reference_within_the_schema_works() -> None:
    schema = {
        **SCHEMA,
        "$defs": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    }
    check = parse_definition(json.dumps({**GOOD, "inputSchema": schema})).check_input
    assert await check.faults({"a": 1}, 8) == []
    assert await check.faults({"a": "1"}, 8) != []


@pytest.mark.parametrize("execute", [False, ..., "x", 1])
def test_execute_must_be_a_function(execute: Any) -> None:
    assert "`execute`" in refusal(execute=execute).message


@pytest.mark.parametrize(
    ("name", "meant"),
    [("timeoutMS", "timeoutMs"), ("timeout", "timeoutMs"), ("capability", "capabilities")],
)
def test_a_misspelt_export_is_noticed(name: str, meant: str) -> None:
    assert f"`{meant}`" in (refusal(**{name: None}).hint or "")


@pytest.mark.parametrize("name", ["VERSION", "helper", "executes", "Metadata"])
def test_other_exports_are_the_authors_own(name: str) -> None:
    assert parse_definition(json.dumps({**GOOD, name: None})).title == "T"


def test_capabilities_are_checked_with_their_path() -> None:
    error = refusal(capabilities={"databases": {"c": {"path": "c.sqlite", "mode": "read"}}})
    assert "`capabilities.databases.c.path`" in error.message
    assert "`capabilities.network`" in refusal(capabilities={"network": True}).message


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*GOOD, "capabilities", "timeoutMs", "type"]), inner, max_size=4
            )
        ),
    )
)
def test_any_json_is_a_tool_or_a_file_error(value: Any) -> None:
    try:
        parse_definition(json.dumps(value))
    except StyleEyesError as error:
        assert error.code == "INVALID_TOOL"


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "null", "[]", '"x"'])
def test_what_is_no_object_of_exports(text: str) -> None:
    with pytest.raises(StyleEyesError, match="INVALID_TOOL"):
        parse_definition(text)
