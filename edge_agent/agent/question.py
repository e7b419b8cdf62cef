"""What a wearer's question asks for, read from its words alone.

Two uses: the loop does not send a camera frame along with a question that clearly needs none, and
the offline model decides what it can do. English; where the words do not tell, the kind is `other`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

QuestionKind = Literal["look", "search", "follow_up", "talk", "other"]


@dataclass(frozen=True, slots=True)
class Question:
    """`look`: about what is in view. `search`: the catalog by `terms`. `follow_up`: refers to the
    last results. `talk`: greetings, thanks, what can you do. `other`: the words do not tell."""

    kind: QuestionKind
    terms: str = ""

    @property
    def needs_camera(self) -> bool:
        """True unless the question clearly does without."""
        return self.kind in ("look", "other")


_TALK = re.compile(
    r"(hi|hello|hey|good (morning|afternoon|evening)|thanks?( you)?( very much)?|thank you|bye|ok(ay)?"
    r"|great|cool|help|who are you|what are you|what can (you|i) (do|ask)( here)?"
    r"|how (do you|does (this|it)) work)[\s!.?]*",
    re.IGNORECASE,
)
_FOLLOW_UP = re.compile(
    r"((and|or|what about|how about)\b.{0,40}|(any(thing)? |something )?(cheaper|less expensive|similar"
    r"|bigger|smaller)( one| ones)?|(in|the) (another|other|different) colou?rs?|which one is .{0,30}"
    r"|(tell me )?more|why|are you sure|really)[\s!.?]*",
    re.IGNORECASE,
)
_SEARCH = re.compile(
    r"(?:do|does|did) (?:you|they|we|the (?:shop|store|catalog(?:ue)?))"
    r" (?:have|sell|carry|stock)\s+(?P<have>.+)"
    r"|(?:is|are) there\s+(?P<there>.+)"
    r"|(?:please\s+)?(?:search|look)(?: the (?:catalog(?:ue)?|shop|store))? for\s+(?P<search>.+)"
    r"|(?:please\s+)?(?:find|show|list|give)(?: me| us)?\s+(?P<find>.+)"
    r"|(?:what|which)\s+(?P<what>.+?)\s+(?:do you have|do you sell|are there|have you got)"
    r"|(?:have you got|got)\s+(?P<got>.+)"
    r"|(?:any|i(?:'m| am) looking for|i (?:want|need))\s+(?P<any>.+)",
    re.IGNORECASE | re.DOTALL,
)
# Words that point at something in view: a question with one of them is about the picture.
_POINTS = re.compile(
    r"\b(this|that|these|those|it|here|there's|looking at|in front of me|in view|do you see|can you see|"
    r"(he|she|they|i)('s| is|'m| am|'re| are)? wear\w*"
    r"|the (tag|label|picture|camera|frame|mannequin|rack))\b",
    re.IGNORECASE,
)
_WHAT = re.compile(
    r"\b(what|which|identify|recogni[sz]e|match|name|describe|brand|how much|price)\b", re.IGNORECASE
)
_GARMENT = re.compile(
    r"\b(garments?|clothes|clothing|jackets?|coats?|shirts?|t-?shirts?|tees?|tanks?|tops?|hoodies?|sweat(shirt|er)s?|"
    r"pullovers?|cardigans?|dress(es)?|skirts?|trousers|pants|jeans|shorts|leggings|blouses?|vests?|suits?|bags?|"
    r"shoes?|sneakers?|boots?|hats?|caps?|scar(f|ves)|style|outfit|product|item)\b",
    re.IGNORECASE,
)
_LEADING = re.compile(r"^(?:any|some|a|an|the|your|all|me|other|more)\s+", re.IGNORECASE)
_TRAILING = re.compile(
    r"\s*(?:please|in (?:the |your )?(?:catalog(?:ue)?|shop|store)|for me|on sale|available)?[\s?.!]*$",
    re.IGNORECASE,
)

_NO_THING = re.compile(r"(?:what|who|how|why|where|when)\b", re.IGNORECASE)


def read_question(text: str) -> Question:
    """The kind of question, and for a search the words to search for."""
    words = " ".join(text.split())
    if not words:
        return Question("look")
    if _TALK.fullmatch(words):
        return Question("talk")
    points = _POINTS.search(words) is not None
    search = _SEARCH.match(words)
    if search and not points:
        terms = _search_terms(next(group for group in search.groupdict().values() if group))
        if terms:
            return Question("search", terms)
    if _FOLLOW_UP.fullmatch(words) and not points:
        return Question("follow_up")
    if points or (_WHAT.search(words) and _GARMENT.search(words)):
        looks = (
            _WHAT.search(words)
            or _GARMENT.search(words)
            or re.search(r"\b(see|looking at|tag|label)\b", words)
        )
        return Question("look" if looks else "other")
    return Question("other")


def _search_terms(words: str) -> str:
    terms = _TRAILING.sub("", words.strip())
    while (shorter := _LEADING.sub("", terms)) != terms:
        terms = shorter
    return "" if _NO_THING.match(terms) else terms.strip()
