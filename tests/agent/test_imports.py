"""What a start pays for: nothing heavy comes in before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ("google.genai", "cv2", "onnxruntime", "numpy", "httpx", "pydantic")


def test_loop_and_registry_import_no_sdk_and_no_vision() -> None:
    code = (
        "import json, sys\n"
        "import edge_agent.agent.loop, edge_agent.agent.tool_models, edge_agent.agent.models.registry\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == []
