"""The offline model as a ChatModel: looks, searches, compares, and says honestly what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from device.clock import Clock
from edge_agent.agent.models.offline import answers
from edge_agent.agent.models.offline.candidates import (
    ENOUGH_FOUND,
    declared_only,
    next_groups,
    ranked,
    search_inputs,
)
from edge_agent.agent.models.offline.sight import Seen, Sight
from edge_agent.agent.models.offline.turn_so_far import TurnSoFar, Verdict, read_turn
from edge_agent.agent.models.offline.verdict import BEST_AT_LEAST, read_match_request, verdict_of
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolDeclaration,
    WaitNotice,
)
from edge_agent.agent.models.structured import parse_json_answer
from edge_agent.agent.prompts import MATCH_TOOL, SEARCH_TOOL
from edge_agent.agent.question import read_question
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.events import TokenUsage
from edge_agent.json_types import JsonObject

TIME_FOR_ANOTHER_GROUP_S = 5.0
"""Left before the turn's deadline, else no further comparing is begun."""
PATIENCE_S = 6.0
"""A wearer waits no longer than this for further groups; a run-off of what was found still comes."""
CLEAR_OF_RUNNER_UP = 0.2
"""How much likelier than any other compared style one must be to be called exact."""
NEAR_MISS_AT_LEAST = 0.2
"""A style at least this likely is worth naming as similar though it was not called the best."""

_ASKS_PRICE = re.compile(r"\b(how much|price|cost|expensive|cheap)", re.IGNORECASE)
_ASKS_STOCK = re.compile(
    r"\b(in stock|available|availability|left in|my size|which sizes?|have it in)\b", re.IGNORECASE
)
_ASKS_TAG = re.compile(r"\b(tag|label|barcode|read)\b", re.IGNORECASE)

Step = str | list[ToolCall]
"""An answer, or calls to make."""
_Result = TypeVar("_Result")


