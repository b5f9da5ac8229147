"""An etcd that has lost everything gets a cluster back from its bucket (docs/decisions/0018)."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from anabranch.core.errors import NotLost, UnknownCluster
from anabranch.ports import Recovered
from anabranch.shell.etcd.archive import Archive
from anabranch.shell.etcd.client import EtcdClient, absent, put_op, range_op
from anabranch.shell.etcd.layout import Keys
from anabranch.shell.etcd.marker import in_bucket
from anabranch.shell.etcd.snapshots import Blobs

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
) -> Restored:
    """Give etcd the state that `rebuild` makes of what the bucket has; all of it, or nothing.

    Raises NotLost if etcd has this cluster.
    """
    keys = Keys(cluster)
    if client.get(keys.marker) is not None:
        raise NotLost(cluster, client.where)
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
    answer = client.txn(
        (absent(keys.marker),),
        (
            put_op(keys.snapshot, msgspec.json.encode(pointer)),
            put_op(keys.marker, msgspec.json.encode(claimed)),
        ),
        (range_op(keys.marker),),
    )
    if not answer.succeeded:
        raise NotLost(cluster, client.where)
    return Restored(found, pointer.index)
