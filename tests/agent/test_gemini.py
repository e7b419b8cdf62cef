"""The Gemini adapter through the real SDK, against a loopback server that fails on request."""

from __future__ import annotations

import asyncio
import base64
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import cv2
import numpy as np
import pytest

from edge_agent.agent.models.gemini import GeminiModel
from edge_agent.agent.models.gemini.faults import ENDINGS
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    Message,
    ModelRequest,
    TextDelta,
    ToolDeclaration,
    ToolResult,
    ToolResultsMessage,
    UserMessage,
)
from edge_agent.engine.ports import GenerateRequest, HostImage
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject
from tests.agent.fakes import SEARCH_SCHEMA, FakeClock, picture
from tests.agent.gemini_server import (
    GeminiServer,
    Reply,
    call,
    calls,
    chunk,
    error_info,
    fails,
    gemini_server,
    quota_failure,
    retry_info,
    says,
    text,
)

KEY = "AIza-secret-of-the-test"
SEARCH = ToolDeclaration(name="search_catalog", description="Finds products.", parameters=SEARCH_SCHEMA)


@dataclass
class Rig:
    server: GeminiServer
    model: GeminiModel
    clock: FakeClock
    waits: list[tuple[float, str]] = field(default_factory=list)

    def on_wait(self, seconds: float, reason: str) -> None:
        self.waits.append((seconds, reason))

    async def ask(self, *messages: Message, **more: Any) -> tuple[list[str], Completed]:
        request = ModelRequest(
            system="Be brief.", messages=messages or [UserMessage("What is this?")], tools=[SEARCH], **more
        )
        deltas: list[str] = []
        completed: Completed | None = None
        async for item in self.model.stream(request, on_wait=self.on_wait):
            if isinstance(item, TextDelta):
                deltas.append(item.text)
            else:
                completed = item
        assert completed is not None
        return deltas, completed

    async def fail(self, *messages: Message, **more: Any) -> StyleEyesError:
        with pytest.raises(StyleEyesError) as caught:
            await self.ask(*messages, **more)
        return caught.value

    async def generate(self, prompt: str = "Compare.", **more: Any) -> Any:
        return await self.model.generate(GenerateRequest(prompt=prompt, **more), on_wait=self.on_wait)


@pytest.fixture
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    clock = FakeClock()
    model_id = getattr(request, "param", "gemini-3-flash")
    async with gemini_server() as server:
        model = GeminiModel(model_id, KEY, clock, base_url=server.url, sleep=clock.sleep, jitter=lambda: 0.5)
        yield Rig(server, model, clock)
        await model.aclose()


async def test_text_streams_piece_by_piece_and_usage_is_mapped(rig: Rig) -> None:
    usage = {
        "promptTokenCount": 300,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 40,
        "totalTokenCount": 347,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 42},
            {"modality": "IMAGE", "tokenCount": 258},
        ],
    }
    rig.server.script(Reply([chunk(text("A red ")), chunk(text("jacket."), finish="STOP", usage=usage)]))
    deltas, completed = await rig.ask(UserMessage("What is this?", images=[picture()]))
    assert deltas == ["A red ", "jacket."]
    assert completed.message.text == "A red jacket."
    assert completed.finish_reason == "STOP"
    spent = completed.usage
    assert (spent.input, spent.output, spent.thinking, spent.images) == (300, 7, 40, 258)
    assert spent.image_bytes == len(picture().data)


async def test_the_request_has_system_prompt_full_json_schema_and_no_automatic_calling(rig: Rig) -> None:
    rig.server.script(says("ok"))
    await rig.ask()
    [sent] = rig.server.requests
    assert "/models/gemini-3-flash:streamGenerateContent" in sent.path
    assert sent.headers["x-goog-api-key"] == KEY
    assert KEY not in sent.path
    assert sent.body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    [declared] = sent.body["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"] == SEARCH_SCHEMA
    assert "parameters" not in declared
    assert sent.body["toolConfig"]["functionCallingConfig"]["mode"] == "AUTO"


