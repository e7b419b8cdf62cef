"""How evaluations count, what they read, and one case through the real tool path."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from device.clock import SystemClock
from edge_agent.errors import UsageError
from edge_agent.events import Spine, ToolFinished, ToolStarted
from edge_agent.home import ASSETS, Home
from edge_agent.json_types import JsonValue
from scripts.eval_match import answered, report
from scripts.eval_walk import Heard, read_moments
from scripts.evaluation.contact_sheet import Row, write_sheet
from scripts.evaluation.match_cases import MatchAnswer, MatchCase, read_cases
from scripts.evaluation.shares import latency, share
from scripts.evaluation.tool_path import ToolPathAnswerer

PHOTOS = ASSETS / "demo" / "data" / "photos"


def test_a_share_comes_with_wilsons_interval() -> None:
    assert share([True] * 8 + [False] * 2) == (0.8, (0.49, 0.943))
    assert share([]) == (None, (0.0, 1.0))
    low, high = share([False] * 40)[1]
    assert low == pytest.approx(0)
    assert 0 < high < 0.1


def test_times_in_short() -> None:
    assert latency([3.0, 1.0, 2.0]) == {"p50": 2.0, "p90": 3.0, "max": 3.0}
    assert latency([]) == {"p50": None, "p90": None, "max": None}


def test_what_is_counted_tells_the_likeliest_the_verdict_and_false_claims_apart() -> None:
    path = Path("x.jpg")
    cases = [MatchCase(f"c{i}", "s", "upper", path, (path, path), a) for i, a in enumerate((0, 1, None))]
    answers = [
        MatchAnswer(0, None, False, (0.4, 0.1), 10.0),  # likeliest right, called none
        MatchAnswer(0, 0, True, (0.95, 0.0), 20.0, tokens=7),  # wrong, and claimed
        MatchAnswer(0, 0, False, (0.6, 0.1), 30.0),  # there was none
    ]
    counted = report(cases, answers, "m", details=False)
    assert {k: counted[k] for k in ("n", "top1", "withNone", "noneMatched", "wrongExact", "tokens")} == {
        "n": 3, "top1": 0.5, "withNone": 0.0, "noneMatched": 1.0, "wrongExact": 0.3333, "tokens": 7,
    }  # fmt: skip


def test_cases_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_cases(tmp_path)
    (tmp_path / "manifest.json").write_text('{"cases": [{"id": 1}]}')
    with pytest.raises(UsageError):
        read_cases(tmp_path)


def test_moments_are_spread_over_each_segment(tmp_path: Path) -> None:
    truth = tmp_path / "walk.json"
    truth.write_text('{"segments": [{"fromS": 4, "toS": 8, "styleId": "A", "color": "Red"}]}')
    assert [(m.at, m.color) for m in read_moments(truth, 1)] == [(6.0, "red")]
    assert [m.at for m in read_moments(truth, 3)] == [5.0, 6.0, 7.0]
    truth.write_text("[]")
    with pytest.raises(UsageError):
        read_moments(truth, 1)


def test_what_an_answer_names_first_counts_by_name_or_id() -> None:
    heard = Heard()
    spine = Spine(SystemClock())
    spine.subscribe(heard)
    products: list[JsonValue] = [
        {"styleId": "MJ06", "name": "Jupiter Trainer"},
        {"styleId": "MH06", "name": "Hero Hoodie"},
    ]
    results: tuple[tuple[str, str, JsonValue], ...] = (
        ("s", "search_catalog", {"products": products}),
        ("m", "match_garment", {"best": "MH06", "candidates": [{"styleId": "MH06"}]}),
    )
    for span, tool, result in results:
        spine.emit(
            ToolStarted(call_id=span, tool=tool, source_hash="", input={}, frame=None), span=span, parent="t"
        )
        spine.emit(ToolFinished(ok=True, ms=1, result=result), span=span, parent="t")
    assert heard.named_in("It is like the Hero Hoodie or MJ06.") == ["MH06", "MJ06"]
    assert heard.named_in("I cannot say.") == []
    assert heard.verdict_of("MH06")["best"] == "MH06"
    assert heard.verdict_of("XX")["best"] == "MH06"


def test_a_sheet_is_a_picture_with_wrong_cases_first(tmp_path: Path) -> None:
    photo = (PHOTOS / "fj-201-green_front.jpg").read_bytes()
    write_sheet([Row([photo], "a", "right"), Row([photo, b""], "b → c", "wrong")], tmp_path / "sheet.png")
    sheet = cv2.imread(str(tmp_path / "sheet.png"))
    assert sheet is not None
    blue, _green, red = (int(v) for v in np.median(sheet[2:30, 150:290].reshape(-1, 3), 0))
    assert red > blue + 60


async def test_a_case_goes_through_catalog_camera_and_sandbox(tmp_path: Path, demo_home: Home) -> None:
    green, black = PHOTOS / "fj-201-green_front.jpg", PHOTOS / "fj-201-black_front.jpg"
    manifest = {
        "cases": [
            {
                "id": "one",
                "category": "upper",
                "query": {"file": str(green)},
                "candidates": [{"file": str(black)}, {"file": str(green)}],
                "answer": 1,
            }
        ]
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    cases = read_cases(tmp_path)
    async with ToolPathAnswerer(demo_home, cases, "offline") as answerer:
        [answer] = await answered(cases, answerer)
        assert "real tool path" in answerer.model
    assert answer.first == 1
    assert len(answer.probabilities) == 2
