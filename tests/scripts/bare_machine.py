"""A machine to set up: a PATH with only what a bare system has, and a package installer that obeys the test.

The shell, its tools, Python and `venv` are real. At the border are fakes: `apt-get`, `apt-cache`, `id`,
and pip, which is a module put into each new virtual environment that records what it is asked for, and
installs one package for each lock file.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TOOLS = (
    *(
        "bash",
        "sh",
        "env",
        "cat",
        "cp",
        "dirname",
        "readlink",
        "sha256sum",
        "mkdir",
        "rm",
        "mv",
        "ln",
        "chmod",
    ),
    *("grep", "tail", "flock", "uname", "touch"),
)

_PIP = """
import os, pathlib, sys
machine = pathlib.Path({machine!r})
with (machine / "pip.log").open("a") as log:
    print(*sys.argv[1:], file=log)
says = machine / "pip-says"
if says.exists():
    sys.exit(says.read_text())
waits = machine / "pip-waits"
if waits.exists():
    waits.write_text("waiting")
    with (machine / "gate").open() as gate:
        gate.read()
packages = pathlib.Path(__file__).parents[1]
if "-e" in sys.argv:
    (packages / "program.pth").write_text(os.getcwd(), encoding="utf-8")
if "-r" in sys.argv:
    name = pathlib.Path(sys.argv[sys.argv.index("-r") + 1]).stem.replace("-", "_")
    (packages / name).mkdir(exist_ok=True)
    (packages / name / "__init__.py").touch()
    about = packages / (name + "-1.dist-info")
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\\nName: " + name + "\\nVersion: 1\\n")
    (about / "RECORD").write_text(name + "/__init__.py,,\\n")
"""

_PYTHON = """#!/bin/sh
case "$*" in
    *"import ensurepip"*) test -e {machine}/has-venv ;;
    *sys.version_info*) test ! -e {machine}/is-old ;;
    "-m venv "*)
        {python} -m venv --without-pip "$3" || exit
        for packages in "$3"/lib/python3*/site-packages; do
            mkdir "$packages/pip"
            touch "$packages/pip/__init__.py"
            cp {machine}/pip.py "$packages/pip/__main__.py"
        done ;;
    *) exec {python} "$@" ;;
esac
"""

_APT_GET = """#!/bin/sh
echo "$*" >>{machine}/apt.log
test -e {machine}/apt-works || {{ echo "E: Unable to fetch some archives" >&2; exit 100; }}
for word in "$@"; do
    case $word in
        python3) cp {machine}/python.sh {bin}/python3 ;;
        python3-venv) touch {machine}/has-venv ;;
        bubblewrap) ln -sf "$(command -v sh)" {bin}/bwrap ;;
        tmux) ln -sf "$(command -v sh)" {bin}/tmux ;;
    esac
done
"""


class BareMachine:
    """A clone of the scripts in a folder with a space and a letter outside ASCII, and a PATH of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "Style Eyes é"
        self._bin = folder / "bin"
        self._bin.mkdir()
        for tool in _TOOLS:
            found = shutil.which(tool)
            if found:
                (self._bin / tool).symlink_to(found)
        self._write("pip.py", _PIP.format(machine=str(folder)))
        python = self._write("python.sh", _PYTHON.format(machine=folder, python=sys.executable))
        python.chmod(0o755)
        self.has("python3", "venv", "bwrap", "tmux")
        self.program("apt-get", _APT_GET.format(machine=folder, bin=self._bin))
        self.root(False)
        self._copy_scripts()

    def _copy_scripts(self) -> None:
        (self.clone / "scripts").mkdir(parents=True)
        locks = ("requirements.lock", "requirements-dev.lock", "requirements-vision.lock")
        for name in ("setup", "run", "test", *locks):
            shutil.copy2(ROOT / "scripts" / name, self.clone / "scripts" / name)
        shutil.copy2(ROOT / "pyproject.toml", self.clone / "pyproject.toml")
        program = self.clone / "edge_agent"
        program.mkdir()
        (program / "__init__.py").touch()
        (program / "__main__.py").write_text(
            "import sys\nprint(sys.argv[1:], sys.stdin.read())\n", encoding="utf-8"
        )

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def program(self, name: str, text: str) -> None:
        """Puts a program of this text on the PATH."""
        path = self._bin / name
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def has(self, *names: str) -> None:
        """`python3`, `venv`, `bwrap` or `tmux` is there."""
        for name in names:
            if name == "venv":
                (self.folder / "has-venv").touch()
            elif name == "python3":
                shutil.copy2(self.folder / "python.sh", self._bin / "python3")
            else:
                (self._bin / name).symlink_to(self._bin / "sh")

    def lacks(self, *names: str) -> None:
        """The same is not there."""
        for name in names:
            path = self.folder / "has-venv" if name == "venv" else self._bin / name
            path.unlink()

    def root(self, is_root: bool, *, apt_works: bool = True) -> None:
        """Whether the scripts run as root, and whether the package mirror can be reached."""
        self.program("id", f"#!/bin/sh\necho {0 if is_root else 1000}\n")
        works = self.folder / "apt-works"
        works.touch() if apt_works else works.unlink()

    def pip_fails(self, words: str | None) -> None:
        """From now on pip ends with these words; None mends it."""
        if words is None:
            (self.folder / "pip-says").unlink()
        else:
            self._write("pip-says", words)

    def log(self, name: str) -> list[str]:
        """What `pip` or `apt` was asked for so far, one call a line."""
        path = self.folder / f"{name}.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": str(self._bin)}

    def run(self, script: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a script of the clone to its end."""
        return subprocess.run(
            [self.clone / "scripts" / script, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.folder,
            timeout=60,
            check=False,
        )

    def start(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        """Starts a script of the clone in a process group of its own."""
        return subprocess.Popen(
            [self.clone / "scripts" / script, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self.environment,
            cwd=self.folder,
            start_new_session=True,
        )
