"""The one hierarchy of errors: a stable code, what was asked, what stood in the way, what to do.

AnabranchError
|-- Retry      the same request may succeed later
|-- Refresh    what the caller knows is out of date: look again, then decide
|-- Fenced     somebody else has taken over: stop
|-- Mistake    the request itself can't be granted
`-- Damage     stored bytes are not what was written: an operator must look
"""

from typing import ClassVar

Fact = str | int | None


class AnabranchError(Exception):
    """Base of all: carries its facts, so that it can cross a wire and be raised again on the
    other side.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    advice: ClassVar[str] = "report"
    says: ClassVar[str] = "{reason}"

    def __init__(self, **facts: Fact) -> None:
        self.facts = facts
        self.message = self.says.format(**facts)
        super().__init__(self.message)


class Retry(AnabranchError):
    code = "retry"
    status = 503
    advice = "retry"


class Refresh(AnabranchError):
    code = "refresh"
    status = 409
    advice = "refresh"


class Fenced(AnabranchError):
    code = "fenced"
    status = 409
    advice = "stop"


class Mistake(AnabranchError):
    code = "mistake"
    status = 400
    advice = "change the request"


class Damage(AnabranchError):
    code = "damage"
    status = 500
    advice = "run fsck"


class ReadBlocked(Retry):
    """A promotable fork has made the parent's positions past its fork point provisional
    (AgileLog, 4.1).
    """

    code = "read-blocked"
    status = 409
    says = (
        "{log} can't be read at {position} while promotable fork {fork} is undecided: promote or "
        "squash it, read before its fork point, or subscribe to get these records as speculative"
    )

    def __init__(self, log: str, position: int, fork: str) -> None:
        super().__init__(log=log, position=position, fork=fork)


class AppendBlocked(Retry):
    """A non-promotable fork takes no appends while a promotable sibling is undecided (AgileLog,
    4.1).
    """

    code = "append-blocked"
    status = 409
    says = (
        "{log} takes no appends while promotable fork {fork} of an ancestor is undecided: promote"
        " or squash it, or append to a promotable fork"
    )

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(log=log, fork=fork)


class ForkBlocked(Retry):
    """A fork here would expose positions that an undecided promotable fork may still move (spec
    D3).
    """

    code = "fork-blocked"
    status = 409
    says = (
        "{log} can't be forked so while promotable fork {fork} is undecided: fork it severed "
        "below position {settled}, fork its parent promotable, or promote or squash {fork} first"
    )

    def __init__(self, log: str, fork: str, settled: int) -> None:
        super().__init__(log=log, fork=fork, settled=settled)


class ReceiptPending(Retry):
    """The position of an append is withheld until the promotable forks of its log are decided."""

    code = "receipt-pending"
    status = 409
    says = (
        "the position on {log} is withheld while promotable fork {fork} is undecided: ask again "
        "after it is promoted or squashed"
    )

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(log=log, fork=fork)


class Overloaded(Retry):
    code = "overloaded"
    status = 429
    says = "{what}: the limit of {limit} ({setting}) is reached; slow down and try again"

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(what=what, limit=limit, setting=setting)


class Unavailable(Retry):
    code = "unavailable"
    status = 503
    says = "{what} is not available now: {reason}; try again"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what=what, reason=reason)


class DeadlineExceeded(Retry):
    """Nothing is known about the outcome; a retry with the same request id or sequence is safe."""

    code = "deadline-exceeded"
    status = 504
    says = (
        "{what} was not answered within {deadline_ms} ms and may or may not have happened: ask "
        "again with the same request id, which never does it twice"
    )

    def __init__(self, what: str, deadline_ms: int) -> None:
        super().__init__(what=what, deadline_ms=deadline_ms)


class StorageFull(Retry):
    code = "storage-full"
    status = 507
    says = (
        "no space is left at {where}: nothing was acknowledged; free space and appends go on by "
        "themselves"
    )

    def __init__(self, where: str) -> None:
        super().__init__(where=where)


class StorageFailed(Retry):
    code = "storage-failed"
    status = 503
    says = "{where} failed: {reason}; check the device, then try again"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where=where, reason=reason)


class Promoted(Refresh):
    """The fork has become its parent; its positions are now the parent's (AgileLog, 4.1)."""

    code = "promoted"
    status = 410
    says = "{log} was promoted: its records are now {into}'s, at the same positions; use {into}"

    def __init__(self, log: str, into: str) -> None:
        super().__init__(log=log, into=into)