class OfflineModel:
    """Local vision that acts through the declared tools alone. Needs no network and no key.

    `sight` is loaded when first needed, in a thread, and stays loaded until `aclose`.
    """

    def __init__(self, load_sight: Callable[[], Sight], clock: Clock) -> None:
        self._load_sight = load_sight
        self._clock = clock
        self._sight: Sight | None = None
        # One CPU-bound job at a time: two would only slow one another down.
        self._eyes = asyncio.Lock()
        self._last_seen: tuple[tuple[bytes, str], Seen] | None = None
        self._seen_at = 0.0

    @property
    def id(self) -> str:
        return "offline"

    async def prepare(self) -> None:
        """Loads the vision ahead of the first question. Raises what loading raises."""
        await self._look(lambda sight: None)

    async def look_ahead(self, photos: Sequence[Path], on_progress: Callable[[int], None]) -> None:
        """Looks at catalog photos one by one, so that comparing takes no time later; unreadable files
        are passed over. `on_progress` gets the count so far. A question waits for one photo at most;
        cancelling ends it between two."""
        for count, path in enumerate(photos, 1):
            await self._look(functools.partial(_look_at, path))
            on_progress(count)

    async def aclose(self) -> None:
        """Lets go of the loaded vision and of the last frame's description; safe to call twice."""
        async with self._eyes:
            sight, self._sight, self._last_seen = self._sight, None, None
        if sight is not None:
            await asyncio.to_thread(sight.close)

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        """One step: tool calls, or the answer."""
        step = await self._step(read_turn(request.messages), request)
        if isinstance(step, str):
            yield TextDelta(step)
            message = AssistantMessage(text=step)
        else:
            message = AssistantMessage(text="", tool_calls=step)
        yield Completed(message=message, finish_reason="STOP")

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        """The verdict of `match_garment`; MODEL_UNAVAILABLE for any other request."""
        match = read_match_request(request)
        schema = request.schema or {}
        candidates = list(match.candidates.values())
        comparison = await self._look(lambda sight: sight.compare(match.frame, candidates))
        text = json.dumps(verdict_of(comparison, match, schema))
        return GenerateReply(
            text=text,
            model=self.id,
            finish_reason="STOP",
            usage=TokenUsage(),
            json=parse_json_answer(text, schema, cut_off=False),
        )

    async def _step(self, turn: TurnSoFar, request: ModelRequest) -> Step:
        tools = {} if request.must_answer else {tool.name: tool for tool in request.tools}
        question = read_question(turn.asked.question or turn.asked.text)
        if _ASKS_STOCK.search(turn.asked.question) and question.kind != "search":
            return answers.cannot_know_stock()
        match question.kind:
            case "talk":
                return answers.capabilities()
            case "follow_up":
                return answers.cannot_follow_up()
            case "other":
                return answers.cannot_talk()
            case "search":
                return self._search_by_words(question.terms, turn, tools)
            case _:
                return await self._look_and_find(turn, request, tools)

    def _search_by_words(self, terms: str, turn: TurnSoFar, tools: dict[str, ToolDeclaration]) -> Step:
        if SEARCH_TOOL in turn.errors:
            return answers.marked(f"The search did not work: {turn.errors[SEARCH_TOOL].rstrip('.')}.")
        if turn.searches:
            return answers.searched(terms, list(turn.products.values()))
        if SEARCH_TOOL not in tools:
            return answers.marked("I cannot search: the tool search_catalog is not enabled for this agent.")
        return [
            self._call(turn, SEARCH_TOOL, declared_only(tools[SEARCH_TOOL], {"query": terms, "limit": 12}))
        ]

    async def _look_and_find(
        self, turn: TurnSoFar, request: ModelRequest, tools: dict[str, ToolDeclaration]
    ) -> Step:
        asked = turn.asked
        if not asked.images:
            return answers.no_frame(asked.camera)
        if _ASKS_TAG.search(asked.question):
            return answers.cannot_read_tags()
        seen = await self._seen(asked.images[0].data, asked.question)
        if seen.problem:
            return answers.cannot_judge(asked.frame, seen.problem)
        if not seen.found:
            return answers.no_garment(asked.frame)
        return (
            self._search(turn, seen, tools)
            or self._compare(turn, seen, request, tools)
            or self._conclude(turn, seen)
        )

    def _search(self, turn: TurnSoFar, seen: Seen, tools: dict[str, ToolDeclaration]) -> Step | None:
        """A further search, where one is due and no comparing has begun."""
        if SEARCH_TOOL not in tools or SEARCH_TOOL in turn.errors or turn.compared:
            return None
        if turn.searches and len(turn.products) >= ENOUGH_FOUND:
            return None
        wanted = search_inputs(seen, tools[SEARCH_TOOL], turn.searches)
        return [self._call(turn, SEARCH_TOOL, one, place) for place, one in enumerate(wanted)] or None

    def _compare(
        self, turn: TurnSoFar, seen: Seen, request: ModelRequest, tools: dict[str, ToolDeclaration]
    ) -> Step | None:
        """The next group to compare, while nothing is established and there is time."""
        if MATCH_TOOL not in tools or MATCH_TOOL in turn.errors or self._established(turn) is not None:
            return None
        if request.deadline is not None and turn.compared:
            left = request.deadline - self._clock.monotonic()
            if left < TIME_FOR_ANOTHER_GROUP_S:
                return None
        color = seen.colors[0] if seen.colors else None
        groups = next_groups(turn, seen, fresh=self._clock.monotonic() - self._seen_at < PATIENCE_S)
        wanted = [{"styleIds": list(group), "color": color} for group in groups]
        return [
            self._call(turn, MATCH_TOOL, declared_only(tools[MATCH_TOOL], one), place)
            for place, one in enumerate(wanted)
        ] or None

    def _conclude(self, turn: TurnSoFar, seen: Seen) -> str:
        frame = turn.asked.frame
        price = _ASKS_PRICE.search(turn.asked.question) is not None
        compared = len(turn.tried)
        if turn.verdicts:
            settled = self._established(turn)
            if settled is not None and settled.best in turn.products:
                return answers.exact(frame, seen, turn.products[settled.best], settled, price=price)
            leading = _leading(turn.verdicts)
            nearest = _nearest(leading)
            known = [turn.products[style] for style in nearest if style in turn.products]
            if known:
                return answers.similar(
                    frame, seen, known, compared=compared, reason=leading.reason, price=price
                )
            return answers.none_fits(frame, seen, compared=compared, reason=leading.reason)
        return answers.only_described(frame, seen, self._why_not_compared(turn, seen))

    @staticmethod
    def _why_not_compared(turn: TurnSoFar, seen: Seen) -> str:
        if SEARCH_TOOL in turn.errors:
            return f"The search did not work: {turn.errors[SEARCH_TOOL].rstrip('.')}."
        if not turn.searches:
            return "Which style it is I cannot say: the tool search_catalog is not enabled for this agent."
        if not turn.products:
            return "The catalog has nothing like it with photos."
        names = ", ".join(turn.products[style].name for style in ranked(turn.products.values(), seen)[:3])
        if MATCH_TOOL in turn.errors:
            why = f"comparing the photos did not work: {turn.errors[MATCH_TOOL].rstrip('.')}"
        else:
            why = "the tool match_garment is not enabled for this agent"
        return f"By its words it could be {names}, but {why}. {answers.SHOW_THE_TAG}"

    @staticmethod
    def _established(turn: TurnSoFar) -> Verdict | None:
        """The verdict that settles the exact style, if one does and no other style comes near."""
        for verdict in reversed(turn.verdicts):
            if verdict.best is None or verdict.ask_to_see_tag or verdict.confidence < BEST_AT_LEAST:
                continue
            # A run-off has compared the leaders directly, so only its own figures count.
            rated = [verdict] if verdict.run_off else turn.verdicts
            rivals = [p for v in rated for style, p in v.probabilities.items() if style != verdict.best]
            if verdict.confidence - max(rivals, default=0.0) >= CLEAR_OF_RUNNER_UP:
                return verdict
        return None

    @staticmethod
    def _call(turn: TurnSoFar, tool: str, arguments: JsonObject, place: int = 0) -> ToolCall:
        number = turn.searches + len(turn.compared) + place + 1
        return ToolCall(id=f"offline-{number}", name=tool, arguments=arguments)

    async def _seen(self, frame: bytes, question: str) -> Seen:
        """The frame's description; every step of a turn asks for the same one."""
        wanted = (frame, question)
        if self._last_seen is None or self._last_seen[0] != wanted:
            self._seen_at = self._clock.monotonic()
            self._last_seen = (wanted, await self._look(lambda sight: sight.describe(frame, question)))
        return self._last_seen[1]

    async def _look(self, use: Callable[[Sight], _Result]) -> _Result:
        """`use` with the loaded sight, in a worker thread."""
        async with self._eyes:
            if self._sight is None:
                self._sight = await asyncio.to_thread(self._load_sight)
            sight = self._sight
            return await asyncio.to_thread(use, sight)


def _look_at(path: Path, sight: Sight) -> None:
    with contextlib.suppress(OSError):
        sight.look_ahead(path.read_bytes())


def _leading(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that the answer rests on: a run-off if there was one, else the surest."""
    return max(
        verdicts, key=lambda v: (v.run_off, v.best is not None, max(v.probabilities.values(), default=0.0))
    )


def _nearest(verdict: Verdict) -> list[str]:
    """The likeliest styles worth naming: the best, and up to two that come near it."""
    rated = sorted(verdict.probabilities.items(), key=lambda pair: -pair[1])
    if not rated or (verdict.best is None and rated[0][1] < NEAR_MISS_AT_LEAST):
        return []
    first = verdict.best or rated[0][0]
    top = verdict.probabilities.get(first, verdict.confidence)
    near = [style for style, p in rated if style != first and p >= 0.35 * top]
    return [first, *near[:2]]
