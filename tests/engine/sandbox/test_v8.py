"""mini-racer's C interface is used directly: its signatures have to be those of its own Python layer."""

from __future__ import annotations

import ctypes
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from edge_agent.engine.sandbox.guest import v8
from edge_agent.engine.sandbox.launcher import package_folder


def shape(kind: Any) -> Any:
    """A ctypes type as what it is made of, so that two declarations can be compared."""
    if issubclass(kind, ctypes.Structure):
        members = [getattr(kind, field[0]) for field in kind._fields_]
        return [ctypes.sizeof(kind), [(member.offset, member.size) for member in members]]
    pointed = getattr(kind, "_type_", None)
    if isinstance(pointed, type):
        return ["pointer", shape(pointed)]
    if hasattr(kind, "_argtypes_"):
        return ["function", [shape(argument) for argument in kind._argtypes_]]
    return pointed


@pytest.mark.parametrize("name", sorted(v8.SIGNATURES))
def test_signatures_are_mini_racers(name: str) -> None:
    from py_mini_racer import _dll

    assert version("mini-racer") == "0.14.1"
    theirs = getattr(_dll._build_dll_handle(package_folder("py_mini_racer") / "libmini_racer.so"), name)
    arguments, result = v8.SIGNATURES[name]
    assert [shape(kind) for kind in arguments] == [shape(kind) for kind in theirs.argtypes]
    if result is not None:
        assert shape(result) == shape(theirs.restype)


def test_v8_is_where_the_launcher_looks_for_it() -> None:
    folder: Path = package_folder("py_mini_racer")
    assert (folder / "libmini_racer.so").is_file()
    assert (folder / "icudtl.dat").is_file()
