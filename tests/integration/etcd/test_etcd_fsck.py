"""fsck of a cluster: etcd and the bucket are read, and nothing in them is changed."""

import msgspec
import pytest
from tests.etcd_groups import Group

from anabranch.apps.check.fsck import Examination, Report
from anabranch.apps.pods.fsck import Cluster
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Entry,
    RegisterBroker,
    Row,
)
from anabranch.core.errors import UnknownCluster
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName, lay_out, object_id, quarantined
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.shell.etcd.api.client import prefix_end
from anabranch.shell.etcd.archive.copy import Archive
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.etcd.group.marker import agree

RECORDS = 4


class Made:
    """A cluster with one log, each record of which is in an object of its own."""

    def __init__(self, group: Group) -> None:
        self.group = group
        agree(group.client, group.blobs, group.cluster)
        self.journal = group.sole()
        self.journal.recover()
        self.entries: list[bytes] = []
        self.do(CreateLog("orders"))
        self.do(RegisterBroker("broker-0"))
        for turn in range(RECORDS):
            self.commit(turn)

    def do(self, command: Command) -> None:
        entry = msgspec.msgpack.encode([Entry(1, b"", command)])
        self.journal.append([entry])
        self.entries.append(entry)

    def commit(self, turn: int, *, only_put: bool = False) -> None:
        batch = encode([Record(b"%d" % turn)], now=1)
        parts, _ = lay_out(self.group.cluster, [(LogId(1), [batch])])
        self.group.blobs.put(self.name(turn), b"".join(parts))
        if not only_put:
            row = Row(LogId(1), 0, [Batch(len(batch), 1)])
            self.do(CommitObject("broker-0", object_id(1, turn), [row]))

    def name(self, turn: int) -> str:
        return str(ObjectName(self.group.cluster, 1, turn))

    def examine(self) -> Report:
        source = Cluster(self.group.client, self.group.blobs, self.group.cluster, "the bucket")
        return Examination(source, Limits()).report(lambda _done, _total: None)

    def codes(self) -> set[str]:
        return {fault.code for fault in self.examine().faults}


@pytest.fixture
def made(group: Group) -> Made:
    return Made(group)


def test_a_cluster_that_has_everything_is_sound_while_it_is_in_use(made: Made) -> None:
    made.commit(RECORDS, only_put=True)
    made.group.blobs.put(quarantined(made.name(99)), b"an orphan")
    report = made.examine()
    assert report.sound, report.faults
    assert (report.online, report.logs, report.records) == (True, 1, RECORDS)
    assert report.orphans.objects == 0, "its broker may be about to commit it"
    assert report.quarantine.objects == 1


def test_damaged_and_missing_objects_are_named_with_where_reading_goes_on(made: Made) -> None:
    content = bytearray(made.group.blobs.get(made.name(1)))
    content[66] ^= 1
    made.group.blobs.delete([made.name(1), made.name(2)])
    made.group.blobs.put(made.name(1), bytes(content))
    faults = made.examine().faults
    said = {(each.where, each.reason.rpartition("; ")[2]) for each in faults}
    assert ("orders 1..1", "reading goes on at 2") in said
    assert ("orders 2..2", "reading goes on at 3") in said


def test_an_etcd_that_is_behind_the_bucket_is_said(made: Made) -> None:
    Archive(made.group.cluster, made.group.blobs).write(1, made.entries)
    keys = Keys(made.group.cluster)
    made.group.client.delete(keys.group(5), prefix_end(keys.groups))
    assert "journal-behind" in made.codes()


def test_where_etcds_journal_is_damaged_objects_are_examined_by_the_buckets_copy(
    made: Made,
) -> None:
    Archive(made.group.cluster, made.group.blobs).write(1, made.entries)
    made.group.client.put(Keys(made.group.cluster).group(3), b"spoilt")
    report = made.examine()
    assert {each.code for each in report.faults} >= {"entry-corrupt"}
    assert report.records == RECORDS


def test_a_cluster_that_never_was_is_refused(group: Group) -> None:
    source = Cluster(group.client, group.blobs, group.cluster, "the bucket")
    with pytest.raises(UnknownCluster):
        Examination(source, Limits()).report(lambda _done, _total: None)
