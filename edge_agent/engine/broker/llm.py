"""`ctx.llm.generate`: one toolless model call with the images whose handles the tool holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from edge_agent.engine.broker.bounded_schema import BoundedSchema
from edge_agent.engine.broker.capabilities import Capabilities
from edge_agent.engine.broker.image_table import ImageTable
from edge_agent.engine.broker.limits import MAX_MODEL_IMAGES, MAX_OUTPUT_TOKENS, MAX_PROMPT_BYTES
from edge_agent.engine.broker.requests import Arguments, depth_exceeds, to_json, wrong_argument
from edge_agent.engine.ports import GenerateReply, GenerateRequest, HostImage, ToolModelPort
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue
from edge_agent.text import one_line

METHOD = "llm.generate"
_OPTIONS = frozenset({"prompt", "system", "images", "schema", "model", "maxOutputTokens"})
_MAX_ANSWER_DEPTH = 64


def model_alias(arguments: Arguments) -> str:
    """The alias that a call names, `default` where it names none; for the log, before any check."""
    options = arguments.get(0)
    alias = options.get("model") if isinstance(options, Mapping) else None
    return alias if isinstance(alias, str) else "default"


async def generate(
    arguments: Arguments,
    capabilities: Capabilities,
    images: ImageTable,
    models: ToolModelPort,
    *,
    parent: str,
    deadline: float | None = None,
) -> JsonObject:
    """`{text, json?, model, finishReason, usage}`; `json` is there exactly when a schema was given.

    Raises StyleEyesError: `CAPABILITY_DENIED` for an alias that is undeclared or unknown,
    `CAMERA_UNAVAILABLE` for a null image, `MODEL_ERROR` where schema or answer do not fit,
    `TOOL_ERROR` for wrong options, and whatever the model port raises.
    """
    arguments.at_most(1)
    options = arguments.get(0)
    if not isinstance(options, Mapping):
        raise wrong_argument(METHOD, "give an object with `prompt`")
    for key in options:
        if key not in _OPTIONS:
            raise wrong_argument(METHOD, f"`{one_line(key, 60)}` is not a known option")
    alias = _alias(options, capabilities, models)
    schema = options.get("schema")
    if schema is not None and not isinstance(schema, Mapping):
        raise wrong_argument(METHOD, "`schema` must be an object")
    checked = _bounded(schema) if schema is not None else None
    request = GenerateRequest(
        prompt=_text(options, "prompt") or "",
        system=_text(options, "system"),
        images=_images(options.get("images"), images),
        schema=schema,
        max_output_tokens=_tokens(options.get("maxOutputTokens")),
        deadline=deadline,
    )
    if not request.prompt.strip():
        raise wrong_argument(METHOD, "`prompt` must be a non-blank string")
    reply = await models.generate(alias, request, parent=parent)
    answer: dict[str, JsonValue] = {
        "text": reply.text,
        "model": reply.model,
        "finishReason": reply.finish_reason,
        "usage": {"inputTokens": reply.usage.input, "outputTokens": reply.usage.output},
    }
    if checked is not None:
        answer["json"] = await _checked_answer(reply, checked)
    return answer


def _alias(options: JsonObject, capabilities: Capabilities, models: ToolModelPort) -> str:
    alias = options.get("model")
    if alias is None:
        alias = "default"
    if not isinstance(alias, str):
        raise wrong_argument(METHOD, "`model` must be an alias such as `default`")
    if alias not in capabilities.models:
        raise StyleEyesError(
            "CAPABILITY_DENIED",
            f"The tool does not declare the model alias {one_line(alias, 60)!r}.",
            'Declare it: capabilities.llm = { models: ["default"] }.',
        )
    if alias not in models.aliases():
        raise StyleEyesError(
            "CAPABILITY_DENIED",
            f"There is no model alias {one_line(alias, 60)!r} here.",
            "Known: " + ", ".join(sorted(models.aliases())) + ". Aliases come from WORLDAGENTS_TOOL_MODELS.",
        )
    return alias


def _text(options: JsonObject, name: str) -> str | None:
    value = options.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong_argument(METHOD, f"`{name}` must be a string")
    if len(value.encode("utf-8", "replace")) > MAX_PROMPT_BYTES:
        raise StyleEyesError("INPUT_TOO_LARGE", f"`{name}` is over {MAX_PROMPT_BYTES:,} bytes.")
    return value


def _images(value: JsonValue, table: ImageTable) -> tuple[HostImage, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_argument(METHOD, "`images` must be an array of image handles")
    if len(value) > MAX_MODEL_IMAGES:
        raise wrong_argument(METHOD, f"`images` has {len(value)} images; at most {MAX_MODEL_IMAGES}")
    found = []
    for index, handle in enumerate(value):
        if handle is None:
            raise StyleEyesError(
                "CAMERA_UNAVAILABLE",
                f"`images[{index}]` is null: there was no fresh camera frame when the tool started.",
                "Look at ctx.camera.status, and say so when ctx.camera.frame is null.",
            )
        image = table.find(handle)
        if image is None:
            raise StyleEyesError(
                "CAPABILITY_DENIED",
                f"`images[{index}]` is not an image handle of this run.",
                "Pass ctx.camera.frame or what ctx.images.open gave, as it is.",
            )
        found.append(image)
    return tuple(found)


def _tokens(value: JsonValue) -> int:
    if value is None:
        return MAX_OUTPUT_TOKENS
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1 or value != int(value):
        raise wrong_argument(METHOD, "`maxOutputTokens` must be a whole number of at least 1")
    return min(int(value), MAX_OUTPUT_TOKENS)


async def _checked_answer(reply: GenerateReply, schema: BoundedSchema) -> JsonValue:
    """The answer's JSON: as the adapter parsed it, else parsed from the text, and always validated."""
    value = reply.json
    if value is None:
        try:
            value = cast(JsonValue, json.loads(reply.text))
        except (ValueError, RecursionError):
            raise StyleEyesError("MODEL_ERROR", "The model's answer is not JSON.") from None
    if depth_exceeds(value, _MAX_ANSWER_DEPTH):
        raise StyleEyesError("MODEL_ERROR", "The model's answer is nested too deep.")
    try:
        to_json(value)
    except (ValueError, TypeError):
        raise StyleEyesError("MODEL_ERROR", "The model's answer holds a number that JSON has not.") from None
    problem = await schema.first_error(value)
    if problem is not None:
        raise StyleEyesError(
            "MODEL_ERROR",
            f"The model's answer does not fit the schema at {problem}.",
            "Call again, or loosen the schema.",
        )
    return value


def _bounded(schema: JsonObject) -> BoundedSchema:
    return BoundedSchema(schema, code="MODEL_ERROR", name="The `schema` given to ctx.llm.generate")
