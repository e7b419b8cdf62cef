"""JSON Schemas that tool authors write, for inputs and for a model's answers, checked with bounded work.

`jsonschema-rs` matches patterns in linear time, but a few lines of schema can still double the work
with every `$ref` (2^26 visits took 4.8 s here), and it would fetch a remote `$ref` if allowed to. So only
references into the schema itself are let through, without circles, and the size of the schema with
every reference written out is limited. What remains is the product of schema and value: 1,300 subschemas
over 130,000 numbers filled the host's memory with faults, `[01]*1[01]{2000}x` took 24 µs a character, all
of it holding the interpreter's lock. Past a small product a process that can be killed does the work.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping

import jsonschema_rs

from edge_agent.engine.broker import schema_process, schema_worker
from edge_agent.engine.broker.limits import MAX_SCHEMA_BYTES
from edge_agent.engine.broker.requests import depth_exceeds, to_json
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import one_line

MAX_WRITTEN_OUT = 4096
"""Objects and arrays of a schema with every `$ref` replaced by its target; a pattern counts as many."""
PATTERN_WEIGHT = 256
"""Compiling `\\p{L}{10}` takes 6 ms: no more than sixteen such, or the host's loop would stand still."""
MAX_WORK_HERE = 1_000_000
"""Written-out schema times bytes of the value: at most about 0.1 s whatever the two are."""
MAX_WORK_LISTED = 5_000
"""Written-out schema times parts of the value, up to which every fault is listed and not the first alone."""
_MAX_DEPTH = 32
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
            self._written_out = _Expansion(schema).check()
            self._schema_json = to_json(schema)
            self._validator = schema_worker.make_validator(schema)
        except _SchemaFaultError as fault:
            raise StyleEyesError(code, f"{name} {fault}.") from None
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise StyleEyesError(code, f"{name} is not a JSON Schema: {one_line(str(error))}.") from None
        properties = schema.get("properties")
        self._properties = tuple(properties) if isinstance(properties, Mapping) else ()

    async def first_error(self, value: JsonValue) -> str | None:
        """What does not fit, with its path (`$.best`), or None where `value` fits."""
        return next(iter(await self.faults(value, 1)), None)

    async def faults(self, value: JsonValue, most: int) -> list[str]:
        """What does not fit, each with its path, at most `most` of them; empty where `value` fits.

        Of a large value only one is told. A value that cannot be judged in 5 s does not fit.
        """
        try:
            text = to_json(value)
            if self._written_out * len(text) > MAX_WORK_HERE:
                fault = await schema_process.first_fault(self._schema_json, text)
                return [self._words(fault)] if fault else []
            parts = 1 + text.count(",") + text.count("[") + text.count("{")
            if most == 1 or self._written_out * parts > MAX_WORK_LISTED:
                fault = schema_worker.first_fault(self._validator, value)
                return [self._words(fault)] if fault else []
            every = schema_worker.all_faults(self._validator, value)
            return [self._words(fault) for fault in itertools.islice(every, most)]
        except schema_process.UndecidedError:
            return ["$: too large to be checked against the tool's schema"]
        except ValueError as error:
            return [one_line(str(error))]

    def _words(self, fault: schema_worker.Fault) -> str:
        """The fault with its path and, for a property that is not known, what it may be a slip of."""
        path, message, unknown = fault
        near = difflib.get_close_matches(unknown, self._properties, 1) if unknown and not path else []
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{_path(path)}: {one_line(message)}{hint}"


class _SchemaFaultError(Exception):
    """What is wrong with a schema, in words that follow its name."""


class _Expansion:
    """Counts a schema's size with every reference written out, each target counted once."""

    def __init__(self, schema: JsonObject) -> None:
        self._root = schema
        self._sizes: dict[str, int] = {}
        self._open: set[str] = set()

    def check(self) -> int:
        size = self._size(self._root, top=True)
        if size > MAX_WRITTEN_OUT:
            raise _wrong("is too large once its references are written out")
        return size

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