async def test_a_step_that_must_answer_forbids_calls_but_keeps_the_declarations(rig: Rig) -> None:
    rig.server.script(says("ok"))
    await rig.ask(must_answer=True)
    [sent] = rig.server.requests
    assert sent.body["toolConfig"]["functionCallingConfig"]["mode"] == "NONE"
    assert sent.body["tools"]


async def test_parallel_calls_signatures_and_ids_go_back_exactly_as_they_came(rig: Rig) -> None:
    signature = bytes(range(251, 256)) * 9
    first = call("search_catalog", {"query": "red"}, id="a1", signature=signature)
    second = call("search_catalog", {"query": "blue"}, id="b2")
    rig.server.script(
        Reply([chunk(text("Let me ")), chunk(text("look.")), chunk(first), chunk(second, finish="STOP")]),
        says("Both found."),
    )
    asked = UserMessage("Which?")
    _, completed = await rig.ask(asked)
    assert [(c.id, c.arguments) for c in completed.message.tool_calls] == [
        ("a1", {"query": "red"}),
        ("b2", {"query": "blue"}),
    ]
    error = {"error": {"code": "CANCELLED", "message": "The call was cancelled."}}
    results = ToolResultsMessage(
        [
            ToolResult("a1", "search_catalog", {"products": []}),
            ToolResult("b2", "search_catalog", cast(JsonObject, error)),
        ]
    )
    await rig.ask(asked, completed.message, results)
    model_turn, tool_turn = rig.server.requests[1].contents[1:]
    assert model_turn["role"] == "model"
    words, one, two = model_turn["parts"]
    assert words == {"text": "Let me look."}
    assert one["functionCall"] == first["functionCall"]
    assert base64.urlsafe_b64decode(one["thoughtSignature"]) == signature
    assert two == second
    assert tool_turn["role"] == "user"
    assert [part["functionResponse"] for part in tool_turn["parts"]] == [
        {"id": "a1", "name": "search_catalog", "response": {"output": {"products": []}}},
        {"id": "b2", "name": "search_catalog", "response": error},
    ]


async def test_a_signature_on_an_empty_text_part_is_not_lost_or_merged(rig: Rig) -> None:
    rig.server.script(
        Reply([chunk(text("Red.")), chunk(text(""), text("", signature=b"sig"), finish="STOP")]), says("ok")
    )
    asked = UserMessage("Which?")
    _, completed = await rig.ask(asked)
    await rig.ask(asked, completed.message, UserMessage("Sure?"))
    parts = rig.server.requests[1].contents[1]["parts"]
    assert parts == [{"text": "Red."}, {"text": "", "thoughtSignature": base64.b64encode(b"sig").decode()}]


async def test_text_after_a_signed_text_stays_a_part_of_its_own(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("A", signature=b"x")), chunk(text("B"), finish="STOP")]), says("ok"))
    _, completed = await rig.ask()
    assert completed.message.text == "AB"
    await rig.ask(UserMessage("q"), completed.message, UserMessage("r"))
    assert [p["text"] for p in rig.server.requests[1].contents[1]["parts"]] == ["A", "B"]


async def test_a_call_without_an_id_gets_one_for_us_that_is_never_sent_back(rig: Rig) -> None:
    rig.server.script(calls(call("search_catalog", {"query": "x"})), says("ok"))
    _, completed = await rig.ask()
    [made] = completed.message.tool_calls
    assert made.id
    results = ToolResultsMessage([ToolResult(made.id, "search_catalog", [])])
    await rig.ask(UserMessage("q"), completed.message, results)
    [part] = rig.server.requests[1].contents[2]["parts"]
    assert part == {"functionResponse": {"name": "search_catalog", "response": {"output": []}}}


async def test_thoughts_are_kept_for_the_model_but_not_shown(rig: Rig) -> None:
    rig.server.script(
        Reply([chunk(text("hm", thought=True)), chunk(text("Red."), finish="STOP")]), says("ok")
    )
    deltas, completed = await rig.ask()
    assert deltas == ["Red."]
    assert completed.message.text == "Red."
    await rig.ask(UserMessage("q"), completed.message, UserMessage("r"))
    assert rig.server.requests[1].contents[1]["parts"][0] == {"text": "hm", "thought": True}


