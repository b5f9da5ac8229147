"""The whole replica as bytes and back. Equal replicas give equal bytes (B12), without caches."""

from array import array
from collections import deque

import msgspec

from anabranch.core.bolt.logs import marks
from anabranch.core.bolt.logs.forest import Family, Log, Shift, Tombstone
from anabranch.core.bolt.logs.front import Era, Front, Listed
from anabranch.core.bolt.logs.index import COLUMNS, Index
from anabranch.core.bolt.logs.marks import SavedWriter
from anabranch.core.bolt.logs.scan_plans import SavedPlans
from anabranch.core.bolt.protocol.commands import Committed, EngineSettings, Outcome, Receipt
from anabranch.core.bolt.protocol.compaction import Swapped
from anabranch.core.bolt.protocol.compactors import Compactor
from anabranch.core.bolt.protocol.fronts import FrontConfiguration, FrontEpoch
from anabranch.core.bolt.state.placement import Placement, Seat
from anabranch.core.bolt.state.replica import BrokerRecord, Replica
from anabranch.core.errors import JournalTooNew
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits, replicated
from anabranch.core.producers import Producer
from anabranch.core.quota import Quota
from anabranch.core.records.digest import UNKNOWN
from anabranch.core.types import (
    Kind,
    LogId,
    Milliseconds,
    ObjectId,
    OnParentDelete,
    OnPromote,
    Position,
)

VERSION = 1


class _Part(msgspec.Struct, frozen=True, array_like=True):
    """Fields are only ever added at the end, with a default."""


class _Producer(_Part, frozen=True):
    id: int
    epoch: int
    next: int
    at: Milliseconds
    recent: list[tuple[int, Position, int]]


class _Shift(_Part, frozen=True):
    since: int
    generation: int
    thresholds: list[Position]
    counts: list[int]


class _Columns(_Part, frozen=True):
    forgotten: int
    first: bytes
    upto: bytes
    object: bytes
    offset: bytes
    length: bytes
    at: bytes
    skips: dict[Position, int] = {}
    origins: tuple[bytes, bytes, bytes] = (b"", b"", b"")
    """Positions, logs, shifts."""
    sum: bytes = b""


class _Front(_Part, frozen=True):
    settings: EngineSettings
    configuration: FrontConfiguration
    epoch: FrontEpoch
    number: int
    records: Position
    eras: list[Era]
    lists: list[Listed]
    ended: bool = False


class _Log(_Part, frozen=True):
    id: LogId
    name: str
    kind: Kind
    family: int
    parent: LogId | None
    children: list[LogId]
    depth: int
    fork_point: Position
    own_from: Position
    start: Position
    tail: Position
    block: int
    promotable: bool
    promotable_forks: list[tuple[Position, LogId]]
    columns: _Columns
    producers: list[_Producer]
    cursors: dict[str, Position]
    generation: int
    shifts: list[_Shift]
    created_at: Milliseconds
    expires_at: Milliseconds | None
    on_parent_delete: OnParentDelete
    by: str
    why: str
    on_promote: dict[str, OnPromote] = {}
    quota: Quota | None = None
    owner: str = ""
    engine: str = ""
    settings: EngineSettings | None = None
    front: _Front | None = None
    writers: list[SavedWriter] = []


class _Grave(_Part, frozen=True):
    id: LogId
    name: str
    refusal: Refused
    at: Milliseconds
    promoted_into: LogId | None
    producers: list[_Producer]
    generation: int
    shifts: list[_Shift]
    parent_generation: int
    owner: str = ""


class _Broker(_Part, frozen=True):
    name: str
    epoch: int
    committed: list[tuple[ObjectId, Committed]]
    highest: int = -1
    swapped: tuple[ObjectId, Swapped] | None = None


class _Seat(_Part, frozen=True):
    name: str
    address: str
    epoch: int
    state: str


class _Placement(_Part, frozen=True):
    seats: list[_Seat] = []
    roots: list[tuple[LogId, str]] = []
    trees: list[tuple[LogId, str, int]] = []
    alone: list[tuple[LogId, str]] = []


