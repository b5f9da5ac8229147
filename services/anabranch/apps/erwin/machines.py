"""A sequencer, a shard replica or a controller of an Erwin log, recovered from its journal, and
what its process shows of it.
"""

from typing import Protocol

from anabranch.apps.lost_view_logger import LostViewLogger
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.replication.replica import Role
from anabranch.ports import RecordJournal
from anabranch.shell.telemetry.log import Log

SEQUENCER, SHARD, CONTROLLER = "erwin_sequencer", "erwin_shard", "erwin_controller"
"""Subjects of their metrics."""


class _Recoverable(Protocol):
    def recover(self, snapshot: bytes | None) -> None: ...

    def replayed(self, index: int, entry: bytes) -> None: ...


def recover_sequencer(sequencer: Sequencer, journal: RecordJournal, log: Log) -> NodeMachine:
    _recover(sequencer.config.node, sequencer, journal, log)
    sequencer.replica.check_life()
    return NodeMachine(
        SEQUENCER,
        sequencer,
        lambda: "leader" if sequencer.replica.leads else "member",
        lambda: sequencer.obstacle,
        sequencer.counters,
        lambda: SequencerGauges(sequencer),
    )


def recover_shard(shard: ErwinShard, journal: RecordJournal, log: Log) -> NodeMachine:
    _recover(shard.config.node, shard, journal, log)
    return NodeMachine(
        SHARD,
        shard,
        lambda: _role(shard),
        lambda: shard.obstacle,
        shard.counters,
        lambda: ShardGauges(shard),
    )


def recover_controller(controller: Controller, journal: RecordJournal, log: Log) -> NodeMachine:
    _recover(controller.config.node, controller, journal, log)
    return shown_controller(controller, log)


def shown_controller(controller: Controller, log: Log) -> NodeMachine:
    return NodeMachine(
        CONTROLLER,
        LostViewLogger(controller, lambda: controller.leads, log),
        lambda: "leader" if controller.leads else "follower",
        lambda: controller.obstacle,
        controller.counters,
        lambda: ControllerGauges(controller),
    )


def member_obstacle(sequencer: Sequencer) -> str | None:
    """Why a sequencer with a process of its own isn't ready: whoever restarts processes one by one
    waits until each takes part again.
    """
    if sequencer.obstacle is not None:
        return sequencer.obstacle
    view = sequencer.ordering.view
    if view is None:
        return None  # the first shard has yet to come
    if not view.has(sequencer.config.node, sequencer.replica.life):
        return f"it isn't a member of view {view.number}"
    if sequencer.replica.sealed or sequencer.replica.view != view:
        return f"view {view.number} has ended here, and the next one isn't started yet"
    return None


def replica_obstacle(shard: ErwinShard) -> str | None:
    """Why a replica with a process of its own isn't ready."""
    me, node = shard.membership.me, shard.config.node
    if shard.obstacle is not None:
        return shard.obstacle
    if me is None or not me.epoch:
        return "not all replicas of its shard are there yet"
    if me.removed:
        return None
    if node not in me.replicas or shard.replica.epoch != me.epoch:
        return f"it isn't among its shard's replicas in epoch {me.epoch} yet"
    if shard.replica.role not in {Role.PRIMARY, Role.BACKUP}:
        return f"it is {_role(shard)}, and not one of its shard's replicas"
    return None


def _role(shard: ErwinShard) -> str:
    return shard.replica.role.name.lower()


def _recover(node: str, machine: _Recoverable, journal: RecordJournal, log: Log) -> None:
    replayed = journal.recover_into(machine.recover, machine.replayed)
    for repair in replayed.repairs:
        log.warning("repaired the journal", node=node, repair=repair)
    log.info("recovered", node=node, last=replayed.last)


class SequencerGauges:
    """Of one sequencing replica."""

    __slots__ = (
        "leading",
        "ordered",
        "ring_bytes",
        "ring_records",
        "stable",
        "tail",
        "view",
        "waiting_bytes",
    )

    def __init__(self, sequencer: Sequencer) -> None:
        replica = sequencer.replica
        self.leading = int(replica.leads)
        self.ordered = replica.ordered
        self.ring_bytes = replica.ring.bytes
        self.ring_records = replica.ring.records
        self.stable = replica.stable
        self.tail = replica.tail
        self.view = replica.view.number if replica.view is not None else 0
        self.waiting_bytes = replica.waiting_bytes


class ShardGauges:
    """Of one replica of a shard."""

    __slots__ = (
        "durable",
        "epoch",
        "primary",
        "readable",
        "stable",
        "subscriptions",
        "trimmed",
        "waiting_reads",
    )

    def __init__(self, shard: ErwinShard) -> None:
        contents = shard.contents
        self.durable = contents.durable
        self.epoch = shard.replica.epoch
        self.primary = int(shard.replica.role is Role.PRIMARY)
        self.readable = contents.readable
        self.stable = shard.stable
        self.subscriptions = shard.subscriptions
        self.trimmed = contents.marks.trimmed
        self.waiting_reads = shard.waiting_reads


class ControllerGauges:
    """Of one controller."""

    __slots__ = ("changing", "leading", "lost_views", "members", "shards", "silent", "view")

    def __init__(self, controller: Controller) -> None:
        status = controller.status()
        configuration = status.configuration
        view = configuration.view
        self.changing = int(bool(status.changing))
        self.leading = int(status.leads)
        self.lost_views = len(configuration.lost_views)
        self.members = len(view.members) if view is not None else 0
        self.shards = sum(not each.removed for each in configuration.shards)
        self.silent = len(status.silent)
        self.view = view.number if view is not None else 0
