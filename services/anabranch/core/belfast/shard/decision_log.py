"""How a replica of a shard follows the sequencing group: whom it writes to, and what was decided.

It tells every sequencer that it is alive, and whoever leads says so. Entries are applied in order,
each once; what was left out on the way is asked for again. Whatever a majority holds is final, so
it doesn't matter who tells.
"""

from typing import Protocol

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.decisions import AnyDecision, decode_entry
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.rules import ALIVE_INTERVALS, Rules
from anabranch.core.belfast.protocol.letters import Alive, Decided, Leading, Restored
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.machine import Effect, Send
from anabranch.core.types import LocalSequence


class Follower(Protocol):
    """Who is told of every decision, once it is in the ledger."""

    def decided(self, decision: AnyDecision) -> None: ...

    def entry_done(self) -> None:
        """All decisions of entry `applied` were told."""
        ...

    def restored(self) -> None:
        """The ledger is another, some entries later; these weren't told."""
        ...

    def on_leader(self) -> None:
        """Another leads, or the one who does was away: what it was told may be lost."""
        ...

    def on_tick(self) -> None:
        """Some T_ord have passed."""
        ...

    def claim(self) -> tuple[int, Standing | None, int, LocalSequence] | None:
        """The shard's epoch; how it stands, if this replica is done with what follows from it;
        this replica's disk; and up to where it knows all places. None: it is to be missed.
        """
        ...


class Following:
    """Of one replica."""

    def __init__(
        self, config: ShardConfig, effects: list[Effect], alarms: Alarms, follower: Follower
    ) -> None:
        self.config = config
        self._effects = effects
        self._alarms = alarms
        self._follower = follower
        self.ledger = Ledger()
        self.applied = 0
        self.term = -1
        self.leader = ""
        self.rules = Rules()
        self.at_rest = False
        """Nobody appends, as the leader has said last (letters.Leading)."""
        self._id = -1
        """The shard's, once it is known."""
        self._begun = False
        self._asked = -1
        """The entry after which more was asked for, out of turn."""

    @property
    def me(self) -> Member | None:
        if self._id < 0:
            member = self.ledger.member(self.config.shard)
            self._id = member.id if member is not None else -1
        return self.ledger.members.get(self._id)

    def begin(self) -> None:
        """The journal says which it is: before, nobody is to know of this replica."""
        assert not self._begun, "a replica begins once in its life"
        self._begun = True
        self._greet_all()
        self._sleep()

    def linked(self, node: str) -> None:
        if node not in self.config.sequencers:
            return
        self._greet(node)
        if node == self.leader:
            self._follower.on_leader()

    def leading(self, sender: str, letter: Leading) -> None:
        """A later term is another leadership, also of the same member."""
        if letter.term < self.term:
            return
        self.rules = letter.rules
        self.at_rest = letter.at_rest
        if letter.term > self.term:
            self.term, self.leader = letter.term, sender
            self._asked = -1
            self._follower.on_leader()

    def decided(self, sender: str, letter: Decided) -> None:
        if letter.first > self.applied + 1:
            self._ask(sender)
            return
        for entry in letter.entries[self.applied + 1 - letter.first :]:
            self.applied += 1
            for decision in decode_entry(entry):
                self.ledger.apply((decision,))
                self._follower.decided(decision)
            self._follower.entry_done()

    def restored(self, letter: Restored) -> None:
        if letter.index <= self.applied:
            return
        self.applied = letter.index
        self.ledger = Ledger(letter.image)
        self._follower.restored()

    def _ask(self, node: str) -> None:
        if self._asked != self.applied:
            self._asked = self.applied
            self._greet(node)

    def _sleep(self) -> None:
        self._alarms.at(self._alarms.now + self.rules.intervals(ALIVE_INTERVALS), self._tick)

    def _tick(self) -> None:
        self._asked = -1
        self._greet_all()
        self._follower.on_tick()
        self._sleep()

    def _greet_all(self) -> None:
        for node in self.config.sequencers:
            self._greet(node)

    def _greet(self, node: str) -> None:
        claim = self._follower.claim() if self._begun else None
        if claim is None:
            return
        config = self.config
        epoch, standing, disk, placed = claim
        letter = Alive(
            shard=config.shard,
            replicas=config.replicas,
            quota=config.quota,
            epoch=epoch,
            applied=self.applied,
            view=self.ledger.view,
            standing=-1 if standing is None else int(standing),
            disk=disk,
            fsync=config.fsync,
            placed=placed,
        )
        self._effects.append(Send(node, letter))