class _Image(_Part, frozen=True):
    version: int
    cluster: str
    at: Milliseconds
    applied: int
    next_id: int
    broker_epochs: int
    families: list[str]
    logs: list[_Log]
    graves: list[_Grave]
    counts: list[tuple[ObjectId, int]]
    garbage: list[tuple[ObjectId, Milliseconds]]
    brokers: list[_Broker]
    requests: list[tuple[bytes, Milliseconds, Outcome]]
    expiring: list[tuple[Milliseconds, LogId]]
    limits: dict[str, int]
    family_ids: list[LogId] = []
    format: int = 0
    placement: _Placement = _Placement()
    shared: list[ObjectId] = []
    guards: dict[str, int] = {}
    appends: list[tuple[int, Milliseconds, Position | Receipt]] = []
    request_digests: list[tuple[bytes, int]] = []
    append_digests: list[tuple[int, int]] = []
    append_logs: list[tuple[int, int]] = []
    plans: SavedPlans = SavedPlans()
    compactors: list[Compactor] = []


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Image)


def save(replica: Replica) -> bytes:
    forest = replica.forest
    appends, append_digests, append_logs = replica.appends.save(replica.format)
    families: dict[Family, int] = {}
    logs = [_save_log(replica, log, families) for log in forest.logs.values()]
    return _encoder.encode(
        _Image(
            version=VERSION,
            cluster=replica.cluster,
            at=replica.at,
            applied=replica.applied,
            next_id=replica.next_id,
            broker_epochs=replica.broker_epochs,
            families=[family.root for family in families],
            logs=logs,
            graves=[_save_grave(grave) for grave in forest.graves.values()],
            counts=list(replica.references.counts.items()),
            garbage=list(replica.references.garbage.items()),
            brokers=[_save_broker(name, broker) for name, broker in replica.brokers.items()],
            requests=list(replica.requests.items()),
            expiring=sorted(
                (log.expires_at, log.id)
                for log in forest.logs.values()
                if log.expires_at is not None
            ),
            limits=replicated(replica.limits),
            family_ids=[family.id for family in families],
            format=replica.format,
            placement=_save_placement(replica.placement),
            shared=list(replica.references.shared),
            guards=replica.guards,
            appends=appends,
            request_digests=list(replica.requests.digests()),
            append_digests=append_digests,
            append_logs=append_logs,
            plans=replica.plans.save(replica.references.sizes),
            compactors=[*replica.compactors.values()],
        )
    )


def load(content: bytes, limits: Limits) -> Replica:
    head = msgspec.msgpack.decode(content, type=list[msgspec.Raw])
    version = msgspec.msgpack.decode(head[0], type=int)
    if version > VERSION:
        raise JournalTooNew("the snapshot", version)
    image = _decoder.decode(content)
    replica = Replica(image.cluster, limits)
    replica.at = image.at
    replica.applied = image.applied
    replica.next_id = image.next_id
    replica.broker_epochs = image.broker_epochs
    ids = _family_ids(image)
    families = [Family(id, root) for id, root in zip(ids, image.families, strict=True)]
    for saved in image.logs:
        _load_log(replica, saved, families)
    for saved in image.logs:
        log = replica.forest.logs[saved.id]
        log.children = {id: replica.forest.logs[id] for id in saved.children}
    for grave in image.graves:
        _load_grave(replica, grave)
    assert len(replica.forest.logs) == len(image.logs), "an id is given once"
    replica.references.counts = dict(image.counts)
    replica.references.garbage = dict(image.garbage)
    replica.references.shared = dict.fromkeys(image.shared)
    replica.references.sizes = replica.plans.load(image.plans)
    for broker in image.brokers:
        record = replica.brokers[broker.name] = BrokerRecord(broker.epoch)
        record.committed = dict(broker.committed)
        record.highest = broker.highest
        record.swapped = broker.swapped
    replica.compactors = {each.id: each for each in image.compactors}
    digests = dict(image.request_digests)
    for request, at, outcome in image.requests:
        replica.requests.remember(request, at, outcome, digests.get(request, UNKNOWN))
    replica.appends.load(image.appends, image.append_digests, image.append_logs)
    replica.expiring = image.expiring
    replica.limit(image.limits)
    replica.raise_format(image.format)
    replica.guards = image.guards
    if image.family_ids or image.placement.seats:
        _load_placement(replica.placement, image.placement)
    else:
        for log in replica.forest.logs.values():
            replica.place(log)
    return replica


