"""The journal in etcd beyond what every journal promises: fences, chunks, snapshots, damage."""

import re

import pytest
from tests.etcd_groups import Group, seize

from anabranch.core.errors import Deposed, EntryCorrupt, JournalTooNew, StorageFailed
from anabranch.ports import Recovered, Snapshot
from anabranch.shell.etcd.api.client import prefix_end
from anabranch.shell.etcd.group import layout
from anabranch.shell.etcd.group.journal import EtcdJournal
from anabranch.shell.etcd.group.layout import INLINE_BYTES_MAX, Keys
from anabranch.shell.etcd.group.reader import JournalReader

MIB = 1 << 20


def journaled(group: Group, *entries: bytes) -> EtcdJournal:
    journal = group.sole()
    journal.recover()
    for entry in entries:
        journal.append([entry])
    return journal


def reader(group: Group) -> JournalReader:
    return JournalReader(group.client, group.cluster, group.blobs)


def chunks(group: Group) -> int:
    prefix = Keys(group.cluster).chunks
    return len(group.client.range(prefix, prefix_end(prefix), keys_only=True).kvs)


def test_who_was_deposed_writes_nothing(group: Group) -> None:
    zombie = journaled(group, b"a")
    heir = journaled(group, b"b")
    with pytest.raises(Deposed):
        zombie.append([b"zombie"])
    with pytest.raises(Deposed):
        zombie.append([b"x" * 3 * MIB])
    assert heir.append([b"c"]) == 3
    assert heir.read_after(0).entries == [b"a", b"b", b"c"]
    assert chunks(group) == 0


def test_the_fence_alone_keeps_out_who_was_deposed_before_its_heir_wrote_anything(
    group: Group,
) -> None:
    """No entry stands in the way: only the leader's key says that the lead is over."""
    zombie = journaled(group, b"a")
    fence = seize(group.client, Keys(group.cluster).candidates)
    with pytest.raises(Deposed):
        zombie.append([b"zombie"])
    heir = EtcdJournal(group.client, group.cluster, group.blobs, group.log)
    heir.lead(fence, heir.recover().last)
    assert heir.append([b"b"]) == 2
    assert heir.read_after(0).entries == [b"a", b"b"]


def test_an_absent_key_alone_keeps_an_entry_from_being_written_over(group: Group) -> None:
    """Whoever leads holds the fence, and may still be wrong about where the journal ends."""
    leader = journaled(group, b"a", b"b")
    fence = seize(group.client, Keys(group.cluster).candidates)
    leader.lead(fence, 1)
    with pytest.raises(EntryCorrupt, match="somebody else has put it"):
        leader.append([b"over it"])
    assert leader.read_after(0).entries == [b"a", b"b"]


def test_who_was_deposed_cuts_nothing_and_points_to_nothing(group: Group) -> None:
    zombie = journaled(group, b"a", b"b", b"c")
    heir = journaled(group)
    with pytest.raises(Deposed):
        zombie.save_snapshot(3, b"abc")
    assert reader(group).pointer() is None
    assert heir.read_after(0).entries == [b"a", b"b", b"c"]


def test_who_never_led_appends_nothing_and_keeps_no_snapshot(group: Group) -> None:
    journaled(group, b"a")
    standby = EtcdJournal(group.client, group.cluster, group.blobs, group.log)
    assert standby.recover() == Recovered(None, 1, [b"a"])
    with pytest.raises(Deposed):
        standby.append([b"b"])
    standby.save_snapshot(1, b"a")
    assert reader(group).snapshots.kept() == []


def test_deposed_is_told_before_the_append_fails(group: Group) -> None:
    zombie = journaled(group, b"a")
    told: list[int] = []
    zombie.deposed = lambda fence: told.append(fence.term)
    fence = seize(group.client, Keys(group.cluster).candidates)
    with pytest.raises(Deposed):
        zombie.append([b"b"])
    assert len(told) == 1
    assert told[0] < fence.term


