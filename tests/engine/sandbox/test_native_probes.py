# ruff: noqa: E501 - a row of code inside a table reads best on one line
"""What native code could do if it broke out of V8: tried from a Python confined as a guest is."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from edge_agent.engine.sandbox import bubblewrap, seccomp
from edge_agent.engine.sandbox.bubblewrap import RootSpec

pytestmark = pytest.mark.usefixtures("needs_bubblewrap")

CONFINE = Path(bubblewrap.__file__).parent / "guest" / "confine.py"
ROOT = RootSpec(
    modules=("base64", "ctypes", "json", "mmap", "resource", "socket", "subprocess"),
    read_only=((CONFINE, "/probe/confine.py"),),
)
KILLED = -signal.SIGSYS
PRELUDE = """
import base64, ctypes, errno, mmap, os, resource, signal, socket, subprocess, sys
sys.path.insert(0, "/probe")
import confine
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    libc.syscall.restype = ctypes.c_long
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
confine.limit_resources(data_bytes=None)
if len(sys.argv) > 1 and sys.argv[1]:
    confine.install_filter(base64.b64decode(sys.argv[1]))
def attempt():
{body}
try:
    print("got", attempt(), flush=True)
except (OSError, ValueError, subprocess.SubprocessError) as error:
    print("denied", type(error).__name__, error, flush=True)
