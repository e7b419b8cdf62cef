"""Catalog words for garments: which region of the body each covers."""

from __future__ import annotations

import re

from edge_agent.styleeyes.vision.regions import Region

_REGION_WORDS: dict[Region, str] = {
    "full": r"dress(?:es)?|gowns?|jumpsuits?|overalls?|rompers?|onesies?|bodysuits?|dungarees|snowsuits?"
    r"|tracksuits?",
    "shoes": r"shoes?|sneakers?|trainers?|boots?|sandals?|heels?|pumps?|loafers?|slippers?|flats|footwear"
    r"|wedges?",
    "lower": r"pants?|trousers?|shorts?|jeans?|leggings?|tights?|skirts?|capris?|chinos?|joggers?|sweatpants?"
    r"|bottoms?|slacks|khakis",
    "upper": r"jackets?|coats?|hoodies?|sweatshirts?|sweaters?|pullovers?|jumpers?|t-?shirts?|tees?|tanks?"
    r"|tops?|bras?|shirts?|blouses?|vests?|cardigans?|polos?|blazers?|parkas?|anoraks?|windbreakers?|shells?"
    r"|hoods?|henleys?|knits?|fleeces?|camis?|camisoles?|singlets?|turtlenecks?|crews?",
}
_PATTERNS = {
    region: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for region, words in _REGION_WORDS.items()
}
_SHIRT_DRESS = re.compile(r"\bdress (?:shirt|pant|trouser|shoe|sock)", re.IGNORECASE)
_SHORT_SLEEVE = re.compile(r"\bshort[- ]sleeved?\b", re.IGNORECASE)


def region_of_words(text: str) -> Region | None:
    """The region of the garment that a product name, category or question speaks of; None if unclear.

    The last garment word counts, since names end with the thing: "Hooded Fleece Jacket".
    """
    plain = _SHORT_SLEEVE.sub(" ", _SHIRT_DRESS.sub(lambda found: found[0].split()[-1], text))
    last: tuple[int, Region] | None = None
    for region, pattern in _PATTERNS.items():
        for match in pattern.finditer(plain):
            if last is None or match.start() > last[0]:
                last = (match.start(), region)
    return last[1] if last else None
