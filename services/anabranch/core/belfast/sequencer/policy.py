"""What the leader of the sequencing group does beside leading it: the order's policy (4.1 - 4.8).

It begins with the ledger and nothing else. Reports are cumulative, so that a new leader knows what
it needs as soon as each shard has repeated its last (spec, D7).
"""

from collections.abc import Callable

from anabranch.core.belfast.ledger.decisions import AnyDecision, TrimTo
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.letters import (
    Alive,
    FixLag,
    FromReplica,
    FromSequencer,
    Report,
    Sealed,
)
from anabranch.core.belfast.sequencer.catch_up import Trailing
from anabranch.core.belfast.sequencer.counters import SequencerCounters
from anabranch.core.belfast.sequencer.cuts import Progress
from anabranch.core.belfast.sequencer.failures import Failures
from anabranch.core.belfast.sequencer.idleness import Idleness
from anabranch.core.belfast.sequencer.lag import Lag
from anabranch.core.belfast.sequencer.membership import Membership
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.belfast.sequencer.publisher import Publishing
from anabranch.core.belfast.sequencer.quotas import Quotas
from anabranch.core.belfast.sequencer.stragglers import Stragglers
from anabranch.core.errors import AnabranchError
from anabranch.core.lateness import Delays
from anabranch.core.types import NEVER, Nanoseconds, Position