class Squashed(Refresh):
    """The fork was deleted, by somebody, by its time to live, or by a sibling's promotion."""

    code = "squashed"
    status = 410
    says = (
        "{log} was squashed ({reason}) and its own records are gone; the history it shared is in "
        "{parent}"
    )

    def __init__(self, log: str, reason: str, parent: str) -> None:
        super().__init__(log=log, reason=reason, parent=parent)


class SequenceGap(Refresh):
    """A producer's batch arrived before the ones it sent earlier, or the log has forgotten the
    producer.
    """

    code = "sequence-gap"
    status = 409
    says = (
        "producer {producer} sent sequence {got} to {log}, which expects {expected}: send the "
        "missing batches first, or start anew with another producer id"
    )

    def __init__(self, log: str, producer: int, expected: int, got: int) -> None:
        super().__init__(log=log, producer=producer, expected=expected, got=got)


class ReceiptExpired(Refresh):
    code = "receipt-expired"
    status = 410
    says = (
        "this receipt of {log} is older than the promotions that are remembered: the record is in"
        " the log, find it by reading"
    )

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class RequestForgotten(Refresh):
    code = "request-forgotten"
    status = 409
    says = "{what} is older than the replies that are kept: look at the state, then decide"

    def __init__(self, what: str) -> None:
        super().__init__(what=what)


class BrokerFenced(Fenced):
    code = "broker-fenced"
    says = "broker {broker} of epoch {epoch} has been replaced by epoch {current}: it must stop"

    def __init__(self, broker: str, epoch: int, current: int) -> None:
        super().__init__(broker=broker, epoch=epoch, current=current)


class DataDirLocked(Fenced):
    code = "data-dir-locked"
    says = "{path} is in use by process {pid}: stop it first, or choose another --data"

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(path=path, pid=pid)


class UnknownLog(Mistake):
    code = "unknown-log"
    status = 404
    says = "there is no log {log}: `anabranch log list` shows what there is"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class LogExists(Mistake):
    code = "log-exists"
    status = 409
    says = "{log} exists already: choose another name"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class BadName(Mistake):
    code = "bad-name"
    status = 422
    says = "{name!r} can't be a name: {reason}"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name=name, reason=reason)


class BadRequest(Mistake):
    code = "bad-request"
    status = 422
    says = "{what}: {reason}"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what=what, reason=reason)


class OutOfRange(Mistake):
    code = "out-of-range"
    status = 416
    says = (
        "{log} holds positions {start} up to {tail} (not included), {position} is not one of them"
    )

    def __init__(self, log: str, position: int, start: int, tail: int) -> None:
        super().__init__(log=log, position=position, start=start, tail=tail)


class NotPromotable(Mistake):
    code = "not-promotable"
    status = 409
    says = "{log} can't be promoted: {reason}; only continuous forks created promotable can"

    def __init__(self, log: str, reason: str) -> None:
        super().__init__(log=log, reason=reason)


class IsRoot(Mistake):
    code = "is-root"
    status = 409
    says = "{log} is a root log, which can't be squashed: delete it with `log delete`"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class NotRoot(Mistake):
    code = "not-root"
    status = 409
    says = "{log} is a fork, which can't be deleted as a log: squash it"

    def __init__(self, log: str) -> None:
        super().__init__(log=log)