async def test_text_in_tool_arguments_with_line_separators_arrives_whole(rig: Rig) -> None:
    odd = "a\u2028b\u0085c “d” {e} \\ data: f"
    rig.server.script(calls(call("search_catalog", {"query": odd})))
    _, completed = await rig.ask()
    assert completed.message.tool_calls[0].arguments == {"query": odd}


# --- waiting and trying again -------------------------------------------------------------------


async def test_a_rate_limit_waits_as_long_as_retry_info_says_and_tells(rig: Rig) -> None:
    rig.server.script(fails(429, "slow down", "RESOURCE_EXHAUSTED", retry_info("12s")), says("Red."))
    deltas, _ = await rig.ask(deadline=rig.clock.now + 60)
    assert deltas == ["Red."]
    assert rig.waits == [(12.0, "rate limit")]
    assert len(rig.server.requests) == 2


async def test_the_retry_after_header_counts_where_there_is_no_retry_info(rig: Rig) -> None:
    rig.server.script(fails(503, "overloaded", "UNAVAILABLE", retry_after="7"), says("Red."))
    await rig.ask(deadline=rig.clock.now + 60)
    assert rig.waits == [(7.0, "Gemini is overloaded")]


async def test_a_wait_past_the_deadline_is_not_begun(rig: Rig) -> None:
    rig.server.script(fails(429, "slow down", "RESOURCE_EXHAUSTED", retry_info("39s")))
    error = await rig.fail(deadline=rig.clock.now + 20)
    assert error.code == "MODEL_UNAVAILABLE"
    assert "39 s" in (error.hint or "")
    assert rig.waits == []


async def test_a_spent_daily_quota_is_not_tried_again(rig: Rig) -> None:
    quota = quota_failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
    rig.server.script(fails(429, "quota", "RESOURCE_EXHAUSTED", quota, retry_info("2s")))
    error = await rig.fail()
    assert error.code == "MODEL_UNAVAILABLE"
    assert "today" in error.message
    assert len(rig.server.requests) == 1


async def test_tries_end_after_five_and_do_not_multiply_with_the_sdks_own(rig: Rig) -> None:
    rig.server.script(*[fails(503, "overloaded", "UNAVAILABLE")] * 9)
    error = await rig.fail(deadline=rig.clock.now + 500)
    assert error.code == "MODEL_UNAVAILABLE"
    assert len(rig.server.requests) == 5
    assert [seconds for seconds, _ in rig.waits] == [1.0, 2.0, 4.0, 8.0]


async def test_an_error_in_the_middle_of_a_stream_is_an_error(rig: Rig) -> None:
    rig.server.script(Reply([fails(503, "overloaded", "UNAVAILABLE").error or {}]), says("Red."))
    deltas, _ = await rig.ask()
    assert deltas == ["Red."]


async def test_a_stream_that_breaks_off_before_a_word_is_tried_again(rig: Rig) -> None:
    rig.server.script(Reply([], cut=True), Reply([], drop=True), says("Red."))
    deltas, _ = await rig.ask()
    assert deltas == ["Red."]


async def test_a_stream_that_breaks_off_after_words_fails_instead_of_repeating_them(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("It is the "))], cut=True))
    error = await rig.fail()
    assert error.code == "MODEL_ERROR"
    assert "broke off" in error.message
    assert len(rig.server.requests) == 1


async def test_a_stream_that_ends_without_a_finish_reason_is_not_taken_for_whole(rig: Rig) -> None:
    rig.server.script(Reply([chunk(call("search_catalog", {"query": "x"}))]), says("Red."))
    deltas, completed = await rig.ask()
    assert deltas == ["Red."]
    assert completed.message.tool_calls == ()


