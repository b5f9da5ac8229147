"""CommitObject: durable batches get their places in the order of their logs (AgileLog, 5.2,
5.5.1; spec 4 a5).

The hot path of the metadata: a row is one log's batches in one object and becomes one extent,
unless a batch in it was committed before or must be refused, which cuts the extent there.
"""

from msgspec.structs import replace

from anabranch.core.bolt.logs import fronts, writers
from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    Committed,
    Receipt,
    Row,
    Sequenced,
)
from anabranch.core.bolt.protocol.marks import AlreadyAppended
from anabranch.core.bolt.state.quotas import told
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.requests import ANY_LOG, APART_FORMAT, LOG_FORMAT, log_tag
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadRequest,
    BrokerFenced,
    LateCommit,
    LazyAppendsOnly,
    Overloaded,
    ReceiptExpired,
    RequestReused,
    SequenceGap,
    Unavailable,
    WrongEngine,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.producers import REQUEST_EPOCH, SEQUENCE_SPACE, Producer, is_request
from anabranch.core.records.objects import split_id
from anabranch.core.records.set_sum import UNKNOWN, packed_sum
from anabranch.core.types import Milliseconds, ObjectId, Position

BatchResult = Position | Receipt | AlreadyAppended | Refused

SUMS_FORMAT = 10
"""From this one on extents keep the set sums that brokers say: a member of an earlier format would
lose them."""


def commit(replica: Replica, command: CommitObject) -> Committed:
    """Sequence every row; asked again about the same object, answer as the first time."""
    broker = replica.brokers.get(command.broker)
    epoch, _ = split_id(command.object)
    if broker is None or broker.epoch != epoch:
        raise BrokerFenced(command.broker, epoch, broker.epoch if broker else replica.broker_epochs)
    if epoch in replica.compactors:
        raise BadRequest(f"a commit of {command.broker}", "a compactor commits nothing")
    known = broker.committed.get(command.object)
    if known is not None:
        return known
    if broker.is_late(command.number):
        raise LateCommit(command.broker, command.number)
    if replica.format < SUMS_FORMAT:
        command = _without_sums(command)
    forest, at = replica.forest, replica.at
    extents = 0
    results: list[int | Receipt | Sequenced | Refused] = []
    for row in command.rows:
        log = forest.logs.get(row.log)
        refusal = _refusal(replica, row, log)
        if refusal is not None:
            results.append(refusal)
            continue
        assert log is not None
        if row.front is None:
            added, result = _sequence(replica, log, row, command, at)
        else:
            added, result = _sequence_front(replica, log, row, command.object, at)
        extents += added
        results.append(result)
    # Of one that was refused whole; the common case doesn't pay for it.
    size = 0 if extents else sum(batch.length for row in command.rows for batch in row.batches)
    replica.references.created(command.object, extents, at, size)
    quotas = told(forest, (row.log for row in command.rows)) if forest.quotas else []
    committed = Committed(results, quotas)
    broker.remember(command.object, command.number, committed)
    return committed


def _without_sums(command: CommitObject) -> CommitObject:
    rows = [replace(row, sum=UNKNOWN) for row in command.rows]
    return replace(command, rows=rows, values=b"")


def _refusal(replica: Replica, row: Row, log: Log | None) -> Sequenced | Refused | None:
    forest = replica.forest
    if row.front is not None:
        return _refusal_of_front(replica, row, log)
    if log is None:
        return _of_the_gone(replica, row)
    if log.engine:
        return _of_another_engine(log, row)
    if log.front is not None and not log.front.ended:
        why: AnabranchError = LazyAppendsOnly(log.name)
        if log.front.configuration.ending:
            why = Unavailable(f"a direct append to {log.name}", "its lazy front is being emptied")
        return _but_for_the_known(replica, log, row, why)
    if forest.undecided and forest.tails.block(log.place):
        fork = forest.blocked_by(log)
        assert fork is not None, "only an undecided promotable fork blocks"
        return _but_for_the_known(replica, log, row, AppendBlocked(log.name, fork.name))
    return None


def _refusal_of_front(replica: Replica, row: Row, log: Log | None) -> Refused | None:
    """A batch of a front is known by its number alone. Where the log is blocked the batch waits."""
    forest = replica.forest
    try:
        log = log or forest.find(row.log)
    except AnabranchError as error:
        return Refused.of(error)
    if log.engine:
        return Refused.of(WrongEngine(log.name, log.engine, "append"))
    refused = fronts.refusal(log, row)
    fork = forest.blocked_by(log) if forest.undecided else None
    if refused is None and fork is not None:
        return Refused.of(AppendBlocked(log.name, fork.name))
    return refused


