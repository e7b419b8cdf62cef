from __future__ import annotations

import json
from typing import Any

import pytest

from edge_agent.engine.broker.context import open_context
from edge_agent.engine.broker.limits import MAX_OUTPUT_TOKENS
from edge_agent.engine.ports import GenerateReply
from edge_agent.errors import StyleEyesError
from edge_agent.events import TokenUsage
from edge_agent.json_types import JsonValue
from tests.engine.broker.world import FRESH, MakeRun, make_host

USED = TokenUsage(input=10, output=4)


async def test_a_plain_call_gives_the_contracts_fields(make_run: MakeRun) -> None:
    run = make_run()
    answer = await run.value("llm.generate", {"prompt": "What is it?"})
    assert answer == {
        "text": "a coat",
        "model": "test-model",
        "finishReason": "stop",
        "usage": {"inputTokens": 3, "outputTokens": 2},
    }
    alias, request, parent = run.models.asked[0]
    assert (alias, request.prompt, request.system, request.max_output_tokens) == (
        "default",
        "What is it?",
        None,
        MAX_OUTPUT_TOKENS,
    )
    assert parent == run.events[0].span


@pytest.mark.parametrize(("asked", "given"), [(None, 2048), (1, 1), (2048, 2048), (2049, 2048), (1e9, 2048)])
async def test_output_tokens_are_clamped(make_run: MakeRun, asked: Any, given: int) -> None:
    run = make_run()
    await run.value("llm.generate", {"prompt": "p", "maxOutputTokens": asked})
    assert run.models.asked[0][1].max_output_tokens == given


async def test_images_reach_the_model_in_order_as_pixels(make_run: MakeRun) -> None:
    run = make_run()
    photo = await run.value("images.open", "photos", "coat.jpg")
    frame = run.images.add(FRESH.image) if FRESH.image else None
    await run.value("llm.generate", {"prompt": "p", "images": [frame, photo]})
    assert [image.source for image in run.models.asked[0][1].images] == ["camera", "photos/coat.jpg"]


async def test_a_null_image_is_camera_unavailable(make_run: MakeRun) -> None:
    run = make_run()
    assert await run.code("llm.generate", {"prompt": "p", "images": [None]}) == "CAMERA_UNAVAILABLE"
    assert run.models.asked == []


async def test_handles_that_are_forged_or_of_another_run_are_refused(make_run: MakeRun) -> None:
    other, run = make_run(), make_run()
    foreign = await other.value("images.open", "photos", "coat.jpg")
    forged: list[Any] = [{"kind": "image", "id": "img-0"}, {"id": 1, "kind": "image"}, "img-0", 5, {}, []]
    for handle in (foreign, *forged):
        assert await run.code("llm.generate", {"prompt": "p", "images": [handle]}) == "CAPABILITY_DENIED"
    assert run.models.asked == []


async def test_only_the_id_of_a_handle_counts(make_run: MakeRun) -> None:
    run = make_run()
    handle = await run.value("images.open", "photos", "coat.jpg")
    await run.value("llm.generate", {"prompt": "p", "images": [{**handle, "width": 10**9, "source": "x"}]})
    image = run.models.asked[0][1].images[0]
    assert (image.width, image.source) == (64, "photos/coat.jpg")


@pytest.mark.parametrize("alias", ["spare", "unknown", "nowhere", ""])
async def test_an_alias_must_be_declared_and_exist(make_run: MakeRun, alias: str) -> None:
    assert await make_run().code("llm.generate", {"prompt": "p", "model": alias}) == "CAPABILITY_DENIED"


@pytest.mark.parametrize(
    "options",
    [
        None,
        "text",
        {},
        {"prompt": ""},
        {"prompt": "  "},
        {"prompt": 5},
        {"prompt": "p", "tools": []},
        {"prompt": "p", "images": "x"},
        {"prompt": "p", "images": [None] * 33},
        {"prompt": "p", "schema": True},
        {"prompt": "p", "model": 1},
        {"prompt": "p", "system": []},
        {"prompt": "p", "maxOutputTokens": 0},
        {"prompt": "p", "maxOutputTokens": 1.5},
        {"prompt": "p", "maxOutputTokens": True},
        {"prompt": "p", "maxOutputTokens": "9"},
    ],
)
async def test_wrong_options_are_the_tools_error(make_run: MakeRun, options: JsonValue) -> None:
    run = make_run()
    assert await run.code("llm.generate", options) == "TOOL_ERROR"
    assert run.models.asked == []


async def test_a_prompt_holds_256_kib_and_no_more(make_run: MakeRun) -> None:
    run = make_run()
    await run.value("llm.generate", {"prompt": "ü" * 131_072})
    assert await run.code("llm.generate", {"prompt": "ü" * 131_072 + "x"}) == "INPUT_TOO_LARGE"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (GenerateReply('{"best":"A"}', "m", "stop", USED), {"best": "A"}),
        (GenerateReply("ignored", "m", "stop", USED, json={"best": None}), {"best": None}),
    ],
)
async def test_json_is_parsed_and_validated(make_run: MakeRun, reply: GenerateReply, expected: Any) -> None:
    run = make_run()
    run.models.reply = reply
    schema = {"type": "object", "properties": {"best": {"type": ["string", "null"]}}, "required": ["best"]}
    answer = await run.value("llm.generate", {"prompt": "p", "schema": schema})
    assert answer["json"] == expected


@pytest.mark.parametrize(
    "text", ["not json", '{"best": 5}', "{}", "[" * 5000, '{"best":"A","extra":' + "[" * 70 + "]" * 70 + "}"]
)
async def test_an_answer_that_does_not_fit_is_a_model_error(make_run: MakeRun, text: str) -> None:
    run = make_run()
    run.models.reply = GenerateReply(text, "m", "stop", USED)
    schema = {"type": "object", "properties": {"best": {"type": "string"}}, "required": ["best"]}
    assert await run.code("llm.generate", {"prompt": "p", "schema": schema}) == "MODEL_ERROR"


async def test_a_bad_schema_costs_no_model_call(make_run: MakeRun) -> None:
    run = make_run()
    options = {"prompt": "p", "schema": {"$ref": "http://127.0.0.1:9/"}}
    assert await run.code("llm.generate", options) == "MODEL_ERROR"
    assert run.models.asked == []


@pytest.mark.parametrize("code", ["MODEL_BLOCKED", "MODEL_TRUNCATED", "MODEL_UNAVAILABLE"])
async def test_the_models_own_errors_reach_the_tool(make_run: MakeRun, code: str) -> None:
    run = make_run()
    run.models.reply = StyleEyesError(code, "No.", "Try later.")
    reply = await run.call("llm.generate", {"prompt": "p"})
    assert (reply.ok, reply.code, reply.message) == (False, code, "No. Try later.")


async def test_the_runs_deadline_goes_along(make_run: MakeRun) -> None:
    run = make_run(deadline=123.5)
    await run.value("llm.generate", {"prompt": "p"})
    assert run.models.asked[0][1].deadline == 123.5


async def test_a_frame_taken_at_the_start_can_be_used_by_its_handle(make_run: MakeRun) -> None:
    run = make_run()
    context = await open_context(run.capabilities, make_host(), run.images, run.clock)
    frame = json.loads(context.json)["camera"]["frame"]
    await run.value("llm.generate", {"prompt": "p", "images": [frame]})
    assert run.models.asked[0][1].images[0] == FRESH.image
