"""JSON as Python types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypeAliasType

JsonScalar = str | int | float | bool | None
# A named alias and not a plain one: pydantic can follow the recursion of a name only.
JsonValue = TypeAliasType("JsonValue", "JsonScalar | Sequence[JsonValue] | Mapping[str, JsonValue]")
JsonObject = Mapping[str, JsonValue]
