"""A pair of etcd and bucket that don't belong together is refused, in words that say what to do."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.etcd_groups import Group

from anabranch.core.errors import HalfCluster, JournalTooNew, WrongCluster
from anabranch.shell.etcd.group import marker
from anabranch.shell.etcd.group.layout import VERSION, Keys
from anabranch.shell.etcd.group.marker import Marker, agree, in_bucket


def test_a_new_pair_is_marked_once_for_all_who_ask(group: Group) -> None:
    with ThreadPoolExecutor(8) as members:
        asked = [members.submit(agree, group.client, group.blobs, group.cluster) for _ in range(16)]
    agreed = {each.result().incarnation for each in asked}
    assert len(agreed) == 1
    there = in_bucket(group.blobs, group.cluster)
    assert there is not None
    assert {there.incarnation} == agreed


def test_a_pair_that_was_used_is_taken_again(group: Group) -> None:
    first = agree(group.client, group.blobs, group.cluster)
    journal = group.sole()
    journal.recover()
    journal.append([b"a"])
    assert agree(group.client, group.blobs, group.cluster) == first


def test_a_start_that_ended_between_the_two_marks_is_completed(group: Group) -> None:
    claimed = marker.claim(group.client, marker.fresh(group.cluster))
    assert agree(group.client, group.blobs, group.cluster) == claimed
    assert in_bucket(group.blobs, group.cluster) == claimed


def test_an_empty_etcd_for_a_used_bucket_is_refused(group: Group) -> None:
    agree(group.client, group.blobs, group.cluster)
    group.client.delete(Keys(group.cluster).marker)
    with pytest.raises(HalfCluster, match=r"recover --from-bucket"):
        agree(group.client, group.blobs, group.cluster)


def test_an_empty_bucket_for_a_used_etcd_is_refused(group: Group) -> None:
    agree(group.client, group.blobs, group.cluster)
    journal = group.sole()
    journal.recover()
    journal.append([b"a"])
    group.blobs.delete([f"{group.cluster}/cluster"])
    with pytest.raises(HalfCluster, match=r"the bucket has nothing of cluster"):
        agree(group.client, group.blobs, group.cluster)


def test_two_clusters_of_one_name_are_refused_each_others_halves(group: Group) -> None:
    ours = agree(group.client, group.blobs, group.cluster)
    name = f"{group.cluster}/cluster"
    group.blobs.delete([name])
    theirs = marker.fresh(group.cluster)
    group.blobs.put(name, msgspec.json.encode(theirs))
    with pytest.raises(WrongCluster) as refused:
        agree(group.client, group.blobs, group.cluster)
    assert ours.incarnation in refused.value.message
    assert theirs.incarnation in refused.value.message


def test_a_format_of_the_future_and_a_mark_of_somebody_else_are_refused(group: Group) -> None:
    later = Marker(cluster=group.cluster, incarnation="1", format=VERSION + 1)
    marker.claim(group.client, later)
    with pytest.raises(JournalTooNew):
        agree(group.client, group.blobs, group.cluster)
    group.client.put(Keys(group.cluster).marker, b"[1]")
    with pytest.raises(WrongCluster, match="something else"):
        agree(group.client, group.blobs, group.cluster)
