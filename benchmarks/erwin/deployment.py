"""A log of real processes for one benchmark, Erwin's or Corfu's: started on fresh folders, found,
ended.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.client.driver.wire import Wire
from anabranch.client.erwin.dialect import FromNode
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.log import SequencedLog
from anabranch.client.session.endpoint import Address, Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.limits import Limits
from benchmarks.cluster.cores import prefer
from benchmarks.cluster.local import scratch
from benchmarks.distance.delay import Delay
from benchmarks.distance.wire import DelayedWire
from benchmarks.erwin import node
from benchmarks.erwin.corfu.client import CorfuLog
from benchmarks.erwin.node import Layout, NodePlan
from benchmarks.server import cpu_s
from benchmarks.timing import now

CLUSTER = "measured"
_READY_S = 60.0
ERWIN, CORFU = "Erwin", "Corfu"

_forks = get_context("forkserver")
_forks.set_forkserver_preload([node.__name__])


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that both sides of a comparison have in common, and what may differ."""

    system: str = ERWIN
    shards: int = 1
    copies: int = 3
    """Replicas of each shard."""
    sequencers: int = 3
    """Of Erwin; Corfu has one."""
    mode: str = "m"
    durability: str = "memory"
    delay_us: int = 1_000
    """One way, of every message, in the benchmark's transport."""
    limits: Limits = Limits()
    spare_shards: int = 0
    """Shards whose processes run and which the log doesn't know yet."""


