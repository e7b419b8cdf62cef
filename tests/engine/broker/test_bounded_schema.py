from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import psutil
import pytest

from edge_agent.engine.broker import schema_process, schema_worker
from edge_agent.engine.broker.bounded_schema import MAX_WRITTEN_OUT, BoundedSchema
from edge_agent.errors import StyleEyesError

VERDICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "best": {"type": ["string", "null"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "candidates": {"type": "array", "items": {"$ref": "#/$defs/candidate"}},
    },
    "required": ["best", "confidence"],
    "$defs": {"candidate": {"type": "object", "required": ["styleId"]}},
}


def doubling(steps: int) -> dict[str, Any]:
    """Each definition refers twice to the next: 2^steps visits from a few lines."""
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(steps)
    }
    definitions[f"d{steps}"] = {"type": "integer"}
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


def bounded(schema: dict[str, Any]) -> BoundedSchema:
    return BoundedSchema(schema, code="MODEL_ERROR", name="The `schema`")


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


async def test_an_answer_is_checked_and_the_first_fault_named_by_path() -> None:
    schema = bounded(VERDICT)
    assert (
        await schema.first_error({"best": None, "confidence": 0.5, "candidates": [{"styleId": "MT01"}]})
        is None
    )
    assert ((await schema.first_error({"best": None, "confidence": 2})) or "").startswith("$.confidence: ")
    problem = await schema.first_error({"best": "a", "confidence": 1, "candidates": [{"styleId": "x"}, {}]})
    assert (problem or "").startswith("$.candidates[1]: ")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"pattern": "("},
        {"pattern": "(?=a)"},
        {"pattern": "(a{1000}){1000}"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json#/x"},
        {"$ref": "#/$defs/absent"},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
        {"$dynamicRef": "#x"},
        {"properties": {"a": {"$id": "http://x/", "type": "string"}}},
        {"properties": {"a": {"$anchor": "x"}}},
        {"enum": ["x" * 70_000]},
        nested(40),
        doubling(40),
        {"allOf": [{"pattern": "\\p{L}{10}"}] * 17},
        {"patternProperties": {f"\\p{{L}}{{10}}{n}": {} for n in range(17)}},
    ],
)
def test_a_schema_that_is_wrong_or_could_stall_the_host_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(StyleEyesError) as caught:
        bounded(schema)
    assert caught.value.code == "MODEL_ERROR"


def test_references_count_as_often_as_they_are_written_out() -> None:
    # Written out, `doubling(n)` is about ten times 2^n objects and arrays.
    bounded(doubling(8))
    with pytest.raises(StyleEyesError):
        bounded(doubling(9))
    assert 10 * 2**8 < MAX_WRITTEN_OUT < 10 * 2**9


async def test_a_pattern_that_would_stall_a_backtracking_matcher_does_not() -> None:
    schema = bounded({"type": "string", "pattern": "^(a+)+$"})
    assert await schema.first_error("a" * 50_000 + "!") is not None


async def test_a_property_may_be_called_ref() -> None:
    schema = bounded({"properties": {"$ref": {"type": "string"}}})
    assert await schema.first_error({"$ref": 1}) is not None


NUMBERS = [0] * 130_000


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"items": {"allOf": [{"type": "string"}] * 1300}}, NUMBERS, '$[0]: 0 is not of type "string"'),
        ({"allOf": [{"contains": {"type": "string"}}] * 1300}, NUMBERS, "$: None of [0"),
        ({"items": {"allOf": [{"maxLength": 1}] * 1300}}, ["x" * 200_000], "is longer than 1 character"),
        ({"pattern": "[01]*1[01]{2000}x"}, "01" * 2_000, "does not match"),
    ],
    ids=["faults", "large-faults", "long-words", "slow-pattern"],
)
async def test_much_work_is_done_elsewhere_and_its_first_fault_told(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], value: Any, words: str
) -> None:
    def here(*_: Any) -> None:
        raise AssertionError("the host did the work itself")

    checked = bounded(schema)
    monkeypatch.setattr(schema_worker, "first_fault", here)
    [fault] = await checked.faults(value, 8)
    assert words in fault
    assert len(fault) < 200


async def test_much_that_fits() -> None:
    schema = bounded({"items": {"allOf": [{"type": "number"}] * 100}})
    assert await schema.faults(NUMBERS, 8) == []


async def test_what_cannot_be_judged_in_time_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_process, "LONGEST_S", 0.1)
    schema = bounded({"allOf": [{"uniqueItems": True}] * 1300})
    assert await schema.faults(list(range(40_000)), 8) == [
        "$: too large to be checked against the tool's schema"
    ]
    assert children() == []


async def test_a_cancel_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = bounded({"allOf": [{"uniqueItems": True}] * 1300})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await schema.faults(list(range(40_000)), 8)
    _, alive = await asyncio.to_thread(psutil.wait_procs, children(), 5)
    assert alive == []


async def test_small_values_have_every_fault_listed_large_ones_one() -> None:
    schema = bounded({"items": {"type": "string"}})
    assert len(await schema.faults([0] * 20, 8)) == 8
    assert len(await schema.faults([0] * 20_000, 8)) == 1


def children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "schema_worker.py" in " ".join(_argv(p))]


def _argv(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []
