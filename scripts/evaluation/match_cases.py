"""Cases of "one picture, up to four candidates: the same garment, or none", and answers to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import UsageError


@dataclass(frozen=True, slots=True)
class MatchCase:
    """One case: `category` is what the candidates' catalog says they are (`upper`, `lower` …)."""

    name: str
    stratum: str
    category: str
    query: Path
    candidates: tuple[Path, ...]
    answer: int | None


@dataclass(frozen=True, slots=True)
class MatchAnswer:
    """`first` is the likeliest candidate even where the answer is none; `ms` what answering took."""

    first: int | None
    best: int | None
    exact: bool
    probabilities: tuple[float, ...]
    ms: float
    tokens: int = 0


def read_cases(folder: Path) -> list[MatchCase]:
    """The cases of `folder/manifest.json`. Raises UsageError BAD_CASES where it cannot be read."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        return [
            MatchCase(
                name=str(case["id"]),
                stratum=str(case.get("stratum", "all")),
                category=str(case.get("category", "")),
                query=folder / case["query"]["file"],
                candidates=tuple(folder / candidate["file"] for candidate in case["candidates"]),
                answer=case["answer"],
            )
            for case in manifest["cases"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "BAD_CASES",
            f"The cases in {folder} cannot be read ({error}).",
            "It needs a manifest.json as in shared/data/garments.",
        ) from error