async def test_no_network_is_said_and_names_the_way_out(rig: Rig) -> None:
    dead = GeminiModel("gemini-3-flash", KEY, rig.clock, base_url="http://127.0.0.1:9", sleep=rig.clock.sleep)
    try:
        with pytest.raises(StyleEyesError) as caught:
            await dead.generate(GenerateRequest(prompt="x"), on_wait=rig.on_wait)
    finally:
        await dead.aclose()
    assert caught.value.code == "MODEL_UNAVAILABLE"
    assert "offline" in (caught.value.hint or "")
    assert [reason for _, reason in rig.waits] == ["no connection", "no connection"]


async def test_an_address_that_is_none_is_said(rig: Rig) -> None:
    dead = GeminiModel("gemini-3-flash", KEY, rig.clock, base_url="nonsense", sleep=rig.clock.sleep)
    try:
        with pytest.raises(StyleEyesError) as caught:
            await dead.generate(GenerateRequest(prompt="x"), on_wait=rig.on_wait)
    finally:
        await dead.aclose()
    assert "GOOGLE_GEMINI_BASE_URL" in (caught.value.hint or "")


async def test_the_sdks_own_variable_chooses_the_server(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", rig.server.url)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    model = GeminiModel("gemini-3-flash", KEY, rig.clock)
    rig.server.script(says("ok"))
    try:
        reply = await model.generate(GenerateRequest(prompt="x"), on_wait=rig.on_wait)
    finally:
        await model.aclose()
    assert reply.text == "ok"


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (
            fails(400, "API key not valid.", "INVALID_ARGUMENT", error_info("API_KEY_INVALID")),
            "MODEL_UNAVAILABLE",
            "API key",
        ),
        (fails(403, "Permission denied.", "PERMISSION_DENIED"), "MODEL_UNAVAILABLE", "API key"),
        (fails(404, "models/x is not found", "NOT_FOUND"), "MODEL_UNAVAILABLE", "gemini-3-flash"),
        (
            fails(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
            "MODEL_UNAVAILABLE",
            "where this machine is",
        ),
        (fails(400, "Request contains an invalid argument.", "INVALID_ARGUMENT"), "MODEL_ERROR", "invalid"),
        (fails(413, "too large", "INVALID_ARGUMENT"), "MODEL_ERROR", "too large"),
        (Reply(status=302, error={}, headers={"Location": "http://127.0.0.1:9/"}), "MODEL_ERROR", "302"),
        (
            Reply([{"candidates": [{"content": {"parts": [{"text": {}}]}}]}]),
            "MODEL_ERROR",
            "does not understand",
        ),
        (Reply(status=502, raw=b"<html>bad gateway</html>"), "MODEL_UNAVAILABLE", "502"),
    ],
    ids=[
        "wrong key",
        "no permission",
        "wrong model",
        "region",
        "bad request",
        "too large",
        "redirect",
        "new form",
        "html",
    ],
)
async def test_a_refusal_has_a_code_a_sentence_and_a_way_out(
    rig: Rig, reply: Reply, code: str, words: str
) -> None:
    rig.server.script(*[reply] * 5)
    error = await rig.fail()
    assert error.code == code
    assert words in error.message
    assert error.hint


async def test_the_key_is_in_no_error_repr_or_traceback(rig: Rig) -> None:
    rig.server.script(fails(403, f"The key {KEY} was reported as leaked.", "PERMISSION_DENIED"))
    error = await rig.fail()
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert KEY not in repr(rig.model)
    assert error.__cause__ is None
    assert error.__suppress_context__


# --- endings ------------------------------------------------------------------------------------

BLOCKED = [reason for reason, ending in ENDINGS.items() if ending == "blocked"]
FAILED = [reason for reason, ending in ENDINGS.items() if ending == "failed"]


@pytest.mark.parametrize("reason", BLOCKED)
async def test_a_held_back_answer_is_model_blocked(rig: Rig, reason: str) -> None:
    rig.server.script(Reply([chunk(finish=reason)]))
    error = await rig.fail()
    assert error.code == "MODEL_BLOCKED"
    assert reason in error.message