class NodeProcess:
    """One process, from its launch until it is killed, and again on the same folder."""

    def __init__(self, plan: NodePlan) -> None:
        self.plan = plan
        self._process: BaseProcess
        self._owner: Any

    def launch(self) -> None:
        self._owner, theirs = _forks.Pipe()
        self._process = _forks.Process(target=node.main, args=(self.plan, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def wait_ready(self) -> None:
        assert self._owner.poll(_READY_S), f"see {self.plan.folder}.log"
        self._owner.recv()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it was never launched"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def counters(self) -> Any:
        """What its machine counted since it began."""
        return self._asked()[0]

    def view_changes(self) -> list[tuple[str, int, int]]:
        """Of a controller: each `seal` and `start` that it sent, with the number of the view that
        ends or begins, and with its time.
        """
        return self._asked()[1]

    def kill(self) -> None:
        """Once more is no harm."""
        self._process.kill()
        self._process.join()
        self._owner.close()

    def _asked(self) -> Any:
        self._owner.send(None)
        return self._owner.recv()


class Deployment:
    """One log that runs."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self.setting = setting
        corfu = setting.system == CORFU
        counts = (1 if corfu else setting.sequencers, 0 if corfu else 1)
        replicas = (setting.shards + setting.spare_shards) * setting.copies
        ports = iter(f"{HOST}:{port}" for port in free_ports(sum(counts) + replicas))
        sequencers, controllers = (tuple(next(ports) for _ in range(count)) for count in counts)
        shards = tuple(
            tuple(next(ports) for _ in range(setting.copies))
            for _ in range(setting.shards + setting.spare_shards)
        )
        known = shards[: setting.shards]
        self.layout = Layout(
            cluster=CLUSTER,
            sequencers=sequencers,
            controllers=controllers,
            shards=known,
            fsync=setting.durability == "fsync",
            mode=setting.mode,
            delay_us=setting.delay_us,
        )
        self._folder = folder
        system = setting.system.lower()
        of_shards = "corfu-replica" if corfu else "erwin-shard"
        self.controllers = [self._node(f"{system}-controller", each) for each in controllers]
        self.sequencers = [self._node(f"{system}-sequencer", each) for each in sequencers]
        self.shards = [[self._node(of_shards, each) for each in shard] for shard in known]
        self._of_shards, self._spare = of_shards, shards[setting.shards :]

    @property
    def processes(self) -> list[NodeProcess]:
        replicas = [replica for shard in self.shards for replica in shard]
        return [*self.controllers, *self.sequencers, *replicas]

    def start(self) -> None:
        for process in self.processes:
            process.launch()
        for process in self.processes:
            process.wait_ready()

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def add_shard(self) -> None:
        """Start the replicas of the next spare shard; the log takes it as soon as all are there."""
        nodes, *self._spare = self._spare
        self.layout = replace(self.layout, shards=(*self.layout.shards, nodes))
        self.shards.append([self._node(self._of_shards, each) for each in nodes])
        for replica in self.shards[-1]:
            replica.launch()
        for replica in self.shards[-1]:
            replica.wait_ready()

    def sequencer(self, address: str) -> NodeProcess:
        return next(each for each in self.sequencers if each.plan.address == address)

    def used(self) -> "Usage":
        """Since the processes began. One that was killed has used nothing."""
        replicas = [each.pid for shard in self.shards for each in shard if each.alive]
        sequencers = [each.pid for each in self.sequencers if each.alive]
        return Usage(now(), sum(map(cpu_s, sequencers)), sum(map(cpu_s, replicas)))

    @asynccontextmanager
    async def erwin(self, settings: Settings | None = None) -> AsyncGenerator[SequencedLog]:
        """One client, at the log's distance."""
        link = DelayedErwinLink(self.layout, settings or Settings(client="benchmark"))
        link.start()
        log = _MeasuredLog(link)
        try:
            await log.directory(timeout=_READY_S)
            yield log
        finally:
            link.close()

    @asynccontextmanager
    async def corfu(self) -> AsyncGenerator[CorfuLog]:
        """The same."""
        layout = self.layout
        log = CorfuLog(layout.cluster, layout.sequencers[0], layout.shards)
        await log.connect(layout.delay_us)
        try:
            yield log
        finally:
            log.close()

    def _node(self, kind: str, address: str) -> NodeProcess:
        folder = str(self._folder / f"{kind}-{address.rpartition(':')[2]}")
        limits = self.setting.limits
        plan = NodePlan(
            kind=kind, address=address, folder=folder, layout=self.layout, limits=limits
        )
        return NodeProcess(plan)


class Usage(msgspec.Struct, frozen=True):
    """What processes took of the processors."""

    at: int
    sequencers_s: float
    shards_s: float

    def __sub__(self, before: "Usage") -> "Usage":
        return Usage(
            self.at - before.at,
            self.sequencers_s - before.sequencers_s,
            self.shards_s - before.shards_s,
        )

    @property
    def cores(self) -> float:
        return (self.sequencers_s + self.shards_s) / (self.at / 1e9)


class DelayedErwinLink(Link):
    def __init__(self, layout: Layout, settings: Settings) -> None:
        addresses = tuple(
            Address(host, int(port))
            for host, _, port in (each.rpartition(":") for each in layout.sequencers)
        )
        super().__init__(Endpoint(addresses, cluster=layout.cluster), settings)
        self._delay = Delay(layout.delay_us)

    def wire(self, line: int) -> Wire[FromNode]:
        wire = self.wire_of(DelayedWire[FromNode], line)
        wire.delay = self._delay
        return wire

    def close(self) -> None:
        super().close()
        self._delay.stop()


class _MeasuredLog(SequencedLog):
    @property
    def name(self) -> str:
        return CLUSTER


@contextmanager
def running(setting: Setting) -> Generator[Deployment]:
    """All of its processes, with every shard known and the first view begun; gone afterwards."""
    with scratch() as folder:
        deployment = Deployment(setting, folder)
        try:
            deployment.start()
            prefer(os.getsid(0))
            if setting.system == ERWIN:
                asyncio.run(_began(deployment))
            yield deployment
        finally:
            deployment.kill()


async def _began(deployment: Deployment) -> None:
    """An append was ordered, which needs all of the log."""
    async with deployment.erwin() as log:
        await log.append_sync(b"", timeout=_READY_S)
