"""Shares with their uncertainty, and times in short: how evaluations report what they counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Z_95 = 1.96


def share(hits: Sequence[bool]) -> tuple[float | None, tuple[float, float]]:
    """The share of hits, None without any case, and its 95 % interval (Wilson 1927)."""
    count = len(hits)
    if count == 0:
        return None, (0.0, 1.0)
    part = sum(hits) / count
    middle = (part + Z_95**2 / (2 * count)) / (1 + Z_95**2 / count)
    half = Z_95 / (1 + Z_95**2 / count) * (part * (1 - part) / count + Z_95**2 / (4 * count**2)) ** 0.5
    return round(part, 4), (round(middle - half, 3), round(middle + half, 3))


def shares(counted: Mapping[str, Sequence[bool]]) -> dict[str, object]:
    """Each share by its name, and all intervals under `ci95`."""
    rated = {name: share(hits) for name, hits in counted.items()}
    return {name: part for name, (part, _) in rated.items()} | {
        "ci95": {name: interval for name, (_, interval) in rated.items()}
    }


def latency(milliseconds: Sequence[float]) -> dict[str, float | None]:
    """Median, 90th percentile and the longest; None where nothing was timed."""
    ordered = sorted(milliseconds)
    if not ordered:
        return {"p50": None, "p90": None, "max": None}
    at = {f"p{part}": ordered[min(len(ordered) - 1, len(ordered) * part // 100)] for part in (50, 90)}
    return {name: round(value, 1) for name, value in {**at, "max": ordered[-1]}.items()}
