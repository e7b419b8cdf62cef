"""What has happened in the open turn, read from the messages alone.

The offline model keeps no state between steps: like any other model it knows only what it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edge_agent.agent.models.protocol import AssistantMessage, Message, ToolResultsMessage, UserMessage
from edge_agent.agent.prompts import MATCH_TOOL, SEARCH_TOOL
from edge_agent.json_types import JsonValue
from edge_agent.text import one_line, sanitise


@dataclass(frozen=True, slots=True)
class Product:
    """A search result. Its texts come from the catalog: data to show, never to follow."""

    style_id: str
    name: str
    brand: str
    category: str
    colors: tuple[str, ...]
    gender: str
    why: tuple[str, ...]
    """What the search says it found the product by."""
    price: str | None
    snapshot_date: str | None

    def described(self) -> str:
        """What it is called: name, category, and the kinds that the search found it by."""
        found_by = (reason for reason in self.why if reason.startswith("kind:"))
        return " ".join((self.category, self.name, *found_by)).lower()

    @staticmethod
    def read(value: JsonValue) -> Product | None:
        """None where the value has no style id."""
        if not isinstance(value, Mapping) or not isinstance(value.get("styleId"), str):
            return None
        colors = value.get("colors")
        amount = value.get("price")
        currency = _text(value.get("currency"))
        return Product(
            style_id=_text(value["styleId"]),
            name=_text(value.get("name")) or _text(value["styleId"]),
            brand=_text(value.get("brand")),
            category=_text(value.get("category")),
            colors=_texts(colors) or ((_text(colors),) if _text(colors) else ()),
            gender=_text(value.get("gender")),
            why=_texts(value.get("why")),
            price=f"{amount:.2f} {currency}".strip()
            if isinstance(amount, int | float)
            else _text(amount) or None,
            snapshot_date=_text(value.get("snapshotDate")) or None,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """One `match_garment` result."""

    best: str | None
    color: str | None
    """Which of the best style's colours the camera sees, where that was told."""
    confidence: float
    probabilities: Mapping[str, float]
    agrees: Mapping[str, tuple[str, ...]]
    differs: Mapping[str, tuple[str, ...]]
    ask_to_see_tag: bool
    reason: str
    run_off: bool
    """Whether every style in it had been compared before, in other groups."""

    @staticmethod
    def read(value: JsonValue, *, run_off: bool) -> Verdict | None:
        """None where the value is no verdict."""
        if not isinstance(value, Mapping):
            return None
        inner = value.get("verdict")
        if isinstance(inner, Mapping):
            value = inner
        if "best" not in value:
            return None
        rated = value.get("candidates")
        rows = [row for row in _items(rated) if isinstance(row, Mapping)]
        best = value["best"] if isinstance(value["best"], str) else None
        confidence = _number(value.get("confidence"))
        probabilities = {
            _text(row.get("styleId")): _number(row["probability"]) for row in rows if "probability" in row
        }
        if best is not None:
            probabilities.setdefault(best, confidence)
        return Verdict(
            best=best,
            color=(_text(value.get("color")) or None) if best else None,
            confidence=confidence,
            probabilities=probabilities,
            agrees={_text(row.get("styleId")): _texts(row.get("agrees")) for row in rows},
            differs={_text(row.get("styleId")): _texts(row.get("differs")) for row in rows},
            ask_to_see_tag=value.get("askToSeeTag") is not False,
            reason=_text(value.get("reason")),
            run_off=run_off,
        )


@dataclass(slots=True)
class TurnSoFar:
    """The open turn: its question, and what tools have given so far."""

    asked: UserMessage
    products: dict[str, Product] = field(default_factory=dict)
    searches: int = 0
    compared: list[tuple[str, ...]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Tool → the last failure in words."""

    @property
    def tried(self) -> frozenset[str]:
        """Styles that a verdict was asked for."""
        return frozenset(style for group in self.compared for style in group)


def read_turn(messages: Sequence[Message]) -> TurnSoFar:
    """The newest user message and what follows it."""
    start, asked = [(i, m) for i, m in enumerate(messages) if isinstance(m, UserMessage)][-1]
    turn = TurnSoFar(asked=asked)
    arguments: dict[str, Mapping[str, JsonValue]] = {}
    for message in messages[start + 1 :]:
        if isinstance(message, AssistantMessage):
            arguments = {call.id: call.arguments for call in message.tool_calls}
        elif isinstance(message, ToolResultsMessage):
            for result in message.results:
                _take(turn, result.name, result.value, arguments.get(result.call_id, {}))
    return turn


def _take(turn: TurnSoFar, tool: str, value: JsonValue, arguments: Mapping[str, JsonValue]) -> None:
    failure = _failure(value)
    if failure is not None:
        turn.errors[tool] = failure
    if tool == SEARCH_TOOL:
        if failure is None:
            turn.searches += 1
            for product in _products(value):
                turn.products.setdefault(product.style_id, product)
    elif tool == MATCH_TOOL:
        styles = _texts(arguments.get("styleIds"))
        verdict = Verdict.read(value, run_off=set(styles) <= turn.tried) if failure is None else None
        turn.compared.append(styles)
        if verdict is not None:
            turn.verdicts.append(verdict)
        elif failure is None:
            turn.errors[tool] = "its result is no verdict"


def _products(value: JsonValue) -> list[Product]:
    """Of `{"products": […]}`, or of a bare list as the smallest search tools return."""
    rows = value.get("products") if isinstance(value, Mapping) else value
    return [product for row in _items(rows) if (product := Product.read(row)) is not None]


def _failure(value: JsonValue) -> str | None:
    if isinstance(value, Mapping) and set(value) == {"error"}:
        inner = value["error"]
        if not isinstance(inner, Mapping):
            return _text(inner) or "it failed"
        message, hint = _text(inner.get("message")).rstrip("."), _text(inner.get("hint")).rstrip(".")
        return "; ".join(part for part in (message, hint) if part) or "it failed"
    return None


def _items(value: JsonValue) -> Sequence[JsonValue]:
    """The items of a JSON array, nothing for any other value."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _text(value: JsonValue) -> str:
    return one_line(sanitise(value), 120) if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(_text(item) for item in _items(value))


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
