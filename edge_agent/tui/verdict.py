"""The matched style, read from what the tools returned: what the conversation shows as a card.

Tool results are untrusted JSON of any shape; whatever does not fit is left out, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge_agent.json_types import JsonValue

MATCH_TOOL = "match_garment"
SEARCH_TOOL = "search_catalog"


@dataclass(frozen=True, slots=True)
class Product:
    """A product as `search_catalog` gave it; a price counts only with its snapshot date."""

    style_id: str
    name: str
    brand: str = ""
    price: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `match_garment` established. `style_id` is None when none of the candidates fits."""

    style_id: str | None
    confidence: float | None
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    ask_to_see_tag: bool = False
    others: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """For choosing among several rounds: any style before none, then the more certain one."""
        return -1.0 if self.style_id is None else self.confidence or 0.0


def products_in(result: JsonValue) -> dict[str, Product]:
    """The products of a `search_catalog` result by style id."""
    found: dict[str, Product] = {}
    for entry in _list(_field(result, "products")):
        style_id = _text(_field(entry, "styleId"))
        if style_id:
            found[style_id] = Product(
                style_id, _text(_field(entry, "name")), _text(_field(entry, "brand")), _price(entry)
            )
    return found


def verdict_in(result: JsonValue) -> Verdict | None:
    """The verdict of a `match_garment` result; None when it is not one."""
    if not isinstance(result, Mapping) or "best" not in result or "candidates" not in result:
        return None
    best = _text(result["best"]) or None
    agrees: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    others: list[str] = []
    for candidate in _list(result["candidates"]):
        style_id = _text(_field(candidate, "styleId"))
        if best is not None and style_id == best:
            agrees, differs = _texts(_field(candidate, "agrees")), _texts(_field(candidate, "differs"))
        elif style_id:
            others.append(style_id)
    confidence = result.get("confidence")
    known = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    return Verdict(
        style_id=best,
        confidence=min(max(float(confidence), 0.0), 1.0) if known else None,  # type: ignore[arg-type]
        agrees=agrees,
        differs=differs,
        ask_to_see_tag=result.get("askToSeeTag") is True,
        others=tuple(others),
    )


def _field(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, Mapping) else None


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: JsonValue) -> str:
    return value.strip() if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(text for text in map(_text, _list(value)) if text)


def _price(entry: JsonValue) -> str:
    price, currency = _field(entry, "price"), _text(_field(entry, "currency"))
    if isinstance(price, bool) or not isinstance(price, int | float | str) or price == "":
        return ""
    shown = f"{price:.2f}" if isinstance(price, float) else str(price)
    date = _text(_field(entry, "snapshotDate"))
    return " ".join(part for part in (shown, currency, f"on {date}" if date else "(date unknown)") if part)
