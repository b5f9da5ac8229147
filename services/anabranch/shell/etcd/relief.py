"""What is done about an etcd that is full: compact, defragment member by member, disarm."""

from contextlib import suppress
from threading import Lock, Thread
from time import monotonic

from anabranch.core.errors import AnabranchError
from anabranch.shell.etcd.calls import Compacted
from anabranch.shell.etcd.client import EtcdClient
from anabranch.shell.etcd.etcd_pb2 import NOSPACE
from anabranch.shell.log import Log

PAUSE_S = 2.0
"""Between two attempts in the background: each stops every member for a moment."""


class Relief:
    """Frees what was deleted or overwritten. If nothing was, etcd stays full, and soon says so
    again: room is made by a snapshot, which cuts the journal.
    """

    def __init__(self, client: EtcdClient, log: Log) -> None:
        self._client = client
        self._log = log
        self._busy = Lock()
        self._done_at = 0.0

    def soon(self) -> None:
        """In the background, unless it is under way or was done a moment ago."""
        if not self._busy.locked() and monotonic() - self._done_at >= PAUSE_S:
            Thread(target=self._in_background, name="etcd-relief", daemon=True).start()

    def relieve(self, revision: int = 0) -> None:
        """Now, after whoever is at it; what is older than the revision is forgotten."""
        with self._busy:
            self._relieve(revision or self._client.range(b"\0").revision)

    def _in_background(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            self._relieve(self._client.range(b"\0").revision)
        except AnabranchError as error:
            self._log.warning("etcd is full, and no room could be made", reason=error.message)
        finally:
            self._busy.release()

    def _relieve(self, revision: int) -> None:
        before = [status.dbSize for status in self._client.statuses()]
        self._log.warning("etcd is full: compacting and defragmenting it", bytes=max(before))
        with suppress(Compacted):
            self._client.compact(revision)
        self._client.defragment()
        for alarm in self._client.alarms():
            if alarm.alarm == NOSPACE:
                self._client.disarm(alarm)
        after = [status.dbSize for status in self._client.statuses()]
        self._done_at = monotonic()
        self._log.info("etcd was defragmented", bytes=max(after))
