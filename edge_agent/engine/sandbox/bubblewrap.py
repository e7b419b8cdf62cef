"""Bubblewrap: the command line of a child with a near-empty root.

The child sees the Python binary and standard library, the shared libraries these need, the files
and folders it is given, and `/dev/urandom`; no network, no other process, no environment.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edge_agent.engine.sandbox import python_root
from edge_agent.errors import EnvironmentLacksError

NOBODY = 65534
NOT_INSTALLED_FIX = "Install it: apt install bubblewrap (or your system's package of that name)."


@dataclass(frozen=True, slots=True)
class RootSpec:
    """What a child's root holds beside Python's standard library.

    `modules` are standard-library modules it will import, and `libraries` shared libraries (host
    paths) it will load: the shared libraries they need come along. `read_only` and `read_write`
    are (host path, absolute path inside). Modules and libraries are only for finding what the
    loader needs: a library must itself lie in something bound.
    """

    modules: tuple[str, ...] = ("base64", "ctypes", "json", "resource", "select", "socket")
    libraries: tuple[Path, ...] = ()
    read_only: tuple[tuple[Path, str], ...] = ()
    read_write: tuple[tuple[Path, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def executable() -> str:
    """The path of `bwrap`; raises EnvironmentLacksError where it is not installed."""
    found = shutil.which("bwrap")
    if found is None:
        raise EnvironmentLacksError(
            "SANDBOX_UNAVAILABLE", "Bubblewrap (bwrap) is not installed.", NOT_INSTALLED_FIX
        )
    return found


def command(root: RootSpec, arguments: Sequence[str], *, info_fd: int | None = None) -> list[str]:
    """The argv that runs Python with `arguments` (a script's path inside, and its arguments).

    `info_fd` is a descriptor, passed to the child, on which Bubblewrap reports `child-pid`.
    Blocking: the first use for a kind of root starts a probe child (see python_root). Raises
    EnvironmentLacksError (`SANDBOX_UNAVAILABLE`).
    """
    python = python_root.discover(root.modules, tuple(str(path) for path in root.libraries))
    argv = [executable(), *_isolation()]
    if info_fd is not None:
        argv += ["--info-fd", str(info_fd)]
    argv += ["--setenv", "LD_LIBRARY_PATH", python.library_path]
    for name, value in root.environment.items():
        argv += ["--setenv", name, value]
    for path in (*python.folders, python.executable, *python.libraries):
        argv += ["--ro-bind", path, path]
    for hidden in python.hidden:
        argv += ["--tmpfs", hidden, "--remount-ro", hidden]
    for host, inside in root.read_only:
        argv += ["--ro-bind", str(host), inside]
    for host, inside in root.read_write:
        argv += ["--bind", str(host), inside]
    argv += ["--dev-bind", "/dev/urandom", "/dev/urandom", "--remount-ro", "/", "--chdir", "/"]
    return [*argv, "--", python.executable, *python_root.FLAGS, *arguments]


def _isolation() -> list[str]:
    # --unshare-all only *tries* a user namespace; --unshare-user insists, which --disable-userns needs.
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--uid", str(NOBODY), "--gid", str(NOBODY), "--cap-drop", "ALL"),
        *("--hostname", "sandbox", "--clearenv", "--new-session", "--die-with-parent"),
    ]


def explain(stderr: str) -> tuple[str, str]:
    """Bubblewrap's own complaint as (a sentence, the fix), for a person."""
    text = stderr.strip()
    if "RTM_NEWADDR" in text or "apparmor" in text.lower():
        return (
            "AppArmor keeps Bubblewrap from using user namespaces (Ubuntu 23.10 and later do this).",
            "Allow it: install Ubuntu's apparmor-profiles and enable bwrap-userns-restrict, or set "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
        )
    if _in_container() and ("namespace" in text or "mount" in text or "permitted" in text):
        return (
            f"This is a container that does not allow namespaces ({_last_line(text)}).",
            "Start the container with a seccomp profile that allows clone and unshare "
            "(--security-opt seccomp=unconfined --security-opt apparmor=unconfined), or run outside it.",
        )
    if "namespace" in text:
        return (
            f"User namespaces are turned off on this machine ({_last_line(text)}).",
            "Turn them on: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000.",
        )
    if "Unknown option" in text or "disable-userns" in text:
        return ("This Bubblewrap is older than 0.8.", "Install Bubblewrap 0.8 or later.")
    return (
        f"Bubblewrap does not start: {_last_line(text)}",
        "`styleeyes doctor` shows what else is missing.",
    )


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2] or "no message"


def _in_container() -> bool:
    marks = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
    return any(Path(mark).exists() for mark in marks)
