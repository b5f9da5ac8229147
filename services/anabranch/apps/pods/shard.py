"""`anabranch shard`: one replica of a shard of a Belfast log."""

import asyncio

from anabranch.apps.pods.belfast_settings import Durability, ShardSettings
from anabranch.apps.pods.node import Node, Occupant, Ready, serve_node
from anabranch.apps.pods.pod import run
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.replication.replica import Role

KIND = "shard"


async def serve(
    settings: ShardSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""
    ports = settings.port, settings.probe_port
    await serve_node(settings, KIND, ports, lambda node: _occupy(node, settings), ready, stop=stop)


def _occupy(node: Node, settings: ShardSettings) -> Occupant:
    config = ShardConfig(
        shard=settings.shard,
        node=node.address,
        replicas=settings.replicas or (node.address,),
        sequencers=settings.sequencers,
        quota=settings.quota,
        cache_bytes=settings.cache_bytes,
        fsync=settings.durability is Durability.FSYNC,
    )
    shard = Shard(config, settings.limits)
    replayed = node.journal.recover_into(shard.recover, shard.replayed)
    node.pod.stack.callback(node.journal.close)
    for repair in replayed.repairs:
        node.pod.log.warning("repaired the journal", repair=repair)
    node.pod.log.info("recovered", last=replayed.last)
    return Occupant(
        shard,
        lambda: _role(shard),
        lambda: obstacle(shard),
        {"shard": shard.counters},
        {"shard": lambda: ShardGauges(shard)},
    )


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


def obstacle(shard: Shard) -> str | None:
    """Why nothing is expected of this replica yet."""
    me = shard.following.me
    if me is None:
        return "the sequencers haven't admitted its shard yet"
    if me.standing is Standing.FAILED:
        return "its shard has failed, and is to be admitted again"
    if shard.replica.role not in {Role.PRIMARY, Role.BACKUP}:
        return f"it is {shard.replica.role.name.lower()}, and not one of its shard's replicas"
    return shard.replica.log.journal.obstacle


def main(settings: ShardSettings) -> None:
    run(settings, lambda: serve(settings))
