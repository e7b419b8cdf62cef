"""What a Python child needs of this machine: its binary, standard library and shared libraries.

The Python in use may be a virtual environment over pyenv, a distribution's or a self-built one, so
nothing is guessed: a probe child imports what will be imported and reports what the dynamic loader
opened, under the names it opened them by (`dl_iterate_phdr(3)`).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import EnvironmentLacksError

_PROBE = """
import ctypes, importlib, json, os, sys
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
held = [ctypes.CDLL(path) for path in json.loads(sys.argv[2])]
class Entry(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]
names = []
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Entry), ctypes.c_size_t, ctypes.c_void_p)
def visit(entry, size, data):
    names.append(os.fsdecode(entry.contents.name or b""))
    return 0
ctypes.CDLL(None).dl_iterate_phdr(visit, None)
origins = [m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
print(json.dumps({"libraries": names, "stdlib": os.path.dirname(os.__file__), "origins": origins}))
"""
_PROBE_TIMEOUT_S = 20.0
FLAGS = ("-I", "-S", "-B", "-X", "utf8")
"""Isolated, without `site`, writing no bytecode: how every child's Python is started."""


@dataclass(frozen=True, slots=True)
class PythonRoot:
    """Paths on the host, all of them real files or folders, bound at the same place inside."""

    executable: str
    folders: tuple[str, ...]
    """The standard library, and where its extension modules lie if that is elsewhere."""
    hidden: tuple[str, ...]
    """Folders of third-party packages inside `folders`, to be covered by nothing."""
    libraries: tuple[str, ...]

    @property
    def library_path(self) -> str:
        """`LD_LIBRARY_PATH` for a root without `ld.so.cache`."""
        return ":".join(dict.fromkeys(str(Path(name).parent) for name in self.libraries))


def base_executable() -> str:
    """The interpreter itself, behind any virtual environment."""
    return str(Path(getattr(sys, "_base_executable", None) or sys.executable).resolve())


@dataclass(frozen=True, slots=True)
class _Report:
    libraries: list[str]
    stdlib: str
    origins: list[str]


@functools.lru_cache(maxsize=8)
def discover(modules: tuple[str, ...], libraries: tuple[str, ...]) -> PythonRoot:
    """Runs the probe child (about 40 ms, once for each distinct question).

    Raises EnvironmentLacksError where this Python cannot import one of `modules` or load one of
    `libraries`.
    """
    executable = base_executable()
    report = _probe(executable, modules, libraries)
    folders = [report.stdlib]
    for origin in report.origins:
        folder = str(Path(origin).parent)
        if origin.startswith("/") and not any(Path(folder).is_relative_to(f) for f in folders):
            folders.append(folder)
    hidden = tuple(
        str(Path(folder) / name)
        for folder in folders
        for name in ("site-packages", "dist-packages")
        if (Path(folder) / name).is_dir()
    )
    given = {os.path.realpath(path) for path in libraries}
    found = tuple(
        name
        for name in dict.fromkeys(report.libraries)
        if name.startswith("/")
        and os.path.realpath(name) not in given
        and not any(Path(name).is_relative_to(folder) for folder in folders)
        and Path(name).is_file()
    )
    return PythonRoot(executable, tuple(folders), hidden, found)


def _probe(executable: str, modules: Sequence[str], libraries: Sequence[str]) -> _Report:
    command = [executable, *FLAGS, "-c", _PROBE, json.dumps(list(modules)), json.dumps(list(libraries))]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise EnvironmentLacksError(
            "SANDBOX_UNAVAILABLE", f"Python at {executable} does not start: {failure}", "Reinstall Python."
        ) from failure
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise EnvironmentLacksError(
            "SANDBOX_UNAVAILABLE",
            f"Python at {executable} lacks what the sandbox needs: {last}",
            "Run scripts/setup again, with a Python that has ctypes and sqlite3.",
        )
    return _Report(**json.loads(done.stdout))
