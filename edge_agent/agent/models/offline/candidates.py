"""Which styles to search for, and which to compare next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edge_agent.agent.models.offline.sight import Seen
from edge_agent.agent.models.offline.turn_so_far import Product, TurnSoFar, Verdict
from edge_agent.agent.models.protocol import ToolDeclaration
from edge_agent.json_types import JsonObject, JsonValue

GROUP = 4
"""What `match_garment` takes in one call."""
MOST_GROUPS = 4
"""Groups of fresh styles in one turn; a run-off between their winners may follow."""
ENOUGH_FOUND = 3 * GROUP
"""With fewer search results than this a further, looser search is worth its time."""
LEADER_AT_LEAST = 0.1
"""A style less likely than this in its own group is no contender for the run-off."""


def search_inputs(seen: Seen, tool: ToolDeclaration, searches: int) -> list[JsonObject]:
    """The next searches for the garment, side by side: narrow at first, then looser; empty when done.

    First what was seen, and the same for whatever else the kind may well be; then the kind in any
    colour. Only properties that the tool declares are used, and values that it allows.
    """
    kinds = [seen.kind, *seen.other_kinds[:1]] if seen.kind else [None]
    narrow = [_narrow(seen, kind) for kind in kinds]
    if searches == 0:
        wanted = narrow
    elif searches == len(narrow) and seen.kind and seen.colors:
        wanted = [{"query": seen.kind}]
    else:
        return []
    return [declared_only(tool, {**one, "hasPhotos": True, "limit": GROUP * MOST_GROUPS}) for one in wanted]


def _narrow(seen: Seen, kind: str | None) -> dict[str, JsonValue]:
    words = [*seen.colors, seen.pattern, kind or "garment", f"for {seen.line}" if seen.line else None]
    return {
        "query": " ".join(word for word in words if word),
        "color": seen.colors[0] if seen.colors else None,
        "category": kind,
    }


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


def next_groups(turn: TurnSoFar, seen: Seen, *, fresh: bool) -> list[tuple[str, ...]]:
    """The groups to compare next, side by side: one at first, as it often settles the matter, then two
    at a time; when all are done, or with `fresh` False, a run-off; empty when nothing is left to compare."""
    room = MOST_GROUPS - len(turn.compared)
    untried = [style for style in ranked(turn.products.values(), seen) if style not in turn.tried]
    if untried and room > 0 and (fresh or not turn.compared):
        at_once = min(2 if turn.compared else 1, room)
        return [tuple(group) for start in range(at_once) if (group := untried[start * GROUP :][:GROUP])]
    return _run_off(turn)


def ranked(products: Iterable[Product], seen: Seen) -> list[str]:
    """Style ids, those that agree with what was seen first, the search's order among equals."""
    return [p.style_id for p in sorted(products, key=lambda p: -agreement(p, seen))]


def agreement(product: Product, seen: Seen) -> float:
    """How well a product's words agree with what was seen: its kind most, then colour, then the line.

    A second colour counts little: shading and light make one up now and then.
    """
    offered = " ".join(product.colors).lower()
    found_by = (reason for reason in product.why if reason.startswith("kind:"))
    described = " ".join((product.category, product.name, *found_by)).lower()
    score = 0.0
    if seen.kind and seen.kind.rstrip("s") in described:
        score += 3
    elif any(kind.rstrip("s") in described for kind in seen.other_kinds):
        score += 2
    if seen.colors:
        may_be = any(color in offered for color in seen.other_colors)
        score += 2 if seen.colors[0] in offered else 1 if may_be else 0
        score += 0.5 * sum(color in offered for color in seen.colors[1:])
    if seen.line and product.gender:
        score += 0.5 if product.gender.lower() in (seen.line, "unisex") else -0.5
    return score


def _run_off(turn: TurnSoFar) -> list[tuple[str, ...]]:
    """The leaders of all groups against each other, once, when more than one group has one."""
    if len(turn.verdicts) < 2 or any(verdict.run_off for verdict in turn.verdicts):
        return []
    leaders = sorted(
        ((p, style) for v in turn.verdicts for style, p in _leader(v) if p >= LEADER_AT_LEAST), reverse=True
    )
    contenders = tuple(dict.fromkeys(style for _, style in leaders))[:GROUP]
    return [contenders] if len(contenders) > 1 else []


def _leader(verdict: Verdict) -> list[tuple[str, float]]:
    return sorted(verdict.probabilities.items(), key=lambda pair: -pair[1])[:1]
