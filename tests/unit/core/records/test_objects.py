import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BadName, CorruptObject
from anabranch.core.records import objects
from anabranch.core.records.batch import split
from anabranch.core.records.checksum import crc32c
from anabranch.core.records.objects import (
    TRAILER_BYTES,
    Footer,
    ObjectName,
    Placed,
    footer_bytes,
    lay_out,
    object_id,
    read_footer,
    split_id,
)
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import LogId

NAME = "river/data/00000003/0000000000042"


def batch(count: int) -> bytes:
    return encode([Record(b"%d" % number, timestamp=1) for number in range(count)], now=1)


def written(counts: dict[int, list[int]]) -> tuple[bytes, list[Placed]]:
    logs = [(LogId(log), [batch(count) for count in each]) for log, each in counts.items()]
    parts, placed = lay_out("river", logs)
    return b"".join(parts), placed


@given(
    st.dictionaries(
        st.integers(0, 2**64 - 1),
        st.lists(st.integers(1, 9), min_size=1, max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_a_footer_leads_to_every_batch(counts: dict[int, list[int]]) -> None:
    content, placed = written(counts)
    footer = read_footer(content, len(content), NAME)
    assert footer == Footer("river", tuple(placed))
    assert [row.log for row in footer.rows] == list(counts)
    for row in footer.rows:
        found = list(split(content[row.offset : row.offset + row.length]))
        assert [header.count for _, _, header in found] == counts[row.log]
        assert row.count == sum(counts[row.log])


def test_no_batch_is_copied() -> None:
    first, second = batch(1), memoryview(batch(2))
    parts, _ = lay_out("river", [(LogId(5), [first]), (LogId(4), [second])])
    assert parts[0] is first
    assert parts[1] is second
    assert len(parts) == 3


def test_the_end_of_an_object_tells_how_much_of_it_to_read() -> None:
    content, placed = written({1: [3], 2: [1, 1]})
    length = footer_bytes(content[-TRAILER_BYTES:], len(content), NAME)
    assert length == len(content) - sum(row.length for row in placed)
    footer = read_footer(memoryview(content)[-length:], len(content), NAME)
    first = footer.rows[0]
    assert len(decode(content[first.offset : first.offset + first.length])) == 3


def test_every_bit_flip_in_a_footer_is_refused() -> None:
    content, placed = written({1: [1], 2: [1]})
    for place in range(sum(row.length for row in placed), len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            with pytest.raises(CorruptObject, match=NAME):
                read_footer(flipped, len(flipped), NAME)


def test_an_object_cut_short_or_run_on_is_refused() -> None:
    content, _ = written({1: [1], 2: [1]})
    for length in range(len(content)):
        with pytest.raises(CorruptObject):
            read_footer(content[:length], length, NAME)
    with pytest.raises(CorruptObject):
        read_footer(content + b"\0", len(content) + 1, NAME)
    with pytest.raises(CorruptObject):
        read_footer(b"\0" + content, len(content) + 1, NAME)


def test_the_layout_never_changes() -> None:
    content, placed = written({258: [2]})
    footer = content[placed[0].length :]
    crc = crc32c(footer[:-12]).to_bytes(4, "big")
    assert footer == b"".join(
        (
            b"ANBRrows\x00\x01\x00\x05\x00\x00\x00\x01river",
            b"\0\0\0\0\0\0\x01\x02" + bytes(8) + b"\0\0\0\x4d" + b"\0\0\0\x02",
            b"\0\0\0\x3d" + crc + b"ANBRdone",
        )
    )


def sealed(body: bytes, head: bytes, cluster: bytes, rows: bytes) -> bytes:
    length = len(head) + len(cluster) + len(rows) + TRAILER_BYTES
    summed = head + cluster + rows + length.to_bytes(4, "big")
    return body + summed + crc32c(summed).to_bytes(4, "big") + b"ANBRdone"


def head(magic: bytes = b"ANBRrows", version: int = 1, cluster: int = 1, rows: int = 1) -> bytes:
    counts = (version.to_bytes(2, "big"), cluster.to_bytes(2, "big"), rows.to_bytes(4, "big"))
    return magic + b"".join(counts)


def row(log: int, offset: int, length: int, count: int) -> bytes:
    wide = (log.to_bytes(8, "big"), offset.to_bytes(8, "big"))
    return b"".join((*wide, length.to_bytes(4, "big"), count.to_bytes(4, "big")))


@pytest.mark.parametrize(
    ("footer", "reason"),
    [
        ((head(magic=b"ANBRrowz"), b"c", row(1, 0, 100, 1)), "doesn't begin"),
        ((head(version=2), b"c", row(1, 0, 100, 1)), "format is 2"),
        ((head(rows=2), b"c", row(1, 0, 100, 1)), "can't hold 2 rows"),
        ((head(cluster=2), b"c", row(1, 0, 100, 1)), "can't hold"),
        ((head(), b"\xff", row(1, 0, 100, 1)), "isn't text"),
        ((head(), b"c", row(1, 1, 99, 1)), "begins at 1"),
        ((head(), b"c", row(1, 0, 99, 1)), "end at 99"),
        ((head(), b"c", row(1, 0, 100, 0)), "0 records"),
        ((head(rows=2), b"c", row(1, 0, 50, 1) + row(2, 40, 60, 1)), "begins at 40"),
        ((head(rows=2), b"c", row(1, 0, 50, 1) + row(1, 50, 50, 1)), "two rows"),
        ((head(rows=2), b"c", row(1, 0, 0, 1) + row(2, 0, 100, 1)), "0 bytes"),
    ],
)
def test_footers_that_were_written_wrong_are_refused(
    footer: tuple[bytes, bytes, bytes], reason: str
) -> None:
    right = sealed(bytes(100), head(), b"c", row(1, 0, 100, 1))
    assert read_footer(right, len(right), NAME).rows == (Placed(LogId(1), 0, 100, 1),)
    wrong = sealed(bytes(100), *footer)
    with pytest.raises(CorruptObject, match=reason):
        read_footer(wrong, len(wrong), NAME)


@given(st.integers(0, 2**24 - 1), st.integers(0, 2**40 - 1))
def test_names_and_ids_say_the_same(epoch: int, sequence: int) -> None:
    name = ObjectName("river", epoch, sequence)
    assert ObjectName.parse(str(name)) == name
    assert ObjectName.of("river", name.id) == name
    assert split_id(name.id) == (epoch, sequence)
    assert 0 <= name.id < 2**64


@given(st.lists(st.tuples(st.integers(0, 2**24 - 1), st.integers(0, 2**40 - 1)), max_size=20))
def test_names_sort_as_ids_and_as_they_were_given_out(places: list[tuple[int, int]]) -> None:
    names = [ObjectName("river", *place) for place in sorted(places)]
    assert sorted(names, key=str) == names
    assert sorted(names, key=lambda name: name.id) == names


def test_a_name_as_people_see_it() -> None:
    assert str(ObjectName("river", 3, 42)) == NAME


@pytest.mark.parametrize(
    "text",
    [
        "",
        "river",
        "/data/00000003/0000000000042",
        "river/data/3/42",
        "river/data/00000003/0000000000042/",
        "river/data/00000003/0000000000042.part",
        "river/data/+0000003/0000000000042",
        "river/data/0000000٣/0000000000042",
        "river/meta/00000003/0000000000042",
        "a/river/data/00000003/0000000000042",
        "river/data/00000003/0000000000042\n",
        "river/data/16777216/0000000000042",
        "river/data/00000003/1099511627776",
    ],
)
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(BadName):
        ObjectName.parse(text)


@pytest.mark.parametrize(("epoch", "sequence"), [(2**24, 0), (0, 2**40), (-1, 0), (0, -1)])
def test_an_id_has_room_for_no_more(epoch: int, sequence: int) -> None:
    with pytest.raises(AssertionError):
        object_id(epoch, sequence)


def test_the_version_is_told_in_the_footer() -> None:
    content, placed = written({1: [1]})
    assert content[placed[0].length + 9] == objects.VERSION
