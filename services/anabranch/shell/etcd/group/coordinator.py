"""`ports.Coordinator` on etcd: one member's follower, election and journal, told as events."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Deposed, Elected, Event, Followed, LeaseHeld, Restored
from anabranch.core.types import Nanoseconds
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.group.election import Candidate, Election
from anabranch.shell.etcd.group.follower import CHECK_S, Follower
from anabranch.shell.etcd.group.journal import EtcdJournal, Fence
from anabranch.shell.telemetry.log import Log


class EtcdCoordinator:
    """Keeps duty 7 of a driver: who wins the election reads the journal to its end, has all of it
    posted, and only then is told so. While a member leads it isn't told what it journals itself.

    `post` and `failed` are called by threads of ours; after `failed` the journal is damaged, and
    this member neither follows nor leads.
    """

    def __init__(
        self,
        client: EtcdClient,
        journal: EtcdJournal,
        candidate: Candidate,
        log: Log,
        *,
        post: Callable[[Event], None],
        failed: Callable[[AnabranchError], None],
        now: Callable[[], Nanoseconds],
        check_s: float = CHECK_S,
    ) -> None:
        self._journal = journal
        self._post = post
        self._failed = failed
        self._lock = Lock()
        self._fence: Fence | None = None
        """Of the election that was won last, until it is over."""
        self._until: Nanoseconds = 0
        self._leads = False
        """`Elected` was posted for it."""
        self._follower = Follower(
            journal.reader,
            log,
            followed=self._followed,
            restored=self._restored,
            failed=self.give_up,
            check_s=check_s,
        )
        self._election = Election(
            client,
            journal.reader.keys,
            candidate,
            self,
            log,
            now=now,
            relief=journal.relief,
        )
        journal.deposed = self._fenced

    @property
    def following(self) -> bool:
        """What others journal is told as it comes; a leader has nobody to follow."""
        return self._follower.standing

    @property
    def journaled(self) -> int:
        """The last entry known to be in the journal, whoever put it there."""
        return max(self._follower.journaled, self._journal.last)

    def follow(self, after: int) -> None:
        """Whoever leads has everything, and asks for this because of a lead before."""
        with self._lock:
            if not self._leads:
                self._follower.follow(after)

    def campaign(self) -> None:
        self._election.campaign()

    def resign(self) -> None:
        self._end(self._fence)
        self._election.resign()

    def close(self) -> None:
        """Resign for good, at once, and post nothing more. Not in the event loop's thread: this
        waits for threads that may wait for the loop.
        """
        self._end(self._fence)
        self._election.stop()
        self._follower.stop()

    def won(self, fence: Fence, until: Nanoseconds) -> None:
        with self._lock:
            self._fence = fence
            self._until = until
        self._follower.finish(partial(self._caught_up, fence))

    def held(self, until: Nanoseconds) -> None:
        with self._lock:
            self._until = until
            if self._leads:
                self._post(LeaseHeld(until))

    def over(self, fence: Fence) -> None:
        if self._end(fence):
            self._post(Deposed())

    def _caught_up(self, fence: Fence, last: int) -> None:
        with self._lock:
            if self._fence != fence:
                self._follower.resume()
                return
            self._journal.lead(fence, last)
            self._leads = True
            self._post(Elected(fence.term, self._until))

    def _followed(self, first: int, entries: Sequence[bytes]) -> None:
        self._post(Followed(first, entries))

    def _restored(self, index: int, image: bytes) -> None:
        self._post(Restored(index, image))

    def give_up(self, error: AnabranchError) -> None:
        """The journal is damaged, or not all that was journaled."""
        self.resign()
        self._failed(error)

    def _fenced(self, fence: Fence) -> None:
        """The journal was refused: the machine hears of it before it is answered."""
        self.over(fence)
        self._election.lost(fence)

    def _end(self, fence: Fence | None) -> bool:
        """Whether this was the lead, and the machine knew."""
        with self._lock:
            if fence is None or self._fence != fence:
                return False
            self._fence = None
            led, self._leads = self._leads, False
            if led:
                self._journal.yield_lead()
                self._follower.resume()
            return led
