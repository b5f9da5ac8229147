"""The identity of an append."""

from anabranch.core.records.batch import peek
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.protocol.ids import AppendId


def test_a_batch_names_its_append() -> None:
    batch = encode([Record(b"a")], producer_id=7, producer_epoch=3, base_sequence=40, now=0)
    assert AppendId.of(peek(batch)) == AppendId(producer=7, epoch=3, sequence=40)
