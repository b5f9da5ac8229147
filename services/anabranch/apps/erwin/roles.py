"""Erwin's sequencers and shard replicas as processes of their own (docs/decisions/0060)."""

from dataclasses import replace
from typing import Any, Final

from anabranch.apps.erwin.box_of_process import ProcessBlackBox
from anabranch.apps.erwin.controller_part import ControllerPart
from anabranch.apps.erwin.machines import (
    member_obstacle,
    recover_sequencer,
    recover_shard,
    replica_obstacle,
)
from anabranch.apps.pods.log_node import LogRole, Resident
from anabranch.apps.pods.log_settings import Durability, SequencerSettings, ShardSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol import controllers
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.sequencing.controller.names import address_of, controller_at, names_at
from anabranch.ports import RecordJournal
from anabranch.shell.peers.engines import erwin_node
from anabranch.shell.peers.shared_address import NodeNames
from anabranch.shell.server.engines import erwin_shard_service, sequencing_service

_NAMES: Final = NodeNames(
    address_of=address_of,
    names_at=names_at,
    sender_of=controllers.sender_of,
    receiver_of=controllers.receiver_of,
)


def sequencer_role(settings: SequencerSettings) -> LogRole:
    """A sequencing replica and a candidate for the log's controller."""

    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> Resident:
        members = settings.members or (address,)
        config = SequencerConfig(
            node=address,
            controllers=tuple(map(controller_at, members)),
            mode=settings.mode,
            fsync=settings.durability is Durability.FSYNC,
            hands_over=True,
        )
        sequencer = Sequencer(config, settings.limits)
        shown = recover_sequencer(sequencer, journal, pod.log)
        beside = ControllerPart.of(pod, settings, address, members)
        return Resident(
            shown=replace(shown, obstacle=lambda: member_obstacle(sequencer)),
            ends=beside.ends if beside is not None else (),
            beside=beside,
            uncounted=sequencer.replica.uncounted,
        )

    return LogRole(peers=erwin_node, service=sequencing_service, recover=recover, names=_NAMES)


def shard_role(settings: ShardSettings) -> LogRole:
    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> Resident:
        config = ErwinShardConfig(
            shard=settings.shard,
            node=address,
            replicas=settings.replicas or (address,),
            controllers=tuple(map(controller_at, settings.sequencers)),
            hands_over=True,
            cache_bytes=settings.cache_bytes,
            far=bool(settings.black_box),
        )
        shard = ErwinShard(config, settings.limits)
        shown = recover_shard(shard, journal, pod.log)
        return Resident(shown=replace(shown, obstacle=lambda: replica_obstacle(shard)))

    return LogRole(
        peers=erwin_node,
        service=erwin_shard_service,
        recover=recover,
        names=_NAMES,
        far=ProcessBlackBox(settings) if settings.black_box else None,
    )