class Office:
    """Whoever holds it tells it the time with each letter, asks it at the end of each step what it
    has decided, and wakes it at `wake_at`.
    """

    def __init__(
        self,
        ledger: Ledger,
        rules: Rules,
        *,
        term: int,
        now: Nanoseconds,
        send: Callable[[str, FromSequencer], None],
        counters: SequencerCounters | None = None,
        delays: Delays | None = None,
    ) -> None:
        """`delays`: those of this member's own timers, known from before it led."""
        self.plan = Plan(ledger, rules, counters)
        self.progress = Progress(self.plan)
        self.quotas = Quotas(self.plan)
        self.trailing = Trailing(self.plan, self.progress)
        self.stragglers = Stragglers(self.plan)
        self.membership = Membership(self.plan, now, delays or Delays())
        self.idleness = Idleness(self.plan, self.quotas)
        self.lag = Lag(self.plan, self.progress, self.idleness, term)
        self.publishing = Publishing(
            self.plan,
            self.progress,
            self.membership,
            self.quotas,
            self.stragglers,
        )
        self.failures = Failures(
            self.plan, self.membership, self.lag, send, self._forget, self._arranged
        )
        self.reports: dict[ShardId, Report] = {}
        """The last of each shard."""
        self._rules = rules
        self._send = send
        self._now = now
        self._away = rules.intervals(rules.silent_intervals) // 2
        self._watch_every = rules.intervals(max(1, rules.silent_intervals // 4))
        self._watch_at = now + self._watch_every
        self._free_cut_at: Nanoseconds = 0
        """When the last cut of free will was made."""
        self._window_due = True
        """A window may be due: a report alone makes none so."""
        self._free_due: Nanoseconds = NEVER
        self.lag.cut(now)

    @property
    def wake_at(self) -> Nanoseconds:
        return min(self._watch_at, self._free_due)

    def received(self, now: Nanoseconds, sender: str, letter: FromReplica) -> None:
        self._at(now)
        match letter:
            case Report():
                self._reported(sender, letter)
            case Alive():
                self._window_due = True
                back = self.membership.alive(sender, letter, now)
                if back is not None:
                    self._returned(back)
                self.failures.alive(sender, letter)
            case Sealed(shard=shard):
                member = self.plan.ledger.members.get(shard)
                if member is not None:
                    self.membership.heard(member.name, sender, now)
                self.failures.sealed(sender, letter)

    def was_away(self, missed: Nanoseconds, now: Nanoseconds) -> None:
        """Told before the letters that came meanwhile: this leader did not run for so long."""
        self.membership.was_away(missed, now)
        self.lag.was_away(missed, now)

    def leave(self, shard: str) -> AnabranchError | None:
        self._window_due = True
        return self.membership.leave(shard)

    def join(self, shard: str, now: Nanoseconds) -> AnabranchError | None:
        self._at(now)
        self._window_due = True
        found = self.membership.join(shard, now)
        if isinstance(found, Member):
            self._returned(found)
            return None
        return found

    def trim(self, position: Position) -> None:
        assert position > self.plan.ledger.trimmed, "what is trimmed stays trimmed"
        self.plan.decide(TrimTo(position))

    def settle(self, now: Nanoseconds, room: bool) -> list[AnyDecision]:
        """The end of a step: what is to be proposed. Cuts wait while there is no `room` for them,
        and become one.
        """
        self._at(now)
        if now >= self._watch_at:
            self._watch_at = now + self._watch_every
            self._watch()
        if not room:
            self._free_due = NEVER  # what is committed makes room, and wakes it
        elif self.progress.cut() or self._cut_freely():
            self.lag.cut(now)
            self._window_due = True
        closing = False
        if self._window_due:
            self._window_due = False
            self.publishing.publish(now)
            closing = self.idleness.at_rest and self._awaits_window()
        for letter in (*self.lag.look(now), *self.lag.align(self.trailing.look(), now)):
            self._signal(letter)
        if closing:
            for letter in self.lag.close(now):
                self._signal(letter)
        return self.plan.take()

    def _at(self, now: Nanoseconds) -> None:
        """If this leader was away itself, it has missed what others said, and blames nobody."""
        assert now >= self._now, "time never goes back"
        if now - self._now >= self._away:
            self.was_away(now, now)
            self.stragglers.forgive()
        self._now = now

    def _reported(self, sender: str, report: Report) -> None:
        now, ledger = self._now, self.plan.ledger
        self.plan.counters.reports += 1
        member = ledger.members.get(report.shard)
        if member is None or sender not in member.replicas:
            return
        self.membership.heard(member.name, sender, now)
        if report.epoch != member.epoch or sender != member.primary:
            return
        self.failures.reported(member, report, now)
        if report.view != ledger.view:
            return
        self.reports[report.shard] = report
        advanced = self.progress.take(report)
        self.quotas.heard(report, now)
        signalled = self.lag.heard(report, advanced, now)
        if advanced:
            self.stragglers.heard(report.shard, now, signalled)
            self.trailing.heard(report.shard, now)
        if self.idleness.at_rest or self.progress.is_at_end(report.shard):
            # At rest it was for want of records that nothing came.
            self.stragglers.idle(report.shard)

    def _watch(self) -> None:
        now = self._now
        self.failures.watch(now)
        self.idleness.review(now)
        for letter in self.lag.watch(now):
            self._signal(letter)
        self._window_due = True

    def _awaits_window(self) -> bool:
        """Does somebody need another window: to join, to leave, or to have its records placed?"""
        if self.publishing.awaits_window(self._now):
            return True
        last = self.plan.ledger.windows[-1] if self.plan.ledger.windows else None
        return last is not None and any(
            report.queued and shard not in last.by_shard and self._is_seated(shard)
            for shard, report in self.reports.items()
        )

    def _is_seated(self, shard: ShardId) -> bool:
        return self.plan.ledger.members[shard].standing is Standing.SEATED

    def _cut_freely(self) -> bool:
        """Once per interval: whoever comes meanwhile comes with the next."""
        window = self.plan.cutting
        if window is None or window.foreseen:
            self._free_due = NEVER
            return False
        due = self._free_cut_at + self._rules.t_ord
        if self._now < due:
            self._free_due = due if self.progress.free_counts() is not None else NEVER
            return False
        self._free_due = NEVER
        if not self.progress.cut_freely():
            return False
        self._free_cut_at = self._now
        return True

    def _signal(self, letter: FixLag) -> None:
        self._send(self.plan.ledger.members[letter.shard].primary, letter)

    def _returned(self, member: Member) -> None:
        self.failures.returned(member.id)
        self._forget((member.id,))

    def _forget(self, shards: tuple[ShardId, ...]) -> None:
        self._window_due = True
        self.progress.forget(shards)
        self.quotas.forget(shards)
        for shard in shards:
            self._arranged(shard)
            self.reports.pop(shard, None)

    def _arranged(self, shard: ShardId) -> None:
        """Another primary may answer, and is measured from now on."""
        self.lag.forget(shard)
        self.stragglers.forget(shard)
        self.trailing.forget(shard)
