"""`ctx.llm` on the host side: aliases to models, each call on the event spine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from device.clock import Clock
from edge_agent.agent.model_call import ModelCall
from edge_agent.agent.models.protocol import ChatModel
from edge_agent.engine.ports import GenerateReply, GenerateRequest
from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.events import Spine

VARIABLE = "WORLDAGENTS_TOOL_MODELS"
DEFAULT = "default"


def read_aliases(env: Mapping[str, str]) -> dict[str, str]:
    """Alias → model spec of WORLDAGENTS_TOOL_MODELS; empty where it is not set.

    Raises UsageError that says where the JSON is wrong.
    """
    text = env.get(VARIABLE, "").strip()
    if not text:
        return {}
    hint = f'Write it as {VARIABLE}=\'{{"default": "offline"}}\', alias to model id.'
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError("INVALID_MODELS", f"{VARIABLE} is not JSON: {error.msg} at {where}.", hint) from None
    if not isinstance(value, dict):
        raise UsageError("INVALID_MODELS", f"{VARIABLE} must be a JSON object, alias to model id.", hint)
    for alias, spec in value.items():
        if not alias.strip() or not isinstance(spec, str) or not spec.strip():
            raise UsageError(
                "INVALID_MODELS", f"{VARIABLE}: the model of alias {alias!r} must be a non-empty text.", hint
            )
    return {alias: spec.strip() for alias, spec in value.items()}


class ToolModels:
    """The engine's ToolModelPort. `default` is the session's model unless an alias says otherwise.

    Models of other aliases are opened by `open_model(spec)` when first used and closed by `aclose`; the
    session's own model stays the session's to close.
    """

    def __init__(
        self,
        session_model: ChatModel,
        aliases: Mapping[str, str],
        open_model: Callable[[str], Awaitable[ChatModel]],
        spine: Spine,
        clock: Clock,
    ) -> None:
        self._session_model = session_model
        self._aliases = dict(aliases)
        self._open_model = open_model
        self._spine = spine
        self._clock = clock
        self._opened: dict[str, ChatModel] = {}
        self._opening = asyncio.Lock()

    def aliases(self) -> frozenset[str]:
        return frozenset({DEFAULT, *self._aliases})

    async def generate(self, alias: str, request: GenerateRequest, *, parent: str) -> GenerateReply:
        """One call for a tool, under the span `parent` of its capability call."""
        if alias not in self.aliases():
            known = ", ".join(sorted(self.aliases()))
            raise StyleEyesError(
                "CAPABILITY_DENIED", f"There is no model alias {alias!r}; known are: {known}."
            )
        spec = self._aliases.get(alias, self._session_model.id)
        async with ModelCall(
            self._spine,
            self._clock,
            parent=parent,
            alias=alias,
            model=spec,
            purpose="tool",
            images=len(request.images),
            prompt=request.prompt,
        ) as call:
            model = await self.opened(alias)
            reply = await model.generate(request, on_wait=call.waiting)
            call.finished(reply.finish_reason, reply.usage)
        return reply

    async def aclose(self) -> None:
        """Closes the models that aliases opened."""
        for model in self._opened.values():
            await model.aclose()
        self._opened.clear()

    async def opened(self, alias: str) -> ChatModel:
        """The model behind a known alias, opened where it is not yet."""
        spec = self._aliases.get(alias)
        if spec is None or spec == self._session_model.id:
            return self._session_model
        async with self._opening:
            if spec not in self._opened:
                self._opened[spec] = await self._open_model(spec)
            return self._opened[spec]
