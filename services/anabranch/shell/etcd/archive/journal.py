"""The journal in etcd with its copy in the bucket: close behind it, or part of every append."""

from collections.abc import Sequence

from anabranch.core.errors import Deposed, Unavailable
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.archive.copy import Archive, Archiver
from anabranch.shell.etcd.archive.snapshots import Blobs
from anabranch.shell.etcd.group.journal import EtcdJournal, Fence
from anabranch.shell.telemetry.log import Log

SNAPSHOT_WAIT_S = 30.0


class ArchivedJournal(EtcdJournal):
    """`at_once`: an entry is durable only when the bucket has it too, so that nothing that was
    acknowledged depends on etcd; else the bucket follows within `archive_ms`.
    """

    def __init__(
        self,
        client: EtcdClient,
        cluster: str,
        blobs: Blobs,
        log: Log,
        *,
        archive_ms: int,
        at_once: bool,
    ) -> None:
        super().__init__(client, cluster, blobs, log)
        self._at_once = at_once
        self._archive = Archive(cluster, blobs)
        self.archiver = Archiver(self._archive, self.reader, archive_ms, log)

    def lead(self, fence: Fence, last: int) -> None:
        super().lead(fence, last)
        self.archiver.lead()

    def yield_lead(self) -> None:
        super().yield_lead()
        self.archiver.step_down()

    def append(self, entries: Sequence[bytes]) -> int:
        """Nothing is known to be lost, and nothing said, while the bucket can't be reached."""
        last = super().append(entries)
        if self._at_once and not self.archiver.wait(last, None):
            raise Deposed(self.reader.where, 0)
        return last

    def save_snapshot(self, index: int, content: bytes) -> None:
        """The journal forgets nothing that the bucket doesn't have: a snapshot may rot."""
        if not self.archiver.wait(index, SNAPSHOT_WAIT_S) and self.archiver.leading:
            raise Unavailable("the archive of the journal", f"entry {index} isn't in it yet")
        super().save_snapshot(index, content)
        self._archive.prune()

    def close(self) -> None:
        super().close()
        self.archiver.close()