@pytest.mark.parametrize("size", [INLINE_BYTES_MAX - 4, INLINE_BYTES_MAX - 3, 5 * MIB + 7])
def test_a_group_larger_than_a_request_is_whole(group: Group, size: int) -> None:
    journal = journaled(group, b"before")
    large = bytes(range(256)) * (size // 256) + b"?" * (size % 256)
    assert journal.append([large]) == 2
    assert journal.append([b"after", large, b"", large]) == 6
    entries = [b"before", large, b"after", large, b"", large]
    assert journal.read_after(0) == Recovered(None, 1, entries)
    assert journal.read_after(3) == Recovered(None, 4, entries[3:])


def test_chunks_without_their_group_are_nothing_and_are_cut_off_in_time(group: Group) -> None:
    journal = journaled(group, b"a")
    keys = Keys(group.cluster)
    head, _, parts = layout.group(2, 1, 1, [b"x" * 3 * MIB])
    for number, part in enumerate(parts):
        group.client.put(keys.chunk(head, number), part)
    assert journal.append([b"y" * 2 * MIB]) == 2
    assert journal.read_after(1).entries == [b"y" * 2 * MIB]
    assert journal.append([b"c"]) == 3
    journal = group.sole(kept_entries=0)
    journal.recover()
    journal.save_snapshot(3, b"all")
    assert chunks(group) == 0
    assert journal.recover() == Recovered(Snapshot(3, b"all"), 4, [])


def test_a_snapshot_leaves_a_few_entries_for_those_who_are_a_little_behind(group: Group) -> None:
    journaled(group, *(b"%d" % n for n in range(1, 11)))
    journal = group.sole(kept_entries=4)
    journal.recover()
    journal.save_snapshot(9, b"state")
    assert journal.read_after(4) == Recovered(None, 5, [b"%d" % n for n in range(5, 11)])
    assert journal.read_after(10) == Recovered(None, 11, [])
    assert journal.read_after(3) == Recovered(Snapshot(9, b"state"), 10, [b"10"])
    assert journal.recover() == Recovered(Snapshot(9, b"state"), 10, [b"10"])


def test_a_reader_from_the_midst_of_a_group_gets_its_rest(group: Group) -> None:
    journal = journaled(group)
    journal.append([b"1", b"2", b"3"])
    journal.append([b"4", b"5"])
    assert journal.read_after(1) == Recovered(None, 2, [b"2", b"3", b"4", b"5"])
    assert journal.read_after(4) == Recovered(None, 5, [b"5"])


def test_a_journal_of_many_pages_is_read_whole(group: Group) -> None:
    entries = [b"%d" % n for n in range(300)]
    journal = journaled(group, *entries)
    assert journal.read_after(0).entries == entries
    assert journal.read_after(150).entries == entries[150:]


def test_an_unreadable_snapshot_is_passed_over_if_another_reaches_far_enough(
    group: Group,
) -> None:
    journal = journaled(group, *(b"%d" % n for n in range(1, 7)))
    journal.save_snapshot(3, b"state at 3")
    journal.save_snapshot(5, b"state at 5")
    newest = reader(group).snapshots.kept()[0]
    spoil(group, newest.object)
    found = journal.recover()
    assert found.snapshot == Snapshot(3, b"state at 3")
    assert found.entries == [b"4", b"5", b"6"]
    assert newest.object in found.repairs[0]


def test_without_any_readable_snapshot_the_journal_is_refused(group: Group) -> None:
    journaled(group, *(b"%d" % n for n in range(1, 7)))
    journal = group.sole(kept_entries=0)
    journal.recover()
    journal.save_snapshot(5, b"state at 5")
    name = reader(group).snapshots.kept()[0].object
    spoil(group, name)
    with pytest.raises(EntryCorrupt, match=re.escape(name)):
        journal.recover()
    group.blobs.delete([name])
    with pytest.raises(EntryCorrupt, match=re.escape(name)):
        journal.read_after(0)
    assert journal.read_after(5).entries == [b"6"]


def test_two_snapshots_are_kept(group: Group) -> None:
    journal = journaled(group, *(b"%d" % n for n in range(1, 7)))
    for index in range(1, 6):
        journal.save_snapshot(index, b"state")
    assert [each.index for each in reader(group).snapshots.kept()] == [5, 4]


def test_a_flipped_bit_is_noticed_wherever_it_is(group: Group) -> None:
    journal = journaled(group, b"first", b"second", b"third")
    key = Keys(group.cluster).group(2)
    kv = group.client.get(key)
    assert kv is not None
    for place in range(len(kv.value)):
        damaged = bytearray(kv.value)
        damaged[place] ^= 1 << place % 8
        group.client.put(key, bytes(damaged))
        with pytest.raises(EntryCorrupt) as refused:
            journal.recover()
        assert refused.value.facts["index"] == 2
    group.client.put(key, kv.value)
    assert journal.recover().entries == [b"first", b"second", b"third"]


def test_a_value_under_another_key_is_noticed(group: Group) -> None:
    journal = journaled(group, b"a", b"b")
    first = group.client.get(Keys(group.cluster).group(1))
    assert first is not None
    group.client.put(Keys(group.cluster).group(2), first.value)
    with pytest.raises(EntryCorrupt, match=r"entry 2 .* says that it is entry 1"):
        journal.recover()


def test_a_missing_group_and_a_missing_chunk_are_noticed(group: Group) -> None:
    journal = journaled(group, b"a", b"b", b"c", b"d" * 2 * MIB)
    keys = Keys(group.cluster)
    second = group.client.get(keys.group(2))
    assert second is not None
    group.client.delete(keys.group(2))
    with pytest.raises(EntryCorrupt, match=r"entry 2 .* is missing"):
        journal.recover()
    with pytest.raises(EntryCorrupt, match=r"entry 2 .* is missing"):
        journal.read_after(1)
    group.client.put(keys.group(2), second.value)
    assert journal.recover().last == 4
    group.client.delete(keys.chunks, prefix_end(keys.chunks))
    with pytest.raises(EntryCorrupt, match=r"entry 4 .* chunk 0 is missing"):
        journal.recover()


def test_a_journal_that_has_lost_its_end_is_noticed_by_who_had_read_it(group: Group) -> None:
    journal = journaled(group, b"a", b"b", b"c")
    group.client.delete(Keys(group.cluster).group(3))
    with pytest.raises(EntryCorrupt, match="ends here, and had 3"):
        journal.read_after(3)


def test_a_group_of_a_newer_version_is_refused(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journaled(group, b"a")
    with monkeypatch.context() as later:
        later.setattr(layout, "VERSION", 2)
        journal.append([b"b"])
    with pytest.raises(JournalTooNew):
        journal.recover()


def test_a_closed_journal_appends_nothing(group: Group) -> None:
    journal = journaled(group, b"a")
    journal.close()
    with pytest.raises((Deposed, StorageFailed)):
        journal.append([b"b"])
    assert journal.recover().entries == [b"a"]


def spoil(group: Group, name: str) -> None:
    content = group.blobs.get(name)
    group.blobs.delete([name])
    group.blobs.put(name, content[:-1] + b"?")
