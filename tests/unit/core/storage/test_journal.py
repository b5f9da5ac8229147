"""A segment's bytes: what is read back, what is cut as torn, what is refused and where."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import JournalCorrupt, JournalTooNew, WrongCluster
from anabranch.core.records.checksum import crc32c
from anabranch.core.storage import journal
from anabranch.core.storage.journal import FIRST_VERSION, HEADER_BYTES, VERSION, Header, Scan

PATH = "journal/0000000003.segment"
GROUPS = ((b"create orders",), (b"", b"fork", b"a" * 700), (b"promote",))


def segment(
    groups=GROUPS, first=11, continues=77, cluster="c1", version=VERSION
) -> tuple[bytes, list[int]]:
    """A segment's bytes, and where each group begins and the last one ends."""
    content = journal.segment_header(3, first, continues, cluster, version)
    header = opened(content)
    mark, places = header.mark, [len(content)]
    for entries in groups:
        group, mark = journal.group(header, mark, first, entries)
        content += group
        first += len(entries)
        places.append(len(content))
    return content, places


def opened(content: bytes) -> Header:
    header = journal.read_header(content, PATH, "c1")
    assert header is not None
    return header


def scan(content: bytes, durable: int = 0) -> Scan:
    return journal.scan(content, PATH, opened(content), durable)


def entries(found: Scan) -> list[bytes]:
    return [entry for group in found.groups for entry in group.entries]


def flip(content: bytes, place: int, bit: int) -> bytes:
    return b"".join((content[:place], bytes((content[place] ^ 1 << bit,)), content[place + 1 :]))


@given(st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=5), max_size=6))
def test_what_was_written_is_read(groups) -> None:
    content, places = segment(tuple(map(tuple, groups)))
    for padding in (b"", bytes(5000)):
        found = scan(content + padding)
        assert [group.entries for group in found.groups] == list(map(tuple, groups))
        assert [group.offset for group in found.groups] == places[:-1]
        assert found.end == places[-1]
        assert not found.torn
        assert found.header.extent == 11
        assert found.header.base == 77


@pytest.mark.parametrize("filled", [0, 1000])
def test_a_last_group_cut_at_any_byte_is_torn_and_the_others_are_whole(filled: int) -> None:
    content, places = segment()
    zeros = bytes(filled)
    for cut in range(places[2], places[3]):
        found = scan(content[:cut] + zeros)
        assert entries(found) == [b"create orders", b"", b"fork", b"a" * 700]
        assert found.end == places[2]
        assert found.torn == (cut > places[2])


