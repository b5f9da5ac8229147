"""Replicas that are silent are done without; a shard that isn't there as a whole fails (4.8)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.core.belfast.ledger.decisions import Arrange, ChangeView
from anabranch.core.belfast.ledger.ledger import Member, Standing
from anabranch.core.belfast.ledger.rules import US
from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.letters import Alive, Learn, Report, Seal, Sealed
from anabranch.core.belfast.sequencer.lag import Lag
from anabranch.core.belfast.sequencer.membership import Membership
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import Nanoseconds


@dataclass(slots=True)
class _Takeover:
    epoch: int
    sealed: dict[str, Sealed] = field(default_factory=dict[str, Sealed])


class Failures:
    def __init__(
        self,
        plan: Plan,
        membership: Membership,
        lag: Lag,
        send: Callable[[str, Seal | Learn], None],
        on_failed: Callable[[tuple[ShardId, ...]], None],
        on_arranged: Callable[[ShardId], None],
    ) -> None:
        self._plan = plan
        self._rules = plan.rules
        self._membership = membership
        self._lag = lag
        self._send = send
        self._on_failed = on_failed
        self._on_arranged = on_arranged
        self._takeovers: dict[ShardId, _Takeover] = {}
        self._delays: dict[ShardId, Nanoseconds] = {}
        """What primaries say of their own disks and timers."""

    def alive(self, node: str, letter: Alive) -> None:
        """A replica without which its shard goes on may come back: it is to learn first."""
        member = self._plan.ledger.member(letter.shard)
        if member is None or node in member.replicas:
            return
        if node in self._membership.configured(member):
            self._send(node, Learn(shard=member.id, epoch=member.epoch, primary=member.primary))

    def reported(self, member: Member, report: Report, now: Nanoseconds) -> None:
        """Of the shard's epoch: what its primary says of the other replicas."""
        self._delays[member.id] = report.delay_us * US
        if member.id in self._takeovers or not (report.silent or report.caught_up):
            return
        name = member.name
        back = [
            node
            for node in self._membership.configured(member)
            if node in report.caught_up
            and node not in member.replicas
            and self._membership.present(name, node, now)
            and self._membership.knows_places(member, node)
        ]
        gone = [
            node for node in member.replicas if node in report.silent and node != member.primary
        ]
        self._rearrange(member, gone, back)

    def sealed(self, node: str, letter: Sealed) -> None:
        member = self._plan.ledger.members.get(letter.shard)
        if member is None or node not in member.replicas or letter.epoch != member.epoch + 1:
            return
        # Perhaps a leader before this one had begun it: who is sealed goes on saying so.
        takeover = self._takeovers.setdefault(letter.shard, _Takeover(letter.epoch))
        takeover.sealed[node] = letter
        replicas = member.replicas
        lost = [each for each in replicas if self._membership.lost(member, each)]
        sealed = {each: it for each, it in takeover.sealed.items() if each not in lost}
        majority = len(replicas) // 2 + 1
        # The primary before holds all that was durable; without it, whoever shares one with every
        # majority does.
        needed = 1 if member.primary in sealed else len(replicas) - majority + 1
        others = lost[: max(0, self._rules.copies_min - len(sealed))]
        if len(sealed) < needed or len(sealed) + len(others) < self._rules.copies_min:
            return
        left = tuple(each for each in replicas if each in sealed or each in others)
        primary = max(sealed, key=lambda each: _log_of(sealed[each]))
        assert primary in left, "who leads is one of those who are left"
        self._plan.counters.takeovers += 1
        self._arrange(member, takeover.epoch, primary, left)

    def returned(self, shard: ShardId) -> None:
        """It has a new epoch: a takeover that had begun is over, who was sealed serves again."""
        self._takeovers.pop(shard, None)

    def watch(self, now: Nanoseconds) -> None:
        """Each few intervals."""
        for member in self._plan.members(
            Standing.WAITING, Standing.SEATED, Standing.LEAVING, Standing.FAILED
        ):
            self._watch(member, now)
        for member in self._plan.members(Standing.LEFT):
            if self._misses(member, now):
                self._watch(member, now)
        seated = self._plan.members(Standing.SEATED, Standing.LEAVING)
        failed = [each for each in seated if self._has_failed(each, now)]
        if failed:
            self._change_view(failed, now)

    def _watch(self, member: Member, now: Nanoseconds) -> None:
        gone = [node for node in member.replicas if self._membership.gone(member, node, now)]
        if member.primary in gone or member.id in self._takeovers:
            self._take_over(member, gone)
        elif gone:
            self._rearrange(member, gone, [])

    def _misses(self, member: Member, now: Nanoseconds) -> bool:
        """Of one that has left. No cut waits for its replicas; but who has lost its disk won't be
        what it was, and what isn't trimmed is to be read.
        """
        lost = any(self._membership.lost(member, node) for node in member.replicas)
        if lost or member.id in self._takeovers:
            return True
        unread = not self._membership.is_empty(member)
        return unread and self._membership.gone(member, member.primary, now)

    def _take_over(self, member: Member, gone: list[str]) -> None:
        """Once it is begun it is ended: who is sealed serves the old epoch no more. If the old
        primary is back meanwhile, it is sealed like the others, and holds at least as much.
        """
        takeover = self._takeovers.get(member.id)
        if takeover is None:
            if len(gone) == len(member.replicas):
                return
            takeover = self._takeovers[member.id] = _Takeover(member.epoch + 1)
        assert takeover.epoch == member.epoch + 1, "each arrangement ends the takeover before it"
        for node in member.replicas:
            if node not in takeover.sealed:
                self._send(node, Seal(shard=member.id, epoch=takeover.epoch))

    def _rearrange(self, member: Member, gone: list[str], back: list[str]) -> None:
        """The same primary goes on: it holds all that was durable. A replica that has lost its disk
        and can't be spared begins with another.
        """
        lost = [node for node in gone if self._membership.lost(member, node)]
        spare = max(0, len(member.replicas) + len(back) - self._rules.copies_min)
        gone = [*(node for node in gone if node not in lost), *lost][:spare]
        if not gone and not back and not lost:
            return
        stay = {*member.replicas, *back}.difference(gone)
        ordered = dict.fromkeys((*self._membership.configured(member), *member.replicas))
        self._plan.counters.rearranged += 1
        self._arrange(
            member, member.epoch + 1, member.primary, tuple(n for n in ordered if n in stay)
        )

    def _arrange(self, member: Member, epoch: int, primary: str, replicas: tuple[str, ...]) -> None:
        assert epoch > member.epoch, "no epoch is used twice"
        self._takeovers.pop(member.id, None)
        disks = self._membership.disks(member, primary, replicas)
        self._plan.decide(
            Arrange(shard=member.id, epoch=epoch, primary=primary, replicas=replicas, disks=disks)
        )
        self._on_arranged(member.id)

    def _has_failed(self, member: Member, now: Nanoseconds) -> bool:
        """Also one without a seat, that rests or had none to give: clients append to it."""
        limit, membership = self._rules.fail_intervals, self._membership
        signal, delay = self._lag.signals.get(member.id), self._delays.get(member.id, 0)
        starting = 0
        if not membership.known(member.name, member.primary):
            # It may be starting, together with this leader: it has the longest time that there is.
            starting = self._rules.intervals(limit)
        allowed = membership.patience(limit, now, max(delay, starting))
        unanswered = signal is not None and now - signal.since >= allowed
        silence = membership.silence(member.name, member.primary, now)
        silent = silence >= membership.patience(limit, now, starting)
        return silent or (unanswered and self._plan.counts_on(member.id))

    def _change_view(self, failed: list[Member], now: Nanoseconds) -> None:
        """Without anybody to stand in there is nobody whose cuts waited for them: they wait."""
        assert failed, "a view changes when somebody fails"
        out = tuple(member.id for member in failed)
        left = [
            each
            for each in self._plan.members(Standing.SEATED, Standing.LEAVING, Standing.WAITING)
            if each.id not in out and not self._membership.gone(each, each.primary, now)
        ]
        if not left:
            return
        stand_in = min(left, key=lambda each: (_RELUCTANCE[each.standing], each.id))
        self._plan.decide(
            ChangeView(view=self._plan.ledger.view + 1, failed=out, stand_in=stand_in.id)
        )
        self._plan.counters.views += 1
        self._on_failed(out)


_RELUCTANCE = {Standing.SEATED: 0, Standing.LEAVING: 1, Standing.WAITING: 2}
"""Whoever is there can stand in; best, who stays and has a seat already."""


def _log_of(sealed: Sealed) -> tuple[int, int]:
    return (sealed.last_epoch, sealed.last)
