"""The offline model's sentences. Each says only what was seen, searched or compared in this turn."""

from __future__ import annotations

from collections.abc import Sequence

from edge_agent.agent.models.offline.sight import Seen
from edge_agent.agent.models.offline.turn_so_far import Product, Verdict
from edge_agent.agent.prompts import age_words
from edge_agent.events import FrameRef

MARK = "(offline model)"
ABILITIES = (
    "I can look at the garment in front of the camera (“What is this jacket?”) "
    "and search the catalog by words (“search for green hoodies”)."
)
SHOW_THE_TAG = "Show me the tag to be sure."


def marked(*sentences: str) -> str:
    """The sentences as one answer that says which model gave it."""
    return " ".join([*(sentence for sentence in sentences if sentence), MARK])


def capabilities() -> str:
    return marked("I run on this device, without a network.", ABILITIES)


def cannot_talk() -> str:
    return marked("I cannot answer that offline.", ABILITIES)


def cannot_follow_up() -> str:
    return marked(
        "I cannot follow up on earlier answers offline.",
        "Ask with all the words (“search for blue jackets”), or point the camera and ask again.",
    )


def cannot_know_stock() -> str:
    return marked(
        "I cannot know whether something is in stock: the catalog is a snapshot without live stock.",
        "Ask in the shop.",
    )


def cannot_read_tags() -> str:
    return marked(
        "I cannot read text offline, so not the tag either.",
        "Tell me the style number and I will search for it (“search for MH01”).",
    )


def no_frame(camera: str) -> str:
    reason = f" ({camera.rstrip('.')})" if camera else ""
    return marked(
        f"I have no fresh camera frame{reason}, so I cannot look at anything.",
        "Check the camera, or ask me to search by words.",
    )


def cannot_judge(frame: FrameRef | None, problem: str) -> str:
    return marked(
        f"{_in_frame(frame)} I cannot judge the garment: {problem.rstrip('.')}.",
        "Change the light or the angle and ask again.",
    )


def no_garment(frame: FrameRef | None) -> str:
    return marked(
        f"{_in_frame(frame)} I find no garment.", "Hold it in the middle of the view and ask again."
    )


def only_described(frame: FrameRef | None, seen: Seen, why: str) -> str:
    return marked(f"{_in_frame(frame)} I see {_a(seen.words())}.", why)


def searched(terms: str, products: Sequence[Product], total_shown: int = 4) -> str:
    """The answer to a search by words."""
    if not products:
        return marked(f"The catalog has nothing for “{terms}”.")
    names = "; ".join(_named(p, colors=True) for p in products[:total_shown])
    more = f" and {len(products) - total_shown} more" if len(products) > total_shown else ""
    return marked(f"For “{terms}” the catalog lists {names}{more}.", "This is a snapshot, not live stock.")


def exact(frame: FrameRef | None, seen: Seen, product: Product, verdict: Verdict, *, price: bool) -> str:
    agrees = _joined(verdict.agrees.get(product.style_id, ()))
    color = f" in {verdict.color}" if verdict.color else ""
    return marked(
        f"{_in_frame(frame)} I see {_a(seen.words())}: it is the {_named(product)}{color}.",
        f"Its photos agree in {agrees}." if agrees else "",
        price_words(product, asked=price),
    )


def similar(
    frame: FrameRef | None,
    seen: Seen,
    nearest: Sequence[Product],
    *,
    compared: int,
    reason: str,
    price: bool,
) -> str:
    names = ", the ".join(_named(product) for product in nearest[:-1])
    names = f"{names} or the {_named(nearest[-1])}" if names else _named(nearest[-1])
    return marked(
        f"{_in_frame(frame)} I see {_a(seen.words())}, similar to the {names},"
        f" but I cannot say that it is exactly {'one of them' if len(nearest) > 1 else 'that'}:"
        f" {reason or 'the photos do not settle it'}.",
        f"I compared {_count(compared)}.",
        price_words(nearest[0], asked=price) if len(nearest) == 1 else "",
        SHOW_THE_TAG,
        _also(seen),
    )


def none_fits(frame: FrameRef | None, seen: Seen, *, compared: int, reason: str) -> str:
    why = f": {reason}" if reason else ""
    return marked(
        f"{_in_frame(frame)} I see {_a(seen.words())}. None of the {_count(compared)} I compared fits{why}.",
        SHOW_THE_TAG,
        _also(seen),
    )


def price_words(product: Product, *, asked: bool) -> str:
    """The price with the day it is from; without a day only when asked, and then saying so."""
    if product.price is None:
        return "The catalog has no price for it." if asked else ""
    if product.snapshot_date:
        return (
            f"The catalog of {product.snapshot_date} lists it at {product.price}; today's price may differ."
        )
    return f"The catalog lists it at {product.price}, but not of which day that is." if asked else ""


def _also(seen: Seen) -> str:
    """How to ask about what else is in view, in case that was meant."""
    return f"If you meant something else in view, ask “What is this {seen.also[0]}?”." if seen.also else ""


def _in_frame(frame: FrameRef | None) -> str:
    return f"In the frame from {age_words(frame.age_ms)} ago" if frame else "In the picture"


def _named(product: Product, *, colors: bool = False) -> str:
    known = [product.style_id, *([", ".join(product.colors[:4])] if colors and product.colors else [])]
    return f"{product.name} ({'; '.join(known)})"


def _a(words: str) -> str:
    article = (
        "" if words.endswith("s") and not words.endswith("ss") else "an " if words[0] in "aeiou" else "a "
    )
    return article + words


def _joined(words: Sequence[str]) -> str:
    shown = [w for w in words[:3] if w]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _count(styles: int) -> str:
    return f"{styles} style" if styles == 1 else f"{styles} styles"