class LogHasForks(Mistake):
    code = "log-has-forks"
    status = 409
    says = (
        "{log} has {forks} forks: squash them first, or delete with force, which squashes its "
        "continuous forks and lets severed ones keep what they need"
    )

    def __init__(self, log: str, forks: int) -> None:
        super().__init__(log=log, forks=forks)


class RecordTooLarge(Mistake):
    code = "record-too-large"
    status = 413
    says = (
        "a record of {size} bytes is over the limit of {limit} (record_bytes_max): store the "
        "value elsewhere and append its address, or raise the limit"
    )

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size=size, limit=limit)


class BatchTooLarge(Mistake):
    code = "batch-too-large"
    status = 413
    says = "a batch of {size} bytes or records is over the limit of {limit}: send smaller batches"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size=size, limit=limit)


class TooMany(Mistake):
    """A structural limit: more of these are refused until some are gone."""

    code = "too-many"
    status = 409
    says = "{what}: the limit is {limit} ({setting}); remove some, or raise it"

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(what=what, limit=limit, setting=setting)


class CorruptBatch(Mistake):
    code = "corrupt-batch"
    status = 422
    says = "the record batch {where} is damaged: {reason}; nothing of it was appended"

    def __init__(self, reason: str, where: str) -> None:
        super().__init__(reason=reason, where=where)


class UnsupportedBatch(Mistake):
    code = "unsupported-batch"
    status = 422
    says = "this record batch can't be taken: {reason}"

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class BadFrame(Mistake):
    code = "bad-frame"
    status = 400
    says = "the frame can't be read: {reason}"

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class VersionMismatch(Mistake):
    code = "version-mismatch"
    status = 426
    says = (
        "the other side speaks protocol version {theirs}, this one {ours}: upgrade the older of "
        "the two"
    )

    def __init__(self, theirs: int, ours: int) -> None:
        super().__init__(theirs=theirs, ours=ours)


class Unauthorized(Mistake):
    code = "unauthorized"
    status = 401
    says = "no valid token was given: pass one with --token or ANABRANCH_TOKEN"

    def __init__(self) -> None:
        super().__init__()


class WrongCluster(Mistake):
    code = "wrong-cluster"
    status = 409
    says = (
        "{where} belongs to cluster {theirs}, not to {ours}: choose the right place, or an empty "
        "one"
    )

    def __init__(self, where: str, theirs: str, ours: str) -> None:
        super().__init__(where=where, theirs=theirs, ours=ours)


class ObjectExists(Fenced):
    """Create-only writes are what keeps a fenced broker from overwriting."""

    code = "object-exists"
    says = "object {name} exists already and is never overwritten"

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class ObjectMissing(Damage):
    code = "object-missing"
    says = "object {name} is referenced but not in the store: run `anabranch fsck`"

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class CorruptObject(Damage):
    code = "corrupt-object"
    says = "object {name} is damaged: {reason}; run `anabranch fsck`"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name=name, reason=reason)


class JournalCorrupt(Damage):
    code = "journal-corrupt"
    says = (
        "journal file {path} is damaged at byte {offset}: {reason}; nothing was changed. Restore "
        "the file, or run `anabranch fsck` to see what it would cost to cut it there"
    )

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(path=path, offset=offset, reason=reason)


class JournalTooNew(Damage):
    code = "journal-too-new"
    says = "{path} was written by a newer version (format {version}): upgrade before opening it"

    def __init__(self, path: str, version: int) -> None:
        super().__init__(path=path, version=version)


def _family(root: type[AnabranchError]) -> list[type[AnabranchError]]:
    """Depth first in order of definition, so that the table of codes reads like this file."""
    return [root, *(c for child in root.__subclasses__() for c in _family(child))]


BY_CODE = {kind.code: kind for kind in _family(AnabranchError)}


def restore(code: str, message: str, facts: dict[str, Fact]) -> AnabranchError:
    """The error that the other side raised, as the same class where this version knows it."""
    kind = BY_CODE.get(code, AnabranchError)
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.message, error.facts = message, facts
    return error
