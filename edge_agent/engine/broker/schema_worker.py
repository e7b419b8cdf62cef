"""Validation with `jsonschema-rs`: used in the host, and run by itself as a process that can be killed.

As a process it reads a schema and a value, one line of JSON each, from stdin and writes the first fault,
or null, to stdout. It imports nothing of ours, so that it starts quickly.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 18, dfa_size_limit=1 << 18)
_MAX_MEMORY = 1 << 30
_MAX_CPU_S = 10
"""Ends it should the host have died meanwhile."""
_HEAD, _TAIL = 70, 80
"""Characters kept of a long message: it begins with the value, of any length, and ends with the reason."""

Fault = tuple[list[str | int], str, str | None]
"""Where in the value, in words, and the first property there that the schema does not know."""


def make_validator(schema: Any) -> Any:
    """A draft 2020-12 validator that fetches nothing and matches patterns in linear time."""
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=_PATTERNS, offline=True)


def all_faults(validator: Any, value: Any) -> Iterator[Fault]:
    """Every fault. `jsonschema-rs` makes the whole list at once, 10 µs and the part's own size each."""
    for error in validator.iter_errors(value):
        yield _fault(error)


def first_fault(validator: Any, value: Any) -> Fault | None:
    """One fault, or None where the value fits."""
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _fault(error)
    return None


def _fault(error: jsonschema_rs.ValidationError) -> Fault:
    kind = error.kind
    unknown = None
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        unknown = str(next(iter(kind.unexpected), ""))
    message = error.message
    if len(message) > _HEAD + _TAIL:
        message = f"{message[:_HEAD]} … {message[-_TAIL:]}"
    return list(error.instance_path), message, unknown


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_CPU_S, _MAX_CPU_S))
    schema, value = (json.loads(line) for line in sys.stdin.buffer)
    sys.stdout.write(json.dumps(first_fault(make_validator(schema), value)))


if __name__ == "__main__":
    main()
