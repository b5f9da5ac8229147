"""A journal in etcd whose snapshots are there too, for groups without an object store."""

import pytest
from tests.etcd_groups import Group

from anabranch.apps.processes.catalogue_logs import forget_configurations
from anabranch.apps.processes.servers import EtcdServer
from anabranch.core.errors import ObjectExists, ObjectMissing
from anabranch.shell.etcd.archive.snapshots import Snapshots
from anabranch.shell.etcd.group.blobs import EtcdBlobs
from anabranch.shell.etcd.group.layout import controllers_of


def test_a_blob_is_made_once_listed_and_deleted(group: Group) -> None:
    blobs = EtcdBlobs(group.client, group.cluster)
    blobs.put("a/1", b"one")
    blobs.put("a/2", b"two")
    blobs.put("b/1", b"other")
    with pytest.raises(ObjectExists):
        blobs.put("a/1", b"again")
    assert blobs.get("a/1") == b"one"
    assert blobs.list("a/") == ["a/1", "a/2"]
    blobs.delete(["a/1"])
    assert blobs.list("a/") == ["a/2"]
    with pytest.raises(ObjectMissing):
        blobs.get("a/1")


def test_clusters_dont_see_each_others_blobs(group: Group) -> None:
    EtcdBlobs(group.client, group.cluster).put("a", b"mine")
    assert EtcdBlobs(group.client, f"{group.cluster}-b").list("") == []


def test_the_newest_snapshots_are_kept_and_found(group: Group) -> None:
    blobs = EtcdBlobs(group.client, group.cluster)
    snapshots = Snapshots(f"{group.cluster}/erwin", blobs)
    pointers = [snapshots.put(index, 1, b"state %d" % index) for index in (64, 128, 192)]
    snapshots.forget_old(pointers[-1])
    assert [each.index for each in snapshots.kept()] == [192, 128]
    found, wrong = snapshots.load(pointers[-1], 192)
    assert found is not None
    assert (found.index, found.content, wrong) == (192, b"state 192", ())


def test_what_the_controllers_of_a_deleted_log_kept_is_forgotten(
    group: Group, etcd: EtcdServer
) -> None:
    deleted = EtcdBlobs(group.client, controllers_of(group.cluster))
    other = EtcdBlobs(group.client, controllers_of(f"{group.cluster}-b"))
    bolt = EtcdBlobs(group.client, group.cluster)
    for blobs in (deleted, other, bolt):
        blobs.put("a", b"state")
    forget_configurations([etcd.address], group.cluster)
    assert deleted.list("") == []
    assert other.list("") == ["a"]
    assert bolt.list("") == ["a"]
