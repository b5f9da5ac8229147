"""The epochs of a Belfast log, kept in etcd: a sequencing group that has lost its disks, and begins
anew under the same name, finds that a later term has led, and must not lead.

A key for each term, so that a leader that is late overwrites nobody's; the last one counts.
"""

import msgspec

from anabranch.core.errors import Deposed
from anabranch.shell.etcd.api.client import EtcdClient, absent, prefix_end, put_op
from anabranch.shell.etcd.group.layout import Keys


class Epochs(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader says of its reign."""

    term: int
    leader: str
    view: int
    window: int
    index: int
    """The group's last entry that was decided."""


def latest(client: EtcdClient, cluster: str) -> Epochs | None:
    """Of the last term that was kept."""
    reigns = Keys(cluster).reigns
    found = client.range(reigns, prefix_end(reigns), limit=1, descending=True)
    return msgspec.json.decode(found.kvs[0].value, type=Epochs) if found.kvs else None


def keep(client: EtcdClient, cluster: str, epochs: Epochs) -> None:
    """Raises Deposed if somebody else has led this term or a later one; or if less is decided than
    was known to be: whoever is elected has all that the one before had decided, whatever its term.
    """
    keys = Keys(cluster)
    before = latest(client, cluster)
    if before is not None and before.index > epochs.index:
        raise Deposed(f"Belfast log {cluster}", epochs.term)
    key, value = keys.reign(epochs.term), msgspec.json.encode(epochs)
    client.txn((absent(key),), (put_op(key, value),))
    last = latest(client, cluster)
    assert last is not None, "a reign is there, and only later ones are without those before"
    if last.term > epochs.term or last.leader != epochs.leader:
        raise Deposed(f"Belfast log {cluster}", epochs.term)
    if last != epochs:
        client.put(key, value)
    client.delete(keys.reigns, key)