def _family_ids(image: _Image) -> list[LogId]:
    """Images of one machine's logs didn't name them: any id that no other family has will do."""
    if image.family_ids:
        return image.family_ids
    first: dict[int, LogId] = {}
    for log in image.logs:
        first.setdefault(log.family, log.id)
    return [first[family] for family in range(len(image.families))]


def _save_placement(placement: Placement) -> _Placement:
    return _Placement(
        [
            _Seat(seat.name, seat.address, seat.epoch, seat.state)
            for _, seat in sorted(placement.seats.items())
        ],
        sorted(placement.roots.items()),
        sorted((tree, name, placement.forks[tree]) for tree, name in placement.trees.items()),
        sorted(placement.alone.items()),
    )


def _load_placement(placement: Placement, saved: _Placement) -> None:
    seats = placement.seats
    for each in saved.seats:
        seat = seats[each.name] = Seat(each.name, each.address, each.epoch)
        seat.state = each.state
    for root, name in saved.roots:
        placement.roots[root] = name
        if name:
            seats[name].roots.add(root)
    for tree, name, forks in saved.trees:
        placement.trees[tree], placement.forks[tree] = name, forks
        if name:
            seats[name].trees.add(tree)
    for fork, name in saved.alone:
        placement.alone[fork] = name
        if name:
            seats[name].alone.add(fork)


def _save_broker(name: str, broker: BrokerRecord) -> _Broker:
    made = name, broker.epoch, list(broker.committed.items()), broker.highest, broker.swapped
    return _Broker(*made)


def _save_log(replica: Replica, log: Log, families: dict[Family, int]) -> _Log:
    tails = replica.forest.tails
    return _Log(
        id=log.id,
        name=log.name,
        kind=log.kind,
        family=families.setdefault(log.family, len(families)),
        parent=log.parent.id if log.parent else None,
        children=list(log.children),
        depth=log.depth,
        fork_point=log.fork_point,
        own_from=log.own_from,
        start=log.start,
        tail=tails.tail(log.place),
        block=tails.block(log.place),
        promotable=log.promotable,
        promotable_forks=log.promotable_forks,
        columns=_save_index(log.index),
        producers=_save_producers(log.producers),
        cursors=log.cursors,
        generation=log.generation,
        shifts=_save_shifts(log.shifts),
        created_at=log.created_at,
        expires_at=log.expires_at,
        on_parent_delete=log.on_parent_delete,
        by=log.by,
        why=log.why,
        on_promote=log.on_promote,
        quota=replica.forest.quotas.get(log.id),
        owner=log.owner,
        engine=log.engine,
        settings=log.settings,
        front=_save_front(log.front) if log.front is not None else None,
        writers=marks.save(log.marks),
    )


def _load_log(replica: Replica, saved: _Log, families: list[Family]) -> None:
    """Parents come before their forks: ids only grow, and a log is only ever re-parented
    upwards.
    """
    forest = replica.forest
    parent = None if saved.parent is None else forest.logs[saved.parent]
    if saved.kind is Kind.CONTINUOUS:
        assert parent is not None
        place = forest.tails.fork(parent.place, saved.tail, saved.block)
    else:
        place = forest.tails.root(saved.tail)
    log = Log(saved.id, saved.name, saved.kind, families[saved.family], place)
    log.parent = parent
    log.depth = saved.depth
    log.fork_point = saved.fork_point
    log.own_from = saved.own_from
    log.start = saved.start
    log.promotable = saved.promotable
    log.promotable_forks = saved.promotable_forks
    log.index = _load_index(saved.columns)
    log.producers = _load_producers(saved.producers)
    log.cursors = saved.cursors
    log.generation = saved.generation
    log.shifts = _load_shifts(saved.shifts)
    log.created_at = saved.created_at
    log.expires_at = saved.expires_at
    log.on_parent_delete = saved.on_parent_delete
    log.by, log.why = saved.by, saved.why
    log.on_promote = saved.on_promote
    log.engine, log.settings = saved.engine, saved.settings
    log.marks = marks.load(saved.writers)
    log.front = _load_front(saved.front) if saved.front is not None else None
    if saved.quota is not None:
        forest.quotas[log.id] = saved.quota
    forest.add(log)
    forest.give(log, saved.owner)


