"""What a process takes away from itself: system calls, descriptors, memory, core dumps.

Runs inside. The filters themselves are made on the host (`sandbox/seccomp.py`) and arrive as bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_TSYNC = 1
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_INSTRUCTION_BYTES = 8

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Program(ctypes.Structure):
    """`struct sock_fprog` of <linux/filter.h>."""

    _fields_ = (("count", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(program: bytes) -> None:
    """Puts every thread of this process under a seccomp filter, for good. Raises OSError."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    described = _Program(len(program) // _INSTRUCTION_BYTES, program)
    done = _libc.syscall(
        ctypes.c_long(_SECCOMP_CALL[platform.machine()]),
        ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_ulong(_SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.byref(described),
    )
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(
            code, f"seccomp refused the filter: {os.strerror(code) if done < 0 else 'a thread differs'}"
        )


def die_with_parent(parent: int) -> None:
    """SIGKILL to this process when its parent ends; ends at once if it already has."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def limit_resources(*, data_bytes: int | None) -> None:
    """No core dumps, no files, not traceable; `data_bytes` bounds private writable memory.

    RLIMIT_DATA counts anonymous private memory, ArrayBuffers too; RLIMIT_AS is of no use, since V8
    reserves more than a terabyte of addresses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)
    if data_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))


def close_all_but(kept: int) -> None:
    """Closes every descriptor above 2 except `kept`."""
    os.closerange(3, kept)
    os.closerange(kept + 1, 4096)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (kept + 1, kept + 1))


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}) failed: {os.strerror(code)}")
