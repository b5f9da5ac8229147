"""An Erwin log of real processes, for tests: on free ports, and ended by their numbers."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from anabranch.apps.processes.local_log import LocalLog, LogShape, Node, Promise, settle
from anabranch.client.erwin.link import Link
from anabranch.client.erwin.log import SequencedLog
from anabranch.client.session.endpoint import Endpoint, address
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError
from anabranch.core.sequencing.protocol.messages import LogSurvey, SequencingStatus

PATIENCE_S = 60.0
"""Whoever waits longer than this waits for nothing."""
SOON = {"ANABRANCH_RETURN_MS": "300", "ANABRANCH_SILENT_MS": "500"}
"""A node that is back is taken in at once: tests wait for it."""
_LOOK_S = 0.05


@contextmanager
def deployed(
    folder: Path,
    promise: Promise,
    shape: LogShape | None = None,
    *,
    etcd: tuple[str, ...] = (),
    etcd_port: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[LocalLog]:
    """All of it, ready. `etcd_port`: each process is in a network namespace of its own, and etcd
    listens there at this machine's end of the bridge.
    """
    shape = shape or LogShape(sequencers=3, shards=2, copies=2)
    apart = etcd_port > 0
    layout = settle(folder, shape, engine="erwin", promise=promise, namespaces=apart)
    if layout.network is not None:
        etcd = (f"{layout.network.subnet}.1:{etcd_port}",)
    local = LocalLog(folder, layout, settings={**SOON, **(settings or {})}, etcd=etcd)
    try:
        local.start(print)
        yield local
    finally:
        local.kill()


class Log(SequencedLog):
    """The log by itself, without a service that has it in its catalogue."""

    @property
    def name(self) -> str:
        return "log"


@asynccontextmanager
async def connected(local: LocalLog) -> AsyncGenerator[Log]:
    addresses = tuple(address(pair.address) for pair in local.layout.sequencers)
    layout = local.layout
    endpoint = Endpoint(addresses, cluster=layout.cluster)
    link = Link(endpoint, Settings(timeout_ms=60_000, token=layout.token or None))
    link.start()
    try:
        yield Log(link)
    finally:
        link.close()


async def until(log: Log, what: str, holds: Callable[[LogSurvey, SequencingStatus], bool]) -> None:
    """Look until it is so."""
    found: tuple[LogSurvey, SequencingStatus] | None = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    found = await log.survey(), await log.status(timeout=2)
                except AnabranchError:
                    continue
                if holds(*found):
                    return
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise AssertionError(f"waited in vain until {what}: {found}") from None


async def whole(log: Log, local: LocalLog) -> None:
    """Every sequencer is a member, and every shard has all of its replicas."""

    def holds(survey: LogSurvey, status: SequencingStatus) -> bool:
        members, view = {node for node, _ in survey.members}, survey.view
        replicas = {node for shard in survey.shards for node in shard.replicas}
        there = {each.pair.address for each in local.processes if each.running}
        return members | replicas == there and view == status.view and not survey.silent

    await until(log, "all are there", holds)


def node_at(local: LocalLog, place: str) -> Node:
    (found,) = (node for node in local.processes if node.pair.address == place)
    return found


# Who is who by now, and that somebody has gone or is back.


async def leader(log: Log, local: LocalLog) -> Node:
    return node_at(local, (await log.survey()).leader)


async def follower(log: Log, local: LocalLog) -> Node:
    survey = await log.survey()
    return node_at(local, next(node for node, _ in survey.members if node != survey.leader))


async def controller(log: Log, local: LocalLog) -> Node:
    return node_at(local, (await log.survey()).controller.removesuffix("/controller"))


async def primary(log: Log, local: LocalLog) -> Node:
    return node_at(local, (await log.survey()).shards[0].primary)


async def backup(log: Log, local: LocalLog) -> Node:
    shard = (await log.survey()).shards[0]
    return node_at(local, next(node for node in shard.replicas if node != shard.primary))


async def gone(log: Log, node: Node) -> None:
    """The log goes on without this node."""
    place = node.pair.address
    await until(
        log,
        f"{node.name} is done without",
        lambda survey, _: (
            all(place not in shard.replicas for shard in survey.shards)
            and place not in {member for member, _ in survey.members}
        ),
    )


async def back(log: Log, local: LocalLog, node: Node) -> None:
    await asyncio.to_thread(node.launch)
    await whole(log, local)
