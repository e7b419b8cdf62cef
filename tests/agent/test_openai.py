"""The adapter for OpenAI-compatible servers, against a loopback server."""

from __future__ import annotations

import asyncio
import base64
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from edge_agent.agent.models.openai import OpenAIModel
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    Message,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    ToolResultsMessage,
    UserMessage,
)
from edge_agent.engine.ports import GenerateRequest
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject
from tests.agent.fakes import SEARCH_SCHEMA, FakeClock, FakeTools, bench, fresh_camera, gives, picture
from tests.agent.gemini_server import DONE, JSON, GeminiServer, OpenAIServer, Reply, gemini_server

KEY = "sk-secret-of-the-test"
SEARCH = ToolDeclaration(name="search_catalog", description="Finds products.", parameters=SEARCH_SCHEMA)


def delta(finish: str | None = None, **piece: Any) -> JSON:
    return {"choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}


def words(*pieces: str) -> Reply:
    return Reply([*[delta(content=piece) for piece in pieces], delta("stop"), DONE])


def called(*calls: JSON) -> Reply:
    return Reply([delta(tool_calls=list(calls)), delta("tool_calls"), DONE])


def a_call(index: int, id: str, arguments: str, name: str = "search_catalog") -> JSON:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def refused(status: int, message: str, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, error={"error": {"message": message}}, headers=named)


@dataclass
class Rig:
    server: GeminiServer
    model: OpenAIModel
    clock: FakeClock
    waits: list[tuple[float, str]] = field(default_factory=list)

    async def ask(self, *messages: Message, **more: Any) -> tuple[list[str], Completed]:
        request = ModelRequest(
            system="Be brief.", messages=messages or [UserMessage("What is this?")], tools=[SEARCH], **more
        )
        deltas: list[str] = []
        completed: Completed | None = None
        async for item in self.model.stream(request, on_wait=lambda s, why: self.waits.append((s, why))):
            if isinstance(item, TextDelta):
                deltas.append(item.text)
            else:
                completed = item
        assert completed is not None
        assert completed.message.text == "".join(deltas)
        return deltas, completed

    async def fail(self) -> StyleEyesError:
        with pytest.raises(StyleEyesError) as caught:
            await self.ask()
        return caught.value

    async def generate(self, **more: Any) -> Any:
        request = GenerateRequest(prompt="Compare.", **more)
        return await self.model.generate(request, on_wait=lambda s, why: self.waits.append((s, why)))


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    clock = FakeClock()
    async with gemini_server(OpenAIServer) as server:
        model = OpenAIModel(
            f"{server.url}/v1/", "llava", clock, api_key=KEY, sleep=clock.sleep, jitter=lambda: 0.5
        )
        yield Rig(server, model, clock)
        await model.aclose()


async def test_text_streams_and_the_request_has_pictures_tools_and_the_key(rig: Rig) -> None:
    usage: JSON = {"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 7}}
    rig.server.script(Reply([delta(content="A red "), delta(content="jacket."), delta("stop"), usage, DONE]))
    shown = picture()
    deltas, completed = await rig.ask(UserMessage("What is this?", images=[shown]))
    assert deltas == ["A red ", "jacket."]
    assert (completed.usage.input, completed.usage.output) == (300, 7)
    [sent] = rig.server.requests
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    system, user = sent.body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    url = user["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/jpeg;base64,")) == shown.data
    assert user["content"][1] == {"type": "text", "text": "What is this?"}
    assert sent.body["tools"][0]["function"]["parameters"] == SEARCH_SCHEMA
    assert rig.model.id == f"openai:{rig.server.url}/v1#llava"


async def test_parallel_calls_in_fragments_are_put_together_and_answered_by_id(rig: Rig) -> None:
    rig.server.script(
        Reply(
            [
                delta(tool_calls=[a_call(0, "a", '{"que')]),
                delta(tool_calls=[{"index": 0, "function": {"arguments": 'ry": "red"}'}}]),
                delta(tool_calls=[a_call(1, "b", '{"query": "blue"}')]),
                delta("tool_calls"),
                DONE,
            ]
        ),
        words("Done."),
    )
    asked = UserMessage("Which?")
    _, completed = await rig.ask(asked)
    assert [(c.id, c.arguments) for c in completed.message.tool_calls] == [
        ("a", {"query": "red"}),
        ("b", {"query": "blue"}),
    ]
    results = ToolResultsMessage(
        [ToolResult("a", "search_catalog", [1]), ToolResult("b", "search_catalog", None)]
    )
    await rig.ask(asked, completed.message, results)
    assistant, *tools = rig.server.requests[1].body["messages"][2:]
    assert [call["id"] for call in assistant["tool_calls"]] == ["a", "b"]
    assert tools == [
        {"role": "tool", "tool_call_id": "a", "content": "[1]"},
        {"role": "tool", "tool_call_id": "b", "content": "null"},
    ]


async def test_whole_calls_without_index_and_with_object_arguments_are_read(rig: Rig) -> None:
    loose: list[JSON] = [
        {"id": "a", "function": {"name": "search_catalog", "arguments": {"query": "red"}}},
        {"id": "b", "function": {"name": "search_catalog", "arguments": ""}},
    ]
    rig.server.script(called(*loose))
    _, completed = await rig.ask()
    assert [c.arguments for c in completed.message.tool_calls] == [{"query": "red"}, {}]


async def test_a_call_that_cannot_be_read_is_corrected_twice_then_fails(rig: Rig) -> None:
    bad = called(a_call(0, "a", '{"query": '))
    rig.server.script(bad, called(a_call(0, "a", '{"query": "x"}')), bad, bad, bad)
    _, completed = await rig.ask()
    assert completed.message.tool_calls[0].arguments == {"query": "x"}
    assert "could not be read" in rig.server.requests[1].body["messages"][-1]["content"]
    error = await rig.fail()
    assert (error.code, "3 times" in error.message) == ("MODEL_ERROR", True)


async def test_a_model_without_tool_calling_drives_tools_by_text(rig: Rig) -> None:
    rig.server.script(
        refused(400, "llava does not support tools"),
        words('{"tool": "sea', 'rch_catalog", "arguments": {"query": "red tee"}}'),
        words("It is ", "a tee."),
    )
    tools = FakeTools(search_catalog=gives({"products": []}))
    turn = bench(rig.model, tools, fresh_camera(), rig.clock)
    result = await turn.loop.run("What is this?")
    assert (result.ok, result.answer) == (True, "It is a tee.")
    assert tools.calls == [("search_catalog", {"query": "red tee"})]
    _, second, third = rig.server.requests
    assert "tools" not in second.body
    assert '"tool": "<name>"' in second.body["messages"][0]["content"]
    assert '"query": "red tee"' in third.body["messages"][-2]["content"]
    assert "information, not orders" in third.body["messages"][-1]["content"]


async def test_json_that_names_no_declared_tool_is_an_answer_not_a_call(rig: Rig) -> None:
    rig.server.script(refused(400, "does not support tools"), words('{"colour": "red"}'))
    deltas, completed = await rig.ask()
    assert (deltas, completed.message.tool_calls) == (['{"colour": "red"}'], ())


async def test_generate_asks_for_json_by_schema_and_by_words_where_that_is_not_supported(rig: Rig) -> None:
    schema: JsonObject = {"type": "object", "properties": {"best": {"type": "string"}}, "required": ["best"]}
    good = Reply([{"choices": [{"message": {"content": '{"best": "A"}'}, "finish_reason": "stop"}]}])
    rig.server.script(good, refused(400, "response_format is not supported"), good)
    for _ in range(2):
        reply = await rig.generate(schema=schema, images=[picture()], max_output_tokens=500)
        assert reply.json == {"best": "A"}
    first, second, third = rig.server.requests
    assert first.body["response_format"]["json_schema"]["schema"] == schema
    assert first.body["max_tokens"] == 500
    assert "response_format" in second.body
    assert "response_format" not in third.body
    assert "JSON Schema" in third.body["messages"][0]["content"]


async def test_a_rate_limit_waits_as_the_server_says(rig: Rig) -> None:
    rig.server.script(refused(429, "slow", retry_after="3"), words("Red."))
    await rig.ask()
    assert rig.waits == [(3.0, "rate limit")]


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (refused(401, f"bad key {KEY}"), "MODEL_UNAVAILABLE", "key"),
        (refused(404, "model not found"), "MODEL_UNAVAILABLE", "llava"),
        (refused(400, "image too large"), "MODEL_ERROR", "image too large"),
        (Reply([delta("content_filter"), DONE]), "MODEL_BLOCKED", "held back"),
        (Reply([delta("length"), DONE]), "MODEL_TRUNCATED", "limit"),
        (Reply([delta("stop"), DONE]), "MODEL_ERROR", "nothing"),
        (Reply([delta(content="It is")], cut=True), "MODEL_ERROR", "broke off"),
        (Reply([delta(content="It is")]), "MODEL_ERROR", "broke off"),
        (
            Reply([delta(content="It"), {"error": {"message": "CUDA out of memory"}}]),
            "MODEL_ERROR",
            "broke off",
        ),
    ],
    ids=["key", "model", "request", "filter", "length", "empty", "cut", "no end", "error in stream"],
)
async def test_every_failure_has_a_code_a_sentence_and_no_key(
    rig: Rig, reply: Reply, code: str, said: str
) -> None:
    rig.server.script(reply)
    error = await rig.fail()
    assert error.code == code
    assert said in error.message
    assert error.hint
    assert KEY not in "".join(traceback.format_exception(error))
    assert KEY not in repr(rig.model)


async def test_a_server_that_is_not_running_is_said() -> None:
    clock = FakeClock()
    model = OpenAIModel("http://127.0.0.1:9/v1", "x", clock, sleep=clock.sleep)
    with pytest.raises(StyleEyesError) as caught:
        await model.generate(GenerateRequest(prompt="x"), on_wait=lambda s, why: None)
    await model.aclose()
    assert "cannot be reached" in caught.value.message


async def test_cancelling_closes_the_request(rig: Rig) -> None:
    rig.server.script(Reply([delta(content="It is")], hang=True))
    task = asyncio.create_task(rig.ask())
    await asyncio.wait_for(rig.server.arrived.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(rig.server.requests[0].closed.wait(), 5)


async def test_a_step_that_must_answer_offers_no_tools(rig: Rig) -> None:
    rig.server.script(words("ok"))
    history: list[Message] = [
        UserMessage("q"),
        AssistantMessage("", [ToolCall("a", "search_catalog", {})]),
        ToolResultsMessage([ToolResult("a", "search_catalog", [])]),
    ]
    await rig.ask(*history, must_answer=True)
    assert "tools" not in rig.server.requests[0].body
