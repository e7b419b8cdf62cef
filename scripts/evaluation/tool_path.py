"""Cases answered as in a real session: a catalog of the candidates, the picture as the camera, and
`match_garment` in the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from device.clock import SystemClock
from device.sources import parse_source
from edge_agent.cli.catalog import ensure_agent
from edge_agent.errors import StyleEyesError
from edge_agent.events import Event, ModelFinished
from edge_agent.home import AgentFolder, Home
from edge_agent.session.session import Session, SessionOptions
from edge_agent.styleeyes.catalog.build import build_catalog
from scripts.evaluation.match_cases import MatchAnswer, MatchCase

AGENT = "cases"
_NAMES = {"upper": "Top", "lower": "Trousers", "full": "Dress", "shoes": "Shoes"}
_FRAME_WITHIN_S = 20.0


class ToolPathAnswerer:
    """One session in which the camera is pointed at one case's picture after another.

    `home` gets an agent whose catalog holds every candidate of `cases` as a style of its own. Raises
    what building a catalog and opening a session raise.
    """

    def __init__(self, home: Home, cases: Sequence[MatchCase], model: str) -> None:
        self._agent = _make_agent(home, cases)
        self._styles = {case.name: _style_ids(number, case) for number, case in enumerate(cases)}
        self._tokens = 0
        options = SessionOptions(
            home=home, agent=self._agent, source=str(cases[0].query), model=model, look_ahead=False
        )
        self._session = Session(options, os.environ, SystemClock())
        self._session.spine.subscribe(self._count)
        self.model = model

    async def __aenter__(self) -> ToolPathAnswerer:
        try:
            await self._session.open()
        except BaseException:
            await self._session.aclose()
            raise
        self.model = f"{self._session.facts.model} (real tool path, {self._session.facts.sandbox})"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.aclose()

    async def answer(self, case: MatchCase) -> MatchAnswer:
        """Raises StyleEyesError where the tool fails."""
        camera = self._session.camera
        await asyncio.to_thread(camera.open, parse_source(str(case.query)))
        await asyncio.to_thread(camera.wait_fresh, _FRAME_WITHIN_S)
        styles = self._styles[case.name]
        self._tokens = 0
        begun = time.perf_counter()
        outcome = await self._session.tools.call(
            "match_garment", {"styleIds": list(styles)}, call_id=case.name, parent=self._session.span
        )
        spent = 1000 * (time.perf_counter() - begun)
        if outcome.error is not None:
            error = outcome.error
            raise StyleEyesError(error.code, f"{case.name}: {error.message}", error.hint)
        assert isinstance(outcome.value, Mapping)
        return _read(outcome.value, styles, spent, self._tokens)

    def _count(self, event: Event) -> None:
        if isinstance(event.body, ModelFinished):
            usage = event.body.usage
            self._tokens += (usage.input or 0) + (usage.output or 0) + (usage.thinking or 0)


def _read(verdict: Mapping[str, Any], styles: Sequence[str], ms: float, tokens: int) -> MatchAnswer:
    likely = {row["styleId"]: row["probability"] or 0.0 for row in verdict["candidates"]}
    best = styles.index(verdict["best"]) if verdict["best"] in styles else None
    probabilities = tuple(likely.get(style, 0.0) for style in styles)
    first = best if best is not None else max(range(len(styles)), key=lambda i: probabilities[i])
    return MatchAnswer(first, best, bool(verdict["established"]), probabilities, ms, tokens)


def _style_ids(number: int, case: MatchCase) -> tuple[str, ...]:
    return tuple(f"K{number:04}-{place}" for place in range(1, len(case.candidates) + 1))


def _make_agent(home: Home, cases: Sequence[MatchCase]) -> AgentFolder:
    agent = home.agent(AGENT)
    notes, photos = agent.data / "products", agent.data / "photos"
    for folder in (notes, photos, agent.tools, agent.databases):
        folder.mkdir(parents=True)
    for number, case in enumerate(cases):
        for style, candidate in zip(_style_ids(number, case), case.candidates, strict=True):
            file = f"{style.lower()}{candidate.suffix}"
            shutil.copyfile(candidate, photos / file)
            # A JSON object is YAML, and needs no thought about quoting.
            fields = {
                "style_id": style,
                "name": _NAMES.get(case.category, "Garment"),
                "photos": [{"file": file}],
            }
            (notes / f"{style}.md").write_text(f"---\n{json.dumps(fields)}\n---\n", "utf-8")
    build_catalog(agent.data, agent.catalog)
    ensure_agent(agent.data)
    return agent
