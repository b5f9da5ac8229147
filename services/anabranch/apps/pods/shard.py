"""`anabranch shard`: one replica of a shard of a Belfast log."""

import asyncio

from anabranch.apps.belfast.machines import SHARD, recover_shard
from anabranch.apps.pods.belfast_settings import Durability, ShardSettings
from anabranch.apps.pods.node import Node, Occupant, Ready, serve_node
from anabranch.apps.pods.pod import run
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard


async def serve(
    settings: ShardSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""
    ports = settings.port, settings.probe_port
    await serve_node(settings, SHARD, ports, lambda node: _occupy(node, settings), ready, stop=stop)


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
    shard = recover_shard(Shard(config, settings.limits), node.journal, node.pod.log)
    node.pod.stack.callback(node.journal.close)
    return Occupant(shard)


def main(settings: ShardSettings) -> None:
    run(settings, lambda: serve(settings))
