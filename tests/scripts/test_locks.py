"""The lock files hold what pyproject.toml asks for, with hashes, from no place in particular."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN, DEV, VISION = (ROOT / "scripts" / f"requirements{part}.lock" for part in ("", "-dev", "-vision"))
LOCKS = (RUN, DEV, VISION)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _entries(lock: Path) -> dict[str, tuple[str, int]]:
    """Each package's (version, number of hashes)."""
    entries: dict[str, tuple[str, int]] = {}
    words = re.sub(r"^#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for entry in filter(str.strip, words.replace("\\\n", " ").splitlines()):
        pin, *hashes = entry.split()
        name, separator, version = pin.partition("==")
        assert separator, entry
        assert hashes and all(HASH.fullmatch(word) for word in hashes), entry
        assert _name(name) not in entries, f"{name} is there twice"
        entries[_name(name)] = (version, len(hashes))
    return entries


def _pins(requirements: list[str]) -> dict[str, str]:
    pins = dict(requirement.split("==") for requirement in requirements)
    return {_name(name): version for name, version in pins.items()}


def _project() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _pins(project["dependencies"])


def _project_dev() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _pins(project["optional-dependencies"]["dev"])


def _versions(lock: Path) -> dict[str, str]:
    return {name: version for name, (version, _) in _entries(lock).items()}


def test_every_dependency_is_locked_at_the_version_that_the_project_names() -> None:
    assert _project().items() <= _versions(RUN).items()


def test_every_tool_of_the_checks_is_locked_at_the_version_that_the_project_names() -> None:
    assert _project_dev().items() <= (_versions(DEV) | _versions(RUN)).items()


def test_a_package_is_locked_in_one_place() -> None:
    names = [name for lock in LOCKS for name in _entries(lock)]
    assert len(names) == len(set(names))


def test_the_build_tool_is_locked_too() -> None:
    assert "setuptools" in _entries(RUN), "pip builds the project without isolation"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: str(lock.name))
def test_a_lock_names_no_place_to_download_from(lock: Path) -> None:
    words = lock.read_text(encoding="utf-8")
    assert "://" not in words
    assert not re.search(r"^\s*--(?!hash)|\s@\s", words, re.MULTILINE)


def test_compiled_packages_are_locked_for_several_machines() -> None:
    entries = _entries(RUN)
    for name in ("mini-racer", "numpy", "onnxruntime", "opencv-python-headless", "tree-sitter"):
        assert entries[name][1] > 4, f"{name}: a build for each kind of machine, not this one's alone"
