#!/usr/bin/env python3
"""Measures garment matching on cases of "query photo + up to four candidates → the same one, or none".

    .venv/bin/python scripts/eval_match.py --cases DIR [--model offline] [--home DIR] [--details]

DIR holds `manifest.json` and the pictures it names. Prints one JSON object: `n`, `top1` (over the
cases that have an answer), `withNone` (over all), `wrongExact`, `byStratum`, `latencyMs`, `model`, and
95 % intervals. Each case is answered with nothing cached.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from edge_agent.errors import StyleEyesError  # noqa: E402
from edge_agent.styleeyes.vision.garment import GarmentVision  # noqa: E402
from edge_agent.styleeyes.vision.regions import REGIONS, Region  # noqa: E402


@dataclass(frozen=True, slots=True)
class MatchCase:
    """One case: `category` is what the candidates' catalog says they are."""

    name: str
    stratum: str
    category: str
    query: Path
    candidates: tuple[Path, ...]
    answer: int | None


@dataclass(frozen=True, slots=True)
class MatchAnswer:
    """`first` is the likeliest candidate even where the answer is none."""

    first: int | None
    best: int | None
    exact: bool
    probabilities: tuple[float, ...]


class Answerer(Protocol):
    """Whatever answers a case: the vision room itself, or the whole tool path."""

    model: str

    def answer(self, case: MatchCase) -> MatchAnswer: ...


class VisionAnswerer:
    """Asks the offline model's eyes directly."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "vision"
        self._vision = GarmentVision.load(self._folder, lambda _share, words: print(words, file=sys.stderr))
        self.model = f"offline ({self._vision.level} vision)"

    def answer(self, case: MatchCase) -> MatchAnswer:
        self._vision.forget()
        seen = self._vision.compare(
            case.query.read_bytes(),
            [[photo.read_bytes()] for photo in case.candidates],
            region_of(case.category),
        )
        order = sorted(range(len(seen.probabilities)), key=lambda i: -seen.candidates[i].score)
        return MatchAnswer(order[0] if order else None, seen.best, seen.confident, seen.probabilities)


def region_of(category: str) -> Region | None:
    return next((region for region in REGIONS if region == category), None)


def read_cases(folder: Path) -> list[MatchCase]:
    """Raises StyleEyesError("BAD_CASES") when the manifest cannot be read."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        return [
            MatchCase(
                name=str(case["id"]),
                stratum=str(case.get("stratum", "all")),
                category=str(case.get("category", "")),
                query=folder / case["query"]["file"],
                candidates=tuple(folder / candidate["file"] for candidate in case["candidates"]),
                answer=case["answer"],
            )
            for case in manifest["cases"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StyleEyesError(
            "BAD_CASES",
            f"The cases in {folder} cannot be read.",
            "It needs a manifest.json as in shared/data/garments.",
        ) from error


def share(hits: Sequence[bool]) -> tuple[float | None, tuple[float, float]]:
    """A share and its 95 % interval (Wilson 1927)."""
    count = len(hits)
    if count == 0:
        return None, (0.0, 1.0)
    z, part = 1.96, sum(hits) / count
    middle = (part + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (part * (1 - part) / count + z * z / (4 * count * count)) ** 0.5
    return round(part, 4), (round(middle - half, 3), round(middle + half, 3))


def figures(cases: Sequence[MatchCase], answers: Sequence[MatchAnswer]) -> dict[str, object]:
    pairs = list(zip(cases, answers, strict=True))
    counted = {
        "top1": [a.first == c.answer for c, a in pairs if c.answer is not None],
        "withNone": [a.best == c.answer for c, a in pairs],
        "noneMatched": [a.best is not None for c, a in pairs if c.answer is None],
        "wrongExact": [a.exact and a.best != c.answer for c, a in pairs],
        "exactRight": [a.exact and a.best == c.answer for c, a in pairs if c.answer is not None],
    }
    result: dict[str, object] = {"n": len(pairs)}
    intervals = {}
    for name, hits in counted.items():
        result[name], intervals[name] = share(hits)
    return result | {"ci95": intervals}


def main() -> None:
    options = _options()
    try:
        cases = read_cases(options.cases)
        if options.model != "offline":
            raise StyleEyesError("BAD_MODEL", f"Unknown model {options.model!r}.", "Use --model offline.")
        with tempfile.TemporaryDirectory(prefix="styleeyes-eval-") as scratch:
            report = evaluate(cases, VisionAnswerer(options.home or Path(scratch)), details=options.details)
    except StyleEyesError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(json.dumps(report))


def evaluate(cases: Sequence[MatchCase], answerer: Answerer, *, details: bool) -> dict[str, object]:
    answers, times = [], []
    for case in cases:
        begun = time.perf_counter()
        answers.append(answerer.answer(case))
        times.append(1000 * (time.perf_counter() - begun))
    ordered = sorted(times)
    report = figures(cases, answers)
    report["byStratum"] = {
        stratum: figures(
            [c for c in cases if c.stratum == stratum],
            [a for c, a in zip(cases, answers, strict=True) if c.stratum == stratum],
        )
        for stratum in sorted({case.stratum for case in cases})
    }
    report["latencyMs"] = (
        {
            f"p{part}": round(ordered[min(len(ordered) - 1, len(ordered) * part // 100)], 1)
            for part in (50, 90)
        }
        if ordered
        else {"p50": None, "p90": None}
    )
    report["model"] = answerer.model
    if details:
        report["cases"] = [
            {
                "id": c.name,
                "answer": c.answer,
                "best": a.best,
                "exact": a.exact,
                "probabilities": a.probabilities,
            }
            for c, a in zip(cases, answers, strict=True)
        ]
    return report


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--model", default="offline")
    parser.add_argument(
        "--home", type=Path, help="where vision weights are prepared; a temporary folder by default"
    )
    parser.add_argument("--details", action="store_true", help="every case's answer too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