def _of_the_gone(replica: Replica, row: Row) -> Sequenced | Refused:
    """Appends to a log that is no more are refused, but for those that were committed while it
    lived.
    """
    forest = replica.forest
    try:
        forest.find(row.log)
    except AnabranchError as error:
        refused = Refused.of(error)
    else:
        raise AssertionError("only asked about logs that are gone")
    grave = forest.graves.get(row.log)
    if grave is not None and grave.promoted_into is None:
        grave = None
    if grave is None and not any(_is_apart(replica, batch) for batch in row.batches):
        return refused
    results: list[BatchResult] = []
    heir = replica.heir(row.log)
    for batch in row.batches:
        if batch.mark is not None:
            known = writers.find(replica, heir, batch.mark, batch.digest) if heir else None
            results.append(known or refused)
            continue
        done = _done_before(replica, None, batch)
        place = _remembered(grave.producers, batch) if grave else None
        if done is not None:
            results.append(done)
        else:
            results.append(Receipt(row.log, place[1], place[0]) if place else refused)
    return Sequenced(results)


def _of_another_engine(log: Log, row: Row) -> Sequenced | Refused:
    wrong = Refused.of(WrongEngine(log.name, log.engine, "append"))
    unmarked = writers.why_not(log)
    if unmarked is None or all(batch.mark is None for batch in row.batches):
        return wrong
    refused = Refused.of(unmarked)
    return Sequenced([wrong if batch.mark is None else refused for batch in row.batches])


def _but_for_the_known(
    replica: Replica, log: Log, row: Row, why: AnabranchError
) -> Sequenced | Refused:
    """Appends are refused, but for those that were committed before there was a reason to."""
    refused = Refused.of(why)
    results: list[BatchResult] = []
    unmarked = writers.why_not(log)
    for batch in row.batches:
        if batch.mark is not None:
            known = writers.find(replica, log, batch.mark, batch.digest)
            results.append(known or (Refused.of(unmarked) if unmarked else refused))
            continue
        done = _done_before(replica, log, batch)
        place = None if done is not None else _remembered(log.producers, batch)
        if done is None and place is not None:
            done = _again(replica, log, place)
        results.append(refused if done is None else done)
    return refused if all(each is refused for each in results) else Sequenced(results)


def _sequence(
    replica: Replica, log: Log, row: Row, command: CommitObject, at: Milliseconds
) -> tuple[int, int | Receipt | Sequenced]:
    """Give the row's batches their positions; how many extents that made, and the result."""
    tails, tail, object = replica.forest.tails, log.place, command.object
    first = position = tails.tail(tail)
    begin = offset = row.offset
    begun_at = first
    withheld = log.promotable_forks
    turn = since = extents = 0
    results: list[BatchResult] | None = None
    for batch in row.batches:
        known = None
        if batch.mark is not None:
            known = writers.append(replica, log, batch, position)
        elif batch.producer >= 0:
            # Few batches have this epoch, so most need no call to find out.
            if batch.epoch == REQUEST_EPOCH and _is_apart(replica, batch):
                known = _request(replica, log, batch, position, bool(withheld))
            else:
                known = _known(replica, log, batch, position, at)
        if known is not None:
            if results is None:
                results = _plain(row.batches[:turn], log, first, bool(withheld))
            results.append(known)
            if position > begun_at:
                total = _part_sum(command, row, since, turn)
                place = object, begin, offset - begin
                log.index.append(begun_at, position - begun_at, *place, at, total)
                extents += 1
            begin, begun_at, since = offset + batch.length, position, turn + 1
        else:
            if results is not None:
                results.append(_result(log, position, bool(withheld)))
            position += batch.count
        offset += batch.length
        turn += 1
    if position > begun_at:
        total = row.sum if results is None else _part_sum(command, row, since, turn)
        log.index.append(begun_at, position - begun_at, object, begin, offset - begin, at, total)
        extents += 1
    if position > first:
        tails.append(tail, position - first)
    if results is not None:
        return extents, Sequenced(results)
    return extents, Receipt(log.id, log.generation, first) if withheld else first


def _part_sum(command: CommitObject, row: Row, first: int, end: int) -> int:
    """Of some batches of a row: others of it were committed before, or can't be."""
    before = 0
    for each in command.rows:
        if each is row:
            break
        before += len(each.batches)
    return packed_sum(command.values, before + first, before + end)


def _sequence_front(
    replica: Replica, log: Log, row: Row, object: ObjectId, at: Milliseconds
) -> tuple[int, int | Receipt]:
    """Give a front's batch its positions; its replicas know which appends are repeated."""
    tails, place = replica.forest.tails, log.place
    first = tails.tail(place)
    count = sum(batch.count for batch in row.batches)
    length = sum(batch.length for batch in row.batches)
    log.index.append(first, count, object, row.offset, length, at, row.sum)
    tails.append(place, count)
    fronts.committed(log, row, first)
    return 1, _result(log, first, bool(log.promotable_forks))


