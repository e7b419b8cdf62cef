"""Turns text into the words of the index, and the vocabulary into the tables that search reads.

The same folding is done by the search tool in JavaScript, so it is kept to what both languages do
alike: NFKD, marks removed, NFC, lower case, apostrophes dropped, runs of letters and digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from edge_agent.styleeyes.catalog import vocabulary

Kind = Literal["garment", "color", "gender", "detail", "modifier", "ignored"]
Relation = Literal["same", "broader", "near"]

LONGEST_FORM_IN_WORDS = 3
MAX_WORD = 64
_APOSTROPHES = re.compile("['’ʼ`´]")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003134f]"
)
"""Thai, Lao, Burmese, Khmer, kana, CJK and Hangul: a run of these is no word one could look up."""


@dataclass(frozen=True, slots=True)
class SearchWord:
    """One row of `search_words`: what is typed, the term of the index, and how the two relate."""

    form: str
    term: str
    kind: Kind
    relation: Relation


def fold(text: str) -> str:
    """Text as it is compared: no marks, no case, no apostrophes."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.category(c).startswith("M"))
        text = unicodedata.normalize("NFC", text)
    return _APOSTROPHES.sub("", text.lower())


def words_of(text: str) -> list[str]:
    """The folded words of a text, in order; over-long ones cut."""
    return [word[:MAX_WORD] for word in _WORD.findall(fold(text))]


def has_unspaced_script(text: str) -> bool:
    """Whether a text needs the trigram index beside the word index."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def plural_forms(form: str) -> Iterator[str]:
    """A form and its regular English plural (of its last word)."""
    yield form
    if form.endswith(("s", "x", "z", "ch", "sh")):
        yield form + "es"
    elif form.endswith("y") and form[-2:-1] not in "aeiou":
        yield form[:-1] + "ies"
    else:
        yield form + "s"


@lru_cache(maxsize=1)
def search_words() -> tuple[SearchWord, ...]:
    """All rows of `search_words`, sorted by form and term."""
    rows: dict[tuple[str, str], SearchWord] = {}

    def add(form: str, term: str, kind: Kind, relation: Relation) -> None:
        rows.setdefault((form, term), SearchWord(form, term, kind, relation))

    groups: tuple[tuple[dict[str, str], Kind], ...] = (
        (vocabulary.GARMENTS, "garment"),
        (vocabulary.DETAILS, "detail"),
        (vocabulary.GENDERS, "gender"),
    )
    for table, kind in groups:
        for term, forms in table.items():
            for form in [*_split(forms), term]:
                for written in plural_forms(form):
                    add(written, term, kind, "same")
    for family, forms in vocabulary.COLOR_FAMILIES.items():
        for form in _split(forms):
            own = family if form in (family, _BRITISH.get(family)) else form.replace(" ", "")
            for written in plural_forms(form):
                add(written, own, "color", "same")
                add(written, family, "color", "broader")
    for form in _split(vocabulary.MODIFIERS):
        add(form, form, "modifier", "same")
    for form in _split(vocabulary.IGNORED):
        add(form, form, "ignored", "same")
    forms_of: dict[str, list[str]] = {}
    for (form, term), row in rows.items():
        if row.kind == "garment":
            forms_of.setdefault(term, []).append(form)
    kinds: tuple[tuple[Relation, dict[str, str]], ...] = (
        ("near", vocabulary.NEAR),
        ("broader", vocabulary.INCLUDED_IN),
    )
    for relation, links in kinds:
        for term, others in links.items():
            for form in forms_of[term]:
                for other in _split(others):
                    if other not in vocabulary.UMBRELLAS:
                        add(form, other, "garment", relation)
    return tuple(rows[key] for key in sorted(rows))


_BRITISH = {"gray": "grey", "multicolor": "multicolour"}


def _split(forms: str) -> list[str]:
    return [form.strip() for form in forms.split(",") if form.strip()]


@lru_cache(maxsize=1)
def _preferred() -> dict[str, SearchWord]:
    """Form → its own row; a form of several meanings keeps the first by term."""
    found: dict[str, SearchWord] = {}
    for row in search_words():
        if row.relation == "same" and row.kind != "ignored":
            found.setdefault(row.form, row)
    return found


def preferred_terms(words: list[str]) -> Iterator[SearchWord]:
    """Words of a text with each longest known form replaced by its preferred term.

    A word that is not in the vocabulary comes back as itself, of kind `detail`.
    """
    preferred = _preferred()
    at = 0
    while at < len(words):
        for length in range(min(LONGEST_FORM_IN_WORDS, len(words) - at), 0, -1):
            known = preferred.get(words[at] if length == 1 else " ".join(words[at : at + length]))
            if known is not None:
                yield known
                at += length
                break
        else:
            yield SearchWord(words[at], words[at], "detail", "same")
            at += 1


def index_terms(words: list[str]) -> Iterator[str]:
    """What the index holds for a text: preferred terms, the words as written, and what each means alone.

    So `yoga pants` is found by `leggings`, by `yoga` and by `pants`, and `tights` before other leggings
    where somebody says `tights`.
    """
    preferred = _preferred()
    for row in preferred_terms(words):
        yield row.term
        written = row.form.split(" ")
        yield from (word for word in written if word != row.term)
        if len(written) > 1:
            alone = {preferred[word].term for word in written if word in preferred}
            yield from sorted(alone - {row.term, *written})
        yield from _split(vocabulary.DETAILS_INCLUDED_IN.get(row.term, "")) if row.kind == "detail" else ()


def broader_terms(terms: Iterable[str]) -> set[str]:
    """The broader garments that include any of `terms`."""
    return {other for term in terms for other in _split(vocabulary.INCLUDED_IN.get(term, ""))}


@lru_cache(maxsize=65_536)
def color_families(color: str) -> tuple[str, ...]:
    """The families a colour's name belongs to (`Navy/White` → blue, white), sorted; empty if unknown."""
    families = _families()
    words = words_of(color)
    found: set[str] = set()
    at = 0
    while at < len(words):
        pair = " ".join(words[at : at + 2])
        length = 2 if pair in families else 1
        found.update(families.get(pair if length == 2 else words[at], ()))
        at += length
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def _families() -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for family, forms in vocabulary.COLOR_FAMILIES.items():
        for form in _split(forms):
            found.setdefault(form, set()).add(family)
    return {form: tuple(sorted(families)) for form, families in found.items()}


@lru_cache(maxsize=1024)
def gender_of(text: str) -> str:
    """A feed's gender as one of `vocabulary.GENDERS`; other texts folded as they are."""
    for row in preferred_terms(words_of(text)):
        if row.kind == "gender":
            return row.term
    return fold(text)


def cuts_of(word: str) -> Iterator[str]:
    """A word and every word it becomes with one letter less: two words that share one are an edit apart."""
    yield word
    seen = {word}
    for at in range(len(word)):
        cut = word[:at] + word[at + 1 :]
        if cut not in seen:
            seen.add(cut)
            yield cut
