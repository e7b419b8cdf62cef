#!/usr/bin/env python3
"""Does the whole job over a recorded walk past garments: real sessions, real tools, real sandbox.

    .venv/bin/python scripts/eval_walk.py VIDEO TRUTH [--home DIR] [--agent ID] [--model M]

TRUTH is JSON: {"segments": [{"fromS", "toS", "styleId", "color"}]}. The agent's catalog must hold the
styles. At moments of each segment "What am I looking at?" is asked. Prints one JSON object:

  n             cases
  style         the answer names the right style first
  styleInShown  the right style is among the styles compared in the verdict that the answer rests on
  color         that verdict also says the right colour
  exactRight    the style was established, rightly
  wrongExact    a style or a colour of it was established, wrongly (a number, not a share)
  latencyMs     from the question to the whole answer
  ci95          95 % intervals of the shares (Wilson)
  cases         each case
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cv2  # noqa: E402

from device.clock import SystemClock  # noqa: E402
from device.errors import DeviceError  # noqa: E402
from edge_agent.cli.catalog_warm import warm_catalog  # noqa: E402
from edge_agent.errors import StyleEyesError, UsageError  # noqa: E402
from edge_agent.events import Event, ModelFinished, ToolFinished, ToolStarted  # noqa: E402
from edge_agent.home import AgentFolder, Home  # noqa: E402
from edge_agent.session.first_start import choose_agent, prepare_home  # noqa: E402
from edge_agent.session.session import Session, SessionOptions  # noqa: E402
from edge_agent.styleeyes.photo_list import CatalogPhoto, read_photo_list  # noqa: E402
from scripts.evaluation.contact_sheet import Row, write_sheet  # noqa: E402
from scripts.evaluation.shares import latency, shares  # noqa: E402

QUESTION = "What am I looking at?"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to ask, and what is in view then."""

    at: float
    style_id: str
    color: str


@dataclass(slots=True)
class Heard:
    """What one turn's events say: names of the products found, verdicts, and tokens used."""

    names: dict[str, str] = field(default_factory=dict)
    verdicts: list[Mapping[str, Any]] = field(default_factory=list)
    tokens: int = 0
    _tools: dict[str, str] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        match event.body:
            case ToolStarted(tool=tool):
                self._tools[event.span] = tool
            case ModelFinished(usage=usage):
                self.tokens += (usage.input or 0) + (usage.output or 0) + (usage.thinking or 0)
            case ToolFinished(ok=True, result=result) if isinstance(result, Mapping):
                called = self._tools.get(event.span)
                products = result.get("products")
                if called == "search_catalog" and isinstance(products, Sequence):
                    rows = [row for row in products if isinstance(row, Mapping)]
                    self.names |= {str(row["styleId"]): str(row["name"]) for row in rows}
                elif called == "match_garment":
                    self.verdicts.append(result)

    def named_in(self, answer: str) -> list[str]:
        """Style ids in the order in which the answer names them, by id or by name."""
        lower = answer.lower()
        places = {
            style: min(place for word in (style, name) if (place := lower.find(word.lower())) >= 0)
            for style, name in self.names.items()
            if style.lower() in lower or name.lower() in lower
        }
        return sorted(places, key=lambda style: places[style])

    def verdict_of(self, style: str | None) -> Mapping[str, Any]:
        """The last verdict that compared the style, else the last one."""
        of_style = [v for v in self.verdicts if style in [row["styleId"] for row in v["candidates"]]]
        return (of_style or self.verdicts or [{}])[-1]


def read_moments(truth: Path, moments: int) -> list[Moment]:
    """`moments` evenly spread in each segment; one is its middle. Raises UsageError for no such file."""
    try:
        segments = json.loads(truth.read_text("utf-8"))["segments"]
        return [
            Moment(
                s["fromS"] + (s["toS"] - s["fromS"]) * (i + 1) / (moments + 1),
                s["styleId"],
                s["color"].lower(),
            )
            for s in segments
            for i in range(moments)
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "BAD_TRUTH",
            f"The truth {truth} cannot be read ({error}).",
            'It needs {"segments": [{"fromS", "toS", "styleId", "color"}]}.',
        ) from error


