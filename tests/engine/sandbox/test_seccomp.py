"""The filters themselves, run by a small interpreter of BPF: also those of the other machine."""

from __future__ import annotations

import platform
import struct

import pytest

from edge_agent.engine.sandbox import seccomp
from edge_agent.engine.sandbox.syscalls import MACHINES, NUMBERS

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


def verdict(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What the kernel would say: only the five instructions that the filters use."""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, machine, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        operation, skip_true, skip_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[operation]
            at += skip_true if holds else skip_false


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setattr(platform, "machine", lambda: name)
    return name


def ask(machine: str, program: bytes, name: str, *arguments: int) -> int:
    arch, column = MACHINES[machine]
    return verdict(program, arch, NUMBERS[name][column], *arguments)


def test_a_guest_computes_and_talks_and_does_no_more(machine: str) -> None:
    program = seccomp.guest()
    for name in ("read", "futex", "recvfrom", "sendto", "munmap", "clock_gettime", "exit_group"):
        assert ask(machine, program, name) == ALLOW
    for name in ("execve", "ptrace", "socket", "clone", "kill", "bpf", "io_uring_setup", "memfd_create"):
        assert ask(machine, program, name) == KILL
    for name in ("openat", "seccomp", "prctl", "fcntl", "ioctl", "wait4", "tgkill", "prlimit64"):
        assert ask(machine, program, name) == EPERM
    assert ask(machine, program, "clone3") == ENOSYS


@pytest.mark.parametrize(("call", "argument"), [("mmap", 2), ("mprotect", 2)])
def test_only_the_launcher_may_have_executable_memory(machine: str, call: str, argument: int) -> None:
    arguments = [0] * 6
    for prot, in_guest in ((3, ALLOW), (5, EPERM), (7, EPERM)):
        arguments[argument] = prot
        assert ask(machine, seccomp.guest(), call, *arguments) == in_guest
        assert ask(machine, seccomp.sql_worker(), call, *arguments) == in_guest
        assert ask(machine, seccomp.launcher(), call, *arguments) == ALLOW


@pytest.mark.parametrize("flag", [0x00020000, 0x02000000, 0x10000000, 0x20000000, 0x40000000])
def test_the_launcher_forks_but_makes_no_namespace(machine: str, flag: int) -> None:
    sigchld = 17
    assert ask(machine, seccomp.launcher(), "clone", sigchld | 0x01200000) == ALLOW
    assert ask(machine, seccomp.launcher(), "clone", sigchld | flag) == EPERM


def test_an_sql_worker_writes_files_but_starts_nothing(machine: str) -> None:
    program = seccomp.sql_worker()
    for name in ("openat", "pwrite64", "fdatasync", "unlinkat", "fcntl", "ftruncate"):
        assert ask(machine, program, name) == ALLOW
    for name in ("execve", "socket", "clone", "ptrace", "mount"):
        assert ask(machine, program, name) == KILL


def test_another_machines_calls_kill() -> None:
    if not seccomp.supported():
        pytest.skip("no filter for this machine")
    i386 = 0x40000003
    assert verdict(seccomp.guest(), i386, 3) == KILL


def test_the_x32_interface_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert verdict(seccomp.guest(), MACHINES["x86_64"][0], 0x40000000) == KILL


def test_an_unknown_call_is_an_error_not_a_death(machine: str) -> None:
    assert verdict(seccomp.guest(), MACHINES[machine][0], 9999) == EPERM


def test_a_filter_fits_the_kernel(machine: str) -> None:
    for program in (seccomp.launcher(), seccomp.guest(), seccomp.sql_worker()):
        assert len(program) % 8 == 0
        assert len(program) // 8 <= 4096
