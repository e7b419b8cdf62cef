"""A validation that may take long, in a process of its own: it neither stalls the host nor outlives it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

from edge_agent.engine.broker.schema_worker import Fault

LONGEST_S = 5.0
_WORKER = Path(__file__).with_name("schema_worker.py")


class UndecidedError(Exception):
    """The process was killed for its time, or ran out of memory."""


async def first_fault(schema_json: str, value_json: str) -> Fault | None:
    """One fault of the value, or None where it fits. Raises UndecidedError. A cancel kills the process."""
    child = _start()
    try:
        answer = await asyncio.to_thread(_ask, child, f"{schema_json}\n{value_json}\n".encode("ascii"))
    finally:
        child.kill()
    try:
        told = json.loads(answer)
    except ValueError:
        raise UndecidedError from None
    if told is None:
        return None
    path, message, unknown = cast("Fault", told)
    return path, message, unknown


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", str(_WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
    )


def _ask(child: subprocess.Popen[bytes], question: bytes) -> bytes:
    with child:
        try:
            return child.communicate(question, LONGEST_S)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            return b""
