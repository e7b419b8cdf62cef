"""What can go wrong with an OpenAI-compatible server, as errors that say what to do."""

from __future__ import annotations

import re

import httpx

from edge_agent.agent.models.retry import Fault
from edge_agent.errors import StyleEyesError
from edge_agent.text import SecretMask, one_line, sanitise


class RefusalError(Exception):
    """An HTTP answer that is no success: `said` is the server's message."""

    def __init__(self, status: int, said: str, retry_after: float | None) -> None:
        super().__init__(f"{status}: {said}")
        self.status = status
        self.said = said
        self.retry_after = retry_after


async def raise_for(response: httpx.Response, mask: SecretMask) -> None:
    """Raises RefusalError for anything but a 200, with the body's message in it."""
    if response.status_code == 200:
        return
    await response.aread()
    try:
        body = response.json()
        error = body.get("error", body) if isinstance(body, dict) else body
        said = error.get("message", "") if isinstance(error, dict) else str(error)
    except ValueError:
        said = response.text
    after = response.headers.get("retry-after", "")
    raise RefusalError(
        response.status_code,
        mask(one_line(sanitise(str(said)), 300)),
        float(after) if re.fullmatch(r"\d+(\.\d+)?", after) else None,
    )


def fault_of(exc: Exception, model: str, base: str) -> Fault | None:
    """The fault behind a refusal or what the HTTP client raised; None for anything else."""
    if isinstance(exc, RefusalError):
        return _refusal_fault(exc, model)
    if isinstance(exc, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return Fault(
            StyleEyesError(
                "MODEL_UNAVAILABLE", f"{base} is no usable address.", "Check openai:BASE_URL#MODEL."
            )
        )
    if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        error = StyleEyesError(
            "MODEL_UNAVAILABLE", f"The model server at {base} cannot be reached.", "Check that it is running."
        )
        return Fault(error, tries=2, why="no connection")
    if isinstance(exc, httpx.TimeoutException):
        error = StyleEyesError(
            "MODEL_UNAVAILABLE",
            f"The model server at {base} has not answered in time.",
            "A large model may still be loading: try again, or use a smaller one.",
        )
        return Fault(error, tries=1)
    if isinstance(exc, httpx.HTTPError):
        return broke_off()
    return None


def refuses(exc: Exception, *words: str) -> bool:
    """Whether a 4xx or 5xx refusal speaks of one of `words`: a feature the model or server lacks."""
    return (
        isinstance(exc, RefusalError)
        and exc.status in (400, 404, 422, 500, 501)
        and any(word in exc.said.lower() for word in words)
    )


def broke_off() -> Fault:
    error = StyleEyesError(
        "MODEL_ERROR", "The model server broke off in the middle of its answer.", "Ask again."
    )
    return Fault(error, tries=3, why="connection lost")


def _refusal_fault(exc: RefusalError, model: str) -> Fault:
    said = exc.said or "no reason given"
    match exc.status:
        case 401 | 403:
            error = StyleEyesError(
                "MODEL_UNAVAILABLE", "The model server does not accept the key.", "Set OPENAI_API_KEY for it."
            )
            return Fault(error)
        case 404:
            error = StyleEyesError(
                "MODEL_UNAVAILABLE",
                f"The model server has no model “{model}”, or no chat completions at this address: {said}",
                "Check openai:BASE_URL#MODEL; the base usually ends in /v1.",
            )
            return Fault(error)
        case 429 | 500 | 502 | 503 | 504:
            why = "rate limit" if exc.status == 429 else f"server error {exc.status}"
            error = StyleEyesError(
                "MODEL_UNAVAILABLE",
                f"The model server does not answer ({exc.status}: {said}).",
                "Try again later.",
            )
            return Fault(error, tries=4, delay=exc.retry_after, why=why)
        case _:
            error = StyleEyesError(
                "MODEL_ERROR",
                f"The model server refused the request ({exc.status}): {said}",
                "Try another model.",
            )
            return Fault(error)
