"""An etcd that has lost everything gets a cluster back from its bucket (docs/decisions/0018)."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from anabranch.core.errors import BadRequest, Damage, NotLost, UnknownCluster
from anabranch.ports import Recovered
from anabranch.shell.etcd.api.client import (
    EtcdClient,
    absent,
    created_at,
    delete_op,
    prefix_end,
    put_op,
    range_op,
)
from anabranch.shell.etcd.archive.copy import Archive
from anabranch.shell.etcd.archive.snapshots import Blobs
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.etcd.group.marker import in_bucket
from anabranch.shell.etcd.group.reader import JournalReader

TERMS_A_LIFE = 1 << 40
"""Terms are etcd's revisions, which begin anew: far more than one etcd will ever count."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found, and where the journal goes on."""

    found: Recovered
    index: int


def restore(
    client: EtcdClient,
    blobs: Blobs,
    cluster: str,
    rebuild: Callable[[Recovered], bytes],
    *,
    cut: bool = False,
    replace: bool = False,
) -> Restored:
    """Give etcd the state that `rebuild` makes of what the bucket has; all of it, or nothing.

    Raises NotLost if etcd has this cluster; with `replace` only if the journal there is whole.
    """
    keys = Keys(cluster)
    there = client.get(keys.marker)
    if there is not None:
        if not replace:
            raise NotLost(cluster, client.where)
        _check_lost(client, blobs, cluster)
    marker = in_bucket(blobs, cluster)
    if marker is None:
        raise UnknownCluster(cluster, "this bucket")
    archive = Archive(cluster, blobs)
    found = archive.recover(cut=cut)
    content = rebuild(found)
    archive.forget_behind(found.last)
    terms = [int(each.object.rpartition("-")[2]) for each in archive.snapshots.kept()]
    term = max((marker.terms_after, *terms)) + TERMS_A_LIFE
    # A new entry's index: a snapshot of the last one may be there, and is another state.
    pointer = archive.snapshots.put(found.last + 1, term, content)
    claimed = msgspec.structs.replace(marker, terms_after=term)
    holds = created_at(keys.marker, there.create_revision) if there else absent(keys.marker)
    answer = client.txn(
        (holds,),
        (
            *(delete_op(each, prefix_end(each)) for each in (keys.groups, keys.chunks)),
            put_op(keys.snapshot, msgspec.json.encode(pointer)),
            put_op(keys.marker, msgspec.json.encode(claimed)),
        ),
        (range_op(keys.marker),),
    )
    if not answer.succeeded:
        raise NotLost(cluster, client.where)
    return Restored(found, pointer.index)


def _check_lost(client: EtcdClient, blobs: Blobs, cluster: str) -> None:
    """Nobody may give up a journal that is all there, or that somebody leads."""
    keys = Keys(cluster)
    if client.range(keys.candidates, prefix_end(keys.candidates), limit=1).kvs:
        reason = "a metadata member stands for election: stop all, and wait until its lease is over"
        raise BadRequest("--replace", reason)
    reader = JournalReader(client, cluster, blobs)
    try:
        Archive(cluster, blobs).check(reader)
        reader.recover()
    except Damage:
        return
    raise NotLost(cluster, client.where)
