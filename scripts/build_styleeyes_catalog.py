#!/usr/bin/env python3
"""`scripts/build_styleeyes_catalog.py DATA OUT`: the same build as `styleeyes catalog build DATA OUT`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = _ROOT / ".venv" / "bin" / "python"
if _PYTHON.exists() and Path(sys.prefix) != _ROOT / ".venv":
    # Started by the machine's own Python, which lacks the dependencies.
    os.execv(_PYTHON, [str(_PYTHON), __file__, *sys.argv[1:]])
sys.path.insert(0, str(_ROOT))

from edge_agent.cli.main import main  # noqa: E402 - only importable from here on

if __name__ == "__main__":
    sys.argv[1:1] = ["catalog", "build"]
    main()
