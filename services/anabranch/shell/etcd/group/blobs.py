"""Snapshots beside the journal in etcd, for groups that have no object store and whose state is
small.
"""

from collections.abc import Sequence

from anabranch.core.errors import ObjectExists, ObjectMissing
from anabranch.shell.etcd.api.client import EtcdClient, absent, prefix_end, put_op
from anabranch.shell.etcd.group.layout import Keys


class EtcdBlobs:
    """`Blobs`; each is one key, so it may have a little less than etcd's limit of 1.5 MiB."""

    def __init__(self, client: EtcdClient, cluster: str) -> None:
        self._client = client
        self._base = Keys(cluster).base + b"blobs/"

    def put(self, name: str, content: bytes) -> None:
        key = self._key(name)
        if not self._client.txn((absent(key),), (put_op(key, content),)).succeeded:
            raise ObjectExists(name)

    def get(self, name: str) -> bytes:
        found = self._client.get(self._key(name))
        if found is None:
            raise ObjectMissing(name)
        return found.value

    def list(self, prefix: str) -> list[str]:
        start = self._key(prefix)
        found = self._client.range(start, prefix_end(start), keys_only=True)
        return [each.key.removeprefix(self._base).decode() for each in found.kvs]

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._client.delete(self._key(name))

    def _key(self, name: str) -> bytes:
        return self._base + name.encode()
