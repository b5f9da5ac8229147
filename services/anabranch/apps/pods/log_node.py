"""What sequencers and shard replicas do alike: a data directory, one port, and one machine under
the address by which the others know it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from anabranch.apps.node_machine import NodeMachine, node_journal
from anabranch.apps.pods.log_settings import Durability, LogEngine, NodeSettings
from anabranch.apps.pods.node import Occupant, Place, Ready, serve_node
from anabranch.apps.pods.pod import RELEASE, Pod
from anabranch.core.errors import BLACK_BOX_TROUBLES, AnabranchError, BadRequest, WrongCluster
from anabranch.core.rights.claims import Subject
from anabranch.core.rights.one_log import log_of
from anabranch.core.sequencing.uncounted import Uncounted
from anabranch.ports import Authority, Disk, Network, RecordJournal
from anabranch.shell.authority.open import NoCatalogue, by_kubernetes, namespace_of
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.far_journal import noted_place
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.journal.watermark import NotedRecordJournal, WatermarkFile
from anabranch.shell.net import tls
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.peers.protocol import PeerProtocol
from anabranch.shell.peers.shared_address import NodeNames, SharedAddress
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.quota_file import FollowedQuota
from anabranch.shell.server.service import Service

Ends = Sequence[asyncio.Future[AnabranchError]]


class Beside(Protocol):
    """Another machine of the same process, behind the same address; it is started when the node's
    own machine has been, and stopped when that has drained.
    """

    def start(self, network: SharedAddress) -> None: ...

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A node of a log as its process runs it."""

    shown: NodeMachine
    ends: Ends = ()
    """What may end its process."""
    beside: Beside | None = None
    uncounted: Uncounted | None = None
    """What the log takes and no server in front of this node has counted."""


class FarJournal(Protocol):
    """A node's journal in another system, which may be away when the node starts."""

    def open(self, directory: DataDir, loop: asyncio.AbstractEventLoop) -> RecordJournal:
        """For a thread: the journal, not recovered yet."""
        ...

    def opened(self, directory: DataDir) -> None:
        """For a thread: it was recovered."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRole:
    """What the nodes of one role have of their own, in one engine."""

    peers: Callable[[], PeerProtocol]
    service: Callable[..., Service]
    recover: Callable[[Pod[Any], str, RecordJournal], Resident]
    """Makes the machine of a node, by its address, from its journal."""
    names: NodeNames | None = None
    """How nodes of one process are told apart, if it may have several."""
    far: FarJournal | None = None
    """Where its journal is; None: in its data directory."""


async def serve_log_node(
    settings: NodeSettings,
    kind: str,
    ports: tuple[int, int],
    role: LogRole,
    ready: Ready = None,
    *,
    stop: asyncio.Event | None = None,
    log_quota_file: str = "",
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain.

    `log_quota_file`: says how much may be appended through this process, if anything does.
    """

    async def occupy(place: Place[Pod[Any]]) -> Occupant:
        pod, address = place.pod, settings.address or place.bound
        directory = data_directory(settings, pod)
        limits = _append_limits(settings, pod, log_quota_file)
        if role.far is not None:
            opened, resident = await _recovered_far(settings, pod, directory, role, address)
            pod.stack.push_async_callback(asyncio.to_thread, opened.close)
        else:
            opened = journal(settings, directory)
            resident = recovered(settings, lambda: role.recover(pod, address, opened))
            pod.stack.callback(opened.close)
        if resident.uncounted is not None and limits is not None:
            resident.uncounted.on_uncounted = limits.charge
        return _occupant(settings, place, address, opened, role, resident, limits)

    def pod(stack: AsyncExitStack, ending: asyncio.Event) -> Pod[Any]:
        return Pod(settings, kind, stack, ending)

    await serve_node(pod, settings.host, ports, occupy, ready, stop=stop)


def recovered(settings: NodeSettings, recover: Callable[[], Resident]) -> Resident:
    """Raises BadRequest for the journal of another engine: nothing in a data directory says which
    engine wrote there.
    """
    try:
        return recover()
    except msgspec.DecodeError as error:
        reason = (
            f"its journal holds what a node of {settings.engine} doesn't know ({error}): another "
            "engine, another kind of node or a later version wrote it, so nothing was changed"
        )
        raise BadRequest(f"the data directory {settings.data}", reason) from error


async def _recovered_far(
    settings: NodeSettings, pod: Pod[Any], directory: DataDir, role: LogRole, address: str
) -> tuple[RecordJournal, Resident]:
    """Waits for the system that has the journal for as long as it takes: nothing else is there to
    start from.
    """
    far, loop = role.far, asyncio.get_running_loop()
    assert far is not None

    def attempt() -> tuple[RecordJournal, Resident]:
        opened = far.open(directory, loop)
        with ExitStack() as failing:
            # It must not be left open by a start that fails.
            failing.callback(opened.close)
            resident = recovered(settings, lambda: role.recover(pod, address, opened))
            far.opened(directory)
            failing.pop_all()
        return opened, resident

    return await pod.persistently("the black box", attempt, BLACK_BOX_TROUBLES)


