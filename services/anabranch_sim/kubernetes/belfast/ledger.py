"""A Belfast log as the operator meets it: a real ledger, and processes that are there or aren't.

Nobody appends to it. Windows are opened and cut, shards get seats, leave, fail and come back.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    Arrange,
    ChangeView,
    CutTo,
    OpenWindow,
    Release,
    TrimTo,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.windows import Mode, Window
from anabranch.core.belfast.protocol.messages import ShardStatus, Status
from anabranch.core.errors import CantJoin, ShardFailed, Unavailable, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Position
from anabranch_operator.plan.belfast.report import report
from anabranch_operator.plan.groups import report as shared
from anabranch_sim.kubernetes.log_model import Failure, Replica

QUOTA, ROUNDS = 10, 10
_GONE = (Standing.LEFT, Standing.FAILED)
_MOVING = (Standing.WAITING, Standing.LEAVING)


class BelfastLog:
    """Implements `LogModel`."""

    engine: ClassVar[str] = "belfast"

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.members: tuple[str, ...] = ()
        self.sequencers: dict[str, None] = {}
        """Those of them that run."""
        self.replicas: dict[str, Replica] = {}
        self.leader = ""
        self.term = 0

    def step(self, sequencers: Mapping[str, None], replicas: Mapping[str, Replica]) -> None:
        self.sequencers, self.replicas = dict(sequencers), dict(replicas)
        self._elect()
        if not self.leader:
            return
        self._admit()
        self._arrange()
        self._fail()
        self._order()

    @property
    def moving(self) -> bool:
        return any(each.standing in _MOVING for each in self.ledger.members.values())

    def standing(self, shard: str) -> shared.Standing | None:
        member = self.ledger.member(shard)
        return None if member is None else shared.Standing[member.standing.name]

    def failures(self) -> Iterator[Failure]:
        for each in self.ledger.members.values():
            if each.void_view:
                yield Failure(each.name, each.void_view, each.replicas)

    def report(self) -> shared.Report | Refused:
        found = self.status()
        return found if isinstance(found, Refused) else report(found)

    def status(self) -> Status | Refused:
        if not self.leader:
            return Refused.of(Unavailable("the log", "no sequencer leads"))
        ledger, window = self.ledger, self.ledger.current
        return Status(
            term=self.term,
            leader=self.leader,
            members=self.members,
            reachable=tuple(self.sequencers),
            index=0,
            view=ledger.view,
            mode=window.mode if window is not None else Mode.STEADY,
            window=window.number if window is not None else -1,
            cut=ledger.cut,
            cuts=window.cuts if window is not None else 0,
            published=ledger.windows[-1].number if window is not None else -1,
            confirmed=ledger.confirmed,
            horizon=ledger.horizon,
            trimmed=ledger.trimmed,
            t_ord_us=1_000,
            shards=tuple(map(self._shard, ledger.members.values())),
            views_changed=ledger.view,
            cuts_made=0,
        )

    def leave(self, shard: str) -> Refused | None:
        if not self.leader:
            return Refused.of(Unavailable("the log", "no sequencer leads"))
        member = self.ledger.member(shard)
        if member is None:
            return Refused.of(UnknownShard(shard))
        if member.standing is Standing.FAILED:
            return Refused.of(ShardFailed(shard))
        if member.standing not in {Standing.LEAVING, Standing.LEFT}:
            self._decide(Release(member.id))
        return None

    def join(self, shard: str) -> Refused | None:
        if not self.leader:
            return Refused.of(Unavailable("the log", "no sequencer leads"))
        member = self.ledger.member(shard)
        if member is None:
            return Refused.of(UnknownShard(shard))
        if member.standing is Standing.FAILED:
            return Refused.of(ShardFailed(shard))
        if member.standing is Standing.LEAVING:
            return Refused.of(CantJoin(shard, "it is leaving"))
        if member.standing is not Standing.LEFT:
            return None
        away = [each for each in member.replicas if each not in self.replicas]
        if away:
            return Refused.of(CantJoin(shard, f"nothing is heard of {', '.join(away)}"))
        kept = self._kept(member)
        if kept and member.primary not in kept:
            return Refused.of(CantJoin(shard, f"{member.primary} has lost its disk"))
        if not kept and not self._is_empty(member):
            upto = self.ledger.end_of(member.id)
            return Refused.of(CantJoin(shard, f"its disks are lost, and {upto} isn't trimmed"))
        self._take_back(member)
        return None

    def trim(self, position: Position | None = None) -> None:
        """All that is confirmed, if nothing is said."""
        upto = self.ledger.confirmed if position is None else position
        self._decide(TrimTo(upto))

    def counts_on(self, shard: str) -> bool:
        """Is it to fill a window that is open?"""
        ledger, member = self.ledger, self.ledger.member(shard)
        seats = [
            (window, window.by_shard[member.id])
            for window in self._uncut
            if member is not None and member.id in window.by_shard
        ]
        return any(ledger.gap(window, seat) is None for window, seat in seats)

    def holds(self, shard: str) -> bool:
        """Is it to keep what can still be asked for?"""
        member = self.ledger.member(shard)
        return member is not None and not self._is_empty(member)

    def serves(self, node: str) -> bool:
        """What a replica that runs answers when it is asked whether it is ready."""
        replica = self.replicas.get(node)
        member = None if replica is None else self.ledger.member(replica.shard)
        if member is None or member.standing is Standing.FAILED:
            return False
        return node in self._kept(member)

    def orders(self, node: str) -> bool:
        """One that follows is ready while somebody leads."""
        return node in self.members and bool(self.leader)

    @property
    def _uncut(self) -> list[Window]:
        windows = self.ledger.windows
        return windows[1:] if windows and self.ledger.cut == windows[0].cuts else windows

    def _decide(self, decision: AnyDecision) -> None:
        self.ledger.apply([decision])

    def _elect(self) -> None:
        if 2 * len(self.sequencers) <= len(self.members):
            self.leader = ""
        elif self.leader not in self.sequencers:
            self.leader = min(self.sequencers)
            self.term += 1

    def _admit(self) -> None:
        """New ones when all of their replicas agree; who failed when all that count are back."""
        for replica in list(self.replicas.values()):
            member = self.ledger.member(replica.shard)
            if member is None and all(each in self.replicas for each in replica.replicas):
                disks = self._disks(replica.replicas)
                self._decide(Admit(replica.shard, replica.replicas, QUOTA, disks))
        for member in list(self.ledger.members.values()):
            there = all(each in self.replicas for each in member.replicas)
            if member.standing is Standing.FAILED and there:
                kept = self._kept(member)
                if member.primary in kept or (not kept and self._is_empty(member)):
                    self._take_back(member)

    def _take_back(self, member: Member) -> None:
        disks = self._disks(member.replicas)
        self._decide(Admit(member.name, member.replicas, QUOTA, disks))
        self._decide(
            Arrange(
                shard=member.id,
                epoch=member.epoch + 1,
                primary=member.primary,
                replicas=member.replicas,
                disks=disks,
            )
        )

    def _is_empty(self, member: Member) -> bool:
        ended = self.ledger.trimmed >= self.ledger.end_of(member.id)
        return ended or member.placed == member.begins

    def _disks(self, nodes: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.replicas[each].disk for each in nodes)

    def _alive(self, member: Member) -> tuple[str, ...]:
        return tuple(
            sorted(each for each, one in self.replicas.items() if one.shard == member.name)
        )

    def _kept(self, member: Member) -> tuple[str, ...]:
        """Its replicas that are there with the disks that the epoch counts on."""
        return tuple(
            each
            for each in member.replicas
            if each in self.replicas and self.replicas[each].disk == member.disk(each)
        )

    def _arrange(self) -> None:
        """Whoever has kept its disk goes on, and all others who are there copy from it."""
        for member in list(self.ledger.members.values()):
            kept, alive = self._kept(member), self._alive(member)
            whole = kept == member.replicas and kept == alive
            if not kept or whole or not self._misses(member):
                continue
            primary = member.primary if member.primary in kept else kept[0]
            disks = self._disks(alive)
            self._decide(
                Arrange(
                    shard=member.id,
                    epoch=member.epoch + 1,
                    primary=primary,
                    replicas=alive,
                    disks=disks,
                )
            )

    def _misses(self, member: Member) -> bool:
        """Nobody asks for the primary of one that has left, and of which all is trimmed."""
        kept = self._kept(member)
        if member.standing is not Standing.LEFT or member.primary in kept:
            return True
        lost = any(each in self.replicas and each not in kept for each in member.replicas)
        return lost or not self._is_empty(member)

    def _fail(self) -> None:
        standing = self.ledger.members.values()
        seated = [each for each in standing if each.standing not in _GONE]
        failed = [each for each in seated if not self._kept(each)]
        others = [each.id for each in seated if self._kept(each)]
        if failed and others:
            names = tuple(each.id for each in failed)
            self._decide(ChangeView(view=self.ledger.view + 1, failed=names, stand_in=min(others)))

    def _order(self) -> None:
        """A window is cut as soon as another is published behind it."""
        ledger = self.ledger
        quotas = tuple(
            (each.id, QUOTA)
            for each in sorted(ledger.members.values(), key=lambda each: each.id)
            if each.standing in {Standing.WAITING, Standing.SEATED}
        )
        if len(self._uncut) < 2:
            number = ledger.windows[-1].number + 1 if ledger.windows else 0
            self._decide(OpenWindow(number, Mode.STEADY, ROUNDS, 1, quotas))
            return
        window = self._uncut[0]
        members = [ledger.members[seat.shard] for seat in window.seats]
        if all(each.standing in _GONE or self._kept(each) for each in members):
            self._decide(CutTo(window=window.number, cut=window.cuts))

    def _shard(self, member: Member) -> ShardStatus:
        current = self.ledger.current
        seat = current.by_shard.get(member.id) if current is not None else None
        return ShardStatus(
            name=member.name,
            standing=member.standing,
            epoch=member.epoch,
            primary=member.primary,
            replicas=member.replicas,
            stand_in="",
            quota=seat.quota if seat is not None else 0,
            next_quota=QUOTA,
            window=-1,
            rounds=0,
            lag=0,
            records=0,
            noops=0,
            queued=0,
            signals=0,
            resting=False,
            silent=tuple(each for each in member.replicas if each not in self._kept(member)),
            last=self.ledger.end_of(member.id),
        )
