"""Gemini as a ChatModel."""

from __future__ import annotations

import asyncio
import random
import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import httpx
from google import genai
from google.genai import types

from device.clock import Clock
from edge_agent.agent.models.gemini import faults, wire
from edge_agent.agent.models.pictures import PictureFitter, fitted, image_bytes_of
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Completed,
    ModelRequest,
    TextDelta,
    UserMessage,
    WaitNotice,
)
from edge_agent.agent.models.retry import Retries, Sleep
from edge_agent.agent.models.structured import in_words, parse_json_answer, truncated
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.errors import StyleEyesError
from edge_agent.text import SecretMask

MOST_CORRECTIONS = 2
MOST_OUTPUT_TOKENS_OF_A_TOOL = 2048
CONNECT_TIMEOUT_S = 10.0
SILENCE_TIMEOUT_S = 60.0
SHORTEST_SERVER_TIMEOUT_S = 10
"""The SDK passes the time-out on to the server, which refuses less than this with a 400."""
THINKING_BUDGET_TOKENS = 512
"""Thinking counts towards the output limit: a quarter of a tool's 2048 tokens leaves room to
answer, and every 2.5 model accepts it."""

# A finish reason newer than the SDK is mapped by its text; the SDK's warning would only reach stderr.
warnings.filterwarnings("ignore", message=r".* is not a valid \w+", category=UserWarning)


