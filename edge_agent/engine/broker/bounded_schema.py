"""JSON Schemas that tool authors write, for inputs and for a model's answers, checked with bounded work.

`jsonschema-rs` matches patterns in linear time, but a few lines of schema can still double the work
with every `$ref` (2^26 visits took 4.8 s here), and it would fetch a remote `$ref` if allowed to. So only
references into the schema itself are let through, without circles, and the size of the schema with
every reference written out is limited.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, cast

import jsonschema_rs

from edge_agent.engine.broker.limits import MAX_SCHEMA_BYTES
from edge_agent.engine.broker.requests import depth_exceeds, to_json
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import one_line

MAX_WRITTEN_OUT = 4096
"""Objects and arrays of a schema with every `$ref` replaced by its target; a pattern counts as many."""
PATTERN_WEIGHT = 256
"""Compiling `\\p{L}{10}` takes 6 ms: no more than sixteen such, or the host's loop would stand still."""
_MAX_DEPTH = 32
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 18, dfa_size_limit=1 << 18)
_REFUSED = ("$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$anchor")


class BoundedSchema:
    """A checked schema. Making one raises StyleEyesError(`code`) that says what is wrong; `name` is
    what the sentence calls it."""

    def __init__(self, schema: JsonObject, *, code: str, name: str) -> None:
        try:
            if depth_exceeds(schema, _MAX_DEPTH):
                raise _wrong(f"is nested deeper than {_MAX_DEPTH}")
            if len(to_json(schema)) > MAX_SCHEMA_BYTES:
                raise _wrong(f"is over {MAX_SCHEMA_BYTES:,} bytes")
            _Expansion(schema).check()
            self._validator = jsonschema_rs.Draft202012Validator(
                cast(Any, schema), pattern_options=_PATTERNS, offline=True
            )
        except _SchemaFaultError as fault:
            raise StyleEyesError(code, f"{name} {fault}.") from None
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise StyleEyesError(code, f"{name} is not a JSON Schema: {one_line(str(error))}.") from None
        properties = schema.get("properties")
        self._properties = tuple(properties) if isinstance(properties, Mapping) else ()

    def first_error(self, value: JsonValue) -> str | None:
        """What does not fit, with its path (`$.best`), or None where `value` fits."""
        return next(iter(self.faults(value, 1)), None)

    def faults(self, value: JsonValue, most: int) -> list[str]:
        """What does not fit, each with its path, at most `most` of them; empty where `value` fits."""
        found: list[str] = []
        try:
            for error in self._validator.iter_errors(cast(Any, value)):
                found.append(f"{_path(error.instance_path)}: {one_line(error.message)}{self._nearest(error)}")
                if len(found) == most:
                    break
        except ValueError as error:
            found.append(one_line(str(error)))
        return found

    def _nearest(self, error: jsonschema_rs.ValidationError) -> str:
        """For a property that is not known, the known one that it may be a slip of."""
        kind = error.kind
        if error.instance_path or not isinstance(
            kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties
        ):
            return ""
        near = difflib.get_close_matches(str(next(iter(kind.unexpected), "")), self._properties, 1)
        return f" (did you mean {near[0]!r}?)" if near else ""


class _SchemaFaultError(Exception):
    """What is wrong with a schema, in words that follow its name."""


class _Expansion:
    """Counts a schema's size with every reference written out, each target counted once."""

    def __init__(self, schema: JsonObject) -> None:
        self._root = schema
        self._sizes: dict[str, int] = {}
        self._open: set[str] = set()

    def check(self) -> None:
        if self._size(self._root, top=True) > MAX_WRITTEN_OUT:
            raise _wrong("is too large once its references are written out")

    def _size(self, node: JsonValue, *, top: bool = False) -> int:
        if isinstance(node, Mapping):
            for key in _REFUSED:
                if isinstance(node.get(key), str):
                    raise _wrong(f"uses `{key}`, which is not supported here")
            if isinstance(node.get("$id"), str) and not top:
                raise _wrong("uses `$id` below its top")
            reference = node.get("$ref")
            size = 1 + (self._target_size(reference) if isinstance(reference, str) else 0)
            size += PATTERN_WEIGHT * _patterns(node)
            return size + sum(self._size(child) for child in node.values())
        if isinstance(node, list | tuple):
            return 1 + sum(self._size(child) for child in node)
        return 0

    def _target_size(self, reference: str) -> int:
        if reference in self._sizes:
            return self._sizes[reference]
        if reference in self._open:
            raise _wrong(f"refers to itself through {one_line(reference)!r}")
        self._open.add(reference)
        size = self._size(self._resolve(reference))
        self._open.discard(reference)
        # Sums of sums double without end; anything past the limit is as bad as the limit.
        self._sizes[reference] = min(size, MAX_WRITTEN_OUT + 1)
        return self._sizes[reference]

    def _resolve(self, reference: str) -> JsonValue:
        if reference != "#" and not reference.startswith("#/"):
            raise _wrong(f"refers to {one_line(reference)!r}; only `#/…` inside the schema is allowed")
        node: JsonValue = self._root
        for token in reference[1:].split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                raise _wrong(f"refers to {one_line(reference)!r}, which is not there")
        return node


def _patterns(node: JsonObject) -> int:
    named = node.get("patternProperties")
    return isinstance(node.get("pattern"), str) + (len(named) if isinstance(named, Mapping) else 0)


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _wrong(what: str) -> _SchemaFaultError:
    return _SchemaFaultError(what)
