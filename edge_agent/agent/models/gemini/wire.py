"""Between the loop's neutral messages and Gemini's contents and parts.

What the model says is kept part by part as it came: a thought signature belongs to the very part
it arrived on (an empty text part too), and a later request without it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from google.genai import types

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
from edge_agent.json_types import JsonObject, JsonValue


def contents_of(messages: Sequence[Message]) -> list[types.Content]:
    """The conversation as Gemini takes it; pictures must have been fitted before."""
    contents: list[types.Content] = []
    calls: Sequence[types.FunctionCall] = ()
    for message in messages:
        match message:
            case UserMessage():
                contents.append(user_content(message.text, message.images))
            case AssistantMessage():
                content = _model_content(message)
                calls = [part.function_call for part in content.parts or [] if part.function_call]
                if content.parts:
                    contents.append(content)
            case ToolResultsMessage():
                contents.append(_results_content(message, calls))
    return contents


def user_content(text: str, images: Sequence[HostImage] = ()) -> types.Content:
    """Pictures first, in order, then the text."""
    parts = [types.Part.from_bytes(data=image.data, mime_type=image.mime_type) for image in images]
    return types.Content(role="user", parts=[*parts, types.Part(text=text)])


def _model_content(message: AssistantMessage) -> types.Content:
    if isinstance(message.native, types.Content):
        return message.native
    parts = [types.Part(text=message.text)] if message.text else []
    for call in message.tool_calls:
        arguments = dict(call.arguments)
        parts.append(types.Part(function_call=types.FunctionCall(name=call.name, args=arguments)))
    return types.Content(role="model", parts=parts)


def _results_content(message: ToolResultsMessage, calls: Sequence[types.FunctionCall]) -> types.Content:
    """One content with a response for every call, in call order, each with the call's own id."""
    parts = []
    for index, result in enumerate(message.results):
        # The id is Gemini's or absent: one that we made up must not be sent back.
        native_id = calls[index].id if index < len(calls) else None
        response = types.FunctionResponse(id=native_id, name=result.name, response=_as_struct(result.value))
        parts.append(types.Part(function_response=response))
    return types.Content(role="user", parts=parts)


def _as_struct(value: JsonValue) -> dict[str, object]:
    """Gemini wants an object; `error` and `output` are the keys its models are trained on."""
    if isinstance(value, Mapping) and set(value) == {"error"}:
        return {"error": value["error"]}
    return {"output": value}


def declarations_of(tools: Sequence[ToolDeclaration]) -> list[types.Tool]:
    """Full JSON Schema: the older `parameters` field refuses `additionalProperties`."""
    if not tools:
        return []
    declarations = [
        types.FunctionDeclaration(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters)
        )
        for tool in tools
    ]
    return [types.Tool(function_declarations=declarations)]


class Answer:
    """One answer, gathered from a stream's chunks or from a single response."""

    def __init__(self) -> None:
        self.parts: list[types.Part] = []
        self.finish: str | None = None
        self.block_reason: str | None = None
        self._usage: types.GenerateContentResponseUsageMetadata | None = None

    def add(self, chunk: types.GenerateContentResponse) -> str:
        """Takes a chunk in and returns the text in it that a person may see."""
        if chunk.usage_metadata is not None:
            self._usage = chunk.usage_metadata
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self.block_reason = _name(feedback.block_reason)
        if not chunk.candidates:
            return ""
        candidate = chunk.candidates[0]
        if candidate.finish_reason is not None:
            self.finish = _name(candidate.finish_reason)
        fresh = (candidate.content.parts or []) if candidate.content else []
        for part in fresh:
            self._keep(part)
        return "".join(part.text for part in fresh if part.text and not part.thought)

    def _keep(self, part: types.Part) -> None:
        if part == types.Part() or (part.text == "" and part.thought_signature is None):
            return
        last = self.parts[-1] if self.parts else None
        if last is not None and _plain_text(last) and _plain_text(part):
            self.parts[-1] = types.Part(text=f"{last.text}{part.text}")
        else:
            self.parts.append(part)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if part.text and not part.thought)

    @property
    def has_content(self) -> bool:
        """Whether there is a word to show or a call to make; thoughts and signatures are neither."""
        return bool(self.text.strip()) or any(part.function_call for part in self.parts)

    def calls(self) -> tuple[ToolCall, ...]:
        """The function calls in order; where Gemini gave no id, one is made up for our side."""
        found = [part.function_call for part in self.parts if part.function_call]
        return tuple(
            ToolCall(
                id=call.id or f"call-{number}",
                name=call.name or "",
                arguments=cast(JsonObject, json.loads(json.dumps(call.args or {}))),
            )
            for number, call in enumerate(found, 1)
        )

    def content(self) -> types.Content:
        return types.Content(role="model", parts=self.parts)

    def usage(self, image_bytes: int) -> TokenUsage:
        counts = self._usage
        sent = image_bytes or None
        if counts is None:
            return TokenUsage(image_bytes=sent)
        pictures = [
            detail.token_count or 0
            for detail in counts.prompt_tokens_details or []
            if detail.modality is not None and _name(detail.modality) == "IMAGE"
        ]
        return TokenUsage(
            input=counts.prompt_token_count,
            output=counts.candidates_token_count,
            thinking=counts.thoughts_token_count,
            images=sum(pictures) if pictures else None,
            image_bytes=sent,
        )


def _plain_text(part: types.Part) -> bool:
    """Text and nothing else, so that joining two of them loses nothing."""
    return bool(part.text) and part == types.Part(text=part.text)


def _name(enum_value: object) -> str:
    """The wire's text of an SDK enum, one that the SDK does not know included."""
    return str(getattr(enum_value, "value", enum_value))