def _save_front(front: Front) -> _Front:
    return _Front(
        settings=front.settings,
        configuration=front.configuration,
        epoch=front.epoch,
        number=front.number,
        records=front.records,
        eras=list(front.eras),
        lists=list(front.lists),
        ended=front.ended,
    )


def _load_front(saved: _Front) -> Front:
    front = Front(saved.settings)
    front.configuration, front.epoch = saved.configuration, saved.epoch
    front.number, front.records = saved.number, saved.records
    front.eras, front.lists = deque(saved.eras), deque(saved.lists)
    front.ended = saved.ended
    return front


def _save_grave(grave: Tombstone) -> _Grave:
    return _Grave(
        id=grave.id,
        name=grave.name,
        refusal=grave.refusal,
        at=grave.at,
        promoted_into=grave.promoted_into,
        producers=_save_producers(grave.producers),
        generation=grave.generation,
        shifts=_save_shifts(grave.shifts),
        parent_generation=grave.parent_generation,
        owner=grave.owner,
    )


def _load_grave(replica: Replica, saved: _Grave) -> None:
    grave = Tombstone(saved.id, saved.name, saved.refusal, saved.at, saved.owner)
    grave.promoted_into = saved.promoted_into
    grave.producers = _load_producers(saved.producers)
    grave.generation = saved.generation
    grave.shifts = _load_shifts(saved.shifts)
    grave.parent_generation = saved.parent_generation
    forest = replica.forest
    forest.graves[grave.id] = grave
    if grave.name not in forest.names:
        forest.graves_by_name[grave.name] = grave.id
    if grave.owner:
        forest.graves_by_owner[grave.owner] = grave.id


def _save_index(index: Index) -> _Columns:
    noted = index.origins
    return _Columns(
        forgotten=index.forgotten,
        first=index.first.tobytes(),
        upto=index.upto.tobytes(),
        object=index.object.tobytes(),
        offset=index.offset.tobytes(),
        length=index.length.tobytes(),
        at=index.at.tobytes(),
        skips=index.skips,
        origins=(noted.first.tobytes(), noted.log.tobytes(), noted.shift.tobytes()),
        sum=index.sum.tobytes(),
    )


def _load_index(columns: _Columns) -> Index:
    index = Index()
    index.forgotten = columns.forgotten
    index.first = array("q", columns.first)
    index.upto = array("q", columns.upto)
    index.object = array("Q", columns.object)
    index.offset = array("I", columns.offset)
    index.length = array("I", columns.length)
    index.at = array("q", columns.at)
    index.sum = array("I", columns.sum or bytes(len(columns.length)))
    index.skips = columns.skips
    assert len({len(getattr(index, column)) for column in COLUMNS}) == 1, "columns are alike long"
    index.origins.load(*columns.origins)
    return index


def _save_producers(producers: dict[int, Producer]) -> list[_Producer]:
    return [
        _Producer(id, producer.epoch, producer.next, producer.at, producer.recent)
        for id, producer in producers.items()
    ]


def _load_producers(saved: list[_Producer]) -> dict[int, Producer]:
    producers: dict[int, Producer] = {}
    for each in saved:
        producer = producers[each.id] = Producer(each.epoch, each.at)
        producer.next = each.next
        producer.recent = each.recent
    return producers


def _save_shifts(shifts: list[Shift]) -> list[_Shift]:
    return [_Shift(s.since, s.generation, s.thresholds, s.counts) for s in shifts]


def _load_shifts(saved: list[_Shift]) -> list[Shift]:
    return [Shift(s.since, s.generation, s.thresholds, s.counts) for s in saved]