class GeminiModel:
    """One Gemini model by id. Opened and closed on one event loop; the key is never shown.

    `base_url` None means Google's own, or GOOGLE_GEMINI_BASE_URL, which the SDK reads itself.
    """

    def __init__(
        self,
        model: str,
        api_key: str,
        clock: Clock,
        *,
        base_url: str | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._mask = SecretMask([api_key])
        self._pictures = PictureFitter()
        self._thinking = _limited_thinking(model)
        # Our own HTTP clients: redirects are not followed (the key would travel along), and both
        # share one TLS context, whose certificates take 20 ms to load.
        tls = httpx.create_ssl_context()
        self._http = httpx.AsyncClient(
            verify=tls, follow_redirects=False, event_hooks={"request": [_connect_sooner]}
        )
        self._sync_http = httpx.Client(verify=tls, follow_redirects=False)
        self._client = genai.Client(
            vertexai=False,
            api_key=api_key,
            http_options=types.HttpOptions(
                base_url=base_url, httpx_async_client=self._http, httpx_client=self._sync_http
            ),
        )

    def __repr__(self) -> str:
        return f"GeminiModel({self._model!r})"

    @property
    def id(self) -> str:
        return self._model

    async def aclose(self) -> None:
        """Closes every connection; safe to call twice."""
        self._pictures.forget()
        await self._http.aclose()
        self._sync_http.close()

    async def stream(
        self, request: ModelRequest, *, on_wait: WaitNotice
    ) -> AsyncIterator[TextDelta | Completed]:
        """One step of a turn. The completed message's text is that of all deltas together."""
        messages = await asyncio.to_thread(fitted, request.messages, self._pictures.fit)
        contents = wire.contents_of(messages)
        config = self._turn_config(request)
        retries = self._retries(request.deadline, on_wait)
        spoken = ""
        corrections = 0
        while True:
            answer = wire.Answer()
            try:
                async with aclosing(
                    self._chunks(contents, self._with_settings(config, request.deadline))
                ) as chunks:
                    async for chunk in chunks:
                        text = answer.add(chunk)
                        if text:
                            spoken += text
                            yield TextDelta(text)
            except Exception as exc:  # noqa: BLE001 - mapped below; what is no known fault is raised again
                await self._handle(exc, retries, spoke=bool(spoken))
                continue
            if answer.finish is None and answer.block_reason is None and answer.parts:
                if spoken:
                    raise faults.broke_off().error
                await retries.again_or_raise(faults.broke_off())
                continue
            correction = self._correction(answer, corrections)
            if correction is not None:
                corrections += 1
                contents = [*contents, wire.user_content(correction)]
                continue
            if not self._usable(answer):
                await retries.again_or_raise(faults.empty_answer())
                continue
            yield Completed(
                message=AssistantMessage(text=spoken, tool_calls=answer.calls(), native=answer.content()),
                finish_reason=answer.finish or "UNKNOWN",
                usage=answer.usage(image_bytes_of(messages)),
            )
            return

    async def generate(self, request: GenerateRequest, *, on_wait: WaitNotice) -> GenerateReply:
        """One toolless call with capped output and limited thinking."""
        asked = UserMessage(text=request.prompt, images=request.images)
        messages = await asyncio.to_thread(fitted, [asked], self._pictures.fit)
        contents = wire.contents_of(messages)
        config = types.GenerateContentConfig(
            system_instruction=request.system or None,
            max_output_tokens=max(1, min(request.max_output_tokens, MOST_OUTPUT_TOKENS_OF_A_TOOL)),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        if request.schema is not None:
            config.response_mime_type = "application/json"
            config.response_json_schema = dict(request.schema)
        retries = self._retries(request.deadline, on_wait)
        while True:
            answer = wire.Answer()
            try:
                answer.add(
                    await self._client.aio.models.generate_content(
                        model=self._model,
                        contents=[*contents],
                        config=self._with_settings(config, request.deadline),
                    )
                )
            except Exception as exc:  # noqa: BLE001 - mapped below; what is no known fault is raised again
                if config.response_json_schema is not None and faults.refuses_schema(exc):
                    # Not every model takes every keyword; in words it can still follow the schema.
                    asked_in_words = in_words(request.schema or {})
                    config.system_instruction = f"{request.system or ''}\n\n{asked_in_words}".strip()
                    config.response_json_schema = None
                    continue
                await self._handle(exc, retries, spoke=False)
                continue
            if self._usable(answer):
                break
            await retries.again_or_raise(faults.empty_answer())
        finish = answer.finish or "UNKNOWN"
        cut_off = faults.ending_of(finish) == "cut_off"
        return GenerateReply(
            text=answer.text,
            model=self._model,
            finish_reason=finish,
            usage=answer.usage(image_bytes_of(messages)),
            json=parse_json_answer(answer.text, request.schema, cut_off=cut_off)
            if request.schema is not None
            else None,
        )

    def _turn_config(self, request: ModelRequest) -> types.GenerateContentConfig:
        config = types.GenerateContentConfig(
            system_instruction=request.system or None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        if request.tools:
            mode = "NONE" if request.must_answer else "AUTO"
            config.tools = [*wire.declarations_of(request.tools)]
            config.tool_config = types.ToolConfig(
                function_calling_config=types.FunctionCallingConfig(
                    mode=types.FunctionCallingConfigMode(mode)
                )
            )
        return config

    def _with_settings(
        self, config: types.GenerateContentConfig, deadline: float | None
    ) -> types.GenerateContentConfig:
        left = SILENCE_TIMEOUT_S if deadline is None else deadline - self._clock.monotonic()
        seconds = max(SHORTEST_SERVER_TIMEOUT_S, min(SILENCE_TIMEOUT_S, left))
        return config.model_copy(
            update={
                "thinking_config": self._thinking,
                "http_options": types.HttpOptions(timeout=int(seconds * 1000)),
            }
        )

    def _retries(self, deadline: float | None, on_wait: WaitNotice) -> Retries:
        return Retries(self._clock, deadline, on_wait, sleep=self._sleep, jitter=self._jitter)

    async def _chunks(
        self, contents: list[types.Content], config: types.GenerateContentConfig
    ) -> AsyncGenerator[types.GenerateContentResponse, None]:
        """The SDK's stream, read by a task of its own.

        The SDK nests generators that do not close one another. Cancelling the task that reads
        them unwinds all of them from the inside, which is what closes the HTTP response at once.
        """
        queue: asyncio.Queue[types.GenerateContentResponse | Exception | None] = asyncio.Queue()

        async def read() -> None:
            try:
                stream = await self._client.aio.models.generate_content_stream(
                    model=self._model, contents=[*contents], config=config
                )
                async for chunk in stream:
                    queue.put_nowait(chunk)
            except Exception as exc:  # noqa: BLE001 - handed to the consumer, which maps it
                queue.put_nowait(exc)
            else:
                queue.put_nowait(None)

        reader = asyncio.create_task(read(), name="gemini-stream")
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _handle(self, exc: Exception, retries: Retries, *, spoke: bool) -> None:
        """Returns when another attempt should be made, else raises."""
        if isinstance(exc, StyleEyesError):
            raise exc
        if self._thinking is not None and faults.refuses_thinking_settings(exc):
            self._thinking = None
            return
        fault = faults.fault_of(exc, self._model, self._mask)
        if fault is None:
            raise exc
        # `from None`: the SDK's exceptions hold the request, whose headers hold the key.
        if spoke:
            raise fault.error from None
        try:
            await retries.again_or_raise(fault)
        except StyleEyesError as error:
            raise error from None

    def _correction(self, answer: wire.Answer, corrections: int) -> str | None:
        """What to tell the model about a call that could not be read; None if there was none."""
        reason = answer.finish or ""
        if faults.ending_of(reason) != "unreadable_call":
            return None
        if corrections >= MOST_CORRECTIONS:
            raise faults.unreadable_call(reason, corrections + 1)
        return (
            f"Your last function call could not be read ({reason}). Call one of the declared functions with "
            "arguments that are valid JSON for its parameters, or answer in words."
        )

    @staticmethod
    def _usable(answer: wire.Answer) -> bool:
        """False for an empty answer worth another try; raises for every ending that is a failure."""
        if answer.block_reason is not None:
            raise faults.blocked(answer.block_reason, prompt=True)
        if answer.finish is None:
            return answer.has_content
        match faults.ending_of(answer.finish):
            case "blocked":
                raise faults.blocked(answer.finish, prompt=False)
            case "cut_off" if answer.calls() or not answer.has_content:
                raise truncated()
            case "failed" | "unreadable_call":
                raise faults.stopped(answer.finish)
            case "unknown" if not answer.has_content:
                raise faults.stopped(answer.finish)
            case _:
                return answer.has_content


async def _connect_sooner(request: httpx.Request) -> None:
    """The SDK gives one time-out for everything; a connection that takes so long will never come."""
    timeouts = request.extensions["timeout"]
    timeouts["connect"] = min(CONNECT_TIMEOUT_S, timeouts["connect"] or CONNECT_TIMEOUT_S)


def _limited_thinking(model: str) -> types.ThinkingConfig | None:
    """Little thinking, in the terms that the model's generation takes.

    From the third generation on (and for Google's moving `-latest` names) it is a level, for 2.5 a
    budget, before that neither. Where the guess is wrong the server says so and the setting is
    dropped, so an id of any kind works.
    """
    version = re.search(r"gemini-(\d+)(?:\.(\d+))?", model)
    if version is None:
        moving = re.search(r"gemini-.*latest", model)
        return types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW) if moving else None
    generation = (int(version.group(1)), int(version.group(2) or 0))
    if generation >= (3, 0):
        return types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
    if generation >= (2, 5):
        return types.ThinkingConfig(thinking_budget=THINKING_BUDGET_TOKENS)
    return None
