"""Seccomp filters as raw BPF: allow-lists for the launcher, its guests and SQL workers.

Every filter checks the machine, kills on calls that only an escape would make, allows its list, and
answers EPERM to the rest (V8 and Python meet calls, such as `sched_getparam`, only after hundreds of
runs; those must not kill). Instruction encoding: <linux/bpf_common.h> and seccomp(2).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable

from edge_agent.engine.sandbox.syscalls import MACHINES, NUMBERS

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NO_SUCH_CALL = 0x00050000 | errno.ENOSYS
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_PROT_EXEC = 0x4
_CLONE_NAMESPACES = 0x7E020000 | 0x00000080
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}."""


def _names(text: str) -> list[str]:
    return text.split()


_COMPUTE = _names("""
    read write readv writev close poll ppoll select pselect6 futex mmap mprotect munmap mremap
    madvise brk clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time getrandom
    rt_sigreturn rt_sigprocmask rt_sigaction sigaltstack restart_syscall exit exit_group getpid gettid
    sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_min
    sched_get_priority_max getrusage rseq set_robust_list membarrier sysinfo uname fstat lseek
    getuid geteuid getgid getegid""")
_TALK = _names("sendto recvfrom sendmsg recvmsg shutdown")
_READ_FILES = _names("""
    open openat newfstatat stat lstat statx readlink readlinkat access faccessat
    faccessat2 getdents64 pread64 fcntl ioctl dup getcwd fadvise64""")
_WRITE_FILES = _names("""
    pwrite64 ftruncate fallocate fsync fdatasync flock unlink unlinkat fchmod fchown
    mkdir mkdirat renameat renameat2""")

_LAUNCHER = [
    *(*_COMPUTE, *_TALK, *_READ_FILES),
    *_names("getppid clone wait4 waitid pidfd_open pidfd_send_signal prctl prlimit64 setrlimit seccomp"),
    *_names("set_tid_address close_range getpriority"),
]
_GUEST = [*_COMPUTE, *_TALK]
_SQL_WORKER = [*_COMPUTE, *_TALK, *_READ_FILES, *_WRITE_FILES]

_DEADLY = _names("""
    execve execveat ptrace socket connect bind listen accept accept4 socketpair mount umount2
    move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr unshare setns pivot_root chroot bpf
    io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key userfaultfd perf_event_open
    process_vm_readv process_vm_writev process_madvise kexec_load kexec_file_load init_module finit_module
    delete_module memfd_create memfd_secret open_by_handle_at name_to_handle_at pidfd_getfd kcmp kill
    tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal shmget shmat shmctl msgget msgsnd msgrcv
    msgctl semget semop semctl mq_open iopl ioperm modify_ldt reboot swapon swapoff sethostname
    setdomainname acct quotactl syslog settimeofday clock_settime adjtimex setuid setgid setreuid
    setregid setresuid setresgid setgroups capset personality uselib vhangup fanotify_init inotify_init1
    mknodat mbind migrate_pages move_pages fork vfork""")


def supported() -> bool:
    """Whether this kind of machine has filters here."""
    return platform.machine() in MACHINES


def launcher() -> bytes:
    """For the process that forks guests; it may read its own root, and fork without new namespaces."""
    return _program(_LAUNCHER, executable_memory=True)


def guest() -> bytes:
    """For a guest once its isolate stands: computing, and talking over descriptors it already has."""
    return _program(_GUEST, executable_memory=False)


def sql_worker() -> bytes:
    """For a worker with its modules imported: files of its own root, no new code, no process."""
    return _program(_SQL_WORKER, executable_memory=False)


def _program(allowed: Iterable[str], *, executable_memory: bool) -> bytes:
    """The filter for this machine. Raises KeyError on a machine that `supported` denies."""
    audit_arch, column = MACHINES[platform.machine()]
    permitted = dict.fromkeys(allowed)
    code = [
        _instruction(_LOAD, _MACHINE_AT),
        _instruction(_JUMP_EQUAL, audit_arch, skip_true=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if column == 0:
        # The same numbers with this bit set are the x32 interface: a second way to every call.
        code += [_instruction(_JUMP_AT_LEAST, _X32_BIT, skip_false=1), _instruction(_RETURN, _KILL)]
    for name in permitted:
        number = NUMBERS[name][column]
        if number < 0:
            continue
        code += _guarded(name, number, executable_memory)
    # glibc tries clone3 first; its flags lie in memory, out of a filter's sight. It falls back to clone.
    code += _on(NUMBERS["clone3"][column], _NO_SUCH_CALL)
    for name in _DEADLY:
        if name not in permitted and NUMBERS[name][column] >= 0:
            code += _on(NUMBERS[name][column], _KILL)
    if "clone" not in permitted:
        code += _on(NUMBERS["clone"][column], _KILL)
    code.append(_instruction(_RETURN, _DENY))
    return b"".join(code)


def _guarded(name: str, number: int, executable_memory: bool) -> list[bytes]:
    if name in ("mmap", "mprotect") and not executable_memory:
        return _unless_bits(number, argument=2, bits=_PROT_EXEC)
    if name == "clone":
        return _unless_bits(number, argument=0, bits=_CLONE_NAMESPACES)
    return _on(number, _ALLOW)


def _on(number: int, action: int) -> list[bytes]:
    return [_instruction(_JUMP_EQUAL, number, skip_false=1), _instruction(_RETURN, action)]


def _unless_bits(number: int, argument: int, bits: int) -> list[bytes]:
    """Allows `number` unless its argument (low word, little endian) has one of `bits`."""
    return [
        _instruction(_JUMP_EQUAL, number, skip_false=4),
        _instruction(_LOAD, _ARGUMENTS_AT + 8 * argument),
        _instruction(_JUMP_ANY_BIT, bits, skip_false=1),
        _instruction(_RETURN, _DENY),
        _instruction(_RETURN, _ALLOW),
    ]


def _instruction(code: int, value: int, *, skip_true: int = 0, skip_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_true, skip_false, value)
