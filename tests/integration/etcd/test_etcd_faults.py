"""Members of etcd that die, stop or answer nobody: each append is there once."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from tests.etcd_groups import WAIT_S, Group, SoleJournal, client_of
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD
from anabranch.apps.processes.ports import free_ports
from anabranch.apps.processes.servers import EtcdGroup, EtcdServer
from anabranch.apps.processes.toxiproxy import Toxiproxy
from anabranch.core.errors import StorageFailed
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.reader import JournalReader


@pytest.fixture
def three(tmp_path: Path) -> Iterator[EtcdGroup]:
    """Three members to be harmed."""
    needs(ETCD)
    members = EtcdGroup(tmp_path / "etcd", 3, unsafe_no_fsync="true")
    try:
        members.start()
        yield members
    finally:
        members.kill()


@pytest.fixture
def group(three: EtcdGroup, blobs: BridgedBlobs) -> Iterator[Group]:
    client = client_of(three.addresses)
    yield Group(client, blobs)
    client.close()


@pytest.fixture
def journal(group: Group) -> Iterator[SoleJournal]:
    journal = group.sole()
    journal.recover()
    yield journal
    journal.close()


class Load:
    """A thread that appends one entry after the other, and counts on each to succeed."""

    def __init__(self, journal: SoleJournal) -> None:
        self.appended = 0
        self._journal = journal
        self._over = Event()
        self._pool = ThreadPoolExecutor(1)
        self._work: Future[None] = self._pool.submit(self._run)

    def wait_for_more(self, count: int) -> None:
        """Until so many more were appended than now."""
        wanted = self.appended + count
        pause = Event()
        for _ in range(int(WAIT_S / 0.005)):
            if self.appended >= wanted:
                return
            assert not self._work.done(), self._work.exception()
            pause.wait(0.005)
        raise AssertionError(f"stuck at {self.appended}")

    def end(self) -> list[bytes]:
        self._over.set()
        self._work.result(WAIT_S)
        self._pool.shutdown()
        return numbers(self.appended)

    def _run(self) -> None:
        while not self._over.is_set():
            assert self._journal.append([b"%d" % self.appended]) == self.appended + 1
            self.appended += 1


def entries(three: EtcdGroup, group: Group) -> list[bytes]:
    """All that the journal has, read by somebody who was not there when members were lost."""
    client = client_of(three.addresses)
    try:
        reader = JournalReader(client, group.cluster, group.blobs)
        return reader.read_after(0).recovered.entries
    finally:
        client.close()


def numbers(count: int) -> list[bytes]:
    return [b"%d" % n for n in range(count)]


def test_members_killed_in_the_midst_of_transactions_cost_and_repeat_nothing(
    three: EtcdGroup, group: Group, journal: SoleJournal
) -> None:
    load = Load(journal)
    for member in three.members:
        load.wait_for_more(20)
        member.kill()
        load.wait_for_more(20)
        member.start()
    acknowledged = load.appended
    assert entries(three, group)[:acknowledged] == numbers(acknowledged)
    assert load.end() == entries(three, group)


def test_members_stopped_in_the_midst_of_transactions_cost_and_repeat_nothing(
    three: EtcdGroup, group: Group, journal: SoleJournal
) -> None:
    """What a stopped member had in hand goes on when it does: late, and in vain."""
    load = Load(journal)
    for member in three.members:
        load.wait_for_more(20)
        member.pause()
        load.wait_for_more(5)
        member.resume()
    load.wait_for_more(20)
    assert load.end() == entries(three, group)


def test_an_append_outlives_an_outage_of_all_of_etcd(
    three: EtcdGroup, group: Group, journal: SoleJournal
) -> None:
    load = Load(journal)
    load.wait_for_more(20)
    for _ in range(2):
        three.kill()
        three.start()
        load.wait_for_more(20)
    assert load.end() == entries(three, group)


def test_a_journal_that_is_closed_gives_an_append_up_whose_outcome_it_cant_learn(
    three: EtcdGroup, group: Group, journal: SoleJournal
) -> None:
    assert journal.append([b"0"]) == 1
    three.kill()
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(journal.append, [b"1"])
        assert not under_way.done()
        journal.close()
        with pytest.raises(StorageFailed, match="closed"):
            under_way.result(WAIT_S)
    three.start()
    assert entries(three, group)[:1] == [b"0"]


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_an_append_whose_answer_is_lost_after_success_is_found_by_reading(
    etcd: EtcdServer, toxiproxy: Toxiproxy, blobs: BridgedBlobs, size: int
) -> None:
    link = toxiproxy.link(f"lost-answers-{size}", etcd.address)
    client = client_of([link.address, etcd.address], deadline_ms=2_000)
    group = Group(client, blobs)
    journal = group.sole()
    journal.recover()
    assert journal.append([b"0"]) == 1
    # Requests reach etcd; no answer leaves it.
    link.add("timeout", timeout=0)
    assert journal.append([b"1" * size]) == 2
    assert journal.append([b"2"]) == 3
    assert journal.read_after(0).entries == [b"0", b"1" * size, b"2"]
    journal.close()
    client.close()
    link.remove()


def test_an_endpoint_that_was_never_there_is_passed_over(
    three: EtcdGroup, blobs: BridgedBlobs
) -> None:
    (port,) = free_ports(1)
    client = client_of([f"127.0.0.1:{port}", *three.addresses], deadline_ms=5_000)
    journal = Group(client, blobs).sole()
    journal.recover()
    assert journal.append([b"0"]) == 1
    client.close()
