"""`anabranch shard`: one replica of a shard of a Belfast log."""

import asyncio
from typing import Any

from anabranch.apps.belfast.machines import SHARD, recover_shard
from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.belfast_node import Ends, serve_belfast
from anabranch.apps.pods.belfast_settings import Durability, ShardSettings
from anabranch.apps.pods.node import Ready
from anabranch.apps.pods.pod import Pod, run
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.ports import RecordJournal


async def serve(
    settings: ShardSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""

    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> tuple[NodeMachine, Ends]:
        config = ShardConfig(
            shard=settings.shard,
            node=address,
            replicas=settings.replicas or (address,),
            sequencers=settings.sequencers,
            quota=settings.quota,
            cache_bytes=settings.cache_bytes,
            fsync=settings.durability is Durability.FSYNC,
        )
        return recover_shard(Shard(config, settings.limits), journal, pod.log), ()

    ports = settings.port, settings.probe_port
    file = settings.log_quota_file
    await serve_belfast(settings, SHARD, ports, recover, ready, stop=stop, log_quota_file=file)


def main(settings: ShardSettings) -> None:
    run(settings, lambda: serve(settings))
