"""Who leads a group: a key with a lease for each candidate; the one created first leads.

A candidate waits for the one before it to go. The lead is believed until the lease's time, counted
from before the last renewal was asked for, less a margin for clocks of uneven pace: nobody else can
have been elected by then. What is written is safe without any clock, by the fence (journal.py).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from anabranch.core.errors import AnabranchError, StorageFull, Unavailable
from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.etcd.api.calls import Compacted, LeaseGone
from anabranch.shell.etcd.api.client import (
    EtcdClient,
    Lease,
    absent,
    latest_created_op,
    prefix_end,
    put_op,
    range_op,
)
from anabranch.shell.etcd.api.etcd_pb2 import Event, KeyValue
from anabranch.shell.etcd.api.space import Relief
from anabranch.shell.etcd.api.watch import Changed, Ended, Watch, WatchEvent
from anabranch.shell.etcd.group.journal import Fence
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

TTL_S = 3
TTL_S_MIN = 2
"""etcd grants no shorter lease."""
RENEWALS = 3
"""Within one time to live."""
RETRY_MS = 200
_MARGIN = 10
"""A tenth of the time to live isn't counted on."""
_OUTCOMES = (AnabranchError, LeaseGone, Compacted)
"""What may become of a call that isn't answered as hoped."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who stands, and by which rules; these are the same for every member of a group."""

    name: str
    ttl_s: int = TTL_S
    """A leader that is cut off is followed by another after this time."""
    terms_after: int = 0
    """The cluster's marker knows it."""


class ElectionListener(Protocol):
    """Who hears how the election goes, from its thread."""

    def won(self, fence: Fence, until: Nanoseconds) -> None:
        """No other member is elected before `until`."""
        ...

    def held(self, until: Nanoseconds) -> None: ...

    def over(self, fence: Fence) -> None:
        """The lead is lost; not told of one that was resigned."""
        ...


@dataclass(frozen=True, slots=True)
class _Campaign:
    pass


@dataclass(frozen=True, slots=True)
class _Resign:
    stop: bool = False


@dataclass(frozen=True, slots=True)
class _Lost:
    fence: Fence


@dataclass(slots=True)
class _Candidacy:
    """One key, from its creation to the end of its lease."""

    lease: Lease
    fence: Fence
    until: Nanoseconds
    renew_at: Nanoseconds
    watch: Watch | None = None
    """On the candidate before; once the lead is won, on our own key."""
    leads: bool = False


