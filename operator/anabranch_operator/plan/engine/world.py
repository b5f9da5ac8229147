"""All that the operator knows: objects of the API server, and what the log service told."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import (
    BROKER_DRAINING,
    BrokerSeat,
    Description,
    LogId,
    Milliseconds,
    Nanoseconds,
    Refused,
)
from anabranch_operator.api.fork import ForkDeletion, ForkSpec, ForkStatus
from anabranch_operator.api.log import LogDeletion, LogSpec, LogStatus
from anabranch_operator.api.pool import PoolSpec, PoolStatus
from anabranch_operator.api.sequencers import SequencerSetSpec, SequencerSetStatus
from anabranch_operator.api.shards import ShardGroupSpec, ShardGroupStatus
from anabranch_operator.plan.certificates.facts import CertificateSettings, Holdings
from anabranch_operator.plan.engine.events import Visited, Vitals
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.log.job_templates import GateSettings

S = TypeVar("S")
T = TypeVar("T")


class Surroundings(Struct, frozen=True, kw_only=True):
    """Where the operator and its log service live."""

    namespace: str
    """The installation's: of pools, of metadata members, of what serves every namespace."""
    release: str
    """What the installation is called; its Services and Secrets are named after it."""
    tls: bool = True
    """Are clients met over TLS?"""
    certificates: CertificateSettings = CertificateSettings()
    """Who makes them, and which."""
    gates: GateSettings = GateSettings()
    """What the Jobs of promotion gates may do."""
    metadata: str = ""
    """The StatefulSet of the metadata members."""
    watches: str = ""
    """The namespace whose logs and forks it tends; empty: all namespaces."""
    look_ms: int = 2_000
    """How often the log service is looked at."""
    resync_ms: int = 300_000
    """Every object is planned anew after so long, though nothing was seen to change."""
    trim_ms: int = 60_000
    """Logs are trimmed to the age of their retention so often."""
    cosmetic_ms: int = 30_000
    """A status of which nothing but numbers moved is written no more often than this."""
    cosmetic_per_s: int = 10
    """And so many of them in all."""
    in_flight_max: int = 64
    """Actions on their way at once."""
    eviction_ms: int = 600_000
    """How long an eviction may be put off."""


class Resource(Struct, Generic[S, T], frozen=True):
    """An object of ours, understood."""

    object: Observed
    spec: S
    status: T

    @property
    def ref(self) -> Ref:
        return self.object.ref

    @property
    def owner(self) -> str:
        """What the log service is told about whose log it is."""
        ref = self.object.ref
        return names.owner(ref.namespace, ref.kind, ref.name, self.object.uid)


Log = Resource[LogSpec, LogStatus]
Fork = Resource[ForkSpec, ForkStatus]
Pool = Resource[PoolSpec, PoolStatus]
Sequencers = Resource[SequencerSetSpec, SequencerSetStatus]
Shards = Resource[ShardGroupSpec, ShardGroupStatus]


def ends(resource: Log | Fork) -> bool:
    """Does its log end when the resource is deleted?"""
    if resource.object.annotations.get(names.FORGET) == "true":
        return False
    spec = resource.spec
    if isinstance(spec, ForkSpec):
        return spec.deletion_policy is ForkDeletion.SQUASH and not spec.protected
    return spec.deletion_policy is LogDeletion.DELETE


class Departed(Struct, frozen=True):
    """What a resource that is gone said when it was seen last; if that couldn't be understood, only
    the owner of its log says what is to become of the log.
    """

    ends: bool = True
    cascade: bool = False


RESOURCES = (names.LOG, names.FORK, names.POOL, names.SEQUENCERS, names.SHARDS)

ENDED_MAX = 10_000


class Counted(Struct, frozen=True):
    """How many records of its own a fork had when a gate's Job was to start, or had ended."""

    job: str
    ended: bool
    own_records: int


class Eviction(Struct):
    """Somebody wants a pod off its node."""

    since: Nanoseconds
    asked_at: Nanoseconds
    """The last time."""
    told: bool = False
    """It was said that the pod may go, and not asked since."""


