"""scripts/setup, run and test on machines that lack one thing or another."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from tests.scripts.bare_machine import BareMachine


@pytest.fixture
def machine(tmp_path: Path) -> BareMachine:
    return BareMachine(tmp_path)


def _packages(machine: BareMachine) -> Path:
    (found,) = machine.clone.glob(".venv/lib/python3*/site-packages")
    return found


def test_the_first_start_installs_and_the_second_does_not(machine: BareMachine) -> None:
    first = machine.run("run", "ask", "What is this?", stdin="from a pipe")
    assert first.returncode == 0, first.stderr
    assert first.stdout == "['ask', 'What is this?'] from a pipe\n"
    assert "about a minute" in first.stderr
    calls = machine.log("pip")
    assert len(calls) == 3
    for call in calls:
        assert "--no-deps" in call
        assert ("--require-hashes" in call and "--only-binary=:all:" in call) or call.endswith("-e .")
    second = machine.run("run")
    assert (second.returncode, second.stdout, second.stderr) == (0, "['demo'] \n", "")
    assert machine.log("pip") == calls


def test_a_link_to_run_serves_from_anywhere(machine: BareMachine) -> None:
    assert machine.run("setup").returncode == 0
    (machine.folder / "click.py").write_text("raise SystemExit(9)", encoding="utf-8")
    link = machine.clone / "scripts" / "link"
    link.symlink_to(machine.clone / "scripts" / "run")
    elsewhere = machine.folder / "styleeyes"
    elsewhere.symlink_to(link)
    assert machine.run(str(elsewhere), "doctor").stdout == "['doctor'] \n"


def test_root_gets_the_missing_system_packages_in_one_go(machine: BareMachine) -> None:
    machine.lacks("python3", "venv", "bwrap", "tmux")
    machine.root(True)
    done = machine.run("setup", "--dev")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (call,) = machine.log("apt")
    assert call.endswith("python3 python3-venv bubblewrap tmux")
    assert "requirements-dev.lock" in " ".join(machine.log("pip"))


def test_without_python_and_rights_the_one_command_is_named(machine: BareMachine) -> None:
    machine.lacks("python3", "venv", "bwrap")
    done = machine.run("run", "doctor")
    assert (done.returncode, done.stdout) == (3, "")
    assert "apt-get install python3 python3-venv bubblewrap" in done.stderr
    assert machine.log("apt") == []
    assert not (machine.clone / ".venv").exists()


def test_without_the_venv_module_only_that_is_named(machine: BareMachine) -> None:
    machine.lacks("venv")
    done = machine.run("setup")
    assert done.returncode == 3
    assert done.stderr.rstrip().endswith("apt-get install python3-venv")


def test_a_python_that_is_too_old_is_passed_over(machine: BareMachine) -> None:
    (machine.folder / "is-old").touch()
    machine.program("apt-cache", '#!/bin/sh\ntest "$2" = python3.12-venv\n')
    done = machine.run("setup")
    assert done.returncode == 3
    assert done.stderr.rstrip().endswith("apt-get install python3.12 python3.12-venv")


def test_a_mirror_out_of_reach_is_told_in_its_own_words(machine: BareMachine) -> None:
    machine.lacks("python3")
    machine.root(True, apt_works=False)
    done = machine.run("setup")
    assert done.returncode == 3
    assert "E: Unable to fetch some archives" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize("is_root", [False, True])
def test_without_bubblewrap_it_goes_on_and_names_the_command(machine: BareMachine, is_root: bool) -> None:
    machine.lacks("bwrap")
    machine.root(is_root, apt_works=False)
    for _ in range(2):
        done = machine.run("setup")
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("apt-get install bubblewrap") == 1
    attempts = len(machine.log("apt"))
    assert attempts == (2 if is_root else 0), "a later start tries no installing"


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (
            "WARNING: Retrying after NewConnectionError\nERROR: No matching distribution found",
            "Check the network",
        ),
        ("ERROR: OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "lock file promises"),
        ("ERROR: No matching distribution found for numpy", "no build for this machine"),
        ("ERROR: something new", "something new"),
    ],
)
def test_a_failed_installation_says_what_to_do_and_is_taken_up_again(
    machine: BareMachine, words: str, advice: str
) -> None:
    machine.pip_fails(words)
    done = machine.run("run")
    assert (done.returncode, done.stdout) == (3, "")
    assert advice in done.stderr
    machine.pip_fails(None)
    assert machine.run("run").returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_folder_that_cannot_be_written_is_named(machine: BareMachine) -> None:
    machine.clone.chmod(0o555)
    done = machine.run("setup")
    machine.clone.chmod(0o755)
    assert done.returncode == 3
    assert f"cannot write into {machine.clone}" in done.stderr


def test_a_changed_lock_is_installed(machine: BareMachine) -> None:
    machine.run("setup")
    calls = len(machine.log("pip"))
    with (machine.clone / "scripts" / "requirements.lock").open("a", encoding="utf-8") as lock:
        lock.write("# newer\n")
    assert machine.run("setup").returncode == 0
    assert len(machine.log("pip")) == 2 * calls


def test_what_is_ready_for_the_checks_is_ready_for_the_program(machine: BareMachine) -> None:
    machine.run("setup", "--dev")
    calls = machine.log("pip")
    assert machine.run("setup").returncode == 0
    assert machine.log("pip") == calls


def test_a_moved_clone_gets_a_new_environment(machine: BareMachine) -> None:
    machine.run("setup")
    mark = _packages(machine) / "of_the_old_place"
    mark.touch()
    machine.clone = machine.clone.rename(machine.folder / "moved")
    assert machine.run("run").stdout == "['demo'] \n"
    assert not (_packages(machine) / mark.name).exists()


def test_a_package_gone_or_without_a_file_is_put_back(machine: BareMachine) -> None:
    machine.run("setup")
    package = _packages(machine) / "requirements"
    (package / "__init__.py").unlink()
    package.rmdir()
    assert machine.run("setup").returncode == 0
    assert (package / "__init__.py").exists()


def test_an_environment_that_was_half_made_is_made_anew(machine: BareMachine) -> None:
    machine.run("setup")
    (machine.clone / ".venv" / ".styleeyes-making").touch()
    (machine.clone / ".venv" / ".styleeyes-run").unlink()
    mark = _packages(machine) / "half_made"
    mark.touch()
    assert machine.run("setup").returncode == 0
    assert not mark.exists()


def test_a_second_setup_waits_for_the_first(machine: BareMachine) -> None:
    with (machine.clone / "scripts" / "setup").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = machine.start("setup")
        assert second.stderr is not None
        assert "waiting for it" in second.stderr.readline()
        assert machine.log("pip") == []
    assert second.communicate(timeout=60)[1].count("about a minute") == 1
    assert second.returncode == 0


def test_an_interrupt_ends_at_once_and_the_next_start_goes_on(machine: BareMachine) -> None:
    gate = machine.folder / "gate"
    os.mkfifo(gate)
    (machine.folder / "pip-waits").touch()
    first = machine.start("run")
    with gate.open("w", encoding="utf-8"):  # opens when pip has opened the other end
        os.killpg(first.pid, signal.SIGINT)
        stdout, stderr = first.communicate(timeout=60)
    assert (first.returncode, stdout) == (130, "")
    assert "interrupted; run this again" in stderr
    (machine.folder / "pip-waits").unlink()
    assert machine.run("run").stdout == "['demo'] \n"


def test_every_check_runs_even_after_one_has_failed(machine: BareMachine) -> None:
    machine.run("setup", "--dev")
    tools = machine.clone / ".venv" / "bin"
    for name in ("ruff", "mypy", "lint-imports"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@"\nexit 1\n', encoding="utf-8")
        (tools / name).chmod(0o755)
    (_packages(machine) / "pytest.py").write_text(
        "import sys; print('pytest', *sys.argv[1:])", encoding="utf-8"
    )
    done = machine.run("test")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "ruff",
        "ruff",
        "mypy",
        "lint-imports",
        "pytest",
    ]
    assert done.stderr.endswith("failed: lint format types borders\n")
    only = machine.run("test", "tests/device", "-k", "jpeg")
    assert (only.returncode, only.stdout) == (0, "pytest tests/device -k jpeg\n")