class Election:
    """Stands from `campaign` to `resign`: `won`, `held` each time the lease is renewed, `over`."""

    def __init__(
        self,
        client: EtcdClient,
        keys: Keys,
        candidate: Candidate,
        told: ElectionListener,
        log: Log,
        *,
        now: Callable[[], Nanoseconds],
        relief: Relief,
    ) -> None:
        assert candidate.ttl_s >= TTL_S_MIN
        self._client = client
        self._keys = keys
        self._candidate = candidate
        self._told = told
        self._log = log
        self._now = now
        self._relief = relief
        self._ttl_s = candidate.ttl_s
        self._inbox = SimpleQueue[_Campaign | _Resign | _Lost | WatchEvent]()
        self._standing = False
        self._stopped = False
        self._mine: _Candidacy | None = None
        self._again_at: Nanoseconds = 0
        self._trouble = False
        self._thread = Thread(target=self._run, name="etcd-election", daemon=True)
        self._thread.start()

    def campaign(self) -> None:
        """Stand from now on, and again after every defeat."""
        self._inbox.put(_Campaign())

    def resign(self) -> None:
        """Stand no more; a lead that is held goes to the next at once, and `over` isn't told."""
        self._inbox.put(_Resign())

    def lost(self, fence: Fence) -> None:
        """Somebody has found that this lead is over."""
        self._inbox.put(_Lost(fence))

    def stop(self) -> None:
        """Resign for good."""
        self._inbox.put(_Resign(stop=True))
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped:
            wait_s = self._wait_s()
            try:
                item = self._inbox.get(timeout=wait_s) if wait_s != 0 else self._inbox.get_nowait()
            except Empty:
                self._act()
            else:
                self._take(item)

    def _wait_s(self) -> float | None:
        if not self._standing:
            return None
        at = self._mine.renew_at if self._mine else self._again_at
        return max(0, at - self._now()) / 1e9

    def _take(self, item: _Campaign | _Resign | _Lost | WatchEvent) -> None:
        match item:
            case _Campaign():
                self._standing = True
            case _Resign(stop):
                self._standing = False
                self._stopped = stop
                if self._mine is not None:
                    if self._mine.leads:
                        self._log.info("the lead is handed over", term=self._mine.fence.term)
                    self._leave(self._mine)
            case _Lost(fence):
                if self._mine is not None and self._mine.fence == fence:
                    self._end(self._mine, "the journal is fenced off")
            case Changed(watch, events):
                if self._mine is not None and watch is self._mine.watch and _deleted(events):
                    self._act_on(self._mine, self._look)
            case Ended(watch):
                if self._mine is not None and watch is self._mine.watch:
                    self._mine.watch = None
                    soon = self._now() + RETRY_MS * MS
                    self._mine.renew_at = min(self._mine.renew_at, soon)

    def _act(self) -> None:
        """It is time to renew the lease, or to get one."""
        if self._mine is not None:
            self._act_on(self._mine, self._renew)
            return
        try:
            self._enter()
        except StorageFull:
            self._relief.soon()
            self._retry("etcd is full")
        except _OUTCOMES as error:
            self._retry(str(error))
        else:
            self._trouble = False

    def _act_on(self, mine: _Candidacy, act: Callable[[_Candidacy], None]) -> None:
        """What fails is tried again while the lease may live: soon, and at another member."""
        try:
            act(mine)
        except LeaseGone:
            self._end(mine, "its lease has lapsed")
        except _OUTCOMES as error:
            now = self._now()
            mine.renew_at = min(now + RETRY_MS * MS, max(now, mine.until))
            if now >= mine.until:
                self._end(mine, f"its lease couldn't be renewed: {error}")

    def _enter(self) -> None:
        asked_at = self._now()
        lease = self._client.grant(self._ttl_s)
        until = self._until(asked_at, lease)
        key = self._keys.candidate(lease.id)
        try:
            revision = self._put(key, lease)
        except _OUTCOMES:
            # Put or not, the key goes with the lease.
            self._revoke(lease)
            raise
        fence = Fence(key, revision, self._candidate.terms_after + revision)
        self._mine = _Candidacy(lease, fence, until, self._next_renewal(lease))
        self._act_on(self._mine, self._look)

    def _put(self, key: bytes, lease: Lease) -> int:
        """The revision at which the key was created."""
        put = put_op(key, self._candidate.name.encode(), lease.id)
        return self._client.txn((absent(key),), (put,)).header.revision

    def _look(self, mine: _Candidacy) -> None:
        """Is it our turn? If not, watch the candidate before; if so, ourselves."""
        candidates = self._keys.candidates
        before = latest_created_op(candidates, prefix_end(candidates), mine.fence.revision)
        answer = self._client.txn((), (range_op(mine.fence.key), before))
        own, others = (each.response_range.kvs for each in answer.responses)
        if not own or own[0].create_revision != mine.fence.revision:
            raise LeaseGone("the election key is gone")
        watched: KeyValue = others[0] if others else own[0]
        self._drop_watch(mine)
        mine.watch = self._client.watch(
            watched.key, b"", answer.header.revision + 1, self._inbox.put
        )
        if others or mine.leads:
            return
        mine.leads = True
        self._log.info("leading", term=mine.fence.term)
        self._told.won(mine.fence, mine.until)

    def _renew(self, mine: _Candidacy) -> None:
        asked_at = self._now()
        if reached("election.keepalive"):
            raise Unavailable("the lease's renewal", "a failpoint drops it")
        deadline_ms = max(1, min(self._ttl_s * 1_000 // RENEWALS, (mine.until - asked_at) // MS))
        self._client.keep_alive(mine.lease.id, deadline_ms)
        mine.until = self._until(asked_at, mine.lease)
        mine.renew_at = self._next_renewal(mine.lease)
        if mine.leads:
            self._told.held(mine.until)
        if mine.watch is None:
            self._look(mine)

    def _end(self, mine: _Candidacy, why: str) -> None:
        """Over against our will: told at once, then made sure of as far as we can."""
        if mine.leads:
            self._log.warning("the lead is lost", term=mine.fence.term, reason=why)
            self._told.over(mine.fence)
        self._leave(mine)

    def _leave(self, mine: _Candidacy) -> None:
        self._mine = None
        self._drop_watch(mine)
        self._revoke(mine.lease)
        self._again_at = self._now()

    def _revoke(self, lease: Lease) -> None:
        """If it can't be done the lease lapses by itself."""
        with suppress(*_OUTCOMES):
            self._client.revoke(lease.id, deadline_ms=self._ttl_s * 1_000 // RENEWALS)

    def _drop_watch(self, mine: _Candidacy) -> None:
        if mine.watch is not None:
            mine.watch.cancel()
            mine.watch = None

    def _retry(self, why: str) -> None:
        if not self._trouble:
            self._log.warning("this member can't stand for election now", reason=why)
        self._trouble = True
        self._again_at = self._now() + RETRY_MS * MS

    def _until(self, asked_at: Nanoseconds, lease: Lease) -> Nanoseconds:
        ttl_ms = min(self._ttl_s, lease.ttl_s) * 1_000
        return asked_at + (ttl_ms - ttl_ms // _MARGIN) * MS

    def _next_renewal(self, lease: Lease) -> Nanoseconds:
        return self._now() + min(self._ttl_s, lease.ttl_s) * 1_000 // RENEWALS * MS


def _deleted(events: Sequence[Event]) -> bool:
    return any(event.type == Event.DELETE for event in events)
