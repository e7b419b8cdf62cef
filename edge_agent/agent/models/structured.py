"""A model's JSON answer, parsed and checked against the schema that was asked for."""

from __future__ import annotations

import json
import re
from typing import cast

import jsonschema_rs

from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue

# Some models wrap JSON in a Markdown fence even when asked for bare JSON.
_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


def parse_json_answer(text: str, schema: JsonObject, *, cut_off: bool) -> JsonValue:
    """The value in `text`. `cut_off`: the model stopped at its output limit.

    Raises StyleEyesError: MODEL_TRUNCATED when the JSON is incomplete because of the limit,
    MODEL_ERROR when it is no JSON or does not follow `schema` (names the place).
    """
    fenced = _FENCED.match(text)
    try:
        value = cast(JsonValue, json.loads(fenced.group(1) if fenced else text))
    except ValueError:
        if cut_off:
            raise truncated() from None
        raise StyleEyesError(
            "MODEL_ERROR", "The model's answer is not the JSON that was asked for.", "Ask again."
        ) from None
    try:
        validator = jsonschema_rs.validator_for(dict(schema))
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise StyleEyesError(
            "MODEL_ERROR", "The schema asked of the model is no JSON Schema.", str(error).split("\n")[0]
        ) from None
    for problem in validator.iter_errors(value):
        place = "$" + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.instance_path
        )
        raise StyleEyesError(
            "MODEL_ERROR",
            f"The model's answer does not follow the schema at {place}: {problem.message[:200]}",
            "Ask again, or make the schema plainer.",
        )
    return value


def in_words(schema: JsonObject) -> str:
    """The request for JSON, for a model or server that does not take the schema itself."""
    return f"Answer with one JSON object of this JSON Schema and nothing else: {json.dumps(schema)}"


def truncated() -> StyleEyesError:
    """The error for an answer that ended at the output limit with nothing usable in it."""
    return StyleEyesError(
        "MODEL_TRUNCATED",
        "The model ran into its output limit before it had answered.",
        "Ask for less in one call, or allow more output tokens.",
    )
