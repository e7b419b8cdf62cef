"""Whether this machine can sandbox tools, and if not, why and what to do: for `styleeyes doctor`."""

from __future__ import annotations

import base64
import platform
import subprocess
from pathlib import Path

from edge_agent.engine.sandbox import bubblewrap, seccomp
from edge_agent.engine.sandbox.api import SandboxStatus
from edge_agent.engine.sandbox.bubblewrap import RootSpec
from edge_agent.errors import EnvironmentLacksError

_TIMEOUT_S = 15.0
_CONFINE = Path(__file__).resolve().parent / "guest" / "confine.py"
_QUESTION = """
import base64, sys
sys.path.insert(0, "/probe")
import confine
try:
    confine.install_filter(base64.b64decode(sys.argv[1]))
    print("ok")
except (OSError, KeyError) as error:
    print("refused:", error)
"""


def probe(*, use_seccomp: bool = True) -> SandboxStatus:
    """Starts a Python in Bubblewrap and puts it under a filter (about 100 ms, blocking)."""
    root = RootSpec(read_only=((_CONFINE, "/probe/confine.py"),))
    program = base64.b64encode(seccomp.sql_worker()).decode() if seccomp.supported() else ""
    try:
        argv = bubblewrap.command(root, ["-c", _QUESTION, program])
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False, env={}
        )
    except EnvironmentLacksError as lack:
        return _unavailable(lack.message, lack.hint)
    except (OSError, subprocess.TimeoutExpired) as failure:
        return _unavailable(f"Bubblewrap does not start: {failure}", bubblewrap.NOT_INSTALLED_FIX)
    if done.returncode != 0:
        return _unavailable(*bubblewrap.explain(done.stderr.decode(errors="replace")))
    answer = done.stdout.decode(errors="replace").strip()
    if not seccomp.supported():
        answer = f"refused: there is no filter for {platform.machine()}"
    elif not use_seccomp:
        answer = "refused: it was turned off"
    if answer == "ok":
        return SandboxStatus("bubblewrap", "bubblewrap+seccomp", seccomp=True)
    return SandboxStatus(
        "bubblewrap",
        "bubblewrap, without seccomp",
        seccomp=False,
        reason=f"System-call filters do not work here ({answer.removeprefix('refused: ')}).",
        fix="Run on a kernel with CONFIG_SECCOMP_FILTER, outside a container that forbids seccomp(2). "
        "Until then every tool process has a Bubblewrap of its own, which starts more slowly.",
    )


def _unavailable(reason: str, fix: str | None) -> SandboxStatus:
    return SandboxStatus("unavailable", "tools unavailable", seccomp=False, reason=reason, fix=fix)
