"""The offline model's sentences. Each says only what was seen, searched or compared in this turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edge_agent.agent.models.offline.sight import Seen
from edge_agent.agent.models.offline.turn_so_far import Product, Verdict
from edge_agent.agent.models.offline.verdict import in_a_row
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


def exact(frame: FrameRef | None, product: Product, verdict: Verdict, *, price: bool) -> str:
    """An established style; what kind the eyes alone took it for is no longer of interest."""
    agrees = in_a_row([_bare(words) for words in verdict.agrees.get(product.style_id, ())[:3]])
    color = f" in {verdict.color}" if verdict.color else ""
    return marked(
        f"{_in_frame(frame)} I see the {_named(product)}{color}.",
        f"It agrees with its photos in {agrees}." if agrees else "",
        price_words(product, asked=price) or snapshot_words(product),
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
    which = "which of them it is" if len(nearest) > 1 else "that it is exactly that one"
    return marked(
        f"{_in_frame(frame)} I see {_a(_words_beside(seen, nearest[0]))}, similar to the {names}.",
        f"I cannot say {which}: {reason.rstrip('.') or 'the photos do not settle it'}.",
        f"I compared {_count(compared)}.",
        price_words(nearest[0], asked=price) if len(nearest) == 1 else "",
        SHOW_THE_TAG,
        _also(seen),
    )


def none_fits(frame: FrameRef | None, seen: Seen, *, compared: int, reason: str) -> str:
    why = f": {reason.rstrip('.')}" if reason else ""
    none = "The one style that I compared does not fit" if compared == 1 else (
        f"None of the {_count(compared)} that I compared fits"
    )  # fmt: skip
    return marked(f"{_in_frame(frame)} I see {_a(seen.words())}.", f"{none}{why}.", SHOW_THE_TAG, _also(seen))


def price_words(product: Product, *, asked: bool) -> str:
    """The price with the day it is from; without a day only when asked, and then saying so."""
    if product.price is None:
        return "The catalog has no price for it." if asked else ""
    if product.snapshot_date:
        return (
            f"The catalog of {product.snapshot_date} lists it at {product.price}; today's price may differ."
        )
    return f"The catalog lists it at {product.price}, but gives no snapshot date." if asked else ""


def snapshot_words(product: Product) -> str:
    """From when the catalog is that the style was found in."""
    if product.snapshot_date:
        return f"The catalog is of {product.snapshot_date}."
    return "The catalog gives no snapshot date."


def _also(seen: Seen) -> str:
    """How to ask about what else is in view, in case that was meant."""
    if not seen.also:
        return ""
    asking = "What are these" if _is_plural(seen.also[0]) else "What is this"
    return f"If you meant something else in view, ask “{asking} {seen.also[0]}?”."


def _words_beside(seen: Seen, product: Product) -> str:
    """What is seen, without its kind where the product that it is compared to is called another."""
    kind = seen.kind if seen.kind and seen.kind.rstrip("s") in product.described() else None
    return replace(seen, kind=kind).words()


def _bare(words: str) -> str:
    """`colour (red on both)` → `colour`: what is read aloud needs no brackets."""
    return words.partition(" (")[0].strip()


def _is_plural(words: str) -> bool:
    """Whether the thing's own name is a plural: trousers, shoes; not a dress."""
    return words.endswith("s") and not words.endswith("ss")


def _in_frame(frame: FrameRef | None) -> str:
    return f"In the frame from {age_words(frame.age_ms)} ago" if frame else "In the picture"


def _named(product: Product, *, colors: bool = False) -> str:
    known = [product.style_id, *([", ".join(product.colors[:4])] if colors and product.colors else [])]
    return f"{product.name} ({'; '.join(known)})"


def _a(words: str) -> str:
    article = "" if _is_plural(words) else "an " if words[0] in "aeiou" else "a "
    return article + words


def _count(styles: int) -> str:
    return f"{styles} style" if styles == 1 else f"{styles} styles"
