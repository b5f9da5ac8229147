"""Whose etcd and whose bucket these are: the same marker lies in both.

It is written once, when a cluster is made. A pair that doesn't match is refused: acting on it would
mix two clusters' objects under one index.
"""

from contextlib import suppress

import msgspec

from anabranch.core.errors import (
    HalfCluster,
    JournalTooNew,
    ObjectExists,
    ObjectMissing,
    WrongCluster,
)
from anabranch.shell.etcd.api.client import EtcdClient, absent, prefix_end, put_op, range_op
from anabranch.shell.etcd.archive.snapshots import Blobs
from anabranch.shell.etcd.group.layout import VERSION, Keys
from anabranch.shell.runtime.randomness import randbits


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one life of a cluster from every other."""

    cluster: str
    incarnation: str
    format: int = VERSION
    terms_after: int = 0
    """Terms are counted from here: an etcd that was rebuilt counts its revisions anew."""

    @property
    def shown(self) -> str:
        return f"{self.cluster} ({self.incarnation})"


def fresh(cluster: str) -> Marker:
    return Marker(cluster=cluster, incarnation=f"{randbits(64):016x}")


def agree(client: EtcdClient, blobs: Blobs, cluster: str) -> Marker:
    """The cluster's marker; made, if neither etcd nor the bucket has anything of a cluster.

    Raises HalfCluster, WrongCluster or JournalTooNew with what doesn't fit. Any number of members
    may ask at once.
    """
    keys = Keys(cluster)
    # In this order, because others may be writing both: first etcd's, then the bucket's.
    theirs = in_bucket(blobs, cluster)
    ours = _in_etcd(client, keys)
    if ours is None:
        if theirs is not None:
            advice = (
                "name the etcd that goes with this bucket; if it has lost its data, run `anabranch "
                "recover --from-bucket`"
            )
            raise HalfCluster(client.where, cluster, "the bucket", advice)
        ours = claim(client, fresh(cluster))
    if theirs is None:
        theirs = _claim_bucket(client, blobs, keys, ours)
    for marker, where in ((ours, client.where), (theirs, _object(cluster))):
        if marker.format > VERSION:
            raise JournalTooNew(where, marker.format)
    if theirs.incarnation != ours.incarnation or theirs.cluster != cluster:
        raise WrongCluster(client.where, ours.shown, f"{theirs.shown} of the bucket")
    return ours


def claim(client: EtcdClient, marker: Marker) -> Marker:
    """Write it into an etcd that has none of this cluster; the one that is there if it has."""
    keys = Keys(marker.cluster)
    put = put_op(keys.marker, msgspec.json.encode(marker))
    answer = client.txn((absent(keys.marker),), (put,), (range_op(keys.marker),))
    if answer.succeeded:
        return marker
    return _read(answer.responses[0].response_range.kvs[0].value, client.where)


def in_bucket(blobs: Blobs, cluster: str) -> Marker | None:
    """None if no cluster of this name has ever used the bucket."""
    try:
        return _read(blobs.get(f"{cluster}/cluster"), _object(cluster))
    except ObjectMissing:
        return None


def _claim_bucket(client: EtcdClient, blobs: Blobs, keys: Keys, marker: Marker) -> Marker:
    """A bucket without a marker is new, and so must be the journal that is to go with it."""
    journal = client.range(keys.groups, prefix_end(keys.groups), limit=1, keys_only=True)
    if not journal.kvs and client.get(keys.snapshot) is None:
        with suppress(ObjectExists):
            blobs.put(f"{marker.cluster}/cluster", msgspec.json.encode(marker))
    written = in_bucket(blobs, marker.cluster)
    if written is None:
        advice = "name the bucket and the prefix that go with this etcd"
        raise HalfCluster("the bucket", marker.cluster, client.where, advice)
    return written


def _object(cluster: str) -> str:
    return f"the bucket's object {cluster}/cluster"


def _in_etcd(client: EtcdClient, keys: Keys) -> Marker | None:
    found = client.get(keys.marker)
    return _read(found.value, client.where) if found else None


def _read(content: bytes, where: str) -> Marker:
    try:
        return msgspec.json.decode(content, type=Marker)
    except msgspec.MsgspecError as error:
        raise WrongCluster(where, f"something else ({error})", "a cluster of ours") from error
