"""A replica of a shard: takes appends, keeps to quotas, delivers what these foretell (Belfast, 4).

Everything is decided from two things: the local log and what is durable of it (`Replica`), and the
ledger of what the sequencing group has decided (`Following`). The parts look at both at the end of
each step, once for all that came in it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.decisions import Admit, AnyDecision, ChangeView
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol import letters
from anabranch.core.belfast.protocol.messages import Failed
from anabranch.core.belfast.shard.appends import Acknowledging
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.belfast.shard.deliveries import Delivering
from anabranch.core.belfast.shard.duplicates import Retries
from anabranch.core.belfast.shard.positions import Seating
from anabranch.core.belfast.shard.reports import Reporting
from anabranch.core.belfast.shard.requests import Serving
from anabranch.core.belfast.shard.stand_in import failures_since, stands_in
from anabranch.core.belfast.shard.streams import Stream, names_of
from anabranch.core.errors import AnabranchError, RecordVoided
from anabranch.core.lateness import patience
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Effects,
    EntriesRead,
    Event,
    ReadFailed,
    Rest,
    Send,
    Token,
)
from anabranch.core.replication.letters import Copy, Joining, Match, ReplicaLetter, Stored
from anabranch.core.replication.primary import LETTER_BYTES_MAX
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.serving_machine import ServingMachine
from anabranch.core.types import MS, NEVER, LocalSequence, Nanoseconds


class Shard(ServingMachine):
    """Machine: one replica of one shard."""

    def __init__(self, config: ShardConfig, limits: Limits) -> None:
        self.config = config
        self.counters = ShardCounters()
        self._limits = limits
        effects = self._effects = list[Effect]()
        self._alarms = alarms = Alarms(effects)
        # A batch travels to the other replicas whole, as part of a letter that may be full.
        assert limits.batch_bytes_max + LETTER_BYTES_MAX < limits.peer_frame_bytes_max
        self.replica = replica = Replica(config.replica, effects, alarms)
        self.following = following = Following(config, effects, alarms, self)
        self._retries = retries = Retries(config.shard, limits.producers_per_log_max)
        counters = self.counters
        self._seating = seating = Seating(config, following, replica, retries, effects, counters)
        self._reporting = Reporting(following, replica, seating, effects, alarms, counters)
        self._acknowledging = Acknowledging(
            limits, config.shard, replica, seating.placements, retries, effects, counters
        )
        self._delivering = Delivering(
            limits, following, replica.log, seating.placements, effects, counters
        )
        self._serving = Serving(
            limits,
            following,
            replica,
            seating,
            self._acknowledging,
            self._delivering,
            effects,
            counters,
        )
        self._view = 0
        """The last that subscribers were told of."""
        self._ends_at: Nanoseconds = NEVER
        """When this process ends, whatever is still waiting."""
        self._rested = False
        replica.log.on_logged = seating.logged
        replica.log.on_note = seating.replayed
        replica.log.on_cut_back = self._on_cut_back
        replica.log.on_skipped = seating.skipped
        replica.on_role = self._on_role
        self._letters = self._letter_table()

    # What it knows, for whoever shows it.

    @property
    def may_go(self) -> bool:
        """It has left, and nobody may ask for anything of its any more."""
        me = self.following.me
        if me is None or me.standing is not Standing.LEFT:
            return False
        ledger, places = self.following.ledger, self._seating.placements
        known = places.end >= me.placed and places.below(ledger.trimmed) >= places.end
        return known or ledger.trimmed >= ledger.end_of(me.id)

    @property
    def forgotten(self) -> bool:
        """Its sequencers lack decisions that it has journaled: it serves nobody."""
        return self._seating.forgotten

    @property
    def awaited(self) -> str | None:
        """What it has yet to hear from the sequencers, in words; None if it has heard enough."""
        return self._seating.awaited

    @property
    def subscriptions(self) -> int:
        return len(self._delivering)

    @property
    def held_bytes(self) -> int:
        return self._acknowledging.held_bytes

    # A machine.

    def recover(self, snapshot: bytes | None) -> None:
        image = self.replica.log.recover(snapshot)
        if image is not None:
            self._seating.restore(image)

    def replayed(self, index: int, entry: bytes) -> None:
        self.replica.log.replayed(index, entry)

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self.replica.start()
        self.replica.log.journal.when_stored(self.following.begin)
        return self._settled()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        self._be_patient()
        self._take(event)
        return self._settled()

    def _asked(self, token: Token, message: Any) -> None:
        self._serving.asked(token, message)

    def _received(self, sender: str, letter: object) -> None:
        received = self._letters.get(type(letter))
        if received is None:  # it is a sequencer's, and came to the wrong node
            return
        if self._takes(sender, letter):
            received(sender, letter)
        else:
            self.counters.nonsense += 1

    def _takes(self, sender: str, letter: object) -> bool:
        """May it send that (decision 80)? `Replica` knows who sends what among replicas."""
        if isinstance(letter, letters.FromSequencer):
            return sender in self.config.sequencers
        return not isinstance(letter, letters.BetweenReplicas) or sender in self.config.replicas

    def _persisted(self, last: int) -> None:
        self.replica.persisted(last)

    def _persist_failed(self, error: AnabranchError) -> None:
        self.replica.log.journal.persist_failed(error)

    def _entries_read(self, event: EntriesRead | ReadFailed) -> None:
        self.replica.log.journal.entries_read(event)

    def _gone(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self._serving.drop(token)

    def _linked(self, node: str) -> None:
        assert node != self.config.node, "no node dials itself"
        self.replica.linked(node)
        self.following.linked(node)

    def _be_patient(self) -> None:
        """A replica may owe its primary an answer for as long as a primary one to the leader."""
        late, rules = self._alarms.overdue, self.following.rules
        if late:
            self.replica.log.journal.delays.note(late, self._alarms.now)
        limit = rules.intervals(rules.silent_intervals)
        self.replica.links.patience = patience(limit, self.replica.log.journal.delay)

    def _settled(self) -> Effects:
        """Every part looks once at what the step has led to."""
        self._reporting.advance()
        if self.replica.role is Role.PRIMARY and not self._seating.forgotten:
            self._serve()
        if self._ends_at != NEVER:
            self._may_rest()
        self.replica.settle()
        return self._taken()

    def _serve(self) -> None:
        me = self.following.me
        if me is None:
            return
        confirmed = self._seating.confirmed
        self._acknowledging.settle(confirmed)
        upto = min(self._seating.durable, self._seating.placements.end)
        self._delivering.pump(me.id, upto, min(confirmed, upto))

    # What was decided (following.Follower).

    def decided(self, decision: AnyDecision) -> None:
        self._seating.decided(decision)
        if isinstance(decision, ChangeView):
            self._change_view(decision)
        if isinstance(decision, ChangeView | Admit):
            self._end_standing_in()

    def entry_done(self) -> None:
        self._seating.entry_done()
        self._take_place()
        self._trim()

    def restored(self) -> None:
        self._seating.restored()
        ledger = self.following.ledger
        for failed in failures_since(ledger, self._view):
            self._delivering.failed(failed)
        self._view = ledger.view
        self._reporting.reset()
        self._end_standing_in()
        self._take_place()
        self._trim()

    def _trim(self) -> None:
        """After those have been told who wait for what is confirmed by now."""
        self._acknowledging.settle(self._seating.confirmed)
        self._seating.trim(self._acknowledging.oldest)

    def on_leader(self) -> None:
        self._reporting.repeat()

    def on_tick(self) -> None:
        me = self.following.me
        if me is not None and self.replica.role is Role.SEALED:
            # As if asked once more: whoever sealed it may not lead any more.
            self._seal(self.following.leader, letters.Seal(shard=me.id, epoch=me.epoch + 1))
        self._seating.ask()
        self._reporting.tick()

    def claim(self) -> tuple[int, Standing | None, int, LocalSequence] | None:
        me, replica = self.following.me, self.replica
        placed = self._seating.placements.known
        if replica.stuck or self._seating.forgotten:
            return None
        if me is None or not self._seating.current:
            return replica.epoch, None, replica.log.disk, placed
        gone = me.standing in {Standing.FAILED, Standing.LEFT}
        # It is asked back at its word: a fall mustn't bring back what was cut.
        cut = (
            replica.log.last <= replica.log.boundary(me.placed)
            and not replica.log.journal.unstored_bytes
        )
        done = not gone or cut
        return replica.epoch, me.standing if done else None, replica.log.disk, placed

    def _seal(self, sender: str, letter: letters.Seal) -> None:
        def answer(last_term: int, last: LocalSequence) -> None:
            sealed = letters.Sealed(
                shard=letter.shard, epoch=letter.epoch, last_epoch=last_term, last=last
            )
            self._effects.append(Send(sender, sealed))

        self.replica.seal(sender, letter.epoch, answer)

    def _take_place(self) -> None:
        """As the ledger says, once it isn't behind what this replica knew in an earlier life."""
        me = self.following.me
        if me is None or not self._seating.current:
            return
        self.replica.arrange(me.epoch, me.primary, me.replicas, disks=me.disks, begins=me.begins)
        if self._seating.obey():
            self._reporting.reset()
        if me.standing is Standing.LEFT:
            self._acknowledging.void(me.placed, RecordVoided(me.name))
        if me.standing is Standing.FAILED:
            self._delivering.end(self._serving.elsewhere(me), lambda stream: stream.shard == me.id)

    def _on_role(self) -> None:
        self._reporting.reset()
        me = self.following.me
        if me is not None and self.replica.role is not Role.PRIMARY:
            elsewhere = self._serving.elsewhere(me)
            self._acknowledging.abandon(elsewhere)
            self._delivering.end(elsewhere, lambda _: True)

    def _on_cut_back(self, to: int) -> None:
        self._seating.cut_back(to)
        self._acknowledging.void(to, RecordVoided(self.config.shard))

    def _change_view(self, change: ChangeView) -> None:
        """Subscribers hear of it before anything that comes of the new view (4.8)."""
        ledger = self.following.ledger
        assert change.view == self._view + 1, "subscribers hear of every view, in order"
        failed = names_of(ledger, change.failed)
        self._delivering.failed(
            Failed(view=change.view, since=ledger.confirmed, shards=failed, upto=ledger.horizon)
        )
        self._view = change.view
        self._reporting.reset()

    def _end_standing_in(self) -> None:
        """For those that are back, or whom somebody else stands in for."""
        ledger, me = self.following.ledger, self.following.me
        if me is None:
            return

        def over(stream: Stream) -> bool:
            return stream.shard != me.id and not stands_in(ledger, stream.shard, me.id)

        for shard in ledger.members.values():
            if shard.id != me.id:
                self._delivering.end(
                    self._serving.elsewhere(shard),
                    lambda stream, id=shard.id: stream.shard == id and over(stream),
                )

    # The end.

    def _drain(self) -> None:
        """Take no more, and wait a little for what was taken."""
        if self._ends_at == NEVER:
            assert not self._rested, "who is at rest was drained before"
            self._serving.closing = True
            self._ends_at = self._alarms.now + self._limits.drain_ms * MS
            self._alarms.at(self._ends_at, lambda: None)

    def _may_rest(self) -> None:
        waits = not self._acknowledging.idle and self._alarms.now < self._ends_at
        if not waits and not self._rested:
            self._rested = True
            self._effects.append(Rest())

    def _letter_table(self) -> dict[type, Callable[[str, Any], None]]:
        following, replica, seating = self.following, self.replica, self._seating

        def received(sender: str, letter: ReplicaLetter) -> None:
            replica.received(sender, letter)

        return {
            letters.Leading: following.leading,
            letters.Decided: following.decided,
            letters.Restored: lambda _, letter: following.restored(letter),
            letters.FixLag: lambda _, letter: self._reporting.fix_lag(letter),
            letters.Seal: self._seal,
            letters.Learn: lambda _, letter: replica.learn(letter.epoch, letter.primary),
            letters.WherePlaced: seating.asked,
            letters.Places: lambda _, letter: seating.told(letter),
            Joining: received,
            Match: received,
            Copy: received,
            Stored: received,
        }
