#!/usr/bin/env python3
"""Measures what StyleEyes promises and prints one JSON object.

    .venv/bin/python scripts/bench.py                 # every area
    .venv/bin/python scripts/bench.py engine sql      # some of them

Keys are `area.name`; each holds {"value", "unit", "aim", "ok", "peer"?}. What could not be measured
here has "value": null and a "reason". Compared figures come from one run on one machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

AREAS = ("device", "engine", "sql", "catalog", "vision", "agent", "tui", "app")
"""Each is a module of `scripts/benchmarks` with a function `measure`."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    areas = parser.parse_args().areas or list(AREAS)
    unknown = sorted(set(areas) - set(AREAS))
    if unknown:
        parser.error(f"unknown area {', '.join(unknown)}: use {', '.join(AREAS)}")
    figures: dict[str, object] = {}
    for area in areas:
        print(f"measuring {area} …", file=sys.stderr, flush=True)
        figures |= importlib.import_module(f"benchmarks.{area}").measure()
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
