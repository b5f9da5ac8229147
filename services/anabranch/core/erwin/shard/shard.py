"""A replica of an Erwin log's shard: it binds positions to records as the leader of the sequencing
layer says, and serves what is stable (LazyLog, 4.1, 4.4, 5.2; decision 58).

The parts look at the shard's log and at the configuration at the end of each step, once for all
that came in it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.erwin.protocol import letters
from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.shard import requests
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.item_reader import ItemReader
from anabranch.core.erwin.shard.membership import Membership
from anabranch.core.erwin.shard.pushes import Pushes
from anabranch.core.erwin.shard.reads import Reads
from anabranch.core.erwin.shard.storage import ReplicatedStorage
from anabranch.core.erwin.shard.subscriptions import Subscriptions
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.lateness import patience
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Effects,
    EntriesRead,
    Event,
    ReadFailed,
    Rest,
    Token,
)
from anabranch.core.replication.letters import Copy, Joining, Match, ReplicaLetter, Stored
from anabranch.core.replication.primary import LETTER_BYTES_MAX
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.serving_machine import ServingMachine
from anabranch.core.types import MS, Nanoseconds, Position

LOOK_MS = 3_000
"""A journal in a log of another system is asked so often whether it is still whole."""


class ErwinShard(ServingMachine):
    """Machine: one replica of one shard."""

    def __init__(self, config: ErwinShardConfig, limits: Limits) -> None:
        self.config = config
        self.counters = counters = ErwinShardCounters()
        self._limits = limits
        effects = self._effects = list[Effect]()
        self._alarms = alarms = Alarms(effects)
        # An item travels to the other replicas whole, as part of a letter that may be full.
        assert limits.batch_bytes_max + LETTER_BYTES_MAX < limits.peer_frame_bytes_max
        self.replica = replica = Replica(config.replica, effects, alarms)
        storage = ReplicatedStorage(replica)
        self.contents = contents = Contents(storage, counters)
        self.membership = membership = Membership(
            config, limits, replica, contents, effects, alarms
        )
        reader = ItemReader(contents, counters)
        self._reads = Reads(limits, contents, reader, membership.name_of, effects, alarms, counters)
        self._subscriptions = Subscriptions(limits, contents, reader, effects, counters)
        self.unordered = unordered = Unordered(
            config.shard, limits, replica, contents, effects, alarms, counters
        )
        self._pushes = Pushes(limits, contents, unordered, effects, alarms, counters)
        self._requests = requests.Requests(
            config, membership, self._reads, self._subscriptions, unordered, effects, counters
        )
        self._forgot: Position = 0
        """What was trimmed when the storage was last asked to forget it."""
        self._rested = False
        replica.log.on_logged = contents.logged
        replica.log.on_cut_back = contents.cut_back
        replica.log.on_skipped = contents.skipped
        replica.log.on_note = unordered.replayed
        contents.on_item = unordered.logged
        contents.on_cut = unordered.cut
        contents.on_skip = unordered.skipped
        contents.owner_image = unordered.image
        membership.may_be_sealed = lambda: unordered.may_be_sealed
        replica.on_role = self._on_role
        membership.base = lambda: self._pushes.base
        self._letters = self._letter_table()

    # What it knows, for whoever shows it.

    @property
    def obstacle(self) -> str | None:
        """Why it doesn't serve; None if it does, or isn't meant to."""
        if self.membership.configuration is None:
            return "it waits for the log's controller"
        owner = self.membership.owner
        if owner is not None:
            return (
                f"its journal is that of {owner}: were data directories exchanged? Stop both "
                "replicas, and put each directory back where it was"
            )
        return self.replica.log.journal.obstacle or self.replica.log.journal.unreadable

    @property
    def stable(self) -> Position:
        return self.contents.marks.stable

    @property
    def subscriptions(self) -> int:
        return len(self._subscriptions)

    @property
    def waiting_reads(self) -> int:
        return len(self._reads)

    # A machine.

    def recover(self, snapshot: bytes | None) -> None:
        image = self.replica.log.recover(snapshot)
        if image is not None:
            self.unordered.restore(self.contents.restore(image))

    def replayed(self, index: int, entry: bytes) -> None:
        self.replica.log.replayed(index, entry)

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self.replica.start()
        assert self.contents.map.last == self.replica.log.last, "the map knows every item"
        self.unordered.started()
        self.replica.log.journal.when_stored(self.membership.begin)
        if self.config.far:
            self._alarms.after(LOOK_MS, self._look)
        return self._settled()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        self._be_patient()
        self._take(event)
        return self._settled()

    def _asked(self, token: Token, message: Any) -> None:
        self._requests.asked(token, message)

    def _received(self, sender: str, letter: object) -> None:
        received = self._letters.get(type(letter))
        if received is None:  # it came to the wrong node
            return
        if self.membership.takes(sender, letter):
            received(sender, letter)
        else:
            self.counters.nonsense += 1

    def _persisted(self, last: int) -> None:
        self.replica.persisted(last)

    def _persist_failed(self, error: AnabranchError) -> None:
        self.replica.log.journal.persist_failed(error)

    def _entries_read(self, event: EntriesRead | ReadFailed) -> None:
        self.replica.log.journal.entries_read(event)

    def _gone(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self._requests.drop(token)

    def _linked(self, node: str) -> None:
        assert node != self.config.node, "no node dials itself"
        self.replica.linked(node)
        self.membership.linked(node)

    def _be_patient(self) -> None:
        """A replica may owe its primary an answer for as long as a node may be silent."""
        late, journal = self._alarms.overdue, self.replica.log.journal
        if late:
            journal.delays.note(late, self._alarms.now)
        self.replica.links.patience = patience(self._limits.silent_ms * MS, journal.delay)

    def _settled(self) -> Effects:
        """Every part looks once at what the step has led to."""
        self.unordered.settle()
        self._pushes.settle()
        if self.membership.leads:
            self._reads.pump()
            self._subscriptions.pump()
        if self.contents.marks.trimmed > self._forgot:
            self._forgot = self.contents.marks.trimmed
            self.contents.forget_trimmed()
        self.membership.settle()
        if self.membership.leaving and not self.membership.is_needed:
            self._rest()
        self.replica.settle()
        return self._taken()

    def _push(self, sender: str, letter: Push) -> None:
        if self.membership.leads:
            self._pushes.push(sender, letter)

    def _look(self) -> None:
        self.replica.log.journal.look()
        self._alarms.after(LOOK_MS, self._look)

    def _on_role(self) -> None:
        self._pushes.reset()
        if self.replica.role is not Role.PRIMARY:
            elsewhere = self._requests.elsewhere
            self._reads.abandon(elsewhere)
            self._subscriptions.end(elsewhere)

    def _drain(self) -> None:
        """A shard owes nobody anything that another replica couldn't do, as soon as the controllers
        have gone on without this one.
        """
        if self.config.hands_over and self.membership.is_needed:
            if not self.membership.leaving:
                self.membership.leaving = True
                self._alarms.after(self._limits.handover_ms, self._rest)
        else:
            self._rest()

    def _rest(self) -> None:
        if not self._rested:
            self._rested = True
            self._effects.append(Rest())

    def _letter_table(self) -> dict[type, Callable[[str, Any], None]]:
        membership, replica = self.membership, self.replica

        def received(sender: str, letter: ReplicaLetter) -> None:
            replica.received(sender, letter)

        return {
            Push: self._push,
            letters.Configuration: lambda _, letter: membership.configured(letter),
            letters.SealShard: membership.seal,
            letters.LearnShard: lambda _, letter: membership.learn(letter),
            Joining: received,
            Match: received,
            Copy: received,
            Stored: received,
        }
