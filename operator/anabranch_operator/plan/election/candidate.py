"""The election of one operator by a Lease: who leads, until when, and under which epoch.

Time here is a clock that runs on while the machine sleeps. A candidate never trusts another's
clock: a lease is over when it hasn't changed for its whole length before our own eyes. A leader
counts its own from before the renewal was sent, and stops well before others may begin.
"""

from typing import assert_never

from msgspec import Struct

from anabranch_operator.api.anabranch_names import Nanoseconds, SetTimer, TimerFired

SECOND: Nanoseconds = 1_000_000_000
TIMER = "lease"
NOBODY = ""


class Terms(Struct, frozen=True, kw_only=True):
    """How long a lease lasts; the same for all candidates."""

    lease_s: float = 15
    """Without renewal another may lead after so long."""
    renew_s: float = 10
    """A leader that couldn't renew for so long stops."""
    retry_s: float = 2
    """How often it is renewed, and looked at by those who wait."""


class Lease(Struct, frozen=True, kw_only=True):
    """A Lease at one version of it."""

    uid: str
    version: int
    holder: str
    epoch: int
    """How often it has changed hands: the Lease's own count."""
    lease_s: float
    """As its holder has written it."""


class Found(Struct, frozen=True):
    """What was asked for; None if there is no Lease."""

    lease: Lease | None


class Kept(Struct, frozen=True):
    """What we have written is the Lease now."""

    lease: Lease


class Beaten(Struct, frozen=True):
    """Somebody else has written it since we saw it."""


class Missed(Struct, frozen=True):
    """No answer; it may have been done."""


class Resign(Struct, frozen=True):
    """The process is to end."""


Event = Found | Kept | Beaten | Missed | Resign | TimerFired


class Fetch(Struct, frozen=True):
    """Tell `Found`, or `Missed`."""


class Write(Struct, frozen=True):
    """Make it so, if it is still as it was seen; tell `Kept`, `Beaten` or `Missed`."""

    seen: Lease | None
    holder: str
    epoch: int
    acquired: bool
    """The holder is another than before."""


class Lead(Struct, frozen=True):
    scope: str
    """The Lease's UID: epochs are comparable within it."""
    epoch: int


class Hold(Struct, frozen=True):
    """Until then whatever is asked in this epoch may be done."""

    until: Nanoseconds


class StepDown(Struct, frozen=True):
    why: str


class Retire(Struct, frozen=True):
    """There is nothing more to do."""


Effect = Fetch | Write | Lead | Hold | StepDown | Retire | SetTimer


class Candidate:
    """One of those who stand for election. At most one request of it is under way."""

    def __init__(self, name: str, terms: Terms) -> None:
        assert terms.retry_s < terms.renew_s < terms.lease_s
        self.name = name
        self.epoch: int | None = None
        """Of our own turn, while we lead."""
        self.until: Nanoseconds = 0
        self._terms = terms
        self._seen: Lease | None = None
        self._seen_at: Nanoseconds = 0
        self._sent_at: Nanoseconds = 0
        self._leaving = False

    @property
    def leads(self) -> bool:
        return self.epoch is not None

    def start(self) -> tuple[Effect, ...]:
        return (Fetch(),)

    def step(self, now: Nanoseconds, event: Event) -> tuple[Effect, ...]:
        late = self._overdue(now)
        match event:
            case Found(lease):
                return late + self._found(now, lease)
            case Kept(lease):
                return late + self._kept(now, lease)
            case Beaten():
                return (*late, Fetch())
            case Missed():
                return late + self._again(now)
            case TimerFired():
                return late + self._due(now)
            case Resign():
                return late + self._resign(now)
            case _:
                assert_never(event)

    def _overdue(self, now: Nanoseconds) -> tuple[Effect, ...]:
        """A leader that slept too long is none any more, whatever it hears next."""
        if not self.leads or now < self.until:
            return ()
        self.epoch = None
        return (StepDown("the lease couldn't be renewed in time"),)

    def _found(self, now: Nanoseconds, lease: Lease | None) -> tuple[Effect, ...]:
        if lease != self._seen or lease is None:
            self._seen, self._seen_at = lease, now
        if self._leaving:
            return self._left()
        if lease is None:
            lost = self._lost("the Lease is gone") if self.leads else ()
            return lost + self._take(now, None)
        if self.leads:
            if lease.holder == self.name and lease.epoch == self.epoch:
                return self._renew(now)
            return self._lost(f"{lease.holder or 'nobody'} holds the Lease") + self._again(now)
        over = now - self._seen_at >= _ns(max(lease.lease_s, self._terms.lease_s))
        if over or lease.holder in {NOBODY, self.name}:
            return self._take(now, lease)
        return self._again(now)

    def _kept(self, now: Nanoseconds, lease: Lease) -> tuple[Effect, ...]:
        self._seen, self._seen_at = lease, now
        if self._leaving:
            return self._left()
        until = self._sent_at + _ns(self._terms.renew_s)
        if until <= now:
            return self._again(now)
        elected: tuple[Effect, ...] = ()
        if not self.leads:
            elected = (Lead(lease.uid, lease.epoch),)
        self.epoch, self.until = lease.epoch, until
        return (Hold(until), *elected, *self._again(now))

    def _due(self, now: Nanoseconds) -> tuple[Effect, ...]:
        return self._renew(now) if self.leads else (Fetch(),)

    def _resign(self, now: Nanoseconds) -> tuple[Effect, ...]:
        self._leaving = True
        if not self.leads or self._seen is None:
            return self._left()
        epoch, self.epoch = self._seen.epoch, None
        self._sent_at = now
        return (StepDown("the process ends"), Write(self._seen, NOBODY, epoch, acquired=False))

    def _take(self, now: Nanoseconds, seen: Lease | None) -> tuple[Effect, ...]:
        self._sent_at = now
        return (Write(seen, self.name, 1 if seen is None else seen.epoch + 1, acquired=True),)

    def _renew(self, now: Nanoseconds) -> tuple[Effect, ...]:
        assert self._seen is not None
        self._sent_at = now
        return (Write(self._seen, self.name, self._seen.epoch, acquired=False),)

    def _lost(self, why: str) -> tuple[Effect, ...]:
        self.epoch = None
        return (StepDown(why),)

    def _again(self, now: Nanoseconds) -> tuple[Effect, ...]:
        if self._leaving:
            return self._left()
        return (SetTimer(TIMER, now + _ns(self._terms.retry_s)),)

    def _left(self) -> tuple[Effect, ...]:
        return (Retire(),)


def _ns(seconds: float) -> Nanoseconds:
    return round(seconds * SECOND)