def _result(log: Log, position: Position, withheld: bool) -> Position | Receipt:
    """Past an undecided promotable fork's point a position may still move, and is not told
    (AgileLog, 4.1).
    """
    return Receipt(log.id, log.generation, position) if withheld else position


def _plain(batches: list[Batch], log: Log, position: Position, withheld: bool) -> list[BatchResult]:
    results: list[BatchResult] = []
    for batch in batches:
        results.append(_result(log, position, withheld))
        position += batch.count
    return results


def _known(
    replica: Replica, log: Log, batch: Batch, position: Position, at: Milliseconds
) -> BatchResult | None:
    """None if the batch is its producer's next, which is noted; else where it went, or why it
    can't go.
    """
    producer = log.producers.get(batch.producer)
    if producer is None or batch.epoch > producer.epoch:
        if batch.sequence != 0:
            return Refused.of(SequenceGap(log.name, batch.producer, 0, batch.sequence))
        if producer is None and not _room(replica, log, at):
            limit = replica.limits.producers_per_log_max
            return Refused.of(
                Overloaded(f"producers of {log.name}", limit, "producers_per_log_max")
            )
        producer = log.producers[batch.producer] = Producer(batch.epoch, at)
    if batch.sequence == producer.next and batch.epoch == producer.epoch:
        producer.next = (batch.sequence + batch.count) % SEQUENCE_SPACE
        producer.at = at
        producer.note(batch.sequence, position, log.generation)
        return None
    place = _remembered(log.producers, batch)
    if place is None:
        return Refused.of(SequenceGap(log.name, batch.producer, producer.next, batch.sequence))
    return _again(replica, log, place)


def _is_apart(replica: Replica, batch: Batch) -> bool:
    """Is it remembered by itself? Members of earlier formats know it as a producer's only batch."""
    if replica.format < APART_FORMAT or batch.mark is not None:
        return False
    return is_request(batch.producer, batch.epoch, batch.sequence)


def _done_before(replica: Replica, log: Log | None, batch: Batch) -> BatchResult | None:
    """The first outcome of this request, whatever has become of the log that it was appended to;
    a refusal if it was a request for other records. `log`: None if it is no more.
    """
    if not _is_apart(replica, batch):
        return None
    appends, identity = replica.appends, batch.producer
    appends.prune(replica.at, replica.limits)
    try:
        if log is None:
            return appends.at_gone_log(identity, batch.digest)
        return appends.at_log(identity, log.name, batch.digest, replica.format)
    except RequestReused as reused:
        return Refused.of(reused)


def _request(
    replica: Replica, log: Log, batch: Batch, position: Position, withheld: bool
) -> BatchResult | None:
    """None if this request is done now, which is noted; else its first outcome, or why it can't be
    done.
    """
    appends, now, limits = replica.appends, replica.at, replica.limits
    done = _done_before(replica, log, batch)
    if done is not None:
        return done
    place = _remembered(log.producers, batch)
    if place is not None:
        return _again(replica, log, place)
    if not appends.has_room(now, limits):
        return Refused.of(Overloaded("appends remembered", limits.requests_max, "requests_max"))
    tag = log_tag(log.name) if replica.format >= LOG_FORMAT else ANY_LOG
    outcome = _result(log, position, withheld)
    appends.remember_append((batch.producer, tag), now, outcome, batch.digest)
    return None


def _remembered(producers: dict[int, Producer], batch: Batch) -> tuple[Position, int] | None:
    """Where this very batch went, and in which generation, if it was committed before."""
    producer = producers.get(batch.producer)
    if producer is None:
        return None
    if producer.epoch == batch.epoch or is_request(batch.producer, batch.epoch, batch.sequence):
        # Of a request, whatever the epoch: it was appended before requests were kept apart.
        return producer.place(batch.sequence)
    return None


def _again(replica: Replica, log: Log, place: tuple[Position, int]) -> BatchResult:
    """Where a batch that was committed before is now."""
    try:
        return replica.whereabouts(Receipt(log.id, place[1], place[0]))
    except ReceiptExpired as error:
        return Refused.of(error)


def _room(replica: Replica, log: Log, at: Milliseconds) -> bool:
    """Is there room for one more producer, once those not heard of for long are forgotten?"""
    known = log.producers
    if (len(known) >= 1_024 and len(known) & (len(known) - 1) == 0) or _full(replica, log):
        idle = at - replica.limits.producer_idle_ms
        for id in [id for id, producer in known.items() if producer.at < idle]:
            del known[id]
    return not _full(replica, log)


def _full(replica: Replica, log: Log) -> bool:
    return len(log.producers) >= replica.limits.producers_per_log_max
