#!/usr/bin/env python3
"""Measures garment matching on cases of "picture + up to four candidates → the same one, or none".

    .venv/bin/python scripts/eval_match.py --cases DIR [--model M] [--direct] [--picture PNG] [--details]

DIR holds `manifest.json` and the pictures it names. Each case goes the way of a real session: a
catalog of the candidates, the picture as the camera, `match_garment` in the sandbox. With --direct the
offline model's eyes are asked at once, without tools, for quick runs. Prints one JSON object: `n`,
`top1` (over the cases that have an answer), `withNone` (over all), `noneMatched`, `wrongExact`,
`exactRight`, 95 % intervals (`ci95`), `byStratum`, `latencyMs`, `tokens`, `model`. No photo was looked
at before; in a session one that recurs in a later case is known by then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from device.errors import DeviceError  # noqa: E402
from edge_agent.errors import StyleEyesError, UsageError  # noqa: E402
from edge_agent.home import Home  # noqa: E402
from edge_agent.styleeyes.vision.garment import GarmentVision  # noqa: E402
from edge_agent.styleeyes.vision.regions import REGIONS, Region  # noqa: E402
from scripts.evaluation.contact_sheet import Row, write_sheet  # noqa: E402
from scripts.evaluation.match_cases import MatchAnswer, MatchCase, read_cases  # noqa: E402
from scripts.evaluation.shares import latency, shares  # noqa: E402
from scripts.evaluation.tool_path import ToolPathAnswerer  # noqa: E402


class Answerer(Protocol):
    """Whatever answers a case: the vision room itself, or the whole tool path."""

    model: str

    async def answer(self, case: MatchCase) -> MatchAnswer: ...


class VisionAnswerer:
    """Asks the offline model's eyes directly."""

    def __init__(self, home: Path) -> None:
        self._vision = GarmentVision.load(
            home / "vision", lambda _share, words: print(words, file=sys.stderr)
        )
        self.model = f"offline (direct, {self._vision.level} vision)"

    async def answer(self, case: MatchCase) -> MatchAnswer:
        query = case.query.read_bytes()
        photos = [[photo.read_bytes()] for photo in case.candidates]
        self._vision.forget()
        begun = time.perf_counter()
        seen = self._vision.compare(query, photos, region_of(case.category))
        spent = 1000 * (time.perf_counter() - begun)
        order = sorted(range(len(seen.probabilities)), key=lambda i: -seen.candidates[i].score)
        return MatchAnswer(order[0] if order else None, seen.best, seen.confident, seen.probabilities, spent)


def region_of(category: str) -> Region | None:
    return next((region for region in REGIONS if region == category), None)


def counted(cases: Sequence[MatchCase], answers: Sequence[MatchAnswer]) -> dict[str, object]:
    pairs = list(zip(cases, answers, strict=True))
    return {"n": len(pairs)} | shares(
        {
            "top1": [a.first == c.answer for c, a in pairs if c.answer is not None],
            "withNone": [a.best == c.answer for c, a in pairs],
            "noneMatched": [a.best is not None for c, a in pairs if c.answer is None],
            "wrongExact": [a.exact and a.best != c.answer for c, a in pairs],
            "exactRight": [a.exact and a.best == c.answer for c, a in pairs if c.answer is not None],
        }
    )


async def answered(cases: Sequence[MatchCase], answerer: Answerer) -> list[MatchAnswer]:
    answers = []
    for number, case in enumerate(cases, 1):
        answers.append(await answerer.answer(case))
        mark = "=" if answers[-1].best == case.answer else "✗"
        print(f"{mark} {number} of {len(cases)}: {case.name}", file=sys.stderr)
    return answers


def report(
    cases: Sequence[MatchCase], answers: Sequence[MatchAnswer], model: str, *, details: bool
) -> dict[str, object]:
    result = counted(cases, answers)
    result["byStratum"] = {
        stratum: counted(
            [c for c in cases if c.stratum == stratum],
            [a for c, a in zip(cases, answers, strict=True) if c.stratum == stratum],
        )
        for stratum in sorted({case.stratum for case in cases})
    }
    result["latencyMs"] = latency([answer.ms for answer in answers])
    result["tokens"] = sum(answer.tokens for answer in answers)
    result["model"] = model
    if details:
        result["cases"] = [
            {
                "id": c.name,
                "answer": c.answer,
                "best": a.best,
                "exact": a.exact,
                "probabilities": a.probabilities,
            }
            for c, a in zip(cases, answers, strict=True)
        ]
    return result


def sheet_row(case: MatchCase, answer: MatchAnswer) -> Row:
    """The picture, the right candidate, and the one named instead."""
    shown = [
        case.query,
        *(case.candidates[i] for i in dict.fromkeys((case.answer, answer.best)) if i is not None),
    ]
    outcome = "wrong" if answer.best != case.answer else "right" if answer.exact else "similar"
    said = "none" if answer.best is None else f"{answer.best}{' exact' if answer.exact else ''}"
    return Row([path.read_bytes() for path in shown], f"{case.name}: {case.answer} -> {said}", outcome)


async def evaluate(options: argparse.Namespace) -> dict[str, object]:
    cases = read_cases(options.cases)
    if not cases:
        raise UsageError("BAD_CASES", f"There is no case in {options.cases}.")
    with tempfile.TemporaryDirectory(prefix="styleeyes-eval-") as scratch:
        answers, model = await _all_answers(cases, options, Path(scratch))
    if options.picture:
        pairs = zip(cases, answers, strict=True)
        write_sheet([sheet_row(case, answer) for case, answer in pairs], options.picture)
    return report(cases, answers, model, details=options.details)


async def _all_answers(
    cases: Sequence[MatchCase], options: argparse.Namespace, scratch: Path
) -> tuple[list[MatchAnswer], str]:
    if options.direct:
        if options.model not in (None, "offline"):
            raise UsageError("BAD_MODEL", f"{options.model} has no eyes here.", "Leave out --direct.")
        eyes = VisionAnswerer(scratch)
        return await answered(cases, eyes), eyes.model
    async with ToolPathAnswerer(Home(scratch), cases, options.model or "offline") as answerer:
        return await answered(cases, answerer), answerer.model


def main() -> None:
    try:
        result: dict[str, Any] = asyncio.run(evaluate(_options()))
    except (StyleEyesError, DeviceError) as error:
        print(f"{error.message}\n  → {error.hint}" if error.hint else error.message, file=sys.stderr)
        sys.exit(2)
    print(json.dumps(result))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--model", help="any model, as for `styleeyes ask`; offline unless given")
    parser.add_argument("--direct", action="store_true", help="the offline model's eyes alone, no tools")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="a sheet of all cases to look at")
    parser.add_argument("--details", action="store_true", help="every case's answer too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
