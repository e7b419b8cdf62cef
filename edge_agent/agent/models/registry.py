"""From a model spec to a model: `offline`, a Gemini id, or `openai:BASE#MODEL`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from device.clock import Clock
from edge_agent.agent.models.protocol import ChatModel
from edge_agent.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    from edge_agent.agent.models.offline.sight import Sight

OFFLINE = "offline"
DEFAULT_GEMINI = "gemini-flash-latest"
"""Google's own moving alias of its newest fast model with vision and tools."""
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_OPENAI_PREFIX = "openai:"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model, and why, in words for the screen."""

    spec: str
    reason: str


def gemini_key(env: Mapping[str, str]) -> str | None:
    """The API key, GEMINI_API_KEY first; blank counts as not set."""
    return next((key for name in KEY_VARIABLES if (key := env.get(name, "").strip())), None)


def choose_model(flag: str | None, env: Mapping[str, str], agent_config_model: str | None) -> ModelChoice:
    """The model of a session: `--model`, else the agent's own, else Gemini if a key is set, else offline.

    An agent's own Gemini model without a key falls back to offline, and says so. Raises UsageError for
    a spec that cannot be one.
    """
    if flag and flag.strip():
        return ModelChoice(check_spec(flag), "chosen with --model")
    key_set = gemini_key(env) is not None
    if agent_config_model and agent_config_model.strip():
        spec = check_spec(agent_config_model)
        if key_set or not is_gemini(spec):
            return ModelChoice(spec, "set in agent.json")
        return ModelChoice(OFFLINE, f"no GEMINI_API_KEY is set, which {spec} of agent.json needs")
    if key_set:
        return ModelChoice(DEFAULT_GEMINI, "a Gemini key is set")
    return ModelChoice(OFFLINE, "no GEMINI_API_KEY is set")


def is_gemini(spec: str) -> bool:
    """Whether a spec is a Gemini id: anything that is not one of the other forms."""
    return spec != OFFLINE and not spec.startswith(_OPENAI_PREFIX)


def check_spec(spec: str) -> str:
    """`spec` trimmed. Raises UsageError INVALID_MODEL where it cannot be a model."""
    spec = spec.strip()
    if spec.startswith(_OPENAI_PREFIX):
        base, _, model = spec.removeprefix(_OPENAI_PREFIX).partition("#")
        if not base.startswith(("http://", "https://")) or not model:
            raise UsageError(
                "INVALID_MODEL",
                f"{spec!r} is not openai:BASE_URL#MODEL.",
                "Write for example openai:http://127.0.0.1:11434/v1#llava.",
            )
    elif not spec or any(c.isspace() or not c.isprintable() for c in spec):
        raise UsageError(
            "INVALID_MODEL", f"{spec!r} is no model id.", "Use a Gemini id, offline or openai:BASE_URL#MODEL."
        )
    return spec


async def open_model(spec: str, *, env: Mapping[str, str], clock: Clock, vision_folder: Path) -> ChatModel:
    """Opens a model on the running loop; close it with `aclose`. SDKs are imported only here, in a
    thread. Raises UsageError for a bad spec, EnvironmentLacksError without a key."""
    spec = check_spec(spec)
    if spec == OFFLINE:
        return await asyncio.to_thread(_offline, clock, vision_folder)
    if spec.startswith(_OPENAI_PREFIX):
        base, _, model = spec.removeprefix(_OPENAI_PREFIX).partition("#")
        openai_key = env.get("OPENAI_API_KEY", "").strip() or None
        if openai_key:
            _check_key(openai_key, "OPENAI_API_KEY")
        return await asyncio.to_thread(_openai, base, model, openai_key, clock)
    key = gemini_key(env)
    if key is None:
        raise EnvironmentLacksError(
            "MODEL_UNAVAILABLE",
            f"The model {spec} needs a Gemini API key, and none is set.",
            "Set GEMINI_API_KEY, or use --model offline.",
        )
    _check_key(key, "Gemini API key")
    return await asyncio.to_thread(_gemini, spec, key, clock, env.get("GOOGLE_GEMINI_BASE_URL") or None)


def _check_key(key: str, what: str) -> None:
    """A key that cannot be an HTTP header is a slip of copying, told before any request."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise EnvironmentLacksError(
            "MODEL_UNAVAILABLE",
            f"The {what} holds characters that no key has.",
            "Copy it again, without quotes, blanks or line ends.",
        )


def _gemini(spec: str, key: str, clock: Clock, base_url: str | None) -> ChatModel:
    from edge_agent.agent.models.gemini import GeminiModel

    return GeminiModel(spec, key, clock, base_url=base_url)


def _openai(base: str, model: str, key: str | None, clock: Clock) -> ChatModel:
    from edge_agent.agent.models.openai import OpenAIModel

    return OpenAIModel(base, model, clock, api_key=key)


def _offline(clock: Clock, vision_folder: Path) -> ChatModel:
    from edge_agent.agent.models.offline import OfflineModel

    def load() -> Sight:
        from edge_agent.agent.models.offline.garment_sight import load_garment_sight

        return load_garment_sight(vision_folder)

    return OfflineModel(load, clock)
