"""What the heads are trained and measured on: the given garment cases, and cases made of the retail catalog.

Nothing here reaches the product: file names are read only to know which photos show the same style.
"""

from __future__ import annotations

import csv
import json
import random
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Photo:
    path: Path
    style: str
    color: str
    main: bool


@dataclass(frozen=True, slots=True)
class Style:
    name: str
    product_type: str
    gender: str
    pattern: str

    @property
    def region(self) -> str:
        return "lower" if "Bottoms" in self.product_type else "upper"

    @property
    def kind(self) -> str:
        """The catalog's word for the garment, from its type and name."""
        name = self.name.lower()
        if "Jackets" in self.product_type:
            return "jacket"
        if "Hoodies" in self.product_type:
            return "hoodie" if "hood" in name else "sweatshirt"
        if "Tees" in self.product_type:
            return "t-shirt"
        if "Tanks" in self.product_type:
            return "bra" if "bra" in name else "tank top"
        if "Shorts" in self.product_type:
            return "shorts"
        return "leggings" if re.search(r"legging|tight|capri", name) else "pants"


@dataclass(frozen=True, slots=True)
class Case:
    """A query and up to four candidates; `query` may be the name of an augmented frame."""

    name: str
    stratum: str
    region: str
    query: str
    candidates: tuple[str, ...]
    answer: int | None
    style: str
    """Of the query: cases of one style stay in one fold."""

    @property
    def fold(self) -> int:
        return fold_of(self.style)


def fold_of(style: str) -> int:
    return zlib.crc32(style.encode()) % FOLDS


def given_cases(folder: Path) -> list[Case]:
    """The cases of a manifest."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    return [
        Case(
            name=case["id"],
            stratum=case["stratum"],
            region=case["category"],
            query=str(folder / case["query"]["file"]),
            candidates=tuple(str(folder / c["file"]) for c in case["candidates"]),
            answer=case["answer"],
            style=_style_of(case["query"]["file"]),
        )
        for case in manifest["cases"]
    ]


def _style_of(file: str) -> str:
    stem = Path(file).stem
    match = re.match(r"m2_([a-z]+\d+)-", stem)
    return match[1] if match else stem


def retail_styles(folder: Path) -> dict[str, Style]:
    found: dict[str, Style] = {}
    with (folder / "google-merchant.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found[row["item_group_id"].lower()] = Style(
                name=row["title"],
                product_type=row["product_type"],
                gender=row["gender"],
                pattern=row["pattern"],
            )
    return found


def retail_photos(folder: Path, styles: dict[str, Style]) -> list[Photo]:
    found = []
    for path in sorted((folder / "photos").glob("*.jpg")):
        match = re.match(r"([a-z]+\d+)-([a-z]+)", path.name)
        if match and match[1] in styles:
            found.append(Photo(path, match[1], match[2], path.stem.endswith("_main")))
    return found


def made_cases(photos: Sequence[Photo], styles: dict[str, Style], *, frames: bool, seed: int) -> list[Case]:
    """One case for each photo that is no main one: hard candidates of like kind, cut line and colour."""
    draw = random.Random(seed)
    mains = {(p.style, p.color): str(p.path) for p in photos if p.main}
    cases = []
    for photo in photos:
        key = (photo.style, photo.color)
        if photo.main or key not in mains:
            continue
        style = styles[photo.style]
        pool = [
            k
            for k in mains
            if k[0] != photo.style
            and styles[k[0]].region == style.region
            and styles[k[0]].gender == style.gender
        ]
        like = [k for k in pool if styles[k[0]].product_type == style.product_type]
        others: list[tuple[str, str]] = []
        sources = (
            ([k for k in like if k[1] == photo.color], draw.choice((1, 2))),
            ([k for k in pool if k[1] == photo.color], 1),
            (like, 3),
        )
        for source, count in sources:
            for chosen in draw.sample(source, min(count, len(source))):
                if chosen[0] not in {k[0] for k in others} and len(others) < 4:
                    others.append(chosen)
        none = draw.random() < 0.25
        candidates = [mains[k] for k in others]
        answer = None
        if not none:
            candidates = candidates[:3]
            answer = draw.randrange(len(candidates) + 1)
            candidates.insert(answer, mains[key])
        cases.append(
            Case(
                name=f"made-{'frame' if frames else 'photo'}-{photo.path.stem}",
                stratum=("made_frame" if frames else "made_photo") + ("_none" if none else ""),
                region=style.region,
                query=f"frame:{photo.path}" if frames else str(photo.path),
                candidates=tuple(candidates),
                answer=answer,
                style=photo.style,
            )
        )
    return cases
