"""An etcd that is nearly full, and one that is: refuse in time, compact, defragment, disarm."""

from collections import deque
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic

from anabranch.core.errors import AnabranchError, DeadlineExceeded, StorageFull, Unavailable
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.etcd_pb2 import NOSPACE
from anabranch.shell.telemetry.log import Log

HEADROOM = 0.1
"""Of etcd's quota, left to others: a full etcd grants no lease, and so nobody is elected."""
LOOKS = 64
"""At etcd's size while it fills up once."""
DISK_BYTES_PER_BYTE = 2
"""What is put takes more room than it has bytes, until etcd is defragmented."""
SETTLED_S = 1.0
"""What was put longer ago is in the size that etcd tells; it counts what it has committed."""
PAUSE_S = 2.0
PAUSE_MAX_S = 60.0
"""Between two attempts in the background: each stops every member for a moment, and in vain if
nothing was deleted since.
"""


class Fill:
    """How full etcd is, by its fullest member."""

    __slots__ = ("bytes", "full", "quota_bytes")

    def __init__(self, used: int = 0, quota_bytes: int = 0, *, full: bool = False) -> None:
        self.bytes = used
        self.quota_bytes = quota_bytes
        """0: this version of etcd doesn't tell it."""
        self.full = int(full)
        """Writes are refused: by etcd itself, or by us because they would leave too little room."""

    @classmethod
    def of(cls, client: EtcdClient) -> "Fill":
        used, quota = max(client.sizes(), default=0), client.status().dbSizeQuota
        alarmed = any(each.alarm == NOSPACE for each in client.alarms())
        return cls(used, quota, full=alarmed or used > quota * (1 - HEADROOM) > 0)


class Room:
    """What there is left in etcd, asked for now and then by the one who appends."""

    def __init__(self, client: EtcdClient, headroom: float) -> None:
        self._client = client
        self._headroom = headroom
        self._recent = deque[tuple[float, int]]()
        self._unlooked_bytes = 0
        self._look_after_bytes = 0
        self._full = False

    @property
    def full(self) -> bool:
        """As far as the last append was told."""
        return self._full

    def take(self, size: int) -> None:
        """Count what is about to be put; StorageFull if it would leave too little."""
        if not self._headroom:
            return
        since = monotonic() - SETTLED_S
        while self._recent and self._recent[0][0] < since:
            self._recent.popleft()
        self._unlooked_bytes += size
        if self._full or self._unlooked_bytes > self._look_after_bytes:
            # Who can't be asked is asked again for the next append; this one finds out by itself.
            with suppress(Unavailable, DeadlineExceeded):
                self._look(size)
        if self._full:
            raise StorageFull(self._client.where)
        self._recent.append((monotonic(), size))

    def _look(self, size: int) -> None:
        status = self._client.status()
        unsettled = sum(recent for _, recent in self._recent) + size
        used = status.dbSize + unsettled * DISK_BYTES_PER_BYTE
        # A version of etcd's that doesn't tell its quota tells 0.
        self._full = used > status.dbSizeQuota * (1 - self._headroom) > 0
        self._unlooked_bytes = 0
        self._look_after_bytes = status.dbSizeQuota // LOOKS or 1 << 30


class Relief:
    """Frees what was deleted or overwritten. If nothing was, etcd stays full, and soon says so
    again: room is made by a snapshot, which cuts the journal.
    """

    def __init__(self, client: EtcdClient, log: Log) -> None:
        self._client = client
        self._log = log
        self._busy = Lock()
        self._next_at = 0.0
        self._pause_s = PAUSE_S

    def soon(self) -> None:
        """In the background, unless it is under way or was done a moment ago."""
        if not self._busy.locked() and monotonic() >= self._next_at:
            Thread(target=self._in_background, name="etcd-relief", daemon=True).start()

    def relieve(self) -> None:
        """Now, after whoever is at it."""
        with self._busy:
            self._relieve()

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
        before = max(self._client.sizes(), default=0)
        self._log.warning("etcd is full: compacting and defragmenting it", bytes=before)
        self._client.compact_each(self._client.range(b"\0").revision)
        self._client.defragment_each()
        for alarm in self._client.alarms():
            if alarm.alarm == NOSPACE:
                self._client.disarm(alarm)
        after = max(self._client.sizes(), default=0)
        gained = after < before * 0.9
        self._pause_s = PAUSE_S if gained else min(2 * self._pause_s, PAUSE_MAX_S)
        self._next_at = monotonic() + self._pause_s
        self._log.info("etcd was defragmented", bytes=after)
