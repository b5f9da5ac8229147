"""One process of a log that is measured: a machine of Erwin or Corfu with a journal, a port, and a
mesh whose letters take longer than they do.

Processes are forked from one that has imported everything, so dozens start in a second. Each is a
process of its own from its first step on.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from anabranch.apps.erwin.machines import recover_controller, recover_sequencer, recover_shard
from anabranch.apps.node_machine import node_journal
from anabranch.apps.process import listener
from anabranch.core.erwin.controller.config import ControllerConfig, ShardNodes
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.limits import Limits
from anabranch.core.machine import Machine
from anabranch.core.sequencing.protocol.clients import SEQUENCING
from anabranch.core.sequencing.protocol.letters import Seal, Start
from anabranch.ports import Disk, RecordJournal
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.peers.engines import erwin_node
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import erwin_shard_service, sequencing_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.service import Service
from anabranch.shell.telemetry.log import Log
from benchmarks.cluster.cores import prefer
from benchmarks.distance.mesh import DelayedMesh
from benchmarks.erwin.corfu.clients import corfu_service
from benchmarks.erwin.corfu.counter import Counter
from benchmarks.erwin.corfu.replica import CorfuReplica
from benchmarks.timing import now


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes of one log, by address."""

    cluster: str
    sequencers: tuple[str, ...]
    """Corfu has one."""
    shards: tuple[tuple[str, ...], ...]
    """The replicas of each, the primary's first."""
    controllers: tuple[str, ...] = ()
    fsync: bool = False
    mode: str = "m"
    delay_us: int = 0

    @property
    def named(self) -> tuple[ShardNodes, ...]:
        return tuple(
            ShardNodes(name=shard_name(number), nodes=nodes)
            for number, nodes in enumerate(self.shards)
        )


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    """One of `KINDS`."""
    address: str
    folder: str
    layout: Layout
    limits: Limits = Limits()

    @property
    def shard(self) -> ShardNodes:
        return next(each for each in self.layout.named if self.address in each.nodes)


def shard_name(number: int) -> str:
    return f"shard-{number}"


