"""What is read from tool results for the card, whatever shape they have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.json_types import JsonValue
from edge_agent.tui.verdict import Product, Verdict, products_in, verdict_in
from tests.tui.scripted_session import PRODUCTS, VERDICT


def test_products_carry_price_and_snapshot_date_together() -> None:
    found = products_in(PRODUCTS)
    assert found["MT01"] == Product("MT01", "Atlas Fleece Jacket", "Northline", "89.00 USD on 2026-03-02")
    assert found["MT07"].price == ""


def test_a_price_without_a_date_says_so() -> None:
    (product,) = products_in({"products": [{"styleId": "A", "price": "12", "currency": "EUR"}]}).values()
    assert product.price == "12 EUR (date unknown)"


def test_the_verdict_names_the_best_ones_evidence() -> None:
    verdict = verdict_in(VERDICT)
    assert verdict == Verdict(
        style_id="MT01",
        confidence=0.87,
        agrees=("red fleece", "full zip", "stand collar"),
        differs=(),
        ask_to_see_tag=False,
        others=("MT07",),
    )


def test_none_of_them_is_a_verdict_too() -> None:
    verdict = verdict_in({"best": None, "confidence": 7, "candidates": [], "askToSeeTag": True})
    assert verdict == Verdict(style_id=None, confidence=1.0, ask_to_see_tag=True)


@pytest.mark.parametrize("result", [None, 3, [], {}, {"best": "x"}, "best candidates"])
def test_what_is_no_verdict_gives_none(result: JsonValue) -> None:
    assert verdict_in(result) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["best", "candidates", "products", "styleId", "price", "agrees", "confidence", "x"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_survived(value: JsonValue) -> None:
    verdict_in(value)
    products_in(value)