def data_directory(settings: NodeSettings, pod: Pod[Any]) -> DataDir:
    """Of this process alone, until its end."""
    directory = DataDir(settings.data, settings.cluster)
    pod.stack.callback(directory.close)
    if directory.cluster != settings.cluster:
        raise WrongCluster(settings.data, directory.cluster, settings.cluster)
    return directory


def journal(settings: NodeSettings, directory: DataDir) -> RecordJournal:
    """Of the process's node, in its data directory. Raises BadRequest if that says that the journal
    is elsewhere.
    """
    elsewhere = noted_place(directory.root)
    if elsewhere:
        reason = f"its records are in {elsewhere}: say so with black_box"
        raise BadRequest(f"the data directory {settings.data}", reason)
    disk: Disk = RealDisk(directory.journal)
    if settings.durability is Durability.MEMORY:
        disk = UnsyncedDisk(disk)
    return noted_journal(disk, settings.cluster, settings.reached_file)


def noted_journal(disk: Disk, cluster: str, reached_file: str) -> RecordJournal:
    """`reached_file`: where it is noted how far the journal went; empty: nowhere."""
    if not reached_file:
        return node_journal(disk, cluster)
    note = WatermarkFile(*os.path.split(os.path.abspath(reached_file)))
    mark = note.read()
    return NotedRecordJournal(
        node_journal(disk, cluster, mark.entry if mark else 0), note, time.monotonic
    )


def _occupant(
    settings: NodeSettings,
    place: Place[Pod[Any]],
    address: str,
    journal: RecordJournal,
    role: LogRole,
    resident: Resident,
    limits: AppendLimits | None,
) -> Occupant:
    """One machine under the address by which the others know it, and one port for all."""
    pod, shown, beside = place.pod, resident.shown, resident.beside
    mesh = Mesh(
        role.peers(),
        address,
        settings.cluster,
        settings.limits,
        pod.log,
        release=RELEASE,
        token=Tokens(settings.peer_token, settings.peer_tokens_file, pod.log),
    )
    shared = SharedAddress(mesh, address, role.names) if role.names is not None else None
    network: Network = mesh if shared is None else shared
    host = Host(settings.cluster, journal, None, now=pod.clock.now, log=pod.log, network=network)
    authority, log = _authority(settings, pod)
    server = FrameServer(settings.limits, budgets=pod.budgets, log=pod.log, peers=mesh)
    server.serve(
        role.service(
            host,
            address,
            settings.limits,
            cluster=settings.cluster,
            version=RELEASE,
            authority=authority,
            log=log,
            hosts=mesh.hosts,
            nodes=settings.nodes,
            append_limits=limits,
        )
    )
    pod.vitals.counters |= {"peers": mesh.counters, "server": server.counters}
    pod.vitals.gauges |= {"peers": lambda: mesh.gauges, "server": lambda: server.gauges}

    def connect() -> None:
        post = host.post if shared is None else shared.post
        mesh.start(post, tls.dialing(settings.tls, pod.log) if settings.tls.ca else None)
        pod.stack.push_async_callback(mesh.stop)

    async def listen() -> None:
        if shared is not None:
            shared.join(address, host)
        if beside is not None:
            assert shared is not None, "two machines are told apart by their names"
            beside.start(shared)
            pod.stack.push_async_callback(beside.stop)
        context = tls.listening(settings.tls, pod.log, strangers=True)
        await server.take_over(place.listener, context)
        pod.stack.push_async_callback(server.stop)

    return Occupant(
        node=address,
        shown=shown,
        machine=shown.machine,
        host=host,
        advertised=address,
        connect=connect,
        listen=listen,
        ends=resident.ends,
    )


def _append_limits(settings: NodeSettings, pod: Pod[Any], file: str) -> AppendLimits | None:
    if not file:
        return None
    # An append that is sent again after one of several nodes has refused it is counted once.
    copies = settings.engine is not LogEngine.BELFAST
    limits = AppendLimits(settings.cluster, settings.limits, pod.clock.now, copies=copies)
    pod.spawn(FollowedQuota(limits, file, pod.log).follow())
    return limits


def _authority(settings: NodeSettings, pod: Pod[Any]) -> tuple[Authority, Subject | None]:
    """Who lets clients in, and the resource whose rights they need, if they need any."""
    if settings.auth.mode is AuthMode.TOKEN:
        return SharedToken(Tokens(settings.token, settings.tokens_file, pod.log)), None
    reviewer = by_kubernetes(settings.auth, NoCatalogue(), pod.log)
    pod.stack.push_async_callback(reviewer.close)
    pod.vitals.counters["authority"] = reviewer.counters
    return reviewer, log_of(settings.cluster, namespace_of(settings.auth))