class _WatchedMesh(DelayedMesh):
    """Notes when a controller sends the letters of a view change."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self.sent: _Sent = []

    def send(self, sender: str, to: str, message: msgspec.Struct) -> None:
        if isinstance(message, Start):
            self.sent.append(("start", message.view.number, now()))
        elif isinstance(message, Seal):
            self.sent.append(("seal", message.view, now()))
        super().send(sender, to, message)


_Sent = list[tuple[str, int, int]]
"""`start` or `seal`, the number of the view that begins or ends, and when that was sent."""
Recovered = tuple[Machine, Any]
"""A machine and its counters."""
Recover = Callable[[NodePlan, RecordJournal, Log], Recovered]
Serve = Callable[[NodePlan, Host], Service]


def _erwin_sequencer(plan: NodePlan, journal: RecordJournal, log: Log) -> Recovered:
    layout = plan.layout
    config = SequencerConfig(
        node=plan.address,
        controllers=layout.controllers,
        mode=Mode(layout.mode),
        fsync=layout.fsync,
    )
    found = recover_sequencer(Sequencer(config, plan.limits), journal, log)
    return found.machine, found.counters


def _erwin_shard(plan: NodePlan, journal: RecordJournal, log: Log) -> Recovered:
    shard = plan.shard
    config = ErwinShardConfig(
        shard=shard.name,
        node=plan.address,
        replicas=shard.nodes,
        controllers=plan.layout.controllers,
    )
    found = recover_shard(ErwinShard(config, plan.limits), journal, log)
    return found.machine, found.counters


def _erwin_controller(plan: NodePlan, journal: RecordJournal, log: Log) -> Recovered:
    layout = plan.layout
    config = ControllerConfig(
        node=plan.address,
        sequencers=layout.sequencers,
        shards=layout.named,
        mode=Mode(layout.mode),
        fsync=layout.fsync,
    )
    found = recover_controller(Controller(config, plan.limits), journal, log)
    return found.machine, found.counters


def _corfu_sequencer(plan: NodePlan, journal: RecordJournal, log: Log) -> Recovered:
    journal.recover_into(lambda _: None, lambda _index, _entry: None)
    return Counter(), None


def _corfu_replica(plan: NodePlan, journal: RecordJournal, log: Log) -> Recovered:
    replica = CorfuReplica(plan.limits, fsync=plan.layout.fsync)
    journal.recover_into(replica.recover, replica.replayed)
    return replica, None


def _erwin_service(serve: Callable[..., Service], plan: NodePlan, host: Host) -> Service:
    return serve(
        host,
        plan.address,
        plan.limits,
        cluster=plan.layout.cluster,
        version="",
        authority=SharedToken(None),
    )


def _corfu_service(plan: NodePlan, host: Host) -> Service:
    return corfu_service(host, plan.address, plan.limits, plan.layout.cluster)


KINDS: dict[str, tuple[Recover, Serve | None]] = {
    "erwin-sequencer": (_erwin_sequencer, partial(_erwin_service, sequencing_service)),
    "erwin-shard": (_erwin_shard, partial(_erwin_service, erwin_shard_service)),
    "erwin-controller": (_erwin_controller, None),
    "corfu-sequencer": (_corfu_sequencer, _corfu_service),
    "corfu-replica": (_corfu_replica, _corfu_service),
}


def main(plan: NodePlan, owner: Connection) -> None:
    """The process's whole life: until its owner asks for nothing more, or kills it."""
    os.setsid()
    prefer(os.getpid())
    output = os.open(f"{plan.folder}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, sys.stderr.fileno())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_live(plan, owner))


async def _live(plan: NodePlan, owner: Connection) -> None:
    recover, serve = KINDS[plan.kind]
    clock, layout = Clock(), plan.layout
    log = Log(clock.now)
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        journal = _journal(plan)
        stack.callback(journal.close)
        machine, counters = recover(plan, journal, log)
        mesh = _WatchedMesh(erwin_node(), plan.address, layout.cluster, plan.limits, log)
        mesh.delay_us = layout.delay_us
        host = Host(layout.cluster, journal, None, now=clock.now, log=log, network=mesh)
        host.failed.add_done_callback(lambda _: over.set())
        server = FrameServer(plan.limits, log=log, peers=mesh)
        server.expect(SEQUENCING)  # a controller has only nodes that dial it
        if serve is not None:
            server.serve(serve(plan, host))
        name, _, port = plan.address.rpartition(":")
        listening = await listener(name, int(port))
        mesh.start(host.post)
        stack.push_async_callback(mesh.stop)
        host.start({plan.address: machine})
        stack.push_async_callback(host.stop)
        await server.take_over(listening)
        stack.push_async_callback(server.stop)
        # As a pod does: what was loaded stays.
        gc.collect()
        gc.freeze()
        asyncio.get_running_loop().add_reader(
            owner.fileno(), _asked, owner, (counters, mesh.sent), over
        )
        owner.send(None)
        await over.wait()


def _asked(owner: Connection, shown: "tuple[Any, _Sent]", over: asyncio.Event) -> None:
    """The owner wants to see how the process fares, or has gone."""
    try:
        owner.recv()
        owner.send(shown)
    except (EOFError, OSError):
        asyncio.get_running_loop().remove_reader(owner.fileno())
        over.set()


def _journal(plan: NodePlan) -> RecordJournal:
    """Not synced with durability `memory`, of which nothing outlives the machine."""
    Path(plan.folder).mkdir(parents=True, exist_ok=True)
    disk: Disk = RealDisk(plan.folder)
    if not plan.layout.fsync:
        disk = UnsyncedDisk(disk)
    return node_journal(disk, plan.layout.cluster)
