"""An etcd without space: nothing is acknowledged that isn't there, and it goes on when it can."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from tests.etcd_groups import WAIT_S, Group, Heard, SoleJournal, Standby, client_of
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD
from anabranch.apps.processes.servers import EtcdGroup
from anabranch.core.errors import AnabranchError, DeadlineExceeded, StorageFull, Unavailable
from anabranch.core.machine import Elected, Event
from anabranch.ports import Recovered, Snapshot
from anabranch.shell.etcd.api.client import prefix_end
from anabranch.shell.etcd.api.space import HEADROOM, Fill
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.coordinator import EtcdCoordinator
from anabranch.shell.etcd.group.election import Candidate
from anabranch.shell.etcd.group.journal import EtcdJournal
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.runtime.clock import Clock

Result = TypeVar("Result")

MIB = 1 << 20
QUOTA_BYTES = 16 * MIB


@pytest.fixture(params=[1, 3])
def members(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EtcdGroup]:
    """A small etcd of one member or three."""
    needs(ETCD)
    members = EtcdGroup(
        tmp_path / "etcd",
        request.param,
        unsafe_no_fsync="true",
        quota_backend_bytes=str(QUOTA_BYTES),
    )
    try:
        members.start()
        yield members
    finally:
        members.kill()


@pytest.fixture
def group(members: EtcdGroup, blobs: BridgedBlobs) -> Iterator[Group]:
    client = client_of(members.addresses)
    yield Group(client, blobs)
    client.close()


def filled(group: Group, *, headroom: float = 0.0) -> tuple[SoleJournal, list[bytes]]:
    """A journal that takes no more, and what is in it; without headroom etcd is full as well."""
    journal = group.sole(kept_entries=1, headroom=headroom)
    journal.recover()
    entries: list[bytes] = []
    while True:
        entry = b"%d" % len(entries) * (MIB // 4)
        try:
            assert journal.append([entry]) == len(entries) + 1
        except StorageFull:
            return journal, entries
        entries.append(entry)
        assert len(entries) < 2 * QUOTA_BYTES // MIB * 4


def append_in_time(journal: EtcdJournal, entry: bytes) -> int:
    """As a leader does: refused for want of space, it is asked again later."""
    return in_time(lambda: journal.append([entry]))


def in_time(act: Callable[[], Result]) -> Result:
    """A member that is behind may be the last that has room."""
    pause = threading.Event()
    for _ in range(int(WAIT_S / 0.1)):
        try:
            return act()
        except StorageFull:
            pause.wait(0.1)
    raise AssertionError("no space was made")


def test_a_full_etcd_is_told_of_and_can_be_reached_when_it_is_started_again(
    members: EtcdGroup,
) -> None:
    """Whoever is to make room in it must reach it: `/health` says no for as long as it is full."""
    client = client_of(members.addresses)
    assert not Fill.of(client).full
    with suppress(StorageFull):
        for number in range(2 * QUOTA_BYTES // MIB):
            client.put(b"%d" % number, b"x" * MIB)
    for each in members.members:
        each.kill()
    members.start()
    fill = Fill.of(client)
    assert fill.full
    assert fill.quota_bytes == QUOTA_BYTES <= fill.bytes
    client.close()


def test_what_was_refused_for_want_of_space_isnt_there(group: Group) -> None:
    journal, entries = filled(group)
    assert journal.read_after(0).entries == entries
    refused = attempts = 0
    while refused < 6:
        # Some may still fit: what is compacted and defragmented in the background makes room.
        entry = b"x" * (3 * MIB, MIB // 4, 10)[attempts % 3]
        attempts += 1
        try:
            journal.append([entry])
        except StorageFull:
            refused += 1
            assert journal.read_after(0).entries == entries
        else:
            entries.append(entry)
        assert attempts < 1_000


def test_a_member_is_elected_and_makes_room_where_the_leader_has_gone(group: Group) -> None:
    """Neither a lease nor a key is to be had from a full etcd: so it isn't filled altogether."""
    _, entries = filled(group, headroom=HEADROOM)
    assert group.client.alarms() == []
    journal = EtcdJournal(group.client, group.cluster, group.blobs, group.log)
    keys = journal.reader.keys
    group.client.delete(keys.candidates, prefix_end(keys.candidates))
    told = Heard[Event]()
    failed = Heard[AnabranchError]()
    heir = EtcdCoordinator(
        group.client,
        journal,
        Candidate("heir", 60),
        group.log,
        post=told,
        failed=failed,
        now=Clock().now,
    )
    heir.follow(0)
    heir.campaign()
    told.wait(lambda events: any(isinstance(event, Elected) for event in events))
    in_time(lambda: journal.save_snapshot(len(entries), b"everything"))
    assert append_in_time(journal, b"after") == len(entries) + 1
    heir.close()


def test_a_snapshot_makes_room_though_nothing_can_be_put(group: Group) -> None:
    journal, entries = filled(group)
    standby = Standby(JournalReader(group.client, group.cluster, group.blobs), group.log)
    standby.follower.follow(0)
    assert standby.wait(len(entries)) == entries
    in_time(lambda: journal.save_snapshot(len(entries), b"everything"))
    assert append_in_time(journal, b"after") == len(entries) + 1
    assert journal.recover() == Recovered(
        Snapshot(len(entries), b"everything"), len(entries) + 1, [b"after"]
    )
    assert standby.wait(len(entries) + 1) == [*entries, b"after"]
    standby.follower.stop()


def test_what_was_overwritten_is_given_back_without_a_snapshot(
    members: EtcdGroup, group: Group
) -> None:
    """With all members, and with one of three lost."""
    journal = group.sole(headroom=0.0)
    journal.recover()
    assert journal.append([b"first"]) == 1
    overwrite_until_full(group)
    assert append_in_time(journal, b"second") == 2
    if len(members.members) == 3:
        members.members[2].kill()
    overwrite_until_full(group)
    assert append_in_time(journal, b"third") == 3
    assert journal.read_after(0).entries == [b"first", b"second", b"third"]


def overwrite_until_full(group: Group) -> None:
    """Whatever the other members do about the one that is lost."""
    while True:
        try:
            group.client.put(b"/somebody/else", b"x" * MIB)
        except StorageFull:
            return
        except (Unavailable, DeadlineExceeded):
            continue
