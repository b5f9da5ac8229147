"""Lazy fronts: who orders through one, what it has committed, and the receipts of its records
(decision 62).

Rules it holds:
1. A batch is committed in the latest epoch that was opened, and after the one numbered before it.
2. A record that came through the front has the next offset, whatever becomes of its position.
3. The ids of a batch are kept until all replicas have dropped them.
4. A configuration is decided by the controller of the latest term.
"""

from typing import Protocol

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.protocol.commands import (
    BOLT,
    CreateLog,
    EngineSettings,
    Receipt,
    Row,
    check_format,
)
from anabranch.core.bolt.protocol.fronts import (
    ConfigureFront,
    EndFront,
    FindReceipt,
    FrontConfiguration,
    FrontOpened,
    LeadFront,
    OpenFront,
    ReadFront,
)
from anabranch.core.errors import (
    BadRequest,
    Deposed,
    ReceiptExpired,
    SequenceGap,
    StaleView,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import LogId, Position

FRONTS_FORMAT = 7
"""From this format on a log can have a front."""
SWITCH_FORMAT = 8
"""From this format on a log that is there can get one."""
FRONT_PRODUCER = -1
"""What an error calls the front in the place of a producer."""
DURABILITIES = ("fsync", "memory")
SEQUENCERS_MAX = 9


class Known(Protocol):
    """What the metadata know: a replica of it."""

    @property
    def forest(self) -> Forest: ...

    @property
    def format(self) -> int: ...


_WHAT = "a batch of the log's front"


def chosen(replica: Known, command: CreateLog, name: str) -> Front | None:
    """The front of a log that is about to be made. Raises BadRequest if it can't have one."""
    if command.front is None:
        return None
    if command.engine not in ("", BOLT):
        raise BadRequest(name, f"only a bolt log has a lazy front, not a log of {command.engine}")
    return made(replica, command.front, name)


def made(replica: Known, settings: EngineSettings, name: str) -> Front:
    """A front with these settings; raises BadRequest if there is none."""
    check_format(replica.format, FRONTS_FORMAT, "a log with a lazy front")
    settings = replace(settings, durability=settings.durability or DURABILITIES[0])
    if settings.durability not in DURABILITIES:
        known, given = " or ".join(DURABILITIES), settings.durability
        raise BadRequest(name, f"its durability is {known}, not {given!r}")
    if not 1 <= settings.sequencers <= SEQUENCERS_MAX:
        reason = f"its front can have 1 to {SEQUENCERS_MAX} sequencers, not {settings.sequencers}"
        raise BadRequest(name, reason)
    if settings.mode or settings.black_box or (settings.shards, settings.replicas) != (1, 1):
        reason = "a lazy front has no mode, black box, shards and replicas: leave them out"
        raise BadRequest(name, reason)
    return Front(settings)


def lead(replica: Known, command: LeadFront) -> FrontConfiguration:
    log, front = _front(replica, command.log)
    if not 0 < len(command.sequencers) <= SEQUENCERS_MAX:
        raise BadRequest(f"the front of {log.name}", f"it has 1 to {SEQUENCERS_MAX} sequencers")
    front.configuration = replace(
        front.configuration,
        term=front.configuration.term + 1,
        version=front.configuration.version + 1,
        sequencers=command.sequencers,
        fsync=front.settings.durability == "fsync",
    )
    return front.configuration


def configure(replica: Known, command: ConfigureFront) -> FrontConfiguration:
    log, front = _front(replica, command.log)
    known, asked = front.configuration, command.configuration
    if asked == known:
        return known
    if asked.term != known.term or asked.version != known.version + 1:
        raise Deposed(f"the front of {log.name}", asked.term)
    front.configuration = asked
    return asked


def open_front(replica: Known, command: OpenFront) -> FrontOpened:
    front = _front(replica, command.log)[1]
    if command.epoch < front.epoch:
        raise StaleView("the opening of a front", command.epoch.view, front.epoch.view)
    if command.epoch > front.epoch:
        front.epoch, front.number = command.epoch, 0
    assert front.epoch == command.epoch, "the latest opening counts"
    return FrontOpened(front.records, front.ids())


def end(replica: Known, log: Log) -> None:
    """From here on sequencers take nothing; the leader says when the rings are empty."""
    front = log.front
    if front is None or front.ended or front.configuration.ending:
        return
    known = front.configuration
    front.configuration = replace(known, version=known.version + 1, ending=True)
    assert replica.format >= SWITCH_FORMAT, "members know what that means"


def end_front(replica: Known, command: EndFront) -> FrontConfiguration:
    """Every acknowledged append is in the leader's ring or committed, and nobody else leads."""
    log, front = _front(replica, command.log, ended=True)
    if not front.ended:
        what = f"the end of the front of {log.name}"
        if not front.configuration.ending:
            raise BadRequest(what, "nobody has asked for it")
        if command.epoch != front.epoch:
            raise StaleView(what, command.epoch.view, front.epoch.view)
        if command.records != front.records:
            reason = f"{front.records} records came through it, not {command.records}"
            raise BadRequest(what, reason)
        front.ended = True
        front.lists.clear()
        del replica.forest.fronts[log.id]
    return front.configuration


def read_front(replica: Known, query: ReadFront) -> FrontConfiguration:
    return _front(replica, query.log)[1].configuration


def refusal(log: Log, row: Row) -> Refused | None:
    """Why this row of a front can't be committed now."""
    front, mark = log.front, row.front
    assert mark is not None
    if front is None or front.ended:
        return Refused.of(BadRequest(_WHAT, f"{log.name} has no lazy front"))
    if mark.epoch != front.epoch:
        return Refused.of(StaleView(_WHAT, mark.epoch.view, front.epoch.view))
    if mark.number != front.number + 1:
        return Refused.of(SequenceGap(log.name, FRONT_PRODUCER, front.number + 1, mark.number))
    if not 0 <= mark.released <= front.records:
        reason = f"it releases {mark.released} records of {front.records} that are committed"
        return Refused.of(BadRequest(_WHAT, reason))
    return None


def committed(log: Log, row: Row, position: Position) -> None:
    """The row's records are in the log from this position on."""
    front, mark = log.front, row.front
    assert front is not None
    assert mark is not None
    offset = front.records
    ids: list[tuple[AppendId, Position]] = []
    for batch in row.batches:
        ids.append((AppendId(batch.producer, batch.epoch, batch.sequence), offset))
        offset += batch.count
    front.committed(ids, offset - front.records, at=position, generation=log.generation)
    assert offset == front.records, "offsets are dense"
    front.release(mark.released)


def find_receipt(replica: Known, query: FindReceipt) -> Receipt:
    log, front = _front(replica, query.log, ended=True)
    if not 0 <= query.offset < front.records:
        reason = f"{front.records} came through the front of {log.name}"
        raise BadRequest(f"the record at offset {query.offset}", reason)
    era = front.era(query.offset)
    if era is None:
        raise ReceiptExpired(log.name)
    return Receipt(log.id, era.generation, query.offset + era.shift)


def _front(replica: Known, id: LogId, *, ended: bool = False) -> tuple[Log, Front]:
    """`ended`: also one that has ended."""
    log = replica.forest.find_own(id, "ordering by a front")
    if log.front is None:
        raise BadRequest(log.name, "it has no lazy front: it was created without one")
    if log.front.ended and not ended:
        raise BadRequest(log.name, "its lazy front has ended: its appends are direct")
    return log, log.front
