"""Faults of our own: one sentence on the screen, the trace in the log beside it."""

from __future__ import annotations

import os
import traceback

from edge_agent.errors import StyleEyesError


def fault_of_ours(error: Exception) -> StyleEyesError:
    """What a person is told of an exception that nobody expected."""
    return StyleEyesError(
        "INTERNAL",
        f"a fault of StyleEyes itself: {type(error).__name__}: {error}",
        "please report it with the last lines of libraries.log in HOME/logs",
    )


def print_fault(error: BaseException) -> None:
    """The trace, without any variable's value, on descriptor 2: while the screen is up, its log."""
    os.write(2, "".join(traceback.format_exception(error)).encode(errors="replace"))
