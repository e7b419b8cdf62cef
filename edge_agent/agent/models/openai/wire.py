"""Between the loop's neutral messages and OpenAI's chat completions format."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from edge_agent.agent.models.openai import text_tools
from edge_agent.agent.models.protocol import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolDeclaration,
    ToolResultsMessage,
    UserMessage,
)
from edge_agent.engine.ports import HostImage
from edge_agent.events import TokenUsage

Body = dict[str, Any]


def messages_of(system: str, messages: Sequence[Message], *, native_tools: bool) -> list[Body]:
    """The conversation; without `native_tools`, calls and results are written as text."""
    sent: list[Body] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        match message:
            case UserMessage():
                sent.append({"role": "user", "content": user_content(message.text, message.images)})
            case AssistantMessage() if native_tools:
                sent.append(_assistant(message))
            case AssistantMessage():
                calls = [text_tools.call_text(call) for call in message.tool_calls]
                sent.append({"role": "assistant", "content": "\n".join([message.text, *calls]).strip()})
            case ToolResultsMessage() if native_tools:
                sent += [
                    {
                        "role": "tool",
                        "tool_call_id": result.call_id,
                        "content": json.dumps(result.value, ensure_ascii=False),
                    }
                    for result in message.results
                ]
            case ToolResultsMessage():
                sent.append({"role": "user", "content": text_tools.result_text(message.results)})
    return sent


def user_content(text: str, images: Sequence[HostImage]) -> str | list[Body]:
    """Plain text, or pictures as data URLs before the text."""
    if not images:
        return text
    pictures: list[Body] = [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{image.mime_type};base64,{base64.b64encode(image.data).decode()}"},
        }
        for image in images
    ]
    return [*pictures, {"type": "text", "text": text}]


def _assistant(message: AssistantMessage) -> Body:
    body: Body = {"role": "assistant", "content": message.text or None}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return body


def tools_of(tools: Sequence[ToolDeclaration]) -> list[Body]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


class Answer:
    """One answer gathered from stream chunks (`delta`) or from one response (`message`)."""

    def __init__(self) -> None:
        self.text = ""
        self.finish: str | None = None
        self.refusal = ""
        self.whole = False
        """Whether the model said that it was finished; else the connection broke off."""
        self._usage: Mapping[str, Any] = {}
        self._calls: dict[int, Body] = {}

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Takes a chunk in and returns its text."""
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = chunk["usage"]
        choices = chunk.get("choices") or [{}]
        choice = choices[0]
        self.finish = choice.get("finish_reason") or self.finish
        self.whole = self.whole or self.finish is not None or "done" in chunk
        piece = choice.get("delta") or choice.get("message") or {}
        self.refusal += piece.get("refusal") or ""
        for position, call in enumerate(piece.get("tool_calls") or []):
            # Some servers leave the index out and send each call whole.
            self._add_call(call.get("index", len(self._calls) if call.get("id") else position), call)
        text = piece.get("content") or ""
        self.text += text
        return str(text)

    def _add_call(self, index: int, call: Mapping[str, Any]) -> None:
        known = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = call.get("function") or {}
        known["id"] = call.get("id") or known["id"]
        known["name"] = function.get("name") or known["name"]
        arguments = function.get("arguments") or ""
        # Ollama's older versions send an object where the format asks for JSON text.
        known["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in order. Raises ValueError where the arguments are no JSON object."""
        made = []
        for number, (_, call) in enumerate(sorted(self._calls.items()), 1):
            arguments = json.loads(call["arguments"] or "{}")
            if not isinstance(arguments, Mapping) or not call["name"]:
                raise ValueError("not a call with an object of arguments")
            made.append(ToolCall(call["id"] or f"call-{number}", call["name"], arguments))
        return tuple(made)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def usage(self, image_bytes: int) -> TokenUsage:
        details = self._usage.get("completion_tokens_details") or {}
        return TokenUsage(
            input=self._usage.get("prompt_tokens"),
            output=self._usage.get("completion_tokens"),
            thinking=details.get("reasoning_tokens"),
            image_bytes=image_bytes or None,
        )
