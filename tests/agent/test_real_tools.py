"""A turn with Gemini's wire format on one side and the real tools in the real sandbox on the other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from device.clock import SystemClock
from edge_agent.agent.conversation import Conversation
from edge_agent.agent.loop import TurnLoop
from edge_agent.agent.models.gemini import GeminiModel
from edge_agent.agent.models.protocol import ChatModel
from edge_agent.agent.tool_models import ToolModels
from edge_agent.engine.engine import ToolEngine
from edge_agent.engine.ports import EngineHost, SessionIdentity
from edge_agent.engine.sandbox.sandbox import open_sandbox
from edge_agent.events import (
    CapabilityStarted,
    ModelFinished,
    ModelStarted,
    Spine,
    ToolFinished,
    ToolStarted,
)
from edge_agent.home import Home
from edge_agent.session.first_start import DEMO_AGENT, prepare_home
from tests.agent.fakes import FakeCamera, Recorder, demo_frame, fresh_camera
from tests.agent.gemini_server import GeminiServer, Reply, call, calls, gemini_server, says

VERDICT: dict[str, Any] = {
    "best": None,
    "confidence": 0.6,
    "candidates": [],
    "askToSeeTag": True,
    "reason": "The collar is hidden.",
}


async def run_turn(server: GeminiServer, home: Home, camera: FakeCamera) -> tuple[Any, Recorder]:
    clock = SystemClock()
    spine = Spine(clock)
    recorder = Recorder(spine)
    model = GeminiModel("gemini-3-flash", "key-of-the-test", clock, base_url=server.url)
    tool_models = ToolModels(model, {}, _never, spine, clock)
    conversation = Conversation(clock)
    sandbox = open_sandbox({})
    engine = ToolEngine(home, sandbox, spine, clock)
    identity = SessionIdentity("s-1", "demo", DEMO_AGENT, "Demo")
    host = EngineHost(identity=identity, camera=camera, models=tool_models, conversation=conversation)
    tools = await engine.open_session(home.agent(DEMO_AGENT), host)
    loop = TurnLoop(
        model=model,
        tools=tools,
        camera=camera,
        conversation=conversation,
        spine=spine,
        clock=clock,
        session_span="session-1",
    )
    try:
        return await replace(loop, deadline_s=60).run("What is this jacket?"), recorder
    finally:
        await tools.aclose()
        await engine.aclose()
        await sandbox.aclose()
        await model.aclose()


async def test_two_real_tool_calls_and_one_match_call_with_frame_and_photos(tmp_path: Path) -> None:
    home = Home(tmp_path)
    prepare_home(home)
    async with gemini_server() as server:
        server.script(
            calls(call("search_catalog", {"query": "jacket", "hasPhotos": True}, id="1", signature=b"s")),
            calls(call("match_garment", {"styleIds": ["FJ-201", "FJ-214"]}, id="2", signature=b"s")),
            says(json.dumps(VERDICT)),
            says("In the frame from 0.4 s ago I see a jacket like FJ-201 or FJ-214. Show me the tag."),
        )
        result, recorder = await run_turn(server, home, fresh_camera(demo_frame()))
    assert result.ok, result.error
    assert [(r.tool, r.ok) for r in result.tool_calls] == [("search_catalog", True), ("match_garment", True)]
    found, judged = (json.loads(json.dumps(body.result)) for body in recorder.bodies(ToolFinished))
    assert "FJ-201" in [product["styleId"] for product in found["products"]]
    assert (judged["best"], judged["askToSeeTag"]) == (None, True)

    [matching] = [request for request in server.requests if "stream" not in request.path]
    opened = [c for c in recorder.bodies(CapabilityStarted) if c.kind == "images.open"]
    assert matching.image_parts == 1 + len(opened) == 1 + judged["photosCompared"]
    lines = matching.contents[0]["parts"][-1]["text"].splitlines()
    assert lines[0] == "Image 1: camera frame"
    assert lines[1].startswith("Image 2: candidate FJ-2")

    runs = {event.span for event in recorder.events if isinstance(event.body, ToolStarted)}
    capability = {
        e.span for e in recorder.events if isinstance(e.body, CapabilityStarted) and e.parent in runs
    }
    [inner] = [e for e in recorder.events if isinstance(e.body, ModelStarted) and e.body.purpose == "tool"]
    assert inner.parent in capability
    assert len(recorder.bodies(ModelFinished)) == 4


async def test_a_model_failure_inside_a_tool_is_a_tool_error_that_the_model_sees(tmp_path: Path) -> None:
    home = Home(tmp_path)
    prepare_home(home)
    async with gemini_server() as server:
        server.script(
            calls(call("match_garment", {"styleIds": ["FJ-201"]}, id="1")),
            Reply([{"promptFeedback": {"blockReason": "SAFETY"}}]),
            says("The comparison was held back, so I cannot say which style it is."),
        )
        result, _ = await run_turn(server, home, fresh_camera(demo_frame()))
        told = server.requests[-1].contents[-1]["parts"][0]["functionResponse"]["response"]
    assert result.ok
    assert [r.ok for r in result.tool_calls] == [False]
    assert told["error"]["code"] == "MODEL_BLOCKED"


async def _never(spec: str) -> ChatModel:
    raise AssertionError(spec)
