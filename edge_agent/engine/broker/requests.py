"""Reading a capability call's arguments: JSON text that an untrusted guest wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, cast

from edge_agent.engine.broker.limits import MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonValue


@dataclass(frozen=True, slots=True)
class Arguments:
    """The positional arguments of one call; `method` is there for words."""

    method: str
    values: Sequence[JsonValue]

    def text(self, index: int, name: str) -> str:
        """The string at `index`; raises StyleEyesError("TOOL_ERROR") where there is none."""
        value = self.get(index)
        if not isinstance(value, str):
            raise wrong_argument(self.method, f"`{name}` must be a string")
        return value

    def get(self, index: int) -> JsonValue:
        return self.values[index] if index < len(self.values) else None

    def at_most(self, count: int) -> None:
        if len(self.values) > count:
            raise wrong_argument(self.method, f"takes at most {count} arguments")


def parse_arguments(method: str, args_json: str) -> Arguments:
    """`args_json` as a list of arguments, bounded in size and depth.

    Raises StyleEyesError: `INPUT_TOO_LARGE` past the size, `TOOL_ERROR` for anything else.
    """
    if len(args_json) > MAX_ARGUMENT_BYTES:
        raise StyleEyesError(
            "INPUT_TOO_LARGE", f"The arguments of ctx.{method} are over {MAX_ARGUMENT_BYTES:,} bytes."
        )
    try:
        values = json.loads(args_json, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        raise wrong_argument(method, "its arguments are not JSON") from None
    if isinstance(values, dict):  # the one options object of llm.generate may come bare
        values = [values]
    if not isinstance(values, list):
        raise wrong_argument(method, "its arguments must be a list")
    if depth_exceeds(values, MAX_ARGUMENT_DEPTH):
        raise wrong_argument(method, f"its arguments are nested deeper than {MAX_ARGUMENT_DEPTH}")
    return Arguments(method, cast("list[JsonValue]", values))


def depth_exceeds(value: object, limit: int) -> bool:
    """Whether JSON nests deeper than `limit`; needs no recursion itself."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return False
    return True


def to_json(value: object) -> str:
    """Compact ASCII JSON, which V8 reads fastest. Raises ValueError for NaN and infinities."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def wrong_argument(method: str, what: str) -> StyleEyesError:
    return StyleEyesError("TOOL_ERROR", f"ctx.{method}: {what}.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is out of range")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
