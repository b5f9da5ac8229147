"""Receipts of a Bolt log with a lazy front."""

import pytest

import anabranch
from anabranch.core.errors import DeadlineExceeded, PositionPending, ReceiptPending


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
