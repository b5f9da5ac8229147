"""Receipts of a Bolt log with a lazy front."""

from typing import Literal

import pytest

import anabranch
from anabranch.core.errors import (
    AnabranchError,
    DeadlineExceeded,
    OutcomeUnknown,
    PositionForgotten,
    PositionPending,
    ReceiptPending,
)


def test_a_receipt_is_kept_as_text_once_its_record_is_in_the_log(
    service: anabranch.Service, name: str
) -> None:
    log = service.create(name, append="lazy", durability="memory")
    try:
        receipt = log.append(b"x").receipt
        assert receipt is not None
        assert repr(receipt) == f"<receipt of {name}: position not bound yet>"
        with pytest.raises(PositionPending, match=f"^{name} holds the record") as fresh:
            str(receipt)
        assert isinstance(fresh.value, ReceiptPending | DeadlineExceeded)
        assert "fork" not in fresh.value.message
        assert receipt.position() == 0
        assert repr(receipt) == f"<receipt {receipt}>"
        assert service.receipt(str(receipt)).position() == 0
    finally:
        service.delete(name)


@pytest.mark.parametrize(
    ("durability", "expected"), [("fsync", PositionForgotten), ("memory", OutcomeUnknown)]
)
def test_a_receipt_of_a_front_that_has_ended_has_a_definite_answer(
    service: anabranch.Service,
    name: str,
    durability: Literal["fsync", "memory"],
    expected: type[AnabranchError],
) -> None:
    log = service.create(name, append="lazy", durability=durability)
    try:
        asked, other = log.append(b"x").receipt, log.append(b"y").receipt
        assert asked is not None
        assert other is not None
        assert asked.position() == 0
        service.set_appends(name, "direct")
        assert asked.position() == 0, "it was asked before"
        with pytest.raises(expected):
            other.position(timeout=20)
        assert [each.value for each in log.read(0)] == [b"x", b"y"]
    finally:
        service.delete(name)
