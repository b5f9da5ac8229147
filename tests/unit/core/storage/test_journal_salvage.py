"""What of a damaged segment is still there: read group by group, and never a group that wasn't."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import JournalCorrupt
from anabranch.core.storage import journal
from anabranch.core.storage.journal import HEADER_BYTES, Group, Header

PATH = "journal/0000000003.segment"
groups_of = st.lists(
    st.lists(st.binary(max_size=30), min_size=1, max_size=4), min_size=1, max_size=6
)


def segment(groups: list[list[bytes]]) -> tuple[bytes, Header, list[int]]:
    content = journal.segment_header(3, 11, 77, "c1")
    header = journal.read_header(content, PATH, "c1")
    assert header is not None
    mark, first, places = header.mark, 11, [len(content)]
    for entries in groups:
        more, mark = journal.group(header, mark, first, entries)
        content += more
        first += len(entries)
        places.append(len(content))
    return content, header, places


@given(groups_of, st.data())
def test_a_cut_loses_what_lies_behind_it_and_salvage_names_all_of_that(
    groups: list[list[bytes]], data: st.DataObject
) -> None:
    content, header, places = segment(groups)
    broken = data.draw(st.integers(0, len(groups) - 1))
    spoilt = bytearray(content)
    place = data.draw(st.integers(places[broken], places[broken + 1] - 1))
    spoilt[place] ^= 1 << data.draw(st.integers(0, 7))
    found = list(journal.salvage(bytes(spoilt), places[broken], header))
    assert [list(each.entries) for each in found] == groups[broken + 1 :]
    assert [each.offset for each in found] == places[broken + 1 : -1]


@given(groups_of, st.binary(max_size=200))
def test_what_an_entry_holds_is_never_taken_for_a_group_of_its_own(
    groups: list[list[bytes]], junk: bytes
) -> None:
    """A record may hold a journal's bytes; another segment's groups are no proof here."""
    inner, _, _ = segment(groups)
    content, header, places = segment([[inner[HEADER_BYTES:], junk], *groups])
    found = list(journal.salvage(content, places[1], header))
    assert [list(each.entries) for each in found] == groups
    other = journal.segment_header(4, 11, 78, "c1")
    theirs = journal.read_header(other, PATH, "c1")
    assert theirs is not None
    assert list(journal.salvage(content, HEADER_BYTES, theirs)) == []


@given(st.binary(max_size=300))
def test_nothing_is_found_in_what_is_no_journal(junk: bytes) -> None:
    _, header, _ = segment([[b""]])
    assert list(journal.salvage(junk, 0, header)) == []


@given(groups_of, st.integers(0, 30), st.data())
def test_groups_are_read_from_the_middle_and_those_before_are_passed_over(
    groups: list[list[bytes]], wanted: int, data: st.DataObject
) -> None:
    content, header, places = segment(groups)
    begin = data.draw(st.integers(0, len(groups) - 1))
    part = content[places[begin] :]
    found: list[Group] = list(journal.read_groups(part, PATH, header, places[begin], wanted))
    first = 11 + sum(map(len, groups[:begin]))
    expected: list[list[bytes]] = []
    for entries in groups[begin:]:
        if first + len(entries) > wanted:
            expected.append(entries)
        first += len(entries)
    assert [list(each.entries) for each in found] == expected


@given(groups_of, st.data())
def test_a_group_that_was_durable_and_doesnt_check_is_named_by_its_place(
    groups: list[list[bytes]], data: st.DataObject
) -> None:
    content, header, places = segment(groups)
    spoilt = bytearray(content)
    place = data.draw(st.integers(HEADER_BYTES, len(content) - 1))
    spoilt[place] ^= 1 << data.draw(st.integers(0, 7))
    broken = max(at for at in places[:-1] if at <= place)
    read: list[Group] = []
    with pytest.raises(JournalCorrupt) as refused:
        read.extend(journal.read_groups(bytes(spoilt[HEADER_BYTES:]), PATH, header, HEADER_BYTES))
    assert refused.value.facts["offset"] == broken


@given(st.integers(0, 10**20 - 1))
def test_names_of_snapshots_sort_as_what_they_contain(index: int) -> None:
    name = journal.snapshot_name(index)
    assert journal.snapshot_index(name) == index
    assert index == 0 or journal.snapshot_name(index - 1) < name
    for other in (name[1:], f"0{name}", name.upper(), f"{name}.tmp", name.replace("0", "\u0660")):
        assert other == name or journal.snapshot_index(other) is None
