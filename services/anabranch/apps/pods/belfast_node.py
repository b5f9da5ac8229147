"""What sequencers and shard replicas do alike: a data directory, one port, and one machine under
the address by which the others know it.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from anabranch.apps.node_machine import NodeMachine, node_journal
from anabranch.apps.pods.belfast_settings import Durability, NodeSettings
from anabranch.apps.pods.node import Occupant, Place, Ready, serve_node
from anabranch.apps.pods.pod import RELEASE, Pod
from anabranch.core.errors import AnabranchError, WrongCluster
from anabranch.core.rights.claims import Subject
from anabranch.core.rights.one_log import log_of
from anabranch.ports import Authority, Disk, RecordJournal
from anabranch.shell.authority.open import NoCatalogue, by_kubernetes, namespace_of
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.journal.watermark import NotedRecordJournal, WatermarkFile
from anabranch.shell.net import tls
from anabranch.shell.peers.engines import belfast_node
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.engines import belfast_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.quota_file import FollowedQuota

Ends = Sequence[asyncio.Future[AnabranchError]]
Recover = Callable[[Pod[Any], str, RecordJournal], tuple[NodeMachine, Ends]]
"""Makes the machine of a node, by its address, from its journal; and what may end its process."""


async def serve_belfast(
    settings: NodeSettings,
    kind: str,
    ports: tuple[int, int],
    recover: Recover,
    ready: Ready = None,
    *,
    stop: asyncio.Event | None = None,
    log_quota_file: str = "",
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain.

    `log_quota_file`: says how much may be appended through this process, if anything does.
    """

    async def occupy(place: Place[Pod[Any]]) -> Occupant:
        journal = _journal(settings, place.pod)
        address = settings.address or place.bound
        limits = _append_limits(settings, place.pod, log_quota_file)
        shown, ends = recover(place.pod, address, journal)
        place.pod.stack.callback(journal.close)
        return _occupant(settings, place, address, journal, shown, ends, limits)

    def pod(stack: AsyncExitStack, ending: asyncio.Event) -> Pod[Any]:
        return Pod(settings, kind, stack, ending)

    await serve_node(pod, settings.host, ports, occupy, ready, stop=stop)


def _journal(settings: NodeSettings, pod: Pod[Any]) -> RecordJournal:
    directory = DataDir(settings.data, settings.cluster)
    pod.stack.callback(directory.close)
    if directory.cluster != settings.cluster:
        raise WrongCluster(settings.data, directory.cluster, settings.cluster)
    disk: Disk = RealDisk(directory.journal)
    if settings.durability is Durability.MEMORY:
        disk = UnsyncedDisk(disk)
    if not settings.reached_file:
        return node_journal(disk, settings.cluster)
    note = WatermarkFile(*os.path.split(os.path.abspath(settings.reached_file)))
    mark = note.read()
    journal = node_journal(disk, settings.cluster, mark.entry if mark else 0)
    return NotedRecordJournal(journal, note, time.monotonic)


def _occupant(
    settings: NodeSettings,
    place: Place[Pod[Any]],
    address: str,
    journal: RecordJournal,
    shown: NodeMachine,
    ends: Ends,
    limits: AppendLimits | None,
) -> Occupant:
    """One machine under the address by which the others know it, and one port for all."""
    pod = place.pod
    mesh = Mesh(
        belfast_node(),
        address,
        settings.cluster,
        settings.limits,
        pod.log,
        release=RELEASE,
        token=Tokens(settings.peer_token, settings.peer_tokens_file, pod.log),
    )
    host = Host(settings.cluster, journal, None, now=pod.clock.now, log=pod.log, network=mesh)
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
            append_limits=limits,
        )
    )
    pod.vitals.counters |= {"peers": mesh.counters, "server": server.counters}
    pod.vitals.gauges |= {"peers": lambda: mesh.gauges, "server": lambda: server.gauges}

    def connect() -> None:
        mesh.start(host.post, tls.dialing(settings.tls, pod.log) if settings.tls.ca else None)
        pod.stack.push_async_callback(mesh.stop)

    async def listen() -> None:
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
        ends=ends,
    )


def _append_limits(settings: NodeSettings, pod: Pod[Any], file: str) -> AppendLimits | None:
    if not file:
        return None
    limits = AppendLimits(settings.cluster, settings.limits, pod.clock.now)
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