class Service:
    """The log service, as far as it was told of."""

    def __init__(self) -> None:
        self.looked = False
        self.trouble: str | None = None
        """Why it couldn't be looked at the last time."""
        self.logs: dict[LogId, Description] = {}
        self.owned: dict[str, LogId] = {}
        """By owner, without what the owner says about the log's end."""
        self.fates: dict[LogId | str, Refused] = {}
        """What became of logs that are no more, by their ids or owners."""
        self.brokers: dict[str, BrokerSeat] = {}
        self._learned: dict[LogId, Description] = {}
        """Since the look that is under way began, which may not have seen it."""
        self._lost: dict[LogId, None] = {}
        self._unseated: dict[tuple[str, int], bool] = {}
        """Lives of brokers that were drained since that look began, and whether they are known at
        all any more.
        """

    def looking(self) -> None:
        self._learned.clear()
        self._lost.clear()
        self._unseated.clear()

    def view(
        self, logs: tuple[Description, ...], brokers: tuple[BrokerSeat, ...]
    ) -> tuple[dict[LogId, Description], bool]:
        """Take a view of everything; what was known before of logs that differ now, and whether
        brokers do.
        """
        before, seats = self.logs, self.brokers
        found = {log.id: log for log in logs if log.id not in self._lost} | self._learned
        self.logs = {}
        self.owned = {}
        for log in found.values():
            self._keep(log)
        self.brokers = {}
        for seat in brokers:
            self.brokers[seat.name] = seat
            known = self._unseated.get((seat.name, seat.epoch))
            if known is not None:
                self.unseat(seat.name, seat.epoch, known=known)
        changed = {id: log for id, log in before.items() if self.logs.get(id) != log}
        changed |= {id: log for id, log in self.logs.items() if id not in before}
        self.looked, self.trouble = True, None
        return changed, self.brokers != seats

    def learn(self, log: Description) -> None:
        self._learned[log.id] = log
        self._lost.pop(log.id, None)
        before = self.logs.get(log.id)
        if before is not None:
            self.owned.pop(names.plain(before.owner), None)
        self._keep(log)

    def bury(self, key: LogId | str, fate: Refused) -> None:
        key = names.plain(key) if isinstance(key, str) else key
        self.fates[key] = fate
        id = self.owned.get(key) if isinstance(key, str) else key
        if id is None:
            return
        log = self.logs.pop(id, None)
        self._learned.pop(id, None)
        self._lost[id] = None
        if log is not None and log.owner:
            self.owned.pop(names.plain(log.owner), None)
            self.fates[names.plain(log.owner)] = fate

    def unseat(self, name: str, epoch: int, *, known: bool) -> None:
        """A life of a broker was drained, and serves nothing from then on; or isn't known."""
        self._unseated[name, epoch] = known
        seat = self.brokers.get(name)
        if seat is None or seat.epoch != epoch:
            return
        if known:
            self.brokers[name] = BrokerSeat(name, seat.address, epoch, BROKER_DRAINING, 0, 0, 0)
        else:
            del self.brokers[name]

    def forget(self, owner: str, id: LogId) -> None:
        """Nobody is left to be told what became of this owner's log."""
        for key in (owner, id):
            self.fates.pop(key, None)

    def of(self, owner: str) -> Description | None:
        id = self.owned.get(owner)
        return None if id is None else self.logs[id]

    def named(self, name: str) -> Description | None:
        """Also one that nobody owns, if it was asked about since the last look."""
        return next((log for log in self.logs.values() if log.name == name), None)

    def _keep(self, log: Description) -> None:
        self.logs[log.id] = log
        if log.owner:
            self.owned[names.plain(log.owner)] = log.id