async def ask_at(moment: Moment, options: SessionOptions, question: str) -> dict[str, Any]:
    """One session, one question; what was answered, beside what is true."""
    heard = Heard()
    session = Session(options, os.environ, SystemClock())
    session.spine.subscribe(heard)
    try:
        await session.open()
        await session.wait_for_frame()
        begun = time.perf_counter()
        turn = await session.ask(question)
        spent = 1000 * (time.perf_counter() - begun)
    finally:
        await session.aclose()
    named = heard.named_in(turn.answer)
    first = named[0] if named else None
    verdict = heard.verdict_of(first)
    established = bool(verdict.get("established")) and verdict.get("best") == first
    color = verdict.get("color") if verdict.get("best") == first else None
    right = first == moment.style_id
    return {
        "at": round(moment.at, 2),
        "styleId": moment.style_id,
        "color": moment.color,
        "named": first,
        "style": right,
        "styleInShown": moment.style_id in [row["styleId"] for row in verdict.get("candidates", ())],
        "saidColor": color,
        "established": established,
        "wrongExact": established and (not right or color not in (None, moment.color)),
        "ms": round(spent, 1),
        "tokens": heard.tokens,
        "answer": turn.answer if turn.ok or turn.error is None else turn.error.message,
    }


def report(cases: Sequence[Mapping[str, Any]], model: str | None) -> dict[str, Any]:
    counted = {
        "style": [case["style"] for case in cases],
        "styleInShown": [case["styleInShown"] for case in cases],
        "color": [case["style"] and case["saidColor"] == case["color"] for case in cases],
        "exactRight": [case["established"] and not case["wrongExact"] for case in cases],
    }
    return {
        "n": len(cases),
        **shares(counted),
        "wrongExact": sum(case["wrongExact"] for case in cases),
        "latencyMs": latency([case["ms"] for case in cases]),
        "tokens": sum(case["tokens"] for case in cases),
        "model": model or "default",
        "cases": list(cases),
    }


def sheet_row(case: Mapping[str, Any], video: Path, photos: Sequence[CatalogPhoto]) -> Row:
    """The frame, the right style, and the named one where it is another."""
    capture = cv2.VideoCapture(str(video))
    capture.set(cv2.CAP_PROP_POS_MSEC, 1000 * case["at"])
    found, frame = capture.read()
    capture.release()
    pictures = [cv2.imencode(".jpg", frame)[1].tobytes() if found else b""]
    for style, color in ((case["styleId"], case["color"]), (case["named"], None)):
        of_style = [photo for photo in photos if photo.style_id == style]
        of_color = [photo for photo in of_style if color in (None, photo.color)]
        if of_style and (style != case["styleId"] or color is not None):
            pictures.append((of_color or of_style)[0].path.read_bytes())
    outcome = "wrong" if not case["style"] else "right" if case["established"] else "similar"
    return Row(pictures, f"{case['styleId']} {case['color']} -> {case['named']} {case['ms']:.0f} ms", outcome)


async def evaluate(options: argparse.Namespace, home: Home, agent: AgentFolder) -> list[dict[str, Any]]:
    cases = []
    for moment in read_moments(options.truth, options.moments):
        session = SessionOptions(
            home=home, agent=agent, source=str(options.video), at=moment.at, model=options.model
        )
        case = await ask_at(moment, session, options.question)
        mark = "=" if case["style"] else "~" if case["styleInShown"] else "✗"
        exact = " exact" if case["established"] else ""
        print(f"{mark} {moment.at:6.2f} s {moment.style_id} → {case['named']}{exact}", file=sys.stderr)
        cases.append(case)
    return cases


def main() -> None:
    options = _options()
    home = Home.find(options.home)
    try:
        prepare_home(home, lambda words: print(words, file=sys.stderr))
        agent = choose_agent(home, options.agent)
        photos = read_photo_list(agent.catalog, agent.data / "photos")
        if options.warm:
            warm_catalog(home, agent.catalog, agent.data / "photos")
        cases = asyncio.run(evaluate(options, home, agent))
        if options.picture:
            write_sheet([sheet_row(case, options.video, photos) for case in cases], options.picture)
    except (StyleEyesError, DeviceError) as error:
        print(f"{error.message}\n  → {error.hint}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps(report(cases, options.model)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("video", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--home", help="as for `styleeyes`; its agent's catalog is asked")
    parser.add_argument("--agent", help="as for `styleeyes`")
    parser.add_argument("--model", help="any model; as for `styleeyes ask`")
    parser.add_argument(
        "--moments", type=int, default=1, help="moments asked at in each segment; 1: its middle"
    )
    parser.add_argument("--question", default=QUESTION)
    parser.add_argument(
        "--warm", action="store_true", help="look at all catalog photos before, as `styleeyes catalog warm`"
    )
    parser.add_argument("--picture", type=Path, metavar="PNG", help="a sheet of all cases to look at")
    return parser.parse_args()


if __name__ == "__main__":
    main()
