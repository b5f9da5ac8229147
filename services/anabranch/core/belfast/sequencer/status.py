"""What a sequencer shows of the log and its shards."""

from collections.abc import Set as AbstractSet

from anabranch.core.belfast.ledger.ledger import Ledger, Member
from anabranch.core.belfast.ledger.windows import Mode, ShardId, Window
from anabranch.core.belfast.protocol.directory import stand_in_of
from anabranch.core.belfast.protocol.messages import ShardStatus, Status
from anabranch.core.belfast.sequencer.policy import Office
from anabranch.core.consensus.consensus import Consensus
from anabranch.core.types import Nanoseconds


def status(
    ledger: Ledger,
    office: Office,
    consensus: Consensus,
    now: Nanoseconds,
    *,
    members: tuple[str, ...],
    index: int,
    in_memory: AbstractSet[str],
) -> Status:
    """What the leader sees: the ledger as it is committed, and what shards have reported.

    `in_memory`: nodes that don't sync.
    """
    window = ledger.current
    shards = tuple(_shard(ledger, office, member, now) for member in _members(ledger))
    return Status(
        term=consensus.term,
        leader=consensus.node,
        members=members,
        reachable=consensus.reachable,
        index=index,
        view=ledger.view,
        mode=window.mode if window is not None else Mode.STEADY,
        window=window.number if window is not None else -1,
        cut=ledger.cut,
        cuts=window.cuts if window is not None else 0,
        published=ledger.windows[-1].number if window is not None else -1,
        confirmed=ledger.confirmed,
        horizon=ledger.horizon,
        trimmed=ledger.trimmed,
        t_ord_us=office.plan.rules.t_ord_us,
        shards=shards,
        views_changed=office.plan.counters.views,
        cuts_made=office.plan.counters.cuts,
        fsync=in_memory.isdisjoint(
            (consensus.node, *(node for each in ledger.members.values() for node in each.replicas))
        ),
        foretold=sum(shard.foretold for shard in shards),
        voided=sum(shard.voided for shard in shards),
        at_rest=office.idleness.at_rest,
    )


def _shard(ledger: Ledger, office: Office, member: Member, now: Nanoseconds) -> ShardStatus:
    report = office.reports.get(member.id)
    last = ledger.windows[-1] if ledger.windows else None
    return ShardStatus(
        name=member.name,
        standing=member.standing,
        epoch=member.epoch,
        primary=member.primary,
        replicas=member.replicas,
        stand_in=stand_in_of(ledger, member),
        quota=_quota(ledger.current, member.id),
        next_quota=_quota(last, member.id),
        window=report.window if report is not None else -1,
        rounds=report.rounds if report is not None else 0,
        lag=office.progress.lag_of(member.id),
        records=report.records if report is not None else 0,
        noops=report.noops if report is not None else 0,
        queued=report.queued if report is not None else 0,
        signals=office.lag.counts.get(member.id, 0),
        resting=last is not None and office.stragglers.resting(member.id, last.number),
        silent=tuple(node for node in member.replicas if office.membership.gone(member, node, now)),
        last=ledger.end_of(member.id),
        foretold=report.foretold if report is not None else 0,
        voided=report.voided if report is not None else 0,
    )


def _members(ledger: Ledger) -> list[Member]:
    return [ledger.members[shard] for shard in sorted(ledger.members)]


def _quota(window: Window | None, shard: ShardId) -> int:
    seat = window.by_shard.get(shard) if window is not None else None
    return seat.quota if seat is not None else 0
