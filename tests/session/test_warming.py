"""Looking at the catalog's photos behind the scenes: told as events, held up by questions, never fatal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from device.clock import SystemClock
from edge_agent.agent.models.protocol import ChatModel
from edge_agent.errors import EnvironmentLacksError
from edge_agent.events import Event, Notice, Preparing, Spine
from edge_agent.home import AgentFolder, Home
from edge_agent.session.first_start import DEMO_AGENT
from edge_agent.session.warming import look_at_catalog
from edge_agent.styleeyes.photo_list import CatalogPhoto


class Looker:
    """A model that looks at photos at once, or fails to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.seen: list[CatalogPhoto] = []
        self.failure = failure
        self.began = asyncio.Event()

    async def look_ahead(
        self, photos: Sequence[CatalogPhoto], between: Callable[[int], Awaitable[None]]
    ) -> None:
        if self.failure:
            raise self.failure
        for photo in photos:
            self.seen.append(photo)
            self.began.set()
            await between(len(self.seen))


class Blind:
    """A model that cannot look ahead."""


class Warming:
    """One run of `look_at_catalog` and what it told."""

    def __init__(self, model: object, agent: AgentFolder) -> None:
        self.idle = asyncio.Event()
        self.events: list[Event] = []
        clock = SystemClock()
        spine = Spine(clock)
        spine.subscribe(self.events.append)
        self.task = asyncio.create_task(
            look_at_catalog(
                cast("ChatModel", model), agent, idle=self.idle, spine=spine, clock=clock, parent="session"
            )
        )


async def test_every_photo_is_looked_at_and_the_end_is_told_under_one_span(demo_home: Home) -> None:
    looker = Looker()
    warming = Warming(looker, demo_home.agent(DEMO_AGENT))
    warming.idle.set()
    await warming.task
    told = [event.body for event in warming.events if isinstance(event.body, Preparing)]
    total = len(looker.seen)
    assert total > 20
    assert (told[0].done, told[-1].done, {body.total for body in told}) == (0, total, {total})
    assert len({event.span for event in warming.events}) == 1
    assert all(photo.path.is_file() for photo in looker.seen)


async def test_it_waits_while_a_question_is_answered(demo_home: Home) -> None:
    looker = Looker()
    warming = Warming(looker, demo_home.agent(DEMO_AGENT))
    await asyncio.wait_for(looker.began.wait(), 10)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(looker.seen) == 1
    warming.idle.set()
    await warming.task
    assert len(looker.seen) > 20


async def test_a_model_that_cannot_and_an_agent_without_catalog_are_left_alone(demo_home: Home) -> None:
    looker = Looker()
    for warming in (
        Warming(Blind(), demo_home.agent(DEMO_AGENT)),
        Warming(looker, demo_home.agent("nobody")),
    ):
        await warming.task
        assert warming.events == []
    assert looker.seen == []


async def test_trouble_is_a_notice_and_not_the_end_of_the_session(demo_home: Home) -> None:
    lack = EnvironmentLacksError("VISION_ASSETS", "The heads are broken.", "Restore them.")
    warming = Warming(Looker(lack), demo_home.agent(DEMO_AGENT))
    await warming.task
    [notice] = [event.body for event in warming.events if isinstance(event.body, Notice)]
    assert (notice.level, notice.code, notice.hint) == ("warn", "VISION_ASSETS", "Restore them.")
