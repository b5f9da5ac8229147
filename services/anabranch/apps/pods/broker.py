"""`anabranch broker`: stateless, between clients, the metadata group and the bucket."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.bolt_settings import BrokerSettings
from anabranch.apps.pods.bucket import StorePod
from anabranch.apps.pods.node import Occupant, Place, serve_node
from anabranch.apps.pods.pod import RELEASE, Endpoint, run
from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.errors import Unavailable
from anabranch.core.machine import Machine
from anabranch.ports import Authority, ObjectStore
from anabranch.shell.authority.log_names import LogSubjects, OwnLogs
from anabranch.shell.authority.open import by_kubernetes
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.etcd.group.marker import in_bucket
from anabranch.shell.net import tls
from anabranch.shell.objects.disk_cache import DiskCache
from anabranch.shell.peers.engines import bolt_broker
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.service import Service
from anabranch.shell.telemetry.metrics import Bill
from anabranch.shell.telemetry.tracing import TracedBroker

KIND = "broker"


async def serve(
    settings: BrokerSettings,
    ready: Callable[[Endpoint], None] | None = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""

    def pod(stack: AsyncExitStack, ending: asyncio.Event) -> StorePod[BrokerSettings]:
        return StorePod(settings, KIND, stack, ending)

    ports = settings.port, settings.probe_port
    await serve_node(pod, settings.host, ports, _occupy, ready, stop=stop)


async def _occupy(place: Place[StorePod[BrokerSettings]]) -> Occupant:
    pod, settings = place.pod, place.pod.settings
    limits, node = settings.limits, settings.node
    advertised = settings.advertise or place.bound
    store = await pod.open_store()
    incarnation = await pod.patiently("the cluster", lambda: _incarnation(settings, store))
    ranges = await _behind_disk(store, settings, pod)
    peers = Mesh(
        bolt_broker(),
        node,
        settings.cluster,
        limits,
        pod.log,
        release=RELEASE,
        token=settings.peer_tokens(pod.log),
        incarnation=incarnation,
    )
    life = secrets.token_bytes(16)
    others = OtherEngines.SUPERVISOR if settings.supervised else OtherEngines.NOBODY
    broker = Broker(
        node, settings.cluster, limits, settings.metadata, life, advertised, others=others
    )
    host = Host(settings.cluster, None, ranges, now=pod.clock.now, log=pod.log, network=peers)
    authority = _authority(settings, host, pod)
    service = bolt_service(
        host, node, limits, cluster=settings.cluster, version=RELEASE, authority=authority
    )
    server = FrameServer(limits, budgets=pod.budgets, log=pod.log)
    server.serve(service)
    pod.vitals.counters |= {"peers": peers.counters, "server": server.counters}
    pod.vitals.gauges |= {"peers": lambda: peers.gauges, "server": lambda: server.gauges}
    pod.vitals.bill = Bill(broker.usage, store.meter.cost)

    def connect() -> None:
        context = tls.dialing(settings.peer_tls, pod.log)
        peers.start(host.post, context, members=settings.metadata)
        pod.stack.push_async_callback(peers.stop)

    async def listen() -> None:
        await server.take_over(place.listener, tls.listening(settings.tls, pod.log))
        pod.stack.push_async_callback(server.stop)

    return Occupant(
        node=node,
        shown=NodeMachine(
            KIND, broker, lambda: KIND, lambda: obstacle(broker), broker.counters, broker.gauges
        ),
        machine=_traced(broker, service, pod),
        host=host,
        advertised=advertised,
        connect=connect,
        listen=listen,
        ends=(peers.refused,),
        check_end=partial(_check_end, broker),
    )


def _check_end(broker: Broker) -> None:
    if broker.fenced is not None:
        raise broker.fenced


def _authority(settings: BrokerSettings, host: Host, pod: StorePod[BrokerSettings]) -> Authority:
    if settings.auth.mode is AuthMode.TOKEN:
        return SharedToken(Tokens(settings.token, settings.tokens_file, pod.log))
    warden = by_kubernetes(settings.auth, LogSubjects(OwnLogs(host, settings.node)), pod.log)
    pod.stack.push_async_callback(warden.close)
    pod.vitals.counters["authority"] = warden.counters
    return warden


def _traced(broker: Broker, service: Service, pod: StorePod[BrokerSettings]) -> Machine:
    tracing = pod.tracing()
    if tracing is None:
        return broker
    choice, exporter = tracing
    return TracedBroker(broker, choice, exporter.add, service.context)


async def _behind_disk(
    store: ObjectStore, settings: BrokerSettings, pod: StorePod[BrokerSettings]
) -> ObjectStore:
    """With a cache on a disk before it, if one is asked for."""
    if not settings.disk_cache:
        return store
    cache = DiskCache(store, settings.disk_cache, settings.disk_cache_bytes, pod.log)
    await cache.start()
    pod.stack.push_async_callback(cache.close)
    pod.vitals.counters["disk_cache"] = cache.counters
    pod.vitals.gauges["disk_cache"] = lambda: cache.gauges
    return cache


def obstacle(broker: Broker) -> str | None:
    """Why clients are better served by another broker."""
    if broker.fenced is not None:
        return broker.fenced.message
    if not broker.leader:
        return "no metadata member says that it leads"
    if not broker.epoch:
        return "it isn't registered with the metadata yet"
    return None


async def _incarnation(settings: BrokerSettings, store: ObjectStore) -> str:
    """Whose bucket it is: members tell theirs from it."""
    blobs = BridgedBlobs(store, asyncio.get_running_loop())
    marker = await asyncio.to_thread(in_bucket, blobs, settings.cluster)
    if marker is None:
        unused = f"no cluster {settings.cluster} has used it"
        reason = f"{unused}: start its metadata members first, or name another with s3_bucket"
        raise Unavailable(settings.s3.where, reason)
    return marker.incarnation


def main(settings: BrokerSettings) -> None:
    run(settings, lambda: serve(settings))
