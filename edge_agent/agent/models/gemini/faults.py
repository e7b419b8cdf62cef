"""What can go wrong with Gemini, as errors that say what to do, and whether to try again."""

from __future__ import annotations

import re
from typing import Any, Literal

import httpx
import pydantic
from google.genai import errors as sdk_errors

from edge_agent.agent.models.retry import Fault
from edge_agent.errors import StyleEyesError
from edge_agent.text import SecretMask, one_line, sanitise

Ending = Literal["done", "cut_off", "blocked", "unreadable_call", "failed", "unknown"]

ENDINGS: dict[str, Ending] = {
    "STOP": "done",
    "MAX_TOKENS": "cut_off",
    "CONTINUATION": "cut_off",
    "SAFETY": "blocked",
    "RECITATION": "blocked",
    "LANGUAGE": "blocked",
    "BLOCKLIST": "blocked",
    "PROHIBITED_CONTENT": "blocked",
    "SPII": "blocked",
    "IMAGE_SAFETY": "blocked",
    "IMAGE_PROHIBITED_CONTENT": "blocked",
    "IMAGE_RECITATION": "blocked",
    "ESCALATION": "blocked",
    "PUP_LIMITED_DISABLED": "blocked",
    "MODEL_ARMOR": "blocked",
    "MALFORMED_FUNCTION_CALL": "unreadable_call",
    "UNEXPECTED_TOOL_CALL": "unreadable_call",
    "MALFORMED_RESPONSE": "unreadable_call",
    "MISSING_THOUGHT_SIGNATURE": "failed",
    "TOO_MANY_TOOL_CALLS": "failed",
    "IMAGE_OTHER": "failed",
    "NO_IMAGE": "failed",
}
"""By the wire's text, not the SDK's enum: a reason the SDK does not know yet is `unknown`."""


def ending_of(finish_reason: str) -> Ending:
    """What a finish reason comes to; `unknown` counts as done when there is content."""
    return ENDINGS.get(finish_reason, "unknown")


def blocked(reason: str, *, prompt: bool) -> StyleEyesError:
    """The prompt or the answer was held back by the provider's filters."""
    what = "the question or its pictures" if prompt else "its own answer"
    return StyleEyesError(
        "MODEL_BLOCKED",
        f"Gemini held back {what} ({reason}).",
        "Ask in other words, or point the camera at the garment alone.",
    )


def stopped(reason: str) -> StyleEyesError:
    """A finish reason that leaves nothing to show."""
    return StyleEyesError(
        "MODEL_ERROR", f"Gemini stopped without an answer ({reason}).", "Ask again, or choose another model."
    )


def unreadable_call(reason: str, attempts: int) -> StyleEyesError:
    """The model's function calls stayed malformed after the corrections."""
    return StyleEyesError(
        "MODEL_ERROR",
        f"Gemini wrote a tool call that cannot be read, {attempts} times ({reason}).",
        "Ask again, or choose another model with --model.",
    )


def empty_answer() -> Fault:
    """STOP or no candidate, and not one part: happens now and then; a second try often helps."""
    error = StyleEyesError("MODEL_ERROR", "Gemini answered with nothing.", "Ask again.")
    return Fault(error, tries=3, delay=0.5, why="empty answer")


def broke_off() -> Fault:
    """The stream ended before the model said that it was finished."""
    error = StyleEyesError(
        "MODEL_ERROR", "The connection to Gemini broke off in the middle of the answer.", "Ask again."
    )
    return Fault(error, tries=4, why="connection lost")


def fault_of(exc: Exception, model: str, mask: SecretMask) -> Fault | None:
    """The fault behind what the SDK or its HTTP client raised; None for anything else."""
    if isinstance(exc, sdk_errors.APIError):
        return _api_fault(exc, model, mask)
    if isinstance(exc, httpx.HTTPError | httpx.InvalidURL):
        return _network_fault(exc)
    if isinstance(exc, sdk_errors.UnknownApiResponseError):
        return broke_off()
    if isinstance(exc, pydantic.ValidationError):
        error = StyleEyesError(
            "MODEL_ERROR",
            "Gemini's answer has a form that this version does not understand.",
            "Ask again, or choose another model with --model.",
        )
        return Fault(error, tries=2, why="answer not understood")
    return None


def refuses_thinking_settings(exc: Exception) -> bool:
    """Whether a 400 says that this model takes no thinking budget or level."""
    return (
        isinstance(exc, sdk_errors.APIError)
        and exc.code == 400
        and "thinking" in (exc.message or "").lower()
        and "signature" not in (exc.message or "").lower()
    )


def refuses_schema(exc: Exception) -> bool:
    """Whether a 400 says that the JSON Schema asked for is not to its taste: too deep, a keyword."""
    return (
        isinstance(exc, sdk_errors.APIError) and exc.code == 400 and "schema" in (exc.message or "").lower()
    )


