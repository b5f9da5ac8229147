"""Kubernetes' amounts are whole numbers, rounded down, or no amounts at all."""

import pytest

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