os._exit(0)
"""
MANY = """
import json, os, sys
for name, code in json.load(sys.stdin).items():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        os.closerange(3, 100)
        exec(compile(code, name, "exec"), {})
    os.close(writer)
    said = b""
    while piece := os.read(reader, 65536):
        said += piece
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([name, said.decode(), status]), flush=True)
"""

UNDER_THE_FILTER = {
    "open a file": "return open('/etc/passwd').read()",
    "open its own library": "return open(os.__file__).read()",
    "list its root": "return os.listdir('/')",
    "write a file": "return open('/tmp/x', 'w')",
    "fork": "return os.fork()",
    "vfork and exec": "return subprocess.run([sys.executable, '-c', '1'])",
    "exec": "os.execv(sys.executable, ['python'])",
    "start a thread": "import _thread; _thread.start_new_thread(print, ())",
    "internet socket": "return socket.socket(socket.AF_INET)",
    "unix socket": "return socket.socket(socket.AF_UNIX)",
    "netlink socket": "return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket pair": "return socket.socketpair()",
    "ptrace": "return call({ptrace}, 0, 0, 0, 0)",
    "read a parent's memory": "return call({process_vm_readv}, os.getpid(), 0, 0, 0, 0, 0)",
    "kill the parent": "return os.kill(1, 9)",
    "kill everybody": "return os.kill(-1, 9)",
    "thread kill": "return call({tkill}, 1, 9)",
    "pidfd signal": "return call({pidfd_send_signal}, 3, 9, 0, 0)",
    "steal a descriptor": "return call({pidfd_getfd}, 3, 0, 0)",
    "memfd": "return call({memfd_create}, ctypes.c_char_p(b'x'), 0)",
    "mount": "return call({mount}, 0, 0, 0, 0, 0)",
    "unshare a user namespace": "return call({unshare}, 0x10000000)",
    "clone a user namespace": "return call({clone}, 0x10000011, 0, 0, 0, 0)",
    "clone3": "return call({clone3}, 0, 0)",
    "enter a namespace": "return call({setns}, 3, 0)",
    "chroot": "return call({chroot}, ctypes.c_char_p(b'/'))",
    "pivot_root": "return call({pivot_root}, 0, 0)",
    "io_uring": "return call({io_uring_setup}, 4, 0)",
    "bpf": "return call({bpf}, 0, 0, 0)",
    "keyctl": "return call({keyctl}, 0, 0)",
    "add_key": "return call({add_key}, 0, 0, 0, 0, 0)",
    "userfaultfd": "return call({userfaultfd}, 0)",
    "perf_event_open": "return call({perf_event_open}, 0, 0, -1, -1, 0)",
    "open by handle": "return call({open_by_handle_at}, 3, 0, 0)",
    "load a module": "return call({init_module}, 0, 0, 0)",
    "executable memory": "return mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)",
    "make memory executable": "m = libc.valloc(4096); return call({mprotect}, 0, 4096, 5)",
    "become root": "return call({setuid}, 0)",
    "change capabilities": "return call({capset}, 0, 0)",
    "reboot": "return call({reboot}, 0, 0, 0, 0)",
    "shared memory": "return call({shmget}, 0, 4096, 0o1777)",
    "change the personality": "return call({personality}, 0xffffffff)",
    "loosen the filter": "confine.install_filter(b'\\x06\\0\\0\\0\\0\\0\\xff\\x7f'); return 1",
    "make it dumpable": "confine._prctl(4, 1); return 1",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_CORE, (1, 1)); return 1",
    "fanotify": "return call({fanotify_init}, 0, 0)",
    "inotify": "return call({inotify_init1}, 0)",
    "x32 interface": "return call(0x40000000, 0, 0, 0)",
}

IN_THE_ROOT_ALONE = {
    "no network but a dead loopback": "return socket.create_connection(('127.0.0.1', int(sys.argv[2])), 2)",
    "no route": "return socket.create_connection(('192.0.2.1', 80), 2)",
    "no abstract sockets of the host": "s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[3]); return 1",
    "no password file": "return open('/etc/passwd').read()",
    "no proc": "return os.listdir('/proc')",
    "no sys": "return os.listdir('/sys')",
    "no temporary folder": "return open('/tmp/x', 'w')",
    "read-only root": "return open('/x', 'w')",
    "read-only library": "return open(os.path.dirname(os.__file__) + '/x', 'w')",
    "read-only guest code": "return open('/probe/confine.py', 'a')",
    "no shell": "return subprocess.run(['/bin/sh', '-c', 'true'])",
    "no host process to kill": "return os.kill(int(sys.argv[4]), 0)",
    "no new user namespace": "return call({unshare}, 0x10000000)",
    "no mount": "return call({mount}, ctypes.c_char_p(b'x'), ctypes.c_char_p(b'/probe'), ctypes.c_char_p(b'tmpfs'), 0, 0)",
    "no remount": "return call({mount}, 0, ctypes.c_char_p(b'/'), 0, 0x1020, 0)",
    "no device nodes": "return os.mknod('/dev/x', 0o600 | 0o060000, os.makedev(8, 0))",
    "no disks": "return open('/dev/vda', 'rb')",
    "no memory device": "return open('/dev/mem', 'rb')",
    "no raising of privileges": "return call({setuid}, 0)",
    "no chroot": "return call({chroot}, ctypes.c_char_p(b'/probe'))",
    "no kernel log": "return call({syslog}, 2, ctypes.c_char_p(b' ' * 100), 100)",
    "no third-party packages": "import importlib; return open(os.path.dirname(os.__file__) + '/site-packages/pip/__init__.py')",
}  # fmt: skip


def numbered(body: str) -> str:
    from edge_agent.engine.sandbox.syscalls import MACHINES, NUMBERS

    column = MACHINES[os.uname().machine][1]
    for name, numbers in NUMBERS.items():
        body = body.replace("{" + name + "}", str(numbers[column]))
    return body


def attempt(body: str, program: bytes, *arguments: str) -> tuple[str, int]:
    code = PRELUDE.replace("{body}", "    " + numbered(body))
    argv = bubblewrap.command(ROOT, ["-c", code, base64.b64encode(program).decode(), *arguments])
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env={})
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.stdout.decode(), done.returncode


def attempts(bodies: dict[str, str], program: bytes, *arguments: str) -> dict[str, tuple[str, int]]:
    """As `attempt`, each in a fork of its own in one Bubblewrap, confined only after the fork.

    What each said, and its exit code or minus the signal that ended it.
    """
    codes = {name: PRELUDE.replace("{body}", "    " + numbered(body)) for name, body in bodies.items()}
    argv = bubblewrap.command(ROOT, ["-c", MANY, base64.b64encode(program).decode(), *arguments])
    done = subprocess.run(argv, input=json.dumps(codes).encode(), capture_output=True, timeout=60, env={})
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: (said, status) for name, said, status in told}


@pytest.fixture(scope="module")
def under_the_filter(needs_bubblewrap: None) -> dict[str, tuple[str, int]]:
    if not seccomp.supported():
        pytest.skip("no filter for this machine")
    return attempts(UNDER_THE_FILTER, seccomp.guest())


@pytest.fixture(scope="module")
def in_the_root_alone(needs_bubblewrap: None) -> dict[str, tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        label = f"styleeyes-probe-{os.getpid()}"
        abstract.bind("\0" + label)
        abstract.listen()
        port = server.getsockname()[1]
        return attempts(IN_THE_ROOT_ALONE, b"", str(port), label, str(os.getpid()))


@pytest.mark.parametrize("name", UNDER_THE_FILTER)
def test_a_guests_filter_stops(under_the_filter: dict[str, tuple[str, int]], name: str) -> None:
    said, status = under_the_filter[name]
    assert "got" not in said
    assert status == KILLED or said.startswith("denied")


@pytest.mark.parametrize("name", IN_THE_ROOT_ALONE)
def test_bubblewrap_alone_stops(in_the_root_alone: dict[str, tuple[str, int]], name: str) -> None:
    said, _status = in_the_root_alone[name]
    assert said.startswith("denied")


def test_the_probes_can_tell_a_success() -> None:
    """Without what they probe, they would say so: a table of nothing but denials proves something."""
    allowed = {"compute": "return 6 * 7", "fork": "return os.fork() >= 0"}
    told = attempts(allowed, b"")
    assert told["compute"] == ("got 42\n", 0)
    assert told["fork"][0].startswith("got True")


def test_the_root_holds_nothing_of_ours() -> None:
    body = (
        "found = sorted(os.listdir('/'))\n"
        "    return [os.getuid(), os.getgid(), sorted(os.environ), os.listdir('/dev'), os.listdir('/probe'),"
        " len(os.sched_getaffinity(0)) > 0, os.getcwd(), socket.gethostname(),"
        " any(n in found for n in ('etc', 'home', 'proc', 'sys', 'tmp', 'var', 'run', 'work'))]"
    )
    said, status = attempt(body, b"")
    assert status == 0
    assert said.startswith("got [65534, 65534, ")
    assert "'LD_LIBRARY_PATH'" in said
    assert "['urandom'], ['confine.py'], True, '/', 'sandbox', False]" in said


def test_a_secret_of_the_environment_does_not_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret-secret")
    said, _status = attempt("return dict(os.environ)", b"")
    assert "secret-secret" not in said


def test_capabilities_are_gone() -> None:
    # CapEff cannot be read without /proc: what needs a capability has to fail instead.
    said, _status = attempt("os.setgroups([0]); return 1", b"")
    assert said.startswith("denied")