@pytest.mark.parametrize("reason", FAILED)
async def test_an_ending_that_is_a_failure_is_model_error(rig: Rig, reason: str) -> None:
    rig.server.script(Reply([chunk(finish=reason)]))
    error = await rig.fail()
    assert error.code == "MODEL_ERROR"
    assert reason in error.message


async def test_every_finish_reason_of_the_sdk_has_an_ending() -> None:
    from google.genai import types

    named = {reason.value for reason in types.FinishReason} - {"FINISH_REASON_UNSPECIFIED", "OTHER"}
    assert named == set(ENDINGS)


async def test_a_finish_reason_newer_than_the_sdk_is_done_with_words_and_an_error_without(rig: Rig) -> None:
    rig.server.script(
        Reply([chunk(text("Red."), finish="COSMIC_RAYS")]), Reply([chunk(finish="COSMIC_RAYS")])
    )
    _, completed = await rig.ask()
    assert completed.finish_reason == "COSMIC_RAYS"
    error = await rig.fail()
    assert (error.code, "COSMIC_RAYS" in error.message) == ("MODEL_ERROR", True)


@pytest.mark.parametrize("reason", ["SAFETY", "PROHIBITED_CONTENT", "SOMETHING_NEW"])
async def test_a_blocked_prompt_is_model_blocked(rig: Rig, reason: str) -> None:
    rig.server.script(Reply([{"promptFeedback": {"blockReason": reason}}]))
    error = await rig.fail()
    assert error.code == "MODEL_BLOCKED"
    assert reason in error.message


async def test_words_before_a_block_do_not_make_it_an_answer(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("The ")), chunk(finish="SAFETY")]))
    assert (await rig.fail()).code == "MODEL_BLOCKED"


@pytest.mark.parametrize(
    "empty",
    [
        {"candidates": []},
        {},
        chunk(finish="STOP"),
        chunk(text(""), finish="STOP"),
        chunk(text(" \n"), finish="STOP"),
    ],
    ids=["no candidate", "nothing", "no content", "empty text", "blank text"],
)
async def test_an_empty_answer_is_tried_again_then_a_failure(rig: Rig, empty: dict[str, Any]) -> None:
    rig.server.script(Reply([empty]), says("Red."), *[Reply([empty])] * 3)
    deltas, _ = await rig.ask()
    assert deltas[-1] == "Red."
    error = await rig.fail()
    assert error.code == "MODEL_ERROR"
    assert len(rig.server.requests) == 5


async def test_max_tokens_without_parts_is_truncated_and_with_words_is_an_answer(rig: Rig) -> None:
    rig.server.script(
        Reply([chunk(finish="MAX_TOKENS")]), Reply([chunk(text("Red and"), finish="MAX_TOKENS")])
    )
    assert (await rig.fail()).code == "MODEL_TRUNCATED"
    _, completed = await rig.ask()
    assert (completed.message.text, completed.finish_reason) == ("Red and", "MAX_TOKENS")


async def test_a_call_cut_off_by_the_limit_is_not_made(rig: Rig) -> None:
    rig.server.script(Reply([chunk(call("search_catalog", {}), finish="MAX_TOKENS")]))
    assert (await rig.fail()).code == "MODEL_TRUNCATED"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
async def test_a_malformed_call_is_corrected_and_the_correction_leaves_no_trace(
    rig: Rig, reason: str
) -> None:
    rig.server.script(
        Reply([chunk(finish=reason)]),
        calls(call("search_catalog", {"query": "red"})),
    )
    _, completed = await rig.ask()
    assert completed.message.tool_calls[0].arguments == {"query": "red"}
    correction = rig.server.requests[1].contents[-1]
    assert correction["role"] == "user"
    assert reason in correction["parts"][0]["text"]
    assert [part.text for part in cast(Any, completed.message.native).parts] == [None]


async def test_a_call_that_stays_malformed_fails_after_two_corrections(rig: Rig) -> None:
    rig.server.script(*[Reply([chunk(finish="MALFORMED_FUNCTION_CALL")])] * 4)
    error = await rig.fail()
    assert error.code == "MODEL_ERROR"
    assert "3 times" in error.message
    assert len(rig.server.requests) == 3


