"""An OpenAI-compatible server as a ChatModel."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx

from device.clock import Clock
from edge_agent.agent.models.openai import faults, text_tools, wire
from edge_agent.agent.models.pictures import PictureFitter, fitted, image_bytes_of
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    Message,
    ModelRequest,
    TextDelta,
    ToolCall,
    UserMessage,
    WaitNotice,
)
from edge_agent.agent.models.retry import Retries, Sleep
from edge_agent.agent.models.structured import in_words, parse_json_answer, truncated
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.errors import StyleEyesError
from edge_agent.text import SecretMask

MOST_CORRECTIONS = 2
CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 110.0
"""A local server may load a model of many gigabytes before its first word."""

CORRECTION = (
    "Your last tool call could not be read. Call one of the tools with arguments that are one valid JSON "
    "object, or answer in words."
)


class OpenAIModel:
    """One model of one server, `openai:BASE#MODEL`. Works without a key; a given one is never shown.

    What a server turns out not to support (tools, JSON schemas, stream options) is not asked of it again.
    """

    def __init__(
        self,
        base: str,
        model: str,
        clock: Clock,
        *,
        api_key: str | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._base = base.rstrip("/")
        self._model = model
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._mask = SecretMask([api_key] if api_key else [])
        self._pictures = PictureFitter()
        self._native_tools = True
        self._json_schema = True
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.id!r})"

    @property
    def id(self) -> str:
        return f"openai:{self._base}#{self._model}"

    async def aclose(self) -> None:
        """Closes every connection; safe to call twice."""
        self._pictures.forget()
        await self._http.aclose()

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        """One step of a turn. The completed message's text is that of all deltas together."""
        messages: list[Message] = await asyncio.to_thread(fitted, request.messages, self._pictures.fit)
        retries = self._retries(request.deadline, on_wait)
        spoken = ""
        corrections = 0
        while True:
            answer = wire.Answer()
            held = ""
            native = self._native_tools
            try:
                async with aclosing(self._chunks(self._turn_body(request, messages))) as chunks:
                    async for chunk in chunks:
                        held += answer.add(chunk)
                        if held and (native or not text_tools.may_be_call(answer.text)):
                            spoken += held
                            yield TextDelta(held)
                            held = ""
            except (httpx.HTTPError, httpx.InvalidURL, faults.RefusalError) as exc:
                await self._handle(exc, retries, request=request, spoke=bool(spoken))
                continue
            if not answer.whole:
                if spoken:
                    raise faults.broke_off().error
                await retries.again_or_raise(faults.broke_off())
                continue
            calls = self._calls(answer, request, native=native)
            if calls is None:
                corrections += 1
                if corrections > MOST_CORRECTIONS:
                    raise StyleEyesError(
                        "MODEL_ERROR",
                        f"The model wrote a tool call that cannot be read, {corrections} times.",
                        "Ask again, or choose a model that is good at tool calls.",
                    )
                messages = [*messages, UserMessage(CORRECTION)]
                continue
            if held and not calls:
                spoken += held
                yield TextDelta(held)
            self._check(answer, spoke=bool(spoken.strip() or calls))
            yield Completed(
                message=AssistantMessage(text=spoken, tool_calls=calls),
                finish_reason=answer.finish or "stop",
                usage=answer.usage(image_bytes_of(messages)),
            )
            return

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        """One toolless call with capped output."""
        asked: list[Message] = await asyncio.to_thread(
            fitted, [UserMessage(text=request.prompt, images=request.images)], self._pictures.fit
        )
        retries = self._retries(request.deadline, on_wait)
        while True:
            answer = wire.Answer()
            try:
                response = await self._http.post(self._url, json=self._generate_body(request, asked))
                await faults.raise_for(response, self._mask)
                answer.add(_json_object(response.text))
                break
            except (httpx.HTTPError, httpx.InvalidURL, faults.RefusalError) as exc:
                if (
                    self._json_schema
                    and request.schema is not None
                    and faults.refuses(exc, "response_format", "json_schema", "schema", "grammar")
                ):
                    self._json_schema = False
                    continue
                await self._retry_or_raise(exc, retries)
        self._check(answer, spoke=bool(answer.text.strip()))
        cut_off = answer.finish == "length"
        return GenerateReply(
            text=answer.text,
            model=self.id,
            finish_reason=answer.finish or "stop",
            usage=answer.usage(image_bytes_of(asked)),
            json=parse_json_answer(answer.text, request.schema, cut_off=cut_off)
            if request.schema is not None
            else None,
        )

    @property
    def _url(self) -> str:
        return f"{self._base}/chat/completions"

    def _turn_body(self, request: ModelRequest, messages: list[Message]) -> wire.Body:
        offered = () if request.must_answer else request.tools
        system = request.system
        if offered and not self._native_tools:
            system = f"{system}\n\n{text_tools.instructions(offered)}"
        body: wire.Body = {
            "model": self._model,
            "messages": wire.messages_of(system, messages, native_tools=self._native_tools),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if offered and self._native_tools:
            body["tools"] = wire.tools_of(offered)
        return body

    def _generate_body(self, request: GenerateRequest, asked: list[Message]) -> wire.Body:
        system = request.system or ""
        body: wire.Body = {"model": self._model, "max_tokens": request.max_output_tokens, "stream": False}
        if request.schema is not None:
            if self._json_schema:
                schema = {"name": "answer", "schema": dict(request.schema)}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            else:
                system = f"{system}\n\n{in_words(request.schema)}"
        body["messages"] = wire.messages_of(system.strip(), asked, native_tools=True)
        return body

    async def _chunks(self, body: wire.Body) -> AsyncGenerator[Mapping[str, Any], None]:
        """The events of a streamed answer; leaving it closes the request."""
        async with self._http.stream("POST", self._url, json=body) as response:
            await faults.raise_for(response, self._mask)
            async for line in response.aiter_lines():
                data = line.removeprefix("data:").strip()
                if not line.startswith("data:") or not data:
                    continue
                if data == "[DONE]":
                    yield {"done": True}
                    return
                chunk = _json_object(data)
                if "error" in chunk:
                    raise faults.RefusalError(500, self._mask(str(chunk["error"])[:300]), None)
                yield chunk

    def _calls(
        self, answer: wire.Answer, request: ModelRequest, *, native: bool
    ) -> tuple[ToolCall, ...] | None:
        """The calls of an answer; None where there is one that cannot be read."""
        if native or request.must_answer:
            try:
                return answer.calls()
            except ValueError:
                return None
        number = sum(isinstance(message, AssistantMessage) for message in request.messages) + 1
        call = text_tools.read_call(answer.text, request.tools, number)
        if call is not None:
            return (call,)
        return None if answer.text.lstrip().startswith('{"tool"') else ()

    def _retries(self, deadline: float | None, on_wait: WaitNotice) -> Retries:
        return Retries(self._clock, deadline, on_wait, sleep=self._sleep, jitter=self._jitter)

    async def _handle(self, exc: Exception, retries: Retries, *, request: ModelRequest, spoke: bool) -> None:
        """Returns when another attempt should be made, else raises."""
        if self._native_tools and request.tools and faults.refuses(exc, "tool", "function"):
            self._native_tools = False
            return
        if spoke:
            raise faults.broke_off().error from None
        await self._retry_or_raise(exc, retries)

    async def _retry_or_raise(self, exc: Exception, retries: Retries) -> None:
        fault = faults.fault_of(exc, self._model, self._base)
        if fault is None:
            raise exc
        # `from None`: the client's exceptions hold the request, whose headers hold the key.
        try:
            await retries.again_or_raise(fault)
        except StyleEyesError as error:
            raise error from None

    @staticmethod
    def _check(answer: wire.Answer, *, spoke: bool) -> None:
        """Raises for an answer that is none."""
        if answer.finish == "content_filter" or answer.refusal:
            raise StyleEyesError(
                "MODEL_BLOCKED", "The model server held back its answer.", "Ask in other words."
            )
        if spoke and not (answer.finish == "length" and answer.has_calls):
            return
        if answer.finish == "length":
            raise truncated()
        raise StyleEyesError("MODEL_ERROR", "The model answered with nothing.", "Ask again.")


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, Mapping):
        raise faults.RefusalError(502, "its answer is no JSON object", None)
    return value
