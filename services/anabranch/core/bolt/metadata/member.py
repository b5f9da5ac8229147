"""A member of the metadata group: it follows the journal, and leads when it is elected.

Rules it holds: what one leader has journaled the next has applied before it leads (duty 7 of a
driver); look-ups are answered only while the lease says that nobody else can lead (spec 4 r2); who
can't read the journal doesn't lead.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.bolt.metadata.leader import Metadata, blank
from anabranch.core.bolt.protocol.commands import FORMAT, decode_group
from anabranch.core.bolt.protocol.letters import Alive, Ask, Leading, Propose, ToMetadata
from anabranch.core.bolt.state import snapshot
from anabranch.core.errors import Fenced, JournalTooNew
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Campaign,
    Deposed,
    Drain,
    Effect,
    Effects,
    Elected,
    Event,
    Follow,
    Followed,
    LeaseHeld,
    Linked,
    Persisted,
    PersistFailed,
    Received,
    Resign,
    Rest,
    Restored,
    Send,
)
from anabranch.core.types import Nanoseconds

HELD_MAX = 10_000
"""Look-ups that wait for the lease; past it they are dropped, and asked again."""


class Member:
    """A machine around the leader's; while another leads it is a hot standby."""

    def __init__(self, cluster: str, limits: Limits, knows: int = FORMAT) -> None:
        self.state = blank(cluster, limits)
        self.index = 0
        """The last entry of the journal that this state contains."""
        self.term = 0
        self.leader: Metadata | None = None
        self.unfit: str = ""
        """Why this member can't lead, nor follow any further."""
        self.journaled_bytes = 0
        """Since a snapshot was due: leaders come and go, and take one all the same."""
        self._cluster = cluster
        self._limits = limits
        self._knows = knows
        self._until: Nanoseconds = 0
        self._persisting = False
        """A group is on its way to the journal, also one of an earlier lead."""
        self._elected: Elected | None = None
        """Waits for that group's fate."""
        self._held: list[Received] = []
        self._brokers: dict[str, None] = {}
        self._draining = False
        self._rested = False

    def start(self, now: Nanoseconds) -> Effects:
        assert self.leader is None, "nobody has elected it yet"
        return (Follow(self.index), Campaign())

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Received(sender, message):
                return self._received(now, sender, message)
            case Followed(first, entries):
                return self._follow(first, entries)
            case Restored(index, image):
                return self._restore(index, image)
            case Elected():
                self._until = event.until
                return self._lead(now, event)
            case LeaseHeld(until):
                self._until = max(self._until, until)
                return self._release(now)
            case Deposed():
                return self._step_down()
            case Linked():
                return ()
            case Drain():
                return self._drain()
            case Persisted() | PersistFailed():
                return self._answered(now, event)
            case _:
                return self._as_leader(now, event)

    def _received(self, now: Nanoseconds, sender: str, message: ToMetadata) -> Effects:
        if isinstance(message, Alive):
            self._brokers[sender] = None
            if self.leader is None:
                return ()
            told = Send(sender, Leading(self.term, self._epoch(sender, message.epoch)))
            return (told, *self._as_leader(now, Received(sender, message)))
        if self.leader is None:
            return ()
        if isinstance(message, Ask) and now >= self._until:
            if len(self._held) < HELD_MAX:
                self._held.append(Received(sender, message))
            return ()
        if self._draining and isinstance(message, Propose):
            return ()
        return self._as_leader(now, Received(sender, message))

    def _epoch(self, broker: str, epoch: int) -> int:
        """Of the life that counts. One that was registered and isn't known was forgotten, and is
        told of one to come; but not by a member that is behind and has yet to hear of it, for
        that counts on from before it.
        """
        replica = self.state.replica
        seat = replica.placement.seats.get(broker)
        if seat is not None:
            return seat.epoch
        return replica.broker_epochs + 1 if epoch else 0

    def _as_leader(self, now: Nanoseconds, event: Event) -> Effects:
        """What comes for a lead that is over concerns nobody any more."""
        if self.leader is None:
            return ()
        effects = self.leader.step(now, event)
        self.index = self.leader.index
        self.journaled_bytes = self.leader.journaled_bytes
        if self.leader.group:
            self._persisting = True
        return effects

    def _follow(self, first: int, entries: Sequence[bytes]) -> Effects:
        if self.leader is not None or self.unfit:
            return ()
        if first > self.index + 1:
            # Of an earlier `Follow`: what came between was this member's own, while it led.
            return (Follow(self.index),)
        for index, entry in enumerate(entries, first):
            if index <= self.index:
                continue
            try:
                commands = decode_group(entry)
            except msgspec.ValidationError:
                return self._give_up(f"entry {index} of the journal")
            assert index == self.index + 1, "entries follow each other without a gap"
            for each in commands:
                self.state.apply(each)
            self.index = index
            self.journaled_bytes += len(entry)
            if self.journaled_bytes >= self._limits.snapshot_bytes:
                self.journaled_bytes = 0
            if self._is_ahead:
                return self._give_up(f"what follows entry {index}")
        return ()

    def _restore(self, index: int, image: bytes) -> Effects:
        if self.leader is not None or self.unfit or index <= self.index:
            return ()
        try:
            self.state.replica = snapshot.load(image, self.state.replica.limits)
        except (msgspec.ValidationError, JournalTooNew):
            return self._give_up(f"the snapshot at entry {index}")
        self.index = index
        self.journaled_bytes = 0
        return self._give_up(f"what follows entry {index}") if self._is_ahead else ()

    @property
    def _is_ahead(self) -> bool:
        """Is the journal of a later format than this member knows?"""
        return self.state.replica.format > self._knows

    def _give_up(self, unreadable: str) -> Effects:
        """Better no standby than one that misreads."""
        assert not self.unfit, "it has given up already"
        self.unfit = f"this version can't read {unreadable}: upgrade this member"
        return (Resign(),)

    def _lead(self, now: Nanoseconds, elected: Elected) -> Effects:
        if self.unfit or self._draining:
            return (Resign(),)
        if self._persisting:
            self._elected = elected
            return ()
        assert self.leader is None, "one lead at a time"
        assert elected.term >= self.term, "terms only grow"
        self.term = elected.term
        self.leader = Metadata(self.state, self._limits, self.index)
        self.leader.journaled_bytes = self.journaled_bytes
        told = [Send(broker, Leading(self.term)) for broker in self._brokers]
        return (*told, *self.leader.start_in_group(now, self._knows))

    def _answered(self, now: Nanoseconds, event: Persisted | PersistFailed) -> Effects:
        """A group of an earlier lead comes by `Followed`, if it was journaled at all."""
        self._persisting = False
        if self._elected is not None:
            elected, self._elected = self._elected, None
            return self._lead(now, elected)
        effects: Effects = ()
        if isinstance(event, PersistFailed) and isinstance(event.error, Fenced):
            if self.leader is not None:
                # Known before `Deposed` came: nobody may be told that nothing was done.
                effects = (*self._step_down(), Resign())
                effects += () if self._draining else (Campaign(),)
        else:
            effects = self._as_leader(now, event)
        if self._draining and not self._persisting:
            return (*effects, *self._hand_over())
        return effects

    def _release(self, now: Nanoseconds) -> Effects:
        if self.leader is None or now >= self._until:
            return ()
        held, self._held = self._held, []
        effects: list[Effect] = []
        for question in held:
            effects += self._as_leader(now, question)
        return tuple(effects)

    def _step_down(self) -> Effects:
        """Whatever was in hand is unanswered: brokers ask the next leader, and are answered once.

        Nothing was applied that isn't journaled, so following goes on from here.
        """
        self._elected = None
        if self.leader is None:
            return ()
        self.leader = None
        self._held.clear()
        return (Follow(self.index),)

    def _drain(self) -> Effects:
        if self._draining:
            return ()
        self._draining = True
        if self.leader is not None and self._persisting:
            return ()
        return self._hand_over()

    def _hand_over(self) -> Effects:
        assert self._draining
        self.leader = None
        if self._rested:
            return ()
        self._rested = True
        return (Resign(), Rest())
