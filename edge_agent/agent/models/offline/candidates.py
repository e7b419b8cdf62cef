"""Which styles to search for, and which to compare next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edge_agent.agent.models.offline.sight import Alike, Seen
from edge_agent.agent.models.offline.turn_so_far import Product, TurnSoFar, Verdict
from edge_agent.agent.models.protocol import ToolDeclaration
from edge_agent.json_types import JsonObject, JsonValue

GROUP = 4
"""What `match_garment` takes in one call."""
MOST_GROUPS = 3
"""Groups of fresh styles in one turn; a run-off between their winners may follow."""
WIDE = 24
"""Styles of one search: the photos choose among them."""
ENOUGH_FOUND = 3 * GROUP
"""With fewer search results than this a further, looser search is worth its time."""
LEADER_AT_LEAST = 0.1
"""A style less likely than this in its own group is no contender for the run-off."""
NEAR_THE_BEST = 0.5
"""A further group is compared only if one of its styles comes this near to the best by its photos."""
NEVER_LOOKED_AT = 0.8
"""Where a style whose photos are not known yet stands among those that are: ahead of the doubtful."""
LINE_COUNTS = 0.15
"""What being cut for whom it seems to be cut is worth, in the same measure; on 201 camera-like pictures
it puts the right style first in 0.64 of them instead of 0.62."""


def search_inputs(
    seen: Seen, tool: ToolDeclaration, searches: int, alike: Sequence[Alike]
) -> list[JsonObject]:
    """The next searches for the garment, side by side; empty when done.

    First what was seen, the same for whatever else the kind may well be, and either the styles whose
    photos look most alike, by their codes, or, before any photo was looked at, all that the garment may
    be called in any colour that it may have. Then the kind alone. Only properties that the tool
    declares are used, and values that it allows.
    """
    kinds = [seen.kind, *seen.other_kinds[:1]] if seen.kind else [None]
    first: list[Mapping[str, JsonValue]] = [_narrow(seen, kind) for kind in kinds]
    if codes := [one.style_id for one in alike[:ENOUGH_FOUND] if not any(map(str.isspace, one.style_id))]:
        first.append({"query": " ".join(codes)})
    elif seen.other_colors:
        colors = [*seen.colors[:1], *seen.other_colors]
        first.append({"query": " ".join([*colors, *(kind for kind in kinds if kind)])})
    if searches == 0:
        wanted = first
    elif searches == len(first) and seen.kind and seen.colors:
        wanted = [{"query": seen.kind}]
    else:
        return []
    return [declared_only(tool, {**one, "hasPhotos": True, "limit": WIDE}) for one in wanted]


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


def next_groups(turn: TurnSoFar, seen: Seen, alike: Sequence[Alike], *, fresh: bool) -> list[tuple[str, ...]]:
    """The groups to compare next, side by side: one at first, as it often settles the matter, then two
    at a time; when all are done, or with `fresh` False, a run-off; empty when nothing is left to compare."""
    room = MOST_GROUPS - len(turn.compared)
    untried = [style for style in ranked(turn.products.values(), seen, alike) if style not in turn.tried]
    if turn.compared:
        untried = _worth_comparing(untried, alike)
    if untried and room > 0 and (fresh or not turn.compared):
        at_once = min(2 if turn.compared else 1, room)
        return [tuple(group) for start in range(at_once) if (group := untried[start * GROUP :][:GROUP])]
    return _run_off(turn)


def _worth_comparing(styles: Sequence[str], alike: Sequence[Alike]) -> list[str]:
    """Without those whose photos are known to agree clearly less than the best ones do."""
    scores = {one.style_id: one.score for one in alike}
    least = max(scores.values(), default=0.0) - NEAR_THE_BEST
    return [style for style in styles if scores.get(style, NEVER_LOOKED_AT) >= least]


def ranked(products: Iterable[Product], seen: Seen, alike: Sequence[Alike]) -> list[str]:
    """Style ids, those whose photos agree best first; among those whose photos were not looked at, and
    where none was, those that agree in words; the search's order among equals."""
    scores = {one.style_id: one.score for one in alike}

    def key(product: Product) -> tuple[float, float]:
        by_words = agreement(product, seen)
        if not scores:
            return 0.0, -by_words
        score = scores.get(product.style_id, NEVER_LOOKED_AT)
        return -score - LINE_COUNTS * _line_agrees(product, seen), -by_words

    return [product.style_id for product in sorted(products, key=key)]


def agreement(product: Product, seen: Seen) -> float:
    """How well a product's words agree with what was seen: its kind most, then colour, then the line.

    A second colour counts little: shading and light make one up now and then.
    """
    offered = " ".join(product.colors).lower()
    described = product.described()
    score = 0.0
    if seen.kind and seen.kind.rstrip("s") in described:
        score += 3
    elif any(kind.rstrip("s") in described for kind in seen.other_kinds):
        score += 2
    if seen.colors:
        may_be = any(color in offered for color in seen.other_colors)
        score += 2 if seen.colors[0] in offered else 1 if may_be else 0
        score += 0.5 * sum(color in offered for color in seen.colors[1:])
    return score + 0.5 * _line_agrees(product, seen)


def _line_agrees(product: Product, seen: Seen) -> int:
    """1 or −1, and 0 where either says nothing."""
    if not seen.line or not product.gender:
        return 0
    return 1 if product.gender.lower() in (seen.line, "unisex") else -1


def color_words(group: Sequence[str], seen: Seen, alike: Sequence[Alike]) -> str | None:
    """The colour for comparing a group: `blue or purple`, all that the garment may be called.

    What the catalog calls the photos that agree best where they are known, else what the eyes say.
    """
    best = {one.style_id: one.color for one in alike}
    if all(best.get(style) for style in group):
        names = [best[style] for style in group]
    else:
        names = [*seen.colors[:1], *seen.other_colors[:2]]
    return " or ".join(dict.fromkeys(name for name in names if name)) or None


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