class World:
    """What plans are made from. Nothing in it is the truth: it is what was seen last."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.service = Service()
        self.objects: dict[Ref, Observed] = {}
        self.logs: dict[Ref, Log] = {}
        self.forks: dict[Ref, Fork] = {}
        self.pools: dict[Ref, Pool] = {}
        self.sequencers: dict[Ref, Sequencers] = {}
        self.shards: dict[Ref, Shards] = {}
        self.malformed: dict[Ref, str] = {}
        """Resources of ours that can't be understood, and why."""
        self.visits: dict[Ref, Visited] = {}
        """What logs said of themselves last, by their SequencerSets."""
        self.deeds = 0
        """Shards that were moved and replicas that ended so far, each of which a log that was asked
        before it may know nothing of.
        """
        self.since: dict[Ref, int] = {}
        """After how many deeds the logs were asked for what they said last."""
        self.vitals: dict[str, Vitals] = {}
        self.evicting: dict[str, Eviction] = {}
        """Pods that somebody wants off their nodes, by UID."""
        self.deleting: dict[str, None] = {}
        """Pods of which a deletion is on its way, by UID."""
        self.ended_at: dict[str, Nanoseconds] = {}
        """When a Job was first seen to have succeeded or failed, by UID."""
        self.counted: dict[str, Counted] = {}
        """The latest count of a fork that is judged, by the UID of the Fork."""
        self.texts: dict[Ref, str] = {}
        """The last lines of logs of pods."""
        self.trimmed: dict[LogId, Milliseconds] = {}
        """Up to when what is too old was trimmed."""
        self.certificates: Holdings | None = None
        """As they were looked at last, and were changed since."""
        self.newcomer = False
        """Did our election make the Lease? Then resources that went before went without us: the
        installation, or all of Kubernetes, is new, and its log service may be older.
        """
        self.departed: dict[str, Departed] = {}
        """Logs and forks whose ends were seen, by UID."""
        self.absent: dict[str, None] = {}
        """UIDs of resources of which the API server itself said that they are gone."""
        self._ended: dict[str, None] = {}
        """By UID, those of late: an end is told once, and everything else may be told again."""
        self._kinds: dict[str, dict[Ref, None]] = {}
        self._children: dict[str, dict[Ref, None]] = {}
        self._by_uid: dict[str, Ref] = {}
        self._named_by: dict[Ref, dict[Ref, None]] = {}
        """By resource: the forks whose parent it is, and the logs that are served by it."""

    def observe(self, object: Observed) -> bool:
        """False if something newer is known: another version, or its end, after which the answer to
        a write may still come.
        """
        known = self.objects.get(object.ref)
        if object.uid in self._ended or (known is not None and known.version >= object.version):
            return False
        if known is not None:
            self._drop(known)
        self.objects[object.ref] = object
        self._kinds.setdefault(object.ref.kind, {})[object.ref] = None
        self._by_uid[object.uid] = object.ref
        for owner in object.owners:
            self._children.setdefault(owner, {})[object.ref] = None
        if object.ref.kind in RESOURCES:
            self._understand(object)
        return True

    def lose(self, ref: Ref, uid: str) -> Observed | None:
        """The object that is no more, if it was known."""
        _keep_latest(self._ended, uid, None)
        known = self.objects.get(ref)
        if known is None or known.uid != uid:
            return None
        declares = self.logs.get(ref) or self.forks.get(ref)
        if declares is not None:
            id = declares.status.log_id
            for key in (declares.owner, *(() if id is None else (LogId(id),))):
                self.service.fates.pop(key, None)
            self.trimmed.pop(LogId(id or 0), None)
        if ref.kind in (names.LOG, names.FORK):
            cascade = known.annotations.get(names.CASCADE) == "true"
            last = Departed(declares is None or ends(declares), cascade)
            _keep_latest(self.departed, uid, last)
        self._drop(known)
        del self.objects[ref]
        if ref.kind == "Pod" and names.SHARD_LABEL in known.labels:
            self.deeds += 1
        self.visits.pop(ref, None)
        self.since.pop(ref, None)
        self.evicting.pop(uid, None)
        self.vitals.pop(uid, None)
        self.ended_at.pop(uid, None)
        self.counted.pop(uid, None)
        self.texts.pop(ref, None)
        return known

    @property
    def etcd_full(self) -> bool:
        """Does a metadata member say that nothing can be journaled?"""
        return any(each.etcd_full for each in self.vitals.values())

    def confirm_gone(self, uid: str) -> None:
        """The API server says that there is no such resource; its UID never comes back."""
        _keep_latest(self.absent, uid, None)

    def orphans(self) -> Iterator[Ref]:
        """Owners of logs that no resource declares, as they are planned."""
        return filter(None, map(self.orphan, self.service.owned))

    def orphan(self, owner: str) -> Ref | None:
        """By which name this owner's log is planned, if its resource isn't known and would be seen.

        Of other namespaces' resources we see nothing, so nothing follows from that.
        """
        found = names.declares(owner)
        if found is None or found.kind not in (names.LOG, names.FORK) or not found.uid:
            return None
        if self.surroundings.watches not in ("", found.namespace):
            return None
        if owner not in self.service.owned or found.uid in self._by_uid:
            return None
        return Ref(names.ORPHAN, found.namespace, owner)

    def of_kind(self, kind: str) -> Iterator[Observed]:
        return (self.objects[ref] for ref in self._kinds.get(kind, ()))

    def children(self, uid: str, kind: str) -> Iterator[Observed]:
        return (self.objects[ref] for ref in self._children.get(uid, ()) if ref.kind == kind)

    def by_uid(self, uid: str) -> Observed | None:
        ref = self._by_uid.get(uid)
        return None if ref is None else self.objects[ref]

    def heirs(self, parent: Ref) -> Iterator[Fork]:
        """Forks that name this resource as their parent."""
        return (self.forks[ref] for ref in self._named_by.get(parent, ()) if ref in self.forks)

    def logs_served_by(self, part: Ref) -> Iterator[Ref]:
        """Logs that name this SequencerSet or ShardGroup, or have it made."""
        return (ref for ref in self._named_by.get(part, ()) if ref in self.logs)

    def goes(self, uid: str) -> bool:
        """Was it said that the pod may go, or is that being done?"""
        eviction = self.evicting.get(uid)
        return uid in self.deleting or (eviction is not None and eviction.told)

    def shards_of(self, sequencers: Ref) -> Iterator[Shards]:
        """The groups of one log."""
        return (
            each
            for each in self.shards.values()
            if (each.ref.namespace, each.spec.sequencers) == sequencers[1:]
        )

    def terminating(self, namespace: str) -> bool:
        """Is everything in this namespace on its way out?"""
        found = self.objects.get(Ref("Namespace", "", namespace))
        return found is not None and found.deleting

    def _understand(self, object: Observed) -> None:
        ref, spec, status = object.ref, object.spec, object.status
        try:
            match ref.kind:
                case names.LOG:
                    log = Resource(object, convert(spec, LogSpec), convert(status, LogStatus))
                    self.logs[ref] = log
                    self._index(ref, parts_of(log))
                case names.FORK:
                    fork = Resource(object, convert(spec, ForkSpec), convert(status, ForkStatus))
                    self.forks[ref] = fork
                    self._index(ref, (parent_of(fork),))
                case names.POOL:
                    self.pools[ref] = Resource(
                        object, convert(spec, PoolSpec), convert(status, PoolStatus)
                    )
                case names.SEQUENCERS:
                    self.sequencers[ref] = Resource(
                        object, convert(spec, SequencerSetSpec), convert(status, SequencerSetStatus)
                    )
                case names.SHARDS:
                    self.shards[ref] = Resource(
                        object, convert(spec, ShardGroupSpec), convert(status, ShardGroupStatus)
                    )
                case kind:
                    raise AssertionError(f"a {kind} is no resource of ours")
        except ValidationError as error:
            self.malformed[ref] = str(error)

    def _drop(self, object: Observed) -> None:
        ref = object.ref
        self._kinds[ref.kind].pop(ref)
        self._by_uid.pop(object.uid, None)
        for owner in object.owners:
            siblings = self._children[owner]
            del siblings[ref]
            if not siblings:
                del self._children[owner]
        self.malformed.pop(ref, None)
        log, fork = self.logs.pop(ref, None), self.forks.pop(ref, None)
        if log is not None:
            self._unindex(ref, parts_of(log))
        if fork is not None:
            self._unindex(ref, (parent_of(fork),))
        for kind in (self.pools, self.sequencers, self.shards):
            kind.pop(ref, None)

    def _index(self, ref: Ref, names: Iterable[Ref]) -> None:
        for each in names:
            self._named_by.setdefault(each, {})[ref] = None

    def _unindex(self, ref: Ref, names: Iterable[Ref]) -> None:
        for each in names:
            del self._named_by[each][ref]
            if not self._named_by[each]:
                del self._named_by[each]


def _keep_latest(kept: dict[str, T], key: str, value: T) -> None:
    kept[key] = value
    if len(kept) > ENDED_MAX:
        del kept[next(iter(kept))]


def parent_of(fork: Fork) -> Ref:
    parent = fork.spec.parent
    return Ref(parent.kind.value, fork.ref.namespace, parent.name)


def parts_of(log: Log) -> tuple[Ref, ...]:
    """The SequencerSet and the ShardGroups that serve a log, in this order; of a Bolt log the
    SequencerSet alone that takes its lazy appends.
    """
    sequencers, shards = log.spec.sequencers, log.spec.shards
    if sequencers is None:
        return ()
    namespace, own = log.ref.namespace, log.ref.name
    groups = () if shards is None else dict.fromkeys(shards.names or (own,))
    return (
        Ref(names.SEQUENCERS, namespace, sequencers.name or own),
        *(Ref(names.SHARDS, namespace, each) for each in groups),
    )


def moved(before: Description, after: Description) -> bool:
    """Was it only appended to, or trimmed?"""
    return before == replace(
        after,
        start=before.start,
        tail=before.tail,
        settled=before.settled,
        own_records=before.own_records,
    )
