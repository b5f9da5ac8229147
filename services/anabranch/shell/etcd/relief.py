"""What is done about an etcd that is full: compact, defragment member by member, disarm.

A full etcd grants no lease and takes no key, so that nobody could be elected to make room. A key
that holds a little space in reserve is given up for that, and put again when there is room.
"""

from contextlib import suppress
from threading import Lock, Thread
from time import monotonic

from anabranch.core.errors import AnabranchError
from anabranch.shell.etcd.calls import Compacted
from anabranch.shell.etcd.client import EtcdClient, absent, put_op
from anabranch.shell.etcd.etcd_pb2 import NOSPACE, RequestOp
from anabranch.shell.etcd.layout import Keys
from anabranch.shell.log import Log

RESERVE_BYTES = 256 << 10
PAUSE_S = 2.0
"""Between two attempts in the background: each stops every member for a moment."""


class Relief:
    """Frees what was deleted or overwritten. If nothing was, etcd stays full, and soon says so
    again: room is made by a snapshot, which cuts the journal.
    """

    def __init__(self, client: EtcdClient, keys: Keys, log: Log) -> None:
        self._client = client
        self._keys = keys
        self._log = log
        self._busy = Lock()
        self._done_at = 0.0

    def soon(self) -> None:
        """In the background, unless it is under way or was done a moment ago."""
        if not self._busy.locked() and monotonic() - self._done_at >= PAUSE_S:
            Thread(target=self._in_background, name="etcd-relief", daemon=True).start()

    def relieve(self) -> None:
        """Now, after whoever is at it."""
        with self._busy:
            self._relieve()

    def reserve(self) -> None:
        """There is room again: keep some for the next time."""
        self._client.txn((absent(self._keys.reserve),), (reserve_op(self._keys),))

    def _in_background(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            self._relieve()
        except AnabranchError as error:
            self._log.warning("etcd is full, and no room could be made", reason=error.message)
        finally:
            self._busy.release()

    def _relieve(self) -> None:
        before = [status.dbSize for status in self._client.statuses()]
        self._log.warning("etcd is full: compacting and defragmenting it", bytes=max(before))
        self._client.delete(self._keys.reserve)
        with suppress(Compacted):
            self._client.compact(self._client.range(self._keys.reserve).revision)
        self._client.defragment()
        for alarm in self._client.alarms():
            if alarm.alarm == NOSPACE:
                self._client.disarm(alarm)
        after = [status.dbSize for status in self._client.statuses()]
        self._done_at = monotonic()
        self._log.info("etcd was defragmented", bytes=max(after))


def reserve_op(keys: Keys) -> RequestOp:
    return put_op(keys.reserve, bytes(RESERVE_BYTES))
