"""What a member's process does for it at etcd: follow, stand for election, hold the lease, append.

As duty 7 of a driver demands (core/machine.py). What it knows may be late: a member whose process
was stopped goes on as a leader until it is told otherwise, and so does one that etcd can't reach.
"""

from collections.abc import Callable, Sequence
from functools import partial

from anabranch.core.errors import Deposed as DeposedError
from anabranch.core.errors import StorageFull
from anabranch.core.machine import (
    Deposed,
    Elected,
    Event,
    Followed,
    LeaseHeld,
    Persisted,
    PersistFailed,
    Restored,
    SaveSnapshot,
    SnapshotSaved,
)
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.etcd import Page, SimEtcd

_LOOK: Nanoseconds = 400 * MS
_PAUSE: Nanoseconds = 100 * MS
_LEASE_PERCENT = 99
"""Of a lease's time that counts: clocks differ in pace, by half a percent at most."""


class SimCoordinator:
    """Of one life of one member."""

    def __init__(
        self,
        etcd: SimEtcd,
        name: str,
        clock: Callable[[], Nanoseconds],
        act: Callable[[Callable[[], None]], None],
        post: Callable[[Event], None],
    ) -> None:
        self.etcd = etcd
        self.world = etcd.world
        self.name = name
        self._clock = clock
        self._act = act
        """Does something as soon as the process runs, unless it has died by then."""
        self._post = post
        self._position = 0
        self._following = 0
        self._stands = False
        self._candidacy = 0
        self._revision = 0
        self._until: Nanoseconds = 0
        self._fence = 0
        """The key of the lead that is held, as far as is known; 0: none."""

    def follow(self, after: int) -> None:
        self._position = after
        self._following += 1
        self._turn_page(self._following)

    def campaign(self) -> None:
        if not self._stands:
            self._stands = True
            self._enter()

    def resign(self) -> None:
        self._stands = False
        self._give_up()

    def append(self, entries: Sequence[bytes]) -> None:
        """Asks until it knows. A zombie's fence is that of its old key."""
        fence, attempt = self._fence, self.world.stamp()
        etcd, act = self.etcd, self._act

        def ask() -> None:
            etcd.ask(
                self.name,
                act,
                lambda: etcd.append(self.name, fence, attempt, entries),
                answered,
            )

        def answered(last: int | None) -> None:
            if last is None:
                self._later(_PAUSE, ask)
            elif last > 0:
                self._post(Persisted(last))
            elif last < 0:
                self._post(PersistFailed(StorageFull("etcd")))
            else:
                self._post(PersistFailed(DeposedError("etcd", fence)))

        ask()

    def save(self, snapshot: SaveSnapshot) -> None:
        fence, etcd = self._fence, self.etcd

        def answered(done: bool | None) -> None:
            if done is None:
                self._later(_PAUSE, partial(self.save, snapshot))
            else:
                self._post(SnapshotSaved(snapshot.index))

        etcd.ask(
            self.name,
            self._act,
            lambda: etcd.keep_snapshot(self.name, fence, snapshot.index, snapshot.image),
            answered,
        )

    def _turn_page(self, following: int) -> None:
        """A watch, as it looks to who follows: some entries at a time, none left out."""
        count = self.world.between(1, 20)
        etcd, after = self.etcd, self._position
        etcd.ask(
            self.name,
            self._act,
            lambda: etcd.read(after, count),
            partial(self._page_came, following),
            ready=lambda: etcd.last > after,
        )

    def _page_came(self, following: int, page: Page | None) -> None:
        if following != self._following:
            return
        if page is not None:
            self._give(page)
        if following == self._following:
            pause = self.world.between(0, 5 * MS if page is not None else _PAUSE)
            self._later(pause, partial(self._turn_page, following))

    def _give(self, page: Page) -> None:
        """Some of what was given before comes again, as after a watch that broke."""
        self._position = max(page.last, self._position)
        if page.snapshot is not None:
            self._post(Restored(*page.snapshot))
        if page.entries:
            again = self.world.between(0, 3) if self.world.chance(0.1) else 0
            first = max(self.etcd.forgotten + 1, page.first - again)
            repeated = self.etcd.entries[first - 1 : page.first - 1]
            self._post(Followed(first, [*repeated, *page.entries]))

    def _enter(self) -> None:
        self._candidacy += 1
        sent, candidacy = self._clock(), self._candidacy

        def entered(revision: int | None) -> None:
            if candidacy != self._candidacy:
                return
            if revision is None:
                self._later(_PAUSE, partial(self._try_again, candidacy))
                return
            self._revision = revision
            self._until = self._held(sent)
            self._later(self.etcd.lease // 3, partial(self._keep, candidacy))
            self._look(candidacy)

        self.etcd.ask(self.name, self._act, lambda: self.etcd.enter(self.name), entered)

    def _try_again(self, candidacy: int) -> None:
        if candidacy == self._candidacy and self._stands:
            self._enter()

    def _keep(self, candidacy: int) -> None:
        sent, revision = self._clock(), self._revision

        def kept(there: bool | None) -> None:
            if candidacy != self._candidacy:
                return
            if there:
                self._until = self._held(sent)
                if self._fence:
                    self._post(LeaseHeld(self._until))
            elif there is not None or (self._is_over and self.world.chance(0.3)):
                self._lose()
                return
            pause = self.etcd.lease // (3 if there else 10)
            self._later(pause, partial(self._keep, candidacy))

        if candidacy == self._candidacy:
            etcd = self.etcd
            etcd.ask(self.name, self._act, lambda: etcd.keep(self.name, revision), kept)

    def _look(self, candidacy: int) -> None:
        """Is it the oldest key by now?"""
        revision, etcd = self._revision, self.etcd

        def looked(first: bool | None) -> None:
            if candidacy != self._candidacy:
                return
            if first:
                self._catch_up(candidacy)
            else:
                self._later(self.world.between(0, _LOOK), partial(self._look, candidacy))

        if candidacy == self._candidacy:
            etcd.ask(self.name, self._act, lambda: etcd.leads(self.name, revision), looked)

    def _catch_up(self, candidacy: int) -> None:
        """Nobody else can append any more: what is there now is all that was journaled before."""
        etcd, following, after = self.etcd, self._following, self._position

        def read(page: Page | None) -> None:
            if candidacy != self._candidacy:
                return
            if page is None or following != self._following or after != self._position:
                self._catch_up(candidacy)
                return
            self._give(page)
            if candidacy == self._candidacy:
                self._fence = self._revision
                self._post(Elected(self._revision, self._until))

        etcd.ask(self.name, self._act, lambda: etcd.read(after, etcd.last), read)

    def _lose(self) -> None:
        led = self._fence
        self._give_up()
        if led:
            self._post(Deposed())
        if self._stands:
            self._enter()

    def _give_up(self) -> None:
        revision, etcd = self._revision, self.etcd
        self._candidacy += 1
        self._fence = self._revision = 0
        if revision:
            etcd.ask(self.name, self._act, lambda: etcd.leave(self.name, revision), lambda _: None)

    @property
    def _is_over(self) -> bool:
        return self._clock() >= self._until

    def _held(self, sent: Nanoseconds) -> Nanoseconds:
        return sent + self.etcd.lease * _LEASE_PERCENT // 100

    def _later(self, delay: Nanoseconds, action: Callable[[], None]) -> None:
        self.world.after(delay, partial(self._act, action))
