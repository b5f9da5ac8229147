"""A sequencer or a shard replica, recovered from its journal, and what its process shows of it."""

from anabranch.apps.node_machine import NodeMachine
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.requests import FORGOTTEN
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.replication.replica import Role
from anabranch.ports import Journal, RecordJournal
from anabranch.shell.telemetry.log import Log

SEQUENCER, SHARD = "sequencer", "shard"


def recover_sequencer(member: Sequencer, journal: Journal, log: Log) -> NodeMachine:
    recovered = journal.recover()
    for repair in recovered.repairs:
        log.warning("repaired the journal", node=member.node, repair=repair)
    member.recover(recovered)
    log.info("recovered", node=member.node, entries=len(recovered.entries), last=recovered.last)
    return NodeMachine(
        SEQUENCER,
        member,
        lambda: "leader" if member.office else "follower",
        lambda: None if member.consensus.leader else "no sequencer leads",
        member.counters,
        lambda: SequencerGauges(member),
    )


def recover_shard(shard: Shard, journal: RecordJournal, log: Log) -> NodeMachine:
    replayed = journal.recover_into(shard.recover, shard.replayed)
    node = shard.config.node
    for repair in replayed.repairs:
        log.warning("repaired the journal", node=node, repair=repair)
    log.info("recovered", node=node, last=replayed.last)
    return NodeMachine(
        SHARD,
        shard,
        lambda: _role(shard),
        lambda: shard_obstacle(shard),
        shard.counters,
        lambda: ShardGauges(shard),
    )


class SequencerGauges:
    """Of one member of the group."""

    __slots__ = (
        "at_rest",
        "confirmed",
        "horizon",
        "index",
        "leading",
        "mode",
        "reachable",
        "shards",
        "term",
        "view",
        "window",
    )

    def __init__(self, member: Sequencer) -> None:
        ledger, consensus = member.ledger, member.consensus
        self.at_rest = int(member.office is not None and member.office.idleness.at_rest)
        current = ledger.current
        self.confirmed = ledger.confirmed
        self.horizon = ledger.horizon
        self.index = member.applied
        self.leading = int(member.office is not None)
        self.mode = int(current.mode) if current else 0
        self.reachable = len(consensus.reachable)
        self.shards = len(current.seats) if current else 0
        self.term = consensus.term
        self.view = ledger.view
        self.window = current.number if current else 0


class ShardGauges:
    """Of one replica."""

    __slots__ = (
        "durable",
        "epoch",
        "held_bytes",
        "horizon",
        "last",
        "may_go",
        "primary",
        "subscriptions",
        "unconfirmed",
        "view",
    )

    def __init__(self, shard: Shard) -> None:
        ledger = shard.following.ledger
        self.durable = shard.replica.log.durable
        self.epoch = shard.replica.epoch
        self.held_bytes = shard.held_bytes
        self.horizon = ledger.horizon
        self.last = shard.replica.log.last
        self.may_go = int(shard.may_go)
        self.primary = int(shard.replica.role is Role.PRIMARY)
        self.subscriptions = shard.subscriptions
        self.unconfirmed = ledger.horizon - ledger.confirmed
        self.view = ledger.view


def _role(shard: Shard) -> str:
    return shard.replica.role.name.lower()


def shard_obstacle(shard: Shard) -> str | None:
    """Why nothing is expected of this replica yet."""
    me = shard.following.me
    if shard.awaited is not None:
        return shard.awaited
    if me is None:
        return "the sequencers haven't admitted its shard yet"
    if shard.forgotten:
        return FORGOTTEN
    if me.standing is Standing.FAILED:
        return "its shard has failed, and is to be admitted again"
    if shard.replica.role not in {Role.PRIMARY, Role.BACKUP}:
        return f"it is {_role(shard)}, and not one of its shard's replicas"
    return shard.replica.log.journal.obstacle
