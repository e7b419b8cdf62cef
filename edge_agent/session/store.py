"""Kept sessions: where they are, what they were, and which of them died without closing."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from device.clock import Clock, iso_utc
from edge_agent.errors import UsageError
from edge_agent.home import Home
from edge_agent.json_types import JsonObject
from edge_agent.session.log import LOG_NAME, LogContent, in_use, read_log


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One kept session in a line."""

    id: str
    started: str
    agent: str
    model: str
    turns: int
    events: int
    state: str
    """`ended`, `running`, `crashed` (its process died), or `unreadable`."""


@dataclass(frozen=True, slots=True)
class CrashedSession:
    """A session that was found without an end and has been closed now."""

    id: str
    events: int
    damaged: int


def new_session_id(clock: Clock) -> str:
    """Sorts by start time and is unique: `20261201-093012-4fa1`."""
    return f"{clock.wall():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def session_folder(home: Home, session_id: str) -> Path:
    """The folder of a kept session. Raises UsageError for an id that names none."""
    folder = home.sessions / session_id
    if not session_id or folder.parent != home.sessions or not (folder / LOG_NAME).is_file():
        raise UsageError(
            "NOT_FOUND",
            f"there is no session {session_id!r}",
            "`styleeyes session list` shows the kept sessions",
        )
    return folder


def list_sessions(home: Home) -> tuple[SessionSummary, ...]:
    """All kept sessions, newest first."""
    logs = sorted(home.sessions.glob(f"*/{LOG_NAME}"), reverse=True) if home.sessions.is_dir() else []
    return tuple(_summary(path) for path in logs)


def _summary(path: Path) -> SessionSummary:
    session_id = path.parent.name
    try:
        content = read_log(path)
    except OSError:
        return SessionSummary(session_id, "", "", "", 0, 0, "unreadable")
    start: JsonObject = next((line for line in content.lines if line["type"] == "session.started"), {})
    return SessionSummary(
        id=session_id,
        started=str(start.get("wall", "")),
        agent=str(start.get("agentId", "")),
        model=str(start.get("model", "")),
        turns=sum(line["type"] == "turn.started" for line in content.lines),
        events=len(content.lines),
        state="running" if in_use(path) else "ended" if content.ended else "crashed",
    )


def close_crashed_sessions(home: Home, clock: Clock) -> tuple[CrashedSession, ...]:
    """Finds logs without an end that no process holds, ends each, and tells of them once.

    A half-written last line is closed off so that the log stays one JSON object a line.
    """
    found: list[CrashedSession] = []
    for path in sorted(home.sessions.glob(f"*/{LOG_NAME}")) if home.sessions.is_dir() else []:
        if in_use(path) or _has_end(path):
            continue
        try:
            content = read_log(path)
            if content.ended:
                continue
            _append_end(path, content, clock)
        except OSError:
            continue
        found.append(CrashedSession(path.parent.name, len(content.lines), content.damaged))
    return tuple(found)


def _has_end(path: Path) -> bool:
    """Looks at the last lines only: old sessions can be many and long."""
    try:
        with path.open("rb") as source:
            source.seek(max(0, path.stat().st_size - 4096))
            return b'"type":"session.ended"' in source.read()
    except OSError:
        return True


def _append_end(path: Path, content: LogContent, clock: Clock) -> None:
    last = content.lines[-1] if content.lines else {}
    line = {
        "type": "session.ended",
        "seq": int(str(last.get("seq", 0))) + 1,
        "span": next((x["span"] for x in content.lines if x["type"] == "session.started"), path.parent.name),
        "parent": None,
        "mono": last.get("mono", 0.0),
        "wall": iso_utc(clock.wall()),
        "reason": "its process ended without closing it; found at a later start",
    }
    with path.open("rb+") as log:
        log.seek(0, os.SEEK_END)
        if log.tell():
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(b"\n")
        log.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        log.flush()
        os.fsync(log.fileno())
