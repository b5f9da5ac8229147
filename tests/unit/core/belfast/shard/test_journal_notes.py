"""Notes as earlier releases wrote them are still read, and those of this one are written alike."""

from typing import Any

import msgspec
import pytest

from anabranch.core.belfast.ledger.placements import Row
from anabranch.core.belfast.shard import journal_notes
from anabranch.core.belfast.shard.duplicates import Known
from anabranch.core.belfast.shard.journal_notes import Note, ShardImage, Taught
from anabranch.core.belfast.shard.record_counts import Counted

ROW = Row(base=4, count=6, quota=2, stride=5, first=9)
ROW_WRITTEN = [4, 6, 2, 5, 9]

NOTES: list[tuple[Note | Taught, list[Any]]] = [
    (
        Note(index=3, view=1, settled=4, cut=-1, rows=[ROW], foretold=7, voided=2),
        ["note", 3, 1, 4, -1, [ROW_WRITTEN], 7, 2],
    ),
    (Taught(floor=2, upto=10, rows=[ROW]), ["taught", 2, 10, [ROW_WRITTEN]]),
]


def unpacked(content: bytes) -> Any:
    return msgspec.msgpack.decode(content)


@pytest.mark.parametrize(("note", "written"), NOTES, ids=["note", "taught"])
def test_a_note_is_written_as_an_array_in_this_order(
    note: Note | Taught, written: list[Any]
) -> None:
    assert unpacked(journal_notes.encode(note)) == written
    assert journal_notes.decode_note.decode(msgspec.msgpack.encode(written)) == note


def test_a_note_from_before_predictions_were_counted_is_read() -> None:
    written = msgspec.msgpack.encode(["note", 3, 1, 4, -1, []])
    note = journal_notes.decode_note.decode(written)
    assert note == Note(index=3, view=1, settled=4, cut=-1, rows=[], foretold=0, voided=0)


IMAGE = ShardImage(
    index=8,
    view=2,
    floor=4,
    rows=[ROW],
    counted=Counted(last=10, records=5, stretches=[(4, 0, True)], uncounted=1),
    producers=[Known(id=9, epoch=1, next=3, recent=[(0, 4, 3)], digest=6)],
    partial=True,
    settled=10,
    foretold=4,
    voided=1,
)
IMAGE_WRITTEN = [
    8,
    2,
    4,
    [ROW_WRITTEN],
    [10, 5, [[4, 0, True]], 1],
    [[9, 1, 3, [[0, 4, 3]], 6]],
    True,
    10,
    4,
    1,
]


def test_an_image_is_written_as_an_array_in_this_order() -> None:
    assert unpacked(journal_notes.encode(IMAGE)) == IMAGE_WRITTEN
    assert journal_notes.decode_image.decode(journal_notes.encode(IMAGE)) == IMAGE


def test_an_image_of_an_earlier_release_is_read_without_what_was_not_counted_then() -> None:
    earlier = [*IMAGE_WRITTEN[:4], [10, 5, [[4, 0, True]]], [[9, 1, 3, [[0, 4, 3]]]], True]
    image = journal_notes.decode_image.decode(msgspec.msgpack.encode(earlier))
    assert (image.settled, image.foretold, image.voided) == (0, 0, 0)
    assert image.counted.uncounted == 0
    assert (image.producers[0].next, image.producers[0].recent) == (3, [(0, 4, 3)])


def test_fields_of_a_release_to_come_are_passed_over() -> None:
    later = [*NOTES[0][1], "more"]
    assert journal_notes.decode_note.decode(msgspec.msgpack.encode(later)) == NOTES[0][0]
