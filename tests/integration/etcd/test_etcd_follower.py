"""A follower tells every entry once and in order, whatever happens to its watch."""

from collections.abc import Iterator

import pytest
from tests.etcd_groups import Group, Standby, client_of

from anabranch.apps.processes.servers import EtcdGroup, EtcdServer
from anabranch.apps.processes.toxiproxy import Link, Toxiproxy
from anabranch.core.errors import EntryCorrupt
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.etcd.group.reader import JournalReader

MIB = 1 << 20


@pytest.fixture
def link(toxiproxy: Toxiproxy, etcd: EtcdServer, request: pytest.FixtureRequest) -> Iterator[Link]:
    link = toxiproxy.link(request.node.name, etcd.address)
    yield link
    link.remove()


@pytest.fixture
def standby(group: Group) -> Iterator[Standby]:
    standby = Standby(reader(group), group.log)
    yield standby
    standby.follower.stop()


@pytest.fixture
def far(group: Group, link: Link) -> Iterator[Standby]:
    """A standby whose way to etcd can be harmed; it looks often whether its watch is deaf."""
    client = client_of([link.address], deadline_ms=1_000)
    standby = Standby(JournalReader(client, group.cluster, group.blobs), group.log, check_s=0.1)
    yield standby
    standby.follower.stop()
    client.close()


def reader(group: Group) -> JournalReader:
    return JournalReader(group.client, group.cluster, group.blobs)


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, last + 1)]


def test_what_is_there_and_what_comes_is_told(group: Group, standby: Standby) -> None:
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 3))
    standby.follower.follow(0)
    assert standby.wait(3) == numbers(1, 3)
    for n in range(4, 40, 3):
        journal.append(numbers(n, n + 2))
    journal.append([b"x" * 3 * MIB])
    assert standby.wait(40) == [*numbers(1, 39), b"x" * 3 * MIB]


def test_it_begins_where_it_is_told_to(group: Group, standby: Standby) -> None:
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 3))
    journal.append(numbers(4, 5))
    standby.last = 2
    standby.follower.follow(2)
    assert standby.wait(5) == numbers(3, 5)


def test_more_than_one_piece_of_a_long_journal(group: Group, standby: Standby) -> None:
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 1_000))
    standby.follower.follow(0)
    assert standby.wait(1_000) == numbers(1, 1_000)


def test_a_compaction_costs_a_follower_that_keeps_up_nothing(
    group: Group, standby: Standby
) -> None:
    journal = group.sole(kept_entries=2)
    journal.recover()
    standby.follower.follow(0)
    for n in range(1, 30):
        journal.append(numbers(n, n))
        journal.save_snapshot(n, b"state")
        standby.wait(n)
    assert standby.wait(29) == numbers(1, 29)


def test_a_follower_that_was_left_behind_is_given_the_state(
    group: Group, far: Standby, link: Link
) -> None:
    journal = group.sole(kept_entries=1)
    journal.recover()
    journal.append(numbers(1, 1))
    far.follower.follow(0)
    far.wait(1)
    link.cut()
    for n in range(2, 11):
        journal.append(numbers(n, n))
    journal.save_snapshot(8, b"state at 8")
    link.mend()
    assert far.wait(10) == [b"1", b"state at 8", b"9", b"10"]


def test_entries_that_are_still_kept_are_told_rather_than_the_state(
    group: Group, far: Standby, link: Link
) -> None:
    journal = group.sole(kept_entries=9)
    journal.recover()
    journal.append(numbers(1, 1))
    far.follower.follow(0)
    far.wait(1)
    link.cut()
    for n in range(2, 11):
        journal.append(numbers(n, n))
    journal.save_snapshot(10, b"state at 10")
    link.mend()
    assert far.wait(10) == numbers(1, 10)


def test_a_link_that_is_cut_again_and_again_loses_and_repeats_nothing(
    group: Group, far: Standby, link: Link
) -> None:
    journal = group.sole()
    journal.recover()
    far.follower.follow(0)
    for n in range(1, 41):
        if n % 8 == 0:
            link.cut()
        journal.append(numbers(n, n))
        if n % 8 == 3:
            link.mend()
            far.wait(n)
    link.mend()
    assert far.wait(40) == numbers(1, 40)


def test_a_watch_that_has_gone_deaf_is_noticed(group: Group, link: Link, etcd: EtcdServer) -> None:
    """Its connection stands, and nothing comes through: another member is asked."""
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 1))
    client = client_of([link.address, etcd.address], deadline_ms=1_000)
    standby = Standby(JournalReader(client, group.cluster, group.blobs), group.log, check_s=0.1)
    try:
        standby.follower.follow(0)
        standby.wait(1)
        link.add("timeout", timeout=0)
        journal.append(numbers(2, 5))
        assert standby.wait(5) == numbers(1, 5)
    finally:
        standby.follower.stop()
        client.close()


def test_entries_told_before_are_not_told_again_by_a_member_that_is_behind(
    blobs: BridgedBlobs, etcd_three: EtcdGroup
) -> None:
    """One that was stopped hears the past once more before the present."""
    client = client_of(etcd_three.addresses, deadline_ms=2_000)
    group = Group(client, blobs)
    journal = group.sole()
    journal.recover()
    behind = client_of(etcd_three.addresses[:1], deadline_ms=2_000)
    standby = Standby(JournalReader(behind, group.cluster, group.blobs), group.log, check_s=0.1)
    try:
        standby.follower.follow(0)
        journal.append(numbers(1, 3))
        standby.wait(3)
        for n in range(4, 20, 4):
            etcd_three.members[0].pause()
            journal.append(numbers(n, n + 3))
            etcd_three.members[0].resume()
            standby.wait(n + 3)
        assert standby.wait(19) == numbers(1, 19)
    finally:
        etcd_three.members[0].resume()
        standby.follower.stop()
        behind.close()
        client.close()


def test_finish_tells_all_there_is_then_its_last_and_then_nothing(
    group: Group, standby: Standby
) -> None:
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 5))
    ends = standby.heard
    standby.follower.follow(0)
    standby.follower.finish(lambda last: ends((last, b"end")))
    assert standby.wait(5)[-1] in {b"5", b"end"}
    told = ends.wait(lambda told: told[-1] == (5, b"end"))
    assert [content for _, content in told] == [*numbers(1, 5), b"end"]
    journal.append(numbers(6, 6))
    standby.follower.finish(lambda last: ends((last, b"end")))
    told = ends.wait(lambda told: told[-1] == (6, b"end"))
    assert [content for _, content in told[6:]] == [b"6", b"end"]
    standby.follower.resume()
    journal.append(numbers(7, 7))
    assert standby.wait(7)[-1] == b"7"


def test_damage_is_told_and_ends_the_following(group: Group, standby: Standby) -> None:
    journal = group.sole()
    journal.recover()
    journal.append(numbers(1, 1))
    standby.follower.follow(0)
    standby.wait(1)
    group.client.put(Keys(group.cluster).group(2), b"nonsense")
    (error,) = standby.failed.wait(bool)
    assert isinstance(error, EntryCorrupt)
    assert error.facts["index"] == 2
    assert standby.last == 1