def test_a_last_group_of_which_any_sector_is_missing_is_torn() -> None:
    content, places = segment((*GROUPS, (b"b" * 3000,)))
    for sector in range(places[3] // 512, places[4] // 512 + 1):
        start = max(places[3], sector * 512)
        end = min(places[4], sector * 512 + 512)
        found = scan(content[:start] + bytes(end - start) + content[end:])
        assert len(found.groups) == 3
        assert found.torn


@pytest.mark.parametrize("group", [0, 1])
def test_any_bit_flipped_in_an_early_group_is_refused_at_that_group(group: int) -> None:
    content, places = segment()
    for place in range(places[group], places[group + 1]):
        for bit in range(8):
            with pytest.raises(JournalCorrupt) as refused:
                scan(flip(content, place, bit) + bytes(512))
            assert refused.value.facts["offset"] == places[group]
            assert refused.value.facts["path"] == PATH


def test_any_bit_flipped_in_a_sealed_last_group_is_refused_at_that_group() -> None:
    content, places = segment()
    sealed = content + scan(content).seal
    assert not scan(sealed + bytes(512)).torn
    for place in range(places[2], places[3]):
        with pytest.raises(JournalCorrupt) as refused:
            scan(flip(sealed, place, place % 8) + bytes(512))
        assert refused.value.facts["offset"] == places[2]


def test_any_bit_flipped_in_the_seal_itself_costs_nothing() -> None:
    content, places = segment()
    sealed = content + scan(content).seal
    for place in range(places[3], len(sealed)):
        found = scan(flip(sealed, place, place % 8))
        assert len(found.groups) == 3
        assert found.torn


def test_a_last_group_known_to_be_durable_from_elsewhere_is_refused_when_damaged() -> None:
    content, places = segment()
    broken = flip(content, places[2] + 40, 0)
    assert scan(broken, durable=14).torn
    with pytest.raises(JournalCorrupt) as refused:
        scan(broken, durable=15)
    assert refused.value.facts["offset"] == places[2]


def test_any_bit_flipped_in_a_segments_header_is_refused_at_its_beginning() -> None:
    content, _ = segment()
    for place in range(HEADER_BYTES):
        for bit in range(8):
            with pytest.raises(JournalCorrupt) as refused:
                journal.read_header(flip(content, place, bit), PATH, "c1")
            assert refused.value.facts["offset"] == 0


def test_a_segment_whose_creation_was_cut_short_is_none() -> None:
    head = journal.segment_header(3, 11, 77, "c1")
    for cut in range(HEADER_BYTES):
        assert journal.read_header(head[:cut] + bytes(1000), PATH, "c1") is None
        assert journal.read_header(head[:cut], PATH, "c1") is None


def test_a_torn_group_that_quotes_a_group_in_an_entry_is_still_only_torn() -> None:
    """Whoever chooses an entry's bytes must not be able to make a torn tail look like damage."""
    other = journal.segment_header(4, 1, 0, "c1")
    quoted, _ = journal.group(opened(other), 0, 100, (b"forged",))
    content, places = segment((*GROUPS, (b"x" * 600 + quoted + b"x" * 600,)))
    torn = content[: places[3]] + bytes(512) + content[places[3] + 512 :]
    assert quoted in torn
    assert scan(torn).torn


def test_a_group_of_an_older_life_is_never_taken_for_one_of_this_segment() -> None:
    content, places = segment(GROUPS[:2])
    older, older_places = segment(GROUPS, continues=78)
    assert places[2] == older_places[2]
    found = scan(content + older[older_places[2] :])
    assert len(found.groups) == 2
    assert found.torn


def test_a_group_that_followed_another_past_is_never_read() -> None:
    """The same segment written twice, as when power is lost before its name is durable."""
    content, places = segment(((b"aaaa",), (b"bbbb",)))
    older, _ = segment(((b"AAAA",), (b"BBBB",)))
    found = scan(content[: places[1]] + older[places[1] :])
    assert entries(found) == [b"aaaa"]
    assert found.torn


def test_a_group_missing_in_the_middle_is_refused_though_all_others_are_intact() -> None:
    content, places = segment()
    with pytest.raises(JournalCorrupt) as refused:
        scan(content[: places[1]] + content[places[2] :])
    assert refused.value.facts["offset"] == places[1]


@given(st.binary(max_size=2000))
def test_whatever_stands_behind_the_last_group_is_never_read_as_entries(garbage: bytes) -> None:
    content, places = segment()
    found = scan(content + garbage)
    assert len(found.groups) == 3
    assert found.end == places[3]
    assert found.torn == bool(garbage.strip(b"\0"))


def test_a_newer_format_and_another_cluster_are_refused_by_name() -> None:
    content, _ = segment()
    with pytest.raises(WrongCluster, match="belongs to cluster c1, not to c2"):
        journal.read_header(content, PATH, "c2")
    newer = journal.segment_header(3, 11, 77, "c1", VERSION + 1)
    with pytest.raises(JournalTooNew, match=r"0000000003\.segment .*format 3"):
        journal.read_header(newer, PATH, "c1")


@pytest.mark.parametrize("version", [FIRST_VERSION, VERSION])
def test_every_version_is_read_and_the_bits_of_its_bodies_are_checked(version: int) -> None:
    content, places = segment(version=version)
    assert opened(content).version == version
    assert entries(scan(content)) == [entry for group in GROUPS for entry in group]
    for place in range(places[1] + journal.GROUP_HEADER_BYTES, places[2]):
        with pytest.raises(JournalCorrupt):
            scan(flip(content, place, place % 8))


def test_versions_sum_bodies_in_different_ways() -> None:
    group, _ = journal.group(opened(segment(version=FIRST_VERSION)[0]), 0, 11, (b"one",))
    other, _ = journal.group(opened(segment(version=VERSION)[0]), 0, 11, (b"one",))
    assert group[journal.GROUP_HEADER_BYTES :] == other[journal.GROUP_HEADER_BYTES :]
    assert zlib.crc32(group[journal.GROUP_HEADER_BYTES :]).to_bytes(4, "little") in group
    assert crc32c(other[journal.GROUP_HEADER_BYTES :]).to_bytes(4, "little") in other


def test_a_snapshot_is_read_back_and_any_flipped_bit_or_missing_byte_refused() -> None:
    state = bytes(range(200))
    content = journal.snapshot_header(42, state, "c1") + state
    assert journal.read_snapshot(content, PATH, "c1") == (42, state)
    for place in range(len(content)):
        with pytest.raises(JournalCorrupt):
            journal.read_snapshot(flip(content, place, place % 8), PATH, "c1")
        with pytest.raises(JournalCorrupt):
            journal.read_snapshot(content[:place], PATH, "c1")


def test_names_sort_as_their_numbers_and_only_a_snapshots_own_name_is_one() -> None:
    assert journal.segment_name(9) < journal.segment_name(10)
    assert journal.snapshot_index(journal.snapshot_name(12)) == 12
    for name in ("12.snapshot", "x.snapshot", journal.segment_name(3), "notes"):
        assert journal.snapshot_index(name) is None


def test_a_segment_whose_creation_was_cut_short_may_hold_garbage_but_no_group() -> None:
    """Of what was never synced any bit may be wrong, also in the zeros ahead of the first group."""
    content, places = segment()
    garbage = flip(bytes(HEADER_BYTES + 256), HEADER_BYTES + 17, 2)
    assert journal.read_header(garbage, PATH, "c1") is None
    with pytest.raises(JournalCorrupt, match="groups follow"):
        journal.read_header(bytes(HEADER_BYTES) + content[places[0] :], PATH, "c1")
