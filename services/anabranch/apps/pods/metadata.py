"""`anabranch metadata`: one member of the metadata group, on etcd and the bucket."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.bolt_settings import Archiving, MetadataSettings
from anabranch.apps.pods.bucket import StorePod
from anabranch.apps.pods.etcd_group import GroupMember
from anabranch.apps.pods.node import Occupant, Place, serve_node
from anabranch.apps.pods.pod import RELEASE, Endpoint, run
from anabranch.core.bolt.metadata.compactor_gauges import CompactorGauges
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.metadata.plan_gauges import PlanGauges
from anabranch.core.bolt.metadata.writer_gauges import WriterGauges
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Machine
from anabranch.ports import ObjectStore
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.space import Fill
from anabranch.shell.etcd.archive.copy import Archive
from anabranch.shell.etcd.archive.journal import ArchivedJournal
from anabranch.shell.etcd.archive.snapshots import Blobs, BridgedBlobs
from anabranch.shell.etcd.group.election import Candidate
from anabranch.shell.etcd.group.marker import Marker, agree
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.net import tls
from anabranch.shell.net.room import Room
from anabranch.shell.peers.engines import bolt_member
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.driver import Host
from anabranch.shell.telemetry.tracing import TracedMember

KIND = "metadata"
FILL_S = 15.0
"""How often etcd is asked how full it is."""


class MemberGauges:
    """Of one member of the group."""

    __slots__ = ("brokers", "fit", "following", "index", "journaled", "leading", "logs", "term")

    def __init__(self, member: Member, *, following: bool, journaled: int) -> None:
        self.brokers = len(member.state.replica.placement.seats)
        self.fit = int(not member.unfit)
        self.following = int(following)
        self.index = member.index
        self.journaled = max(journaled, member.index)
        self.leading = int(member.leader is not None)
        self.logs = len(member.state.replica.forest.logs)
        self.term = member.term


async def serve(
    settings: MetadataSettings,
    ready: Callable[[Endpoint], None] | None = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then hand over."""

    def pod(stack: AsyncExitStack, ending: asyncio.Event) -> StorePod[MetadataSettings]:
        return StorePod(settings, KIND, stack, ending)

    ports = settings.port, settings.probe_port
    await serve_node(pod, settings.host, ports, _occupy, ready, stop=stop)


async def _occupy(place: Place[StorePod[MetadataSettings]]) -> Occupant:
    pod, settings = place.pod, place.pod.settings
    store = await pod.open_store()
    group = await _Group.opened(pod, store)
    peers = Mesh(
        bolt_member(settings.peer_names),
        settings.node,
        settings.cluster,
        settings.limits,
        pod.log,
        release=RELEASE,
        token=settings.peer_tokens(pod.log),
        incarnation=group.marker.incarnation,
    )
    member = Member(settings.cluster, settings.limits)
    host = Host(
        settings.cluster,
        group.journal,
        store,
        now=pod.clock.now,
        log=pod.log,
        network=peers,
        coordinator=group.coordinator,
    )
    group.begin(host, settings.node)
    pod.vitals.counters["peers"] = peers.counters
    pod.vitals.gauges |= {"peers": lambda: peers.gauges, "etcd": lambda: group.fill}
    pod.vitals.gauges["compactors"] = lambda: CompactorGauges(member.state.replica)
    pod.vitals.gauges["plans"] = lambda: PlanGauges(member.state.replica, pod.clock.now())
    pod.vitals.gauges["writers"] = lambda: WriterGauges(member.state.replica)

    async def listen() -> None:
        # Closed before the host, which waits for an append that may wait for an etcd that is gone.
        pod.stack.push_async_callback(group.close)
        context = tls.listening(settings.peer_tls, pod.log)
        peers.start(host.post)
        await peers.listen(place.listener, context, room=Room(pod.budgets.connections))
        pod.stack.push_async_callback(peers.stop)

    return Occupant(
        node=settings.node,
        shown=NodeMachine(
            "member",
            member,
            lambda: "leader" if member.leader else "follower",
            lambda: group.obstacle(member),
            None,
            lambda: group.gauges(member),
        ),
        machine=_traced(member, pod),
        host=host,
        advertised=place.bound,
        listen=listen,
        ends=(group.damaged,),
    )


def _traced(member: Member, pod: StorePod[MetadataSettings]) -> Machine:
    tracing = pod.tracing()
    return TracedMember(member, tracing[0], tracing[1].add) if tracing else member


def _agreed(client: EtcdClient, blobs: Blobs, cluster: str) -> Marker:
    """Whose they are, once it is sure that etcd has all that the bucket knows to be journaled."""
    marker = agree(client, blobs, cluster)
    Archive(cluster, blobs).check(JournalReader(client, cluster, blobs))
    return marker


class _Group(GroupMember):
    """The journal in etcd and in the bucket, and the threads that follow it and stand for
    election.
    """

    def __init__(
        self,
        pod: StorePod[MetadataSettings],
        client: EtcdClient,
        store: ObjectStore,
        marker: Marker,
    ) -> None:
        settings = pod.settings
        loop = asyncio.get_running_loop()
        journal = ArchivedJournal(
            client,
            settings.cluster,
            BridgedBlobs(store, loop),
            pod.log,
            archive_ms=settings.archive_ms,
            at_once=settings.archive is Archiving.SYNC,
        )
        candidate = Candidate(settings.node, settings.lease_s, marker.terms_after)
        super().__init__(client, journal, candidate, pod.clock, pod.log)
        self.marker = marker
        self.fill = Fill()
        """As etcd was when it was asked last."""
        self._client = client
        self._watches = loop.create_task(self._watch_fill())
        journal.archiver.on_damage = self.coordinator.give_up

    @classmethod
    async def opened(cls, pod: StorePod[MetadataSettings], store: ObjectStore) -> "_Group":
        settings = pod.settings
        client = EtcdClient(settings.etcd)
        pod.stack.callback(client.close)
        blobs = BridgedBlobs(store, asyncio.get_running_loop())
        marker = await pod.patiently(
            "etcd", lambda: asyncio.to_thread(_agreed, client, blobs, settings.cluster)
        )
        return cls(pod, client, store, marker)

    def gauges(self, member: Member) -> MemberGauges:
        coordinator = self.coordinator
        following, journaled = coordinator.following, coordinator.journaled
        return MemberGauges(member, following=following, journaled=journaled)

    def obstacle(self, member: Member) -> str | None:
        if member.unfit:
            return member.unfit
        if member.leader is None and not self.coordinator.following:
            return "it doesn't follow the journal: etcd doesn't answer, or hasn't yet"
        return None

    async def _watch_fill(self) -> None:
        while True:
            with suppress(AnabranchError):
                self.fill = await asyncio.to_thread(Fill.of, self._client)
            await asyncio.sleep(FILL_S)

    async def close(self) -> None:
        self._watches.cancel()
        await super().close()


def main(settings: MetadataSettings) -> None:
    run(settings, lambda: serve(settings))
