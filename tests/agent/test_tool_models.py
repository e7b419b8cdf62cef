"""`ctx.llm` on the host side, and the whole turn with Gemini on both ends of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from edge_agent.agent.models.gemini import GeminiModel
from edge_agent.agent.models.protocol import ChatModel, Completed, ModelRequest, TextDelta, WaitNotice
from edge_agent.agent.tool_models import ToolModels, read_aliases
from edge_agent.engine.outcome import ToolOutcome
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.events import ModelFinished, ModelStarted, ModelWaiting, Spine, TokenUsage, event_to_json
from edge_agent.json_types import JsonObject, JsonValue
from tests.agent.fakes import FakeClock, FakeTools, Recorder, bench, fresh_camera, gives, picture
from tests.agent.gemini_server import call, calls, gemini_server, says


@dataclass
class Echo:
    """A model that answers with its own id."""

    id: str
    closed: int = 0
    fails: StyleEyesError | None = None
    asked: list[GenerateRequest] = field(default_factory=list)

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        raise NotImplementedError
        yield

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        self.asked.append(request)
        on_wait(2.0, "rate limit")
        if self.fails:
            raise self.fails
        return GenerateReply(f"from {self.id}", self.id, "STOP", TokenUsage(input=5, output=1))

    async def aclose(self) -> None:
        self.closed += 1


def models(session: ChatModel, aliases: dict[str, str]) -> tuple[ToolModels, Recorder, dict[str, Echo]]:
    clock = FakeClock()
    spine = Spine(clock)
    opened: dict[str, Echo] = {}

    async def open_model(spec: str) -> ChatModel:
        opened[spec] = Echo(spec)
        return opened[spec]

    return ToolModels(session, aliases, open_model, spine, clock), Recorder(spine), opened


async def test_default_is_the_sessions_model_and_other_aliases_open_their_own_once() -> None:
    session = Echo("session")
    port, _, opened = models(session, {"fast": "gemini-x", "also": "gemini-x", "same": "session"})
    assert port.aliases() == {"default", "fast", "also", "same"}
    texts = [
        (await port.generate(alias, GenerateRequest(prompt="p"), parent="cap-1")).text
        for alias in ("default", "fast", "also", "same")
    ]
    assert texts == ["from session", "from gemini-x", "from gemini-x", "from session"]
    await port.aclose()
    assert (opened["gemini-x"].closed, session.closed) == (1, 0)


async def test_default_can_be_another_model() -> None:
    port, _, _ = models(Echo("session"), {"default": "offline"})
    assert (await port.generate("default", GenerateRequest(prompt="p"), parent="c")).model == "offline"


async def test_an_unknown_alias_is_denied() -> None:
    port, recorder, _ = models(Echo("session"), {})
    with pytest.raises(StyleEyesError) as caught:
        await port.generate("smart", GenerateRequest(prompt="p"), parent="c")
    assert caught.value.code == "CAPABILITY_DENIED"
    assert recorder.events == []


async def test_a_call_is_three_events_under_the_capability_without_pixels() -> None:
    port, recorder, _ = models(Echo("session"), {})
    request = GenerateRequest(prompt="Compare these.", images=[picture(), picture(64, 48)])
    await port.generate("default", request, parent="cap-1")
    assert {event.parent for event in recorder.events} == {"cap-1"}
    assert len({event.span for event in recorder.events}) == 1
    [started] = recorder.bodies(ModelStarted)
    assert started == ModelStarted(
        alias="default", model="session", purpose="tool", images=2, prompt="Compare these."
    )
    assert [w.reason for w in recorder.bodies(ModelWaiting)] == ["rate limit"]
    [finished] = recorder.bodies(ModelFinished)
    assert (finished.ok, finished.finish_reason, finished.usage.input) == (True, "STOP", 5)
    assert all(len(json.dumps(event_to_json(event))) < 400 for event in recorder.events)


async def test_a_failed_call_is_finished_in_the_log_too() -> None:
    error = StyleEyesError("MODEL_BLOCKED", "Held back.")
    port, recorder, _ = models(Echo("session", fails=error), {})
    with pytest.raises(StyleEyesError):
        await port.generate("default", GenerateRequest(prompt="p"), parent="c")
    [finished] = recorder.bodies(ModelFinished)
    assert finished.error is not None
    assert (finished.ok, finished.error.code) == (False, "MODEL_BLOCKED")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"fast": "x",}', "line 1, column 14"),
        ('{\n"fast": }', "line 2, column 9"),
        ("[1]", "JSON object"),
        ('{"fast": 3}', "'fast'"),
        ('{"": "x"}', "''"),
    ],
)
def test_bad_aliases_are_wrong_usage_that_says_where(text: str, where: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_aliases({"WORLDAGENTS_TOOL_MODELS": text})
    assert "WORLDAGENTS_TOOL_MODELS" in caught.value.message
    assert where in caught.value.message


def test_no_aliases_is_fine() -> None:
    assert read_aliases({}) == read_aliases({"WORLDAGENTS_TOOL_MODELS": " "}) == {}


async def test_a_turn_with_gemini_is_two_tool_calls_and_one_match_call_with_its_images_counted() -> None:
    clock = FakeClock()
    async with gemini_server() as server:
        model = GeminiModel("gemini-3-flash", "key-of-the-test", clock, base_url=server.url)
        server.script(
            calls(call("search_catalog", {"query": "red tee", "hasPhotos": True}, id="1", signature=b"s1")),
            calls(call("match_garment", {"styleIds": ["MT01", "MT02"]}, id="2", signature=b"s2")),
            says('{"best": "MT01", "confidence": 0.9}'),
            says("In the frame from 0.4 s ago: the Atomic Endurance Tee (MT01)."),
        )
        tools = FakeTools(search_catalog=gives({"products": [{"styleId": "MT01"}, {"styleId": "MT02"}]}))
        rig = bench(model, tools, fresh_camera(), clock)
        port = ToolModels(model, {}, _never, rig.loop.spine, clock)

        async def match(value: JsonValue, parent: str) -> ToolOutcome:
            photos = [picture(320, 240)] + [picture(200, 260)] * 3
            schema: JsonObject = {
                "type": "object",
                "properties": {"best": {"type": "string"}},
                "required": ["best"],
            }
            request = GenerateRequest(prompt="Which?", images=photos, schema=schema)
            reply = await port.generate("default", request, parent=parent)
            return ToolOutcome(value=reply.json)

        tools.behaviours["match_garment"] = match
        result = await replace(rig.loop).run("What is this?")
        await model.aclose()

    assert result.ok
    assert [r.tool for r in result.tool_calls] == ["search_catalog", "match_garment"]
    streams = [r for r in server.requests if "stream" in r.path]
    matches = [r for r in server.requests if "stream" not in r.path]
    assert (len(streams), len(matches)) == (3, 1)
    assert matches[0].image_parts == 4
    assert [r.image_parts for r in streams] == [1, 1, 1]
    started = rig.recorder.bodies(ModelStarted)
    assert [(s.purpose, s.images) for s in started] == [("turn", 1), ("turn", 1), ("tool", 4), ("turn", 1)]
    signatures = [
        p.get("thoughtSignature") for c in streams[-1].contents for p in c["parts"] if "functionCall" in p
    ]
    assert signatures == ["czE=", "czI="]


async def _never(spec: str) -> ChatModel:
    raise AssertionError(spec)
