"""Belfast's sequencers and shard replicas as processes of their own."""

import asyncio
from typing import Any

from anabranch.apps.belfast.machines import SequencerGauges, recover_sequencer, recover_shard
from anabranch.apps.pods.log_node import LogRole, Resident
from anabranch.apps.pods.log_settings import Durability, SequencerSettings, ShardSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.errors import AnabranchError, Fenced, Retry
from anabranch.ports import RecordJournal
from anabranch.shell.peers.engines import belfast_node
from anabranch.shell.server.engines import belfast_service

_EPOCHS_S = 1.0
"""Between two looks at etcd, while this member leads."""


def sequencer_role(settings: SequencerSettings) -> LogRole:
    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> Resident:
        member = Sequencer(
            address,
            settings.members or (address,),
            settings.rules,
            settings.limits,
            settings.consensus,
            fsync=settings.durability is Durability.FSYNC,
        )
        recovered = recover_sequencer(member, journal, pod.log)
        ends = (_kept_in_etcd(pod, settings, member),) if settings.epochs else ()
        return Resident(shown=recovered, ends=ends)

    return LogRole(peers=belfast_node, service=belfast_service, recover=recover)


def shard_role(settings: ShardSettings) -> LogRole:
    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> Resident:
        config = ShardConfig(
            shard=settings.shard,
            node=address,
            replicas=settings.replicas or (address,),
            sequencers=settings.sequencers,
            quota=settings.quota,
            cache_bytes=settings.cache_bytes,
            fsync=settings.durability is Durability.FSYNC,
        )
        return Resident(shown=recover_shard(Shard(config, settings.limits), journal, pod.log))

    return LogRole(peers=belfast_node, service=belfast_service, recover=recover)


def _kept_in_etcd(
    pod: Pod[Any], settings: SequencerSettings, member: Sequencer
) -> "asyncio.Future[AnabranchError]":
    """While it leads, its term is kept; done when another's later one is found."""
    from anabranch.shell.etcd.api.client import EtcdClient
    from anabranch.shell.etcd.group.epochs import Epochs, keep

    fenced: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
    client = EtcdClient(settings.etcd)
    pod.stack.callback(client.close)

    async def watch() -> None:
        trouble = ""
        while not fenced.done():
            if member.office is not None:
                gauges = SequencerGauges(member)
                epochs = Epochs(
                    term=gauges.term,
                    leader=member.node,
                    view=gauges.view,
                    window=gauges.window,
                    index=gauges.index,
                )
                try:
                    await asyncio.to_thread(keep, client, settings.cluster, epochs)
                    trouble = ""
                except Retry as error:
                    if trouble != error.message:
                        pod.log.warning("etcd doesn't keep epochs", reason=error.message)
                    trouble = error.message
                except Fenced as error:
                    # A leader that was deposed meanwhile steps down in the usual way.
                    if SequencerGauges(member).leading and member.consensus.term == epochs.term:
                        fenced.set_result(error)
            await asyncio.sleep(_EPOCHS_S)

    pod.spawn(watch())
    return fenced
