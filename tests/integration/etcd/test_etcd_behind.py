"""An etcd that was restored from an older snapshot than the bucket is never taken for all."""

import pytest
from tests.etcd_groups import Group, Heard

from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    EntryCorrupt,
    JournalBehind,
    NotLost,
)
from anabranch.ports import Recovered
from anabranch.shell.etcd.api.client import prefix_end
from anabranch.shell.etcd.archive.copy import Archive, Archiver
from anabranch.shell.etcd.archive.recovery import restore
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.etcd.group.marker import agree
from anabranch.shell.etcd.group.reader import JournalReader

ENTRIES = [b"%d" % number for number in range(10)]


class Pair:
    """An etcd and a bucket that know of the same entries."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.keys = Keys(group.cluster)
        agree(group.client, group.blobs, group.cluster)
        self.archive = Archive(group.cluster, group.blobs)
        self.reader = JournalReader(group.client, group.cluster, group.blobs)
        journal = group.sole()
        journal.recover()
        for entry in ENTRIES:
            journal.append([entry])
        self.archive.write(1, ENTRIES)

    def age(self) -> None:
        """As if etcd had been restored from a snapshot of half the time."""
        self.group.client.delete(self.keys.group(6), prefix_end(self.keys.groups))
        self.group.client.delete(self.keys.candidates, prefix_end(self.keys.candidates))

    def restore(self, *, replace: bool) -> list[bytes]:
        entries: list[bytes] = []

        def rebuild(found: Recovered) -> bytes:
            entries.extend(found.entries)
            return b"state"

        group = self.group
        restore(group.client, group.blobs, group.cluster, rebuild, replace=replace)
        return entries


@pytest.fixture
def pair(group: Group) -> Pair:
    return Pair(group)


def test_an_etcd_that_is_behind_the_bucket_is_refused(pair: Pair) -> None:
    pair.archive.check(pair.reader)
    pair.age()
    with pytest.raises(JournalBehind, match=r"ends at entry 5, and .* reached entry 10"):
        pair.archive.check(pair.reader)


def test_an_etcd_without_any_entry_is_refused(pair: Pair) -> None:
    pair.group.client.delete(pair.keys.groups, prefix_end(pair.keys.groups))
    with pytest.raises(JournalBehind):
        pair.archive.check(pair.reader)


def test_a_bucket_that_is_behind_etcd_is_as_it_should_be(pair: Pair) -> None:
    journal = pair.group.sole()
    journal.recover()
    journal.append([b"not archived yet"])
    pair.archive.check(pair.reader)


def test_who_leads_on_an_etcd_that_is_behind_is_told_to_give_up(pair: Pair) -> None:
    pair.age()
    archiver = Archiver(pair.archive, pair.reader, 1, pair.group.log)
    told = Heard[AnabranchError]()
    archiver.on_damage = told
    archiver.lead()
    try:
        told.wait(bool)
    finally:
        archiver.close()
    assert isinstance(told.all[0], JournalBehind)
    assert not archiver.leading


def test_an_etcd_that_is_behind_is_replaced_by_what_the_bucket_has(pair: Pair) -> None:
    pair.age()
    with pytest.raises(NotLost):
        pair.restore(replace=False)
    assert pair.restore(replace=True) == ENTRIES
    pair.archive.check(pair.reader)
    found = pair.reader.recover().recovered
    assert found.snapshot is not None
    assert (found.snapshot.index, found.snapshot.content, found.entries) == (11, b"state", [])
    assert agree(pair.group.client, pair.group.blobs, pair.group.cluster).terms_after


def test_an_etcd_that_has_all_is_not_replaced(pair: Pair) -> None:
    pair.group.client.delete(pair.keys.candidates, prefix_end(pair.keys.candidates))
    with pytest.raises(NotLost):
        pair.restore(replace=True)


def test_an_etcd_is_not_replaced_while_a_member_stands_for_election(pair: Pair) -> None:
    pair.group.client.delete(pair.keys.group(6), prefix_end(pair.keys.groups))
    with pytest.raises(BadRequest, match="stop all"):
        pair.restore(replace=True)


def test_a_damaged_journal_is_replaced_as_its_error_advises(pair: Pair) -> None:
    pair.group.client.delete(pair.keys.candidates, prefix_end(pair.keys.candidates))
    pair.group.client.put(pair.keys.group(3), b"spoilt")
    with pytest.raises(EntryCorrupt, match="recover --from-bucket --replace"):
        pair.reader.recover()
    assert pair.restore(replace=True) == ENTRIES
    assert pair.reader.recover().recovered.last == len(ENTRIES) + 1
