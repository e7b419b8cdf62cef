"""Which styles to search for, and which to compare next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edge_agent.agent.models.offline.sight import Seen
from edge_agent.agent.models.offline.turn_so_far import Product, TurnSoFar, Verdict
from edge_agent.agent.models.protocol import ToolDeclaration
from edge_agent.json_types import JsonObject, JsonValue

GROUP = 4
"""What `match_garment` takes in one call."""
MOST_GROUPS = 3
"""Groups of fresh styles in one turn; a run-off between their winners may follow."""
ENOUGH_FOUND = 2 * GROUP
"""With fewer search results than this a second, looser search is worth its time."""
LEADER_AT_LEAST = 0.15
"""A style less likely than this in its own group is no contender for the run-off."""


def search_input(seen: Seen, tool: ToolDeclaration, searches: int) -> JsonObject | None:
    """The next search for the garment: narrow at first, then by its kind alone; None after that.

    Only properties that the tool declares are used, and a value only where its `enum` allows it.
    """
    if searches == 0:
        wanted: dict[str, JsonValue] = {
            "query": seen.words(),
            "hasPhotos": True,
            "color": seen.colors[0] if seen.colors else None,
            "category": seen.kind,
        }
    elif searches == 1 and seen.kind and (seen.colors or seen.pattern):
        wanted = {"query": seen.kind, "hasPhotos": True}
    else:
        return None
    return declared_only(tool, {**wanted, "limit": GROUP * MOST_GROUPS})


def declared_only(tool: ToolDeclaration, wanted: Mapping[str, JsonValue]) -> JsonObject:
    """`wanted` without what is None, undeclared or outside a declared enum or maximum."""
    properties = tool.parameters.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    kept: dict[str, JsonValue] = {}
    for name, value in wanted.items():
        rule = declared.get(name)
        if value is None or not isinstance(rule, Mapping):
            continue
        allowed, most = rule.get("enum"), rule.get("maximum")
        if isinstance(allowed, Sequence) and value not in allowed:
            continue
        if isinstance(most, int | float) and isinstance(value, int) and not isinstance(value, bool):
            value = min(value, int(most))
        kept[name] = value
    return kept


def next_group(turn: TurnSoFar, seen: Seen) -> tuple[str, ...]:
    """The styles to compare next: fresh ones best first, then a run-off; empty when done."""
    fresh = [style for style in ranked(turn.products.values(), seen) if style not in turn.tried]
    if fresh and len(turn.compared) < MOST_GROUPS:
        return tuple(fresh[:GROUP])
    return _run_off(turn)


def ranked(products: Iterable[Product], seen: Seen) -> list[str]:
    """Style ids, those that agree with what was seen first, the search's order among equals."""
    return [p.style_id for p in sorted(products, key=lambda p: -agreement(p, seen))]


def agreement(product: Product, seen: Seen) -> int:
    """How well a product's words agree with what was seen; colours weigh most."""
    offered = " ".join(product.colors).lower()
    described = f"{product.category} {product.name}".lower()
    score = sum(
        weight for color, weight in zip(seen.colors, (2, 1), strict=False) if color.lower() in offered
    )
    if seen.kind and seen.kind.lower().rstrip("s") in described:
        score += 2
    return score


def _run_off(turn: TurnSoFar) -> tuple[str, ...]:
    """The leaders of all groups against each other, once, when more than one group has one."""
    if len(turn.verdicts) < 2 or len(turn.compared) > MOST_GROUPS:
        return ()
    leaders = sorted(
        ((p, style) for v in turn.verdicts for style, p in _leader(v) if p >= LEADER_AT_LEAST), reverse=True
    )
    contenders = tuple(dict.fromkeys(style for _, style in leaders))[:GROUP]
    return contenders if len(contenders) > 1 and contenders not in turn.compared else ()


def _leader(verdict: Verdict) -> list[tuple[str, float]]:
    return sorted(verdict.probabilities.items(), key=lambda pair: -pair[1])[:1]
