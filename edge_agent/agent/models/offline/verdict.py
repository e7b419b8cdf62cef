"""The one request that the offline model answers for tools: which candidate is the garment?

The request is recognised by its lines `Image N: camera frame` and `Image N: candidate STYLE …` and
by a schema that asks for `best` and `candidates`. Anything else is refused, never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge_agent.agent.models.offline.sight import Candidate, Comparison, Likeness
from edge_agent.engine.ports import GenerateRequest
from edge_agent.errors import StyleEyesError
from edge_agent.json_types import JsonObject, JsonValue

_IMAGE_LINE = re.compile(r"^Image (\d+): (.+?)\s*$", re.MULTILINE)
_CANDIDATE = re.compile(r"candidate (\S+)(?: \((.*)\))?")
BEST_AT_LEAST = 0.5
"""Below an even chance no candidate is called the best."""


@dataclass(frozen=True, slots=True)
class MatchRequest:
    """The frame, and each candidate by style id and in the order of the prompt. `photo_words` are what
    the prompt says of each of its photos: name, colour and view as far as known."""

    frame: bytes
    candidates: Mapping[str, Candidate]
    photo_words: Mapping[str, Sequence[str]]


def read_match_request(request: GenerateRequest) -> MatchRequest:
    """Raises StyleEyesError MODEL_UNAVAILABLE for a request of any other shape."""
    wanted = (request.schema or {}).get("properties")
    lines = {int(number): what for number, what in _IMAGE_LINE.findall(request.prompt)}
    if not isinstance(wanted, Mapping) or not {"best", "candidates"} <= set(wanted):
        raise _not_a_match("its schema asks for no verdict")
    if set(lines) != set(range(1, len(request.images) + 1)) or len(lines) < 2:
        raise _not_a_match("its lines do not name every image")
    if not lines[1].startswith("camera frame"):
        raise _not_a_match("its first image is no camera frame")
    photos: dict[str, list[bytes]] = {}
    words: dict[str, list[str]] = {}
    for number in range(2, len(lines) + 1):
        candidate = _CANDIDATE.match(lines[number])
        if candidate is None:
            raise _not_a_match(f"image {number} is no candidate")
        style = candidate.group(1).rstrip(",;:")
        photos.setdefault(style, []).append(request.images[number - 1].data)
        words.setdefault(style, []).append(candidate.group(2) or "")
    return MatchRequest(
        frame=request.images[0].data,
        candidates={style: Candidate(words[style][0], given) for style, given in photos.items()},
        photo_words=words,
    )


def verdict_of(comparison: Comparison, match: MatchRequest, schema: JsonObject) -> JsonObject:
    """The verdict, with only those optional fields that the schema knows."""
    styles = list(match.candidates)
    rated = list(zip(styles, comparison.candidates, strict=True))
    top_style, top = max(rated, key=lambda pair: pair[1].probability)
    judged = comparison.problem is None
    best = top_style if judged and top.probability >= max(BEST_AT_LEAST, comparison.none) else None
    candidates: list[JsonValue] = [
        _known(
            {
                "styleId": style,
                "probability": round(likeness.probability, 3),
                "agrees": list(likeness.agrees),
                "differs": list(likeness.differs),
            },
            _item_schema(schema),
        )
        for style, likeness in rated
    ]
    return _known(
        {
            "best": best,
            "color": _color(match.photo_words[best], top.photo) if best else None,
            "confidence": round(top.probability if best else max(comparison.none, 1 - top.probability), 3),
            "candidates": candidates,
            "askToSeeTag": not (comparison.exact and best is not None),
            "reason": comparison.problem or _reason(top, certain=comparison.exact),
        },
        schema,
    )


def _color(photo_words: Sequence[str], photo: int | None) -> str | None:
    """What stands where the colour of the best photo would: the word before the view, if any."""
    parts = photo_words[photo].split(", ") if photo is not None else []
    return parts[-2] if len(parts) > 2 else parts[-1] if len(parts) == 2 else None


def _reason(top: Likeness, *, certain: bool) -> str:
    """One sentence from the evidence of the likeliest candidate."""
    if certain:
        return f"{in_a_row(top.agrees)} agree" if top.agrees else "the photos agree"
    if top.differs:
        verb = "differs" if len(top.differs) == 1 and " and " not in top.differs[0] else "differ"
        return f"the {in_a_row(top.differs)} {verb}"
    return "what is seen fits more than one style"


def in_a_row(words: Sequence[str]) -> str:
    """`colour, cut and form`: what may itself hold an "and" stands behind a comma."""
    if len(words) < 2:
        return "".join(words)
    last = f", and {words[-1]}" if len(words) > 2 or " and " in "".join(words) else f" and {words[-1]}"
    return ", ".join(words[:-1]) + last


def _known(value: JsonObject, schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return value
    return {key: inner for key, inner in value.items() if key in properties}


def _item_schema(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties")
    rows = properties.get("candidates") if isinstance(properties, Mapping) else None
    item = rows.get("items") if isinstance(rows, Mapping) else None
    return item if isinstance(item, Mapping) else {}


def _not_a_match(why: str) -> StyleEyesError:
    return StyleEyesError(
        "MODEL_UNAVAILABLE",
        f"The offline model can only compare a camera frame with catalog photos, not this ({why}).",
        "Set GEMINI_API_KEY, or give this alias another model in WORLDAGENTS_TOOL_MODELS.",
    )
