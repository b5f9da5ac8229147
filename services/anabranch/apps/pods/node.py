"""What sequencers and shard replicas do alike: a data directory, one port, one machine under the
address by which the others know it.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from anabranch.apps import process
from anabranch.apps.belfast.machines import NodeMachine
from anabranch.apps.pods.belfast_settings import Durability, NodeSettings
from anabranch.apps.pods.pod import RELEASE, Endpoint, Pod
from anabranch.core.belfast.protocol.rights import log_of
from anabranch.core.errors import AnabranchError, WrongCluster
from anabranch.core.rights.claims import Subject
from anabranch.ports import Authority, Disk
from anabranch.shell.authority.open import NoCatalogue, by_kubernetes, namespace_of
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.net import tls
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import belfast_service
from anabranch.shell.server.frame_server import FrameServer

Ready = Callable[[Endpoint], None] | None

SEGMENT_BYTES = 16 << 20
"""Of the journal: what is trimmed leaves the disk segment by segment."""


@dataclass(frozen=True, slots=True)
class Node:
    """A process that listens, and whose machine isn't made yet."""

    pod: Pod[Any]
    settings: NodeSettings
    listener: socket.socket
    bound: str
    address: str
    """At which the others dial it."""
    journal: FileJournal
    """Whoever recovers it closes it."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """The machine of a process."""

    node: NodeMachine
    ends: list[asyncio.Future[AnabranchError]] = field(
        default_factory=list[asyncio.Future[AnabranchError]]
    )
    """Done when something beside the machine says that the process must end."""


async def serve_node(
    settings: NodeSettings,
    kind: str,
    ports: tuple[int, int],
    occupy: Callable[[Node], Occupant],
    ready: Ready = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""
    async with AsyncExitStack() as stack:
        pod = Pod(settings, kind, stack, stop or process.signalled())
        node = await _opened(pod, settings, *ports)
        occupant = occupy(node)
        await _inhabit(node, occupant, ready)


async def _opened(pod: Pod[Any], settings: NodeSettings, port: int, probe_port: int) -> Node:
    await pod.serve_probes(probe_port)
    listener = await process.listener(settings.host, port)
    pod.stack.callback(listener.close)
    bound = process.address(*listener.getsockname()[:2])
    directory = DataDir(settings.data, settings.cluster)
    pod.stack.callback(directory.close)
    if directory.cluster != settings.cluster:
        raise WrongCluster(settings.data, directory.cluster, settings.cluster)
    disk: Disk = RealDisk(directory.journal)
    if settings.durability is Durability.MEMORY:
        disk = UnsyncedDisk(disk)
    journal = FileJournal(disk, settings.cluster, segment_bytes=SEGMENT_BYTES)
    return Node(pod, settings, listener, bound, settings.address or bound, journal)


async def _inhabit(node: Node, occupant: Occupant, ready: Ready) -> None:
    pod, settings, address = node.pod, node.settings, node.address
    mesh = Mesh(
        address,
        settings.cluster,
        settings.limits,
        pod.log,
        release=RELEASE,
        token=Tokens(settings.peer_token, settings.peer_tokens_file, pod.log),
    )
    host = Host(settings.cluster, node.journal, None, now=pod.clock.now, log=pod.log, network=mesh)
    authority, log = _authority(settings, pod)
    server = FrameServer(settings.limits, budgets=pod.budgets, log=pod.log, peers=mesh)
    server.serve(
        belfast_service(
            host,
            address,
            settings.limits,
            cluster=settings.cluster,
            version=RELEASE,
            authority=authority,
            log=log,
            hosts=mesh.hosts,
        )
    )
    shown = occupant.node
    pod.run_host(host, shown.role)
    vitals = pod.vitals
    vitals.counters |= {"peers": mesh.counters, "server": server.counters}
    vitals.counters[shown.kind] = shown.counters
    vitals.gauges |= {"peers": lambda: mesh.gauges, "server": lambda: server.gauges}
    vitals.gauges[shown.kind] = shown.gauges
    vitals.obstacles.append(shown.obstacle)
    mesh.start(host.post, tls.dialing(settings.tls, pod.log) if settings.tls.ca else None)
    pod.stack.push_async_callback(mesh.stop)
    host.start({address: shown.machine})
    pod.stack.push_async_callback(host.stop)
    await server.take_over(node.listener, tls.listening(settings.tls, pod.log, strangers=True))
    pod.stack.push_async_callback(server.stop)
    endpoint = pod.announce(node.bound, address)
    if ready is not None:
        ready(endpoint)
    await pod.until_over(host, occupant.ends)


def _authority(settings: NodeSettings, pod: Pod[Any]) -> tuple[Authority, Subject | None]:
    """Who lets clients in, and the resource whose rights they need, if they need any."""
    if settings.auth.mode is AuthMode.TOKEN:
        return SharedToken(Tokens(settings.token, settings.tokens_file, pod.log)), None
    reviewer = by_kubernetes(settings.auth, NoCatalogue(), pod.log)
    pod.stack.push_async_callback(reviewer.close)
    pod.vitals.counters["authority"] = reviewer.counters
    return reviewer, log_of(settings.cluster, namespace_of(settings.auth))
