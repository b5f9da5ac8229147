"""Kubernetes' amounts are whole numbers, rounded down, or no amounts at all."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.plan.manifests.quantities import whole


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("7", 7),
        ("1.5", 1),
        (".5", 0),
        ("500m", 0),
        ("1500m", 1),
        ("2k", 2_000),
        ("1.5k", 1_500),
        ("3M", 3_000_000),
        ("1G", 10**9),
        ("1E", 10**18),
        ("1Ki", 1_024),
        ("1.5Ki", 1_536),
        ("10Gi", 10 * 2**30),
        ("1Ei", 2**60),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("1e-1", 0),
        ("2500000n", 0),
    ],
)
def test_an_amount_is_as_many(text: str, amount: int) -> None:
    assert whole(text) == amount


@pytest.mark.parametrize("text", ["", "-1", "1 Gi", "1gi", "Gi", "1K", "1e", "1e100", "1.2.3", "∞"])
def test_what_is_no_amount_is_none(text: str) -> None:
    assert whole(text) is None


@given(
    st.integers(0, 10**6),
    st.none() | st.integers(0, 999),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]),
)
def test_an_amount_is_the_number_times_its_unit(
    number: int, fraction: int | None, unit: str
) -> None:
    units = {"": 1, "m": Fraction(1, 1_000), "k": 10**3, "M": 10**6, "G": 10**9}
    units |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    text = f"{number}" if fraction is None else f"{number}.{fraction:03}"
    exact = number + (Fraction(fraction, 1_000) if fraction is not None else 0)
    assert whole(text + unit) == int(exact * units[unit])


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_none(text: str) -> None:
    found = whole(text)
    assert found is None or found >= 0
