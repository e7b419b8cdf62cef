"""The offline model as a ChatModel: looks, searches, compares, and says honestly what came of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from device.clock import Clock
from edge_agent.agent.models.offline import answers
from edge_agent.agent.models.offline.ahead import PhotosAhead
from edge_agent.agent.models.offline.candidates import (
    ENOUGH_FOUND,
    color_words,
    declared_only,
    next_groups,
    ranked,
    search_inputs,
)
from edge_agent.agent.models.offline.sight import Alike, Seen, Sight
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
from edge_agent.styleeyes.photo_list import CatalogPhoto

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


@dataclass(frozen=True, slots=True)
class _Look:
    """What one question's frame shows, and which catalog photos known by then are most like it."""

    seen: Seen
    alike: tuple[Alike, ...]
    began: float
    """Monotonic seconds."""


class OfflineModel:
    """Local vision that acts through the declared tools alone. Needs no network and no key.

    `sight` is loaded when first needed, in a thread, and stays loaded until `aclose`.
    """

    def __init__(self, load_sight: Callable[[], Sight], clock: Clock) -> None:
        self._load_sight = load_sight
        self._clock = clock
        self._sight: Sight | None = None
        # One question's job at a time: two would only slow one another down.
        self._eyes = asyncio.Lock()
        self._last: tuple[tuple[bytes, str], _Look] | None = None
        self._ahead = PhotosAhead(())

    @property
    def id(self) -> str:
        return "offline"

    async def prepare(self) -> None:
        """Loads the vision ahead of the first question. Raises what loading raises."""
        await self._loaded()

    async def look_ahead(
        self, photos: Sequence[CatalogPhoto], between: Callable[[int], Awaitable[None]]
    ) -> None:
        """Looks at catalog photos one by one, so that a question finds its candidates by their photos
        and comparing takes no time. See `PhotosAhead.look`. No question waits for it; only `aclose`
        waits for the one photo in hand."""
        sight = await self._loaded()
        self._ahead = PhotosAhead(photos)
        await self._ahead.look(sight.look_ahead, between)

    async def aclose(self) -> None:
        """Lets go of the loaded vision and of the last frame's description; safe to call twice. Looking
        ahead must have been ended before."""
        async with self._eyes:
            sight, self._sight, self._last = self._sight, None, None
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
        look = await self._looked(asked.images[0].data, asked.question)
        seen = look.seen
        if seen.problem:
            return answers.cannot_judge(asked.frame, seen.problem)
        if not seen.found:
            return answers.no_garment(asked.frame)
        return (
            self._search(turn, look, tools)
            or self._compare(turn, look, request, tools)
            or self._conclude(turn, look)
        )

    def _search(self, turn: TurnSoFar, look: _Look, tools: dict[str, ToolDeclaration]) -> Step | None:
        """A further search, where one is due and no comparing has begun."""
        self._ahead.prefer(turn.products)
        if SEARCH_TOOL not in tools or SEARCH_TOOL in turn.errors or turn.compared:
            return None
        if turn.searches and len(turn.products) >= ENOUGH_FOUND:
            return None
        wanted = search_inputs(look.seen, tools[SEARCH_TOOL], turn.searches, look.alike)
        return [self._call(turn, SEARCH_TOOL, one, place) for place, one in enumerate(wanted)] or None

    def _compare(
        self, turn: TurnSoFar, look: _Look, request: ModelRequest, tools: dict[str, ToolDeclaration]
    ) -> Step | None:
        """The next group to compare, while nothing is established and there is time."""
        if MATCH_TOOL not in tools or MATCH_TOOL in turn.errors or self._established(turn) is not None:
            return None
        if request.deadline is not None and turn.compared:
            left = request.deadline - self._clock.monotonic()
            if left < TIME_FOR_ANOTHER_GROUP_S:
                return None
        fresh = self._clock.monotonic() - look.began < PATIENCE_S
        groups = next_groups(turn, look.seen, look.alike, fresh=fresh)
        wanted = [
            {"styleIds": list(group), "color": color_words(group, look.seen, look.alike)} for group in groups
        ]
        return [
            self._call(turn, MATCH_TOOL, declared_only(tools[MATCH_TOOL], one), place)
            for place, one in enumerate(wanted)
        ] or None

    def _conclude(self, turn: TurnSoFar, look: _Look) -> str:
        frame, seen = turn.asked.frame, look.seen
        price = _ASKS_PRICE.search(turn.asked.question) is not None
        compared = len(turn.tried)
        if turn.verdicts:
            settled = self._established(turn)
            if settled is not None and settled.best in turn.products:
                return answers.exact(frame, turn.products[settled.best], settled, price=price)
            leading = _leading(turn.verdicts)
            nearest = _nearest(leading)
            known = [turn.products[style] for style in nearest if style in turn.products]
            if known:
                return answers.similar(
                    frame, seen, known, compared=compared, reason=leading.reason, price=price
                )
            return answers.none_fits(frame, seen, compared=compared, reason=leading.reason)
        return answers.only_described(frame, seen, self._why_not_compared(turn, look))

    @staticmethod
    def _why_not_compared(turn: TurnSoFar, look: _Look) -> str:
        if SEARCH_TOOL in turn.errors:
            return f"The search did not work: {turn.errors[SEARCH_TOOL].rstrip('.')}."
        if not turn.searches:
            return "Which style it is I cannot say: the tool search_catalog is not enabled for this agent."
        if not turn.products:
            return "The catalog has nothing like it with photos."
        first = ranked(turn.products.values(), look.seen, look.alike)[:3]
        names = ", ".join(turn.products[style].name for style in first)
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

    async def _looked(self, frame: bytes, question: str) -> _Look:
        """What the frame shows; every step of a turn asks for the same."""
        wanted = (frame, question)
        if self._last is None or self._last[0] != wanted:
            began, photos = self._clock.monotonic(), self._ahead.photos

            def look(sight: Sight) -> _Look:
                seen = sight.describe(frame, question)
                if seen.problem or not seen.found or not photos:
                    return _Look(seen, (), began)
                alike = sight.most_alike(frame, question, photos)
                if alike and alike[0].part not in (None, seen.part):
                    # The catalog sells something else of what is in view: that is what is spoken of.
                    seen = sight.describe(frame, alike[0].part or "")
                return _Look(seen, alike, began)

            self._last = (wanted, await self._look(look))
        return self._last[1]

    async def _loaded(self) -> Sight:
        """The sight, loaded in a worker thread where it is not yet."""
        async with self._eyes:
            if self._sight is None:
                self._sight = await asyncio.to_thread(self._load_sight)
            return self._sight

    async def _look(self, use: Callable[[Sight], _Result]) -> _Result:
        """`use` with the loaded sight, in a worker thread."""
        sight = await self._loaded()
        async with self._eyes:
            return await asyncio.to_thread(use, sight)


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
