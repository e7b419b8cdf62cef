"""Where pictures come from: what a person types, and one producer a kind of source."""

from device.sources.spec import SourceKind, SourceSpec, parse_source

__all__ = ["SourceKind", "SourceSpec", "parse_source"]