# --- cancelling ---------------------------------------------------------------------------------


async def test_cancelling_closes_the_request(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("It is"))], hang=True))
    task = asyncio.create_task(rig.ask())
    await asyncio.wait_for(rig.server.arrived.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(rig.server.requests[0].closed.wait(), 5)


async def test_leaving_the_stream_early_closes_the_request(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("It is"))], hang=True))
    request = ModelRequest(system="", messages=[UserMessage("q")], tools=[])
    stream = cast(Any, rig.model.stream(request, on_wait=rig.on_wait))
    async with aclosing(stream) as items:
        async for _ in items:
            break
    await asyncio.wait_for(rig.server.requests[0].closed.wait(), 5)


async def test_cancelling_a_tools_call_closes_its_request(rig: Rig) -> None:
    rig.server.script(Reply([chunk(text("x"))], hang=True))
    task = asyncio.create_task(rig.generate())
    await asyncio.wait_for(rig.server.arrived.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(rig.server.requests[0].closed.wait(), 5)


# --- tools' calls -------------------------------------------------------------------------------

VERDICT: JsonObject = {
    "type": "object",
    "properties": {"best": {"type": ["string", "null"]}, "confidence": {"type": "number"}},
    "required": ["best", "confidence"],
    "additionalProperties": False,
}


async def test_generate_sends_images_first_caps_output_and_checks_the_json(rig: Rig) -> None:
    rig.server.script(says('{"best": "MT01", "confidence": 0.9}'))
    reply = await rig.generate(images=[picture(), picture(64, 48)], schema=VERDICT, max_output_tokens=9999)
    assert reply.json == {"best": "MT01", "confidence": 0.9}
    [sent] = rig.server.requests
    assert ":generateContent" in sent.path
    assert [sorted(part) for part in sent.contents[0]["parts"]] == [["inlineData"], ["inlineData"], ["text"]]
    assert sent.config["maxOutputTokens"] == 2048
    assert sent.config["responseMimeType"] == "application/json"
    assert sent.config["responseJsonSchema"] == VERDICT
    assert "tools" not in sent.body


@pytest.mark.parametrize(
    ("said", "finish", "code"),
    [
        ('{"best": "MT01"}', "STOP", "MODEL_ERROR"),
        ("It is MT01.", "STOP", "MODEL_ERROR"),
        ('{"best": "MT0', "MAX_TOKENS", "MODEL_TRUNCATED"),
    ],
)
async def test_json_that_is_wrong_or_cut_off_is_an_error(rig: Rig, said: str, finish: str, code: str) -> None:
    rig.server.script(Reply([chunk(text(said), finish=finish)]))
    with pytest.raises(StyleEyesError) as caught:
        await rig.generate(schema=VERDICT)
    assert caught.value.code == code


async def test_a_schema_that_the_model_refuses_is_asked_for_in_words_and_still_checked(rig: Rig) -> None:
    refusal = fails(400, "The specified schema produces a constraint that has too many states.")
    rig.server.script(refusal, says('{"best": "MT01", "confidence": 0.9}'), refusal, says('{"best": 3}'))
    assert (await rig.generate(schema=VERDICT, system="Be exact.")).json == {
        "best": "MT01",
        "confidence": 0.9,
    }
    second = rig.server.requests[1]
    assert "responseJsonSchema" not in second.config
    told = second.body["systemInstruction"]["parts"][0]["text"]
    assert told.startswith("Be exact.")
    assert '"confidence"' in told
    with pytest.raises(StyleEyesError):
        await rig.generate(schema=VERDICT)


async def test_json_in_a_markdown_fence_is_read(rig: Rig) -> None:
    rig.server.script(says('```json\n{"best": null, "confidence": 0}\n```'))
    assert (await rig.generate(schema=VERDICT)).json == {"best": None, "confidence": 0}


async def test_max_tokens_all_spent_on_thinking_is_truncated(rig: Rig) -> None:
    rig.server.script(Reply([chunk(finish="MAX_TOKENS", usage={"thoughtsTokenCount": 2048})]))
    with pytest.raises(StyleEyesError) as caught:
        await rig.generate()
    assert caught.value.code == "MODEL_TRUNCATED"


@pytest.mark.parametrize(
    ("rig", "expected"),
    [
        ("gemini-3-flash", {"thinkingLevel": "LOW"}),
        ("gemini-flash-latest", {"thinkingLevel": "LOW"}),
        ("gemini-2.5-pro", {"thinkingBudget": 512}),
        ("gemini-2.0-flash", None),
        ("my-tuned-model", None),
    ],
    indirect=["rig"],
)
async def test_thinking_is_limited_in_the_terms_of_the_models_generation(rig: Rig, expected: Any) -> None:
    rig.server.script(says("ok"))
    await rig.generate()
    assert rig.server.requests[0].config.get("thinkingConfig") == expected


async def test_a_model_that_refuses_thinking_settings_is_asked_without_them_from_then_on(rig: Rig) -> None:
    refusal = fails(400, "Thinking level is not supported for this model.", "INVALID_ARGUMENT")
    rig.server.script(refusal, says("a"), says("b"))
    assert (await rig.generate()).text == "a"
    assert (await rig.generate()).text == "b"
    assert ["thinkingConfig" in r.config for r in rig.server.requests] == [True, False, False]


async def test_large_pictures_are_scaled_to_1024_and_small_ones_sent_as_they_are(rig: Rig) -> None:
    rig.server.script(says("ok"))
    small, large = picture(640, 360), picture(1920, 1080)
    await rig.generate(images=[small, large])
    sent = [
        base64.urlsafe_b64decode(p["inlineData"]["data"])
        for p in rig.server.requests[0].contents[0]["parts"][:2]
    ]
    assert sent[0] == small.data
    decoded = cv2.imdecode(np.frombuffer(sent[1], np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape[:2] == (576, 1024)


async def test_a_see_through_png_gets_a_white_background(rig: Rig) -> None:
    rig.server.script(says("ok"))
    pixels = np.zeros((40, 40, 4), np.uint8)
    png = HostImage(cv2.imencode(".png", pixels)[1].tobytes(), "image/png", 40, 40, "photos/a.png")
    await rig.generate(images=[png])
    data = rig.server.requests[0].contents[0]["parts"][0]["inlineData"]
    assert data["mimeType"] == "image/jpeg"
    decoded = cv2.imdecode(np.frombuffer(base64.urlsafe_b64decode(data["data"]), np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.min() >= 250


async def test_a_broken_picture_is_an_error_before_anything_is_sent(rig: Rig) -> None:
    broken = HostImage(b"not a picture", "image/png", 40, 40, "photos/a.png")
    with pytest.raises(StyleEyesError) as caught:
        await rig.generate(images=[broken])
    assert caught.value.code == "MODEL_ERROR"
    assert "photos/a.png" in caught.value.message
    assert rig.server.requests == []


async def test_the_time_out_told_to_the_server_is_never_under_ten_seconds(rig: Rig) -> None:
    rig.server.script(says("ok"))
    await rig.generate(deadline=rig.clock.now + 3)
    assert rig.server.requests[0].headers["x-server-timeout"] == "10"


async def test_no_request_can_hang_for_ever(rig: Rig) -> None:
    seen: list[Any] = []

    async def look(request: Any) -> None:
        seen.append(dict(request.extensions["timeout"]))

    rig.model._http.event_hooks["request"].append(look)
    rig.server.script(says("ok"), says("ok"))
    await rig.generate()
    await rig.ask()
    assert seen == [{"connect": 10.0, "read": 60.0, "write": 60.0, "pool": 60.0}] * 2


async def test_history_of_another_model_is_sent_as_text_and_calls(rig: Rig) -> None:
    rig.server.script(says("ok"))
    await rig.ask(UserMessage("q"), AssistantMessage(text="Red."), UserMessage("r"))
    assert rig.server.requests[0].contents[1] == {"role": "model", "parts": [{"text": "Red."}]}