def _api_fault(exc: sdk_errors.APIError, model: str, mask: SecretMask) -> Fault:
    said = mask(one_line(sanitise(exc.message or ""), 300))
    reasons = {str(d.get("reason")) for d in _details(exc) if d.get("reason")}
    match exc.code:
        case 400 if "API_KEY_INVALID" in reasons or "api key" in said.lower():
            return Fault(_wrong_key("Gemini refused the API key."))
        case 400 if "location is not supported" in said.lower():
            return Fault(
                StyleEyesError(
                    "MODEL_UNAVAILABLE",
                    "Gemini is not offered where this machine is.",
                    "Use --model offline or an OpenAI-compatible server.",
                )
            )
        case 401 | 403 if "SERVICE_DISABLED" not in reasons:
            return Fault(_wrong_key(f"Gemini does not accept the API key for this: {said}"))
        case 404:
            return Fault(
                StyleEyesError(
                    "MODEL_UNAVAILABLE",
                    f"Gemini has no model “{model}” for this key.",
                    "Check the id given with --model, in agent.json or in WORLDAGENTS_TOOL_MODELS.",
                )
            )
        case 413:
            return Fault(
                StyleEyesError("MODEL_ERROR", "The request is too large for Gemini.", "Send fewer pictures.")
            )
        case 429:
            return _quota_fault(exc, said)
        case 408 | 500 | 502 | 503 | 504:
            why = "Gemini is overloaded" if exc.code == 503 else f"Gemini error {exc.code}"
            error = StyleEyesError(
                "MODEL_UNAVAILABLE",
                f"Gemini does not answer at the moment ({exc.code}: {said or 'no reason given'}).",
                "Try again in a minute, or use --model offline.",
            )
            return Fault(error, tries=5, delay=retry_delay(exc), why=why)
        case _:
            return Fault(
                StyleEyesError(
                    "MODEL_ERROR",
                    f"Gemini refused the request ({exc.code}): {said or 'no reason given'}",
                    "Check the model id and the tools' input schemas.",
                )
            )


def _wrong_key(message: str) -> StyleEyesError:
    return StyleEyesError(
        "MODEL_UNAVAILABLE",
        message,
        "Set GEMINI_API_KEY to a valid key, or use --model offline.",
    )


def _quota_fault(exc: sdk_errors.APIError, said: str) -> Fault:
    quotas = " ".join(str(v.get("quotaId", "")) for d in _details(exc) for v in d.get("violations", []))
    if "PerDay" in quotas or re.search(r"\blimit: 0\b", said):
        error = StyleEyesError(
            "MODEL_UNAVAILABLE",
            "The Gemini quota of this key is used up for today.",
            "Use another model or key, or --model offline.",
        )
        return Fault(error)
    error = StyleEyesError(
        "MODEL_UNAVAILABLE",
        "Gemini's rate limit for this key is reached.",
        "Wait a little, or use another model or --model offline.",
    )
    return Fault(error, tries=5, delay=retry_delay(exc), why="rate limit")


def retry_delay(exc: sdk_errors.APIError) -> float | None:
    """Seconds the server asks to wait: `google.rpc.RetryInfo`, else the Retry-After header.

    RetryInfo's duration is protobuf JSON, `"39s"` or `"1.5s"`. Retry-After as a date is left
    aside: it needs a wall clock that agrees with the server's.
    """
    for detail in _details(exc):
        if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo"):
            match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
            if match:
                return float(match.group(1))
    headers = getattr(exc.response, "headers", None) or {}
    after = str(headers.get("retry-after") or headers.get("Retry-After") or "")
    return float(after) if re.fullmatch(r"\d+(\.\d+)?", after) else None


def _details(exc: sdk_errors.APIError) -> list[dict[str, Any]]:
    body = exc.details if isinstance(exc.details, dict) else {}
    inner = body.get("error")
    details = (inner if isinstance(inner, dict) else body).get("details")
    return [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []


def _network_fault(exc: httpx.HTTPError | httpx.InvalidURL) -> Fault:
    match exc:
        case httpx.UnsupportedProtocol() | httpx.InvalidURL():
            return Fault(
                StyleEyesError(
                    "MODEL_UNAVAILABLE",
                    "The address of the Gemini server is no http(s) address.",
                    "Check GOOGLE_GEMINI_BASE_URL.",
                )
            )
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
            error = StyleEyesError(
                "MODEL_UNAVAILABLE",
                "Gemini cannot be reached: no connection.",
                "Check the network (and GOOGLE_GEMINI_BASE_URL if set), or use --model offline.",
            )
            return Fault(error, tries=3, why="no connection")
        case httpx.TimeoutException():
            error = StyleEyesError(
                "MODEL_UNAVAILABLE",
                "Gemini has not answered in time.",
                "Try again, or use --model offline.",
            )
            return Fault(error, tries=2, why="no answer in time")
        case _:
            return broke_off()
