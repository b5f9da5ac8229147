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
    """Base of all: carries its facts, so that it can cross a wire and be raised again on the other side."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    advice: ClassVar[str] = "report"

    def __init__(self, message: str, **facts: Fact) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


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
    """A promotable fork has made the parent's positions past its fork point provisional (AgileLog, 4.1)."""

    code = "read-blocked"
    status = 409

    def __init__(self, log: str, position: int, fork: str) -> None:
        super().__init__(
            f"{log} can't be read at {position} while promotable fork {fork} is undecided: promote or "
            f"squash it, read before its fork point, or subscribe to get these records as speculative",
            log=log,
            position=position,
            fork=fork,
        )


class AppendBlocked(Retry):
    """A non-promotable fork takes no appends while a promotable sibling is undecided (AgileLog, 4.1)."""

    code = "append-blocked"
    status = 409

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(
            f"{log} takes no appends while promotable fork {fork} of an ancestor is undecided: "
            f"promote or squash it, or append to a promotable fork",
            log=log,
            fork=fork,
        )


class ForkBlocked(Retry):
    """A fork here would expose positions that an undecided promotable fork may still move (spec D3)."""

    code = "fork-blocked"
    status = 409

    def __init__(self, log: str, fork: str, settled: int) -> None:
        super().__init__(
            f"{log} can't be forked so while promotable fork {fork} is undecided: fork it severed "
            f"below position {settled}, fork its parent promotable, or promote or squash {fork} first",
            log=log,
            fork=fork,
            settled=settled,
        )


class ReceiptPending(Retry):
    """The position of an append is withheld until the promotable forks of its log are decided."""

    code = "receipt-pending"
    status = 409

    def __init__(self, log: str, fork: str) -> None:
        super().__init__(
            f"the position on {log} is withheld while promotable fork {fork} is undecided: "
            f"ask again after it is promoted or squashed",
            log=log,
            fork=fork,
        )


class Overloaded(Retry):
    code = "overloaded"
    status = 429

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(
            f"{what}: the limit of {limit} ({setting}) is reached; slow down and try again",
            what=what,
            limit=limit,
            setting=setting,
        )


class Unavailable(Retry):
    code = "unavailable"
    status = 503

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} is not available now: {reason}; try again", what=what, reason=reason)


class DeadlineExceeded(Retry):
    """Nothing is known about the outcome; a retry with the same request id or sequence is safe."""

    code = "deadline-exceeded"
    status = 504

    def __init__(self, what: str, deadline_ms: int) -> None:
        super().__init__(
            f"{what} was not answered within {deadline_ms} ms and may or may not have happened: "
            f"ask again with the same request id, which never does it twice",
            what=what,
            deadline_ms=deadline_ms,
        )


class StorageFull(Retry):
    code = "storage-full"
    status = 507

    def __init__(self, where: str) -> None:
        super().__init__(
            f"no space is left at {where}: nothing was acknowledged; free space and appends go on by themselves",
            where=where,
        )


class StorageFailed(Retry):
    code = "storage-failed"
    status = 503

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where} failed: {reason}; check the device, then try again", where=where, reason=reason)


class Promoted(Refresh):
    """The fork has become its parent; its positions are now the parent's (AgileLog, 4.1)."""

    code = "promoted"
    status = 410

    def __init__(self, log: str, into: str) -> None:
        super().__init__(
            f"{log} was promoted: its records are now {into}'s, at the same positions; use {into}",
            log=log,
            into=into,
        )


class Squashed(Refresh):
    """The fork was deleted, by somebody, by its time to live, or by a sibling's promotion."""

    code = "squashed"
    status = 410

    def __init__(self, log: str, reason: str, parent: str) -> None:
        super().__init__(
            f"{log} was squashed ({reason}) and its own records are gone; the history it shared is in {parent}",
            log=log,
            reason=reason,
            parent=parent,
        )


class SequenceGap(Refresh):
    """A producer's batch arrived before the ones it sent earlier, or the log has forgotten the producer."""

    code = "sequence-gap"
    status = 409

    def __init__(self, log: str, producer: int, expected: int, got: int) -> None:
        super().__init__(
            f"producer {producer} sent sequence {got} to {log}, which expects {expected}: "
            f"send the missing batches first, or start anew with another producer id",
            log=log,
            producer=producer,
            expected=expected,
            got=got,
        )


class ReceiptExpired(Refresh):
    code = "receipt-expired"
    status = 410

    def __init__(self, log: str) -> None:
        super().__init__(
            f"this receipt of {log} is older than the promotions that are remembered: "
            f"the record is in the log, find it by reading",
            log=log,
        )


class RequestForgotten(Refresh):
    code = "request-forgotten"
    status = 409

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is older than the replies that are kept: look at the state, then decide", what=what)


class BrokerFenced(Fenced):
    code = "broker-fenced"

    def __init__(self, broker: str, epoch: int, current: int) -> None:
        super().__init__(
            f"broker {broker} of epoch {epoch} has been replaced by epoch {current}: it must stop",
            broker=broker,
            epoch=epoch,
            current=current,
        )


class DataDirLocked(Fenced):
    code = "data-dir-locked"

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(
            f"{path} is in use by process {pid}: stop it first, or choose another --data",
            path=path,
            pid=pid,
        )


class UnknownLog(Mistake):
    code = "unknown-log"
    status = 404

    def __init__(self, log: str) -> None:
        super().__init__(f"there is no log {log}: `anabranch log list` shows what there is", log=log)


class LogExists(Mistake):
    code = "log-exists"
    status = 409

    def __init__(self, log: str) -> None:
        super().__init__(f"{log} exists already: choose another name", log=log)


class BadName(Mistake):
    code = "bad-name"
    status = 422

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name!r} can't be a name: {reason}", name=name, reason=reason)


class BadRequest(Mistake):
    code = "bad-request"
    status = 422

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}", what=what, reason=reason)


class OutOfRange(Mistake):
    code = "out-of-range"
    status = 416

    def __init__(self, log: str, position: int, start: int, tail: int) -> None:
        super().__init__(
            f"{log} holds positions {start} up to {tail} (not included), {position} is not one of them",
            log=log,
            position=position,
            start=start,
            tail=tail,
        )


class NotPromotable(Mistake):
    code = "not-promotable"
    status = 409

    def __init__(self, log: str, reason: str) -> None:
        super().__init__(
            f"{log} can't be promoted: {reason}; only continuous forks created promotable can", log=log, reason=reason
        )


class IsRoot(Mistake):
    code = "is-root"
    status = 409

    def __init__(self, log: str) -> None:
        super().__init__(f"{log} is a root log, which can't be squashed: delete it with `log delete`", log=log)


class NotRoot(Mistake):
    code = "not-root"
    status = 409

    def __init__(self, log: str) -> None:
        super().__init__(f"{log} is a fork, which can't be deleted as a log: squash it", log=log)


class LogHasForks(Mistake):
    code = "log-has-forks"
    status = 409

    def __init__(self, log: str, forks: int) -> None:
        super().__init__(
            f"{log} has {forks} forks: squash them first, or delete with force, which squashes its continuous "
            f"forks and lets severed ones keep what they need",
            log=log,
            forks=forks,
        )


class RecordTooLarge(Mistake):
    code = "record-too-large"
    status = 413

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"a record of {size} bytes is over the limit of {limit} (record_bytes_max): store the value "
            f"elsewhere and append its address, or raise the limit",
            size=size,
            limit=limit,
        )


class BatchTooLarge(Mistake):
    code = "batch-too-large"
    status = 413

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"a batch of {size} bytes or records is over the limit of {limit}: send smaller batches",
            size=size,
            limit=limit,
        )


class TooMany(Mistake):
    """A structural limit: more of these are refused until some are gone."""

    code = "too-many"
    status = 409

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(
            f"{what}: the limit is {limit} ({setting}); remove some, or raise it", what=what, limit=limit
        )


class CorruptBatch(Mistake):
    code = "corrupt-batch"
    status = 422

    def __init__(self, reason: str, where: str) -> None:
        super().__init__(
            f"the record batch {where} is damaged: {reason}; nothing of it was appended", reason=reason, where=where
        )


class UnsupportedBatch(Mistake):
    code = "unsupported-batch"
    status = 422

    def __init__(self, reason: str) -> None:
        super().__init__(f"this record batch can't be taken: {reason}", reason=reason)


class BadFrame(Mistake):
    code = "bad-frame"
    status = 400

    def __init__(self, reason: str) -> None:
        super().__init__(f"the frame can't be read: {reason}", reason=reason)


class VersionMismatch(Mistake):
    code = "version-mismatch"
    status = 426

    def __init__(self, theirs: int, ours: int) -> None:
        super().__init__(
            f"the other side speaks protocol version {theirs}, this one {ours}: upgrade the older of the two",
            theirs=theirs,
            ours=ours,
        )


class Unauthorized(Mistake):
    code = "unauthorized"
    status = 401

    def __init__(self) -> None:
        super().__init__("no valid token was given: pass one with --token or ANABRANCH_TOKEN")


class WrongCluster(Mistake):
    code = "wrong-cluster"
    status = 409

    def __init__(self, where: str, theirs: str, ours: str) -> None:
        super().__init__(
            f"{where} belongs to cluster {theirs}, not to {ours}: choose the right place, or an empty one",
            where=where,
            theirs=theirs,
            ours=ours,
        )


class ObjectExists(Fenced):
    """Create-only writes are what keeps a fenced broker from overwriting."""

    code = "object-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"object {name} exists already and is never overwritten", name=name)


class ObjectMissing(Damage):
    code = "object-missing"

    def __init__(self, name: str) -> None:
        super().__init__(f"object {name} is referenced but not in the store: run `anabranch fsck`", name=name)


class CorruptObject(Damage):
    code = "corrupt-object"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"object {name} is damaged: {reason}; run `anabranch fsck`", name=name, reason=reason)


class JournalCorrupt(Damage):
    code = "journal-corrupt"

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(
            f"journal file {path} is damaged at byte {offset}: {reason}; nothing was changed. "
            f"Restore the file, or run `anabranch fsck` to see what it would cost to cut it there",
            path=path,
            offset=offset,
            reason=reason,
        )


class JournalTooNew(Damage):
    code = "journal-too-new"

    def __init__(self, path: str, version: int) -> None:
        super().__init__(
            f"{path} was written by a newer version (format {version}): upgrade before opening it",
            path=path,
            version=version,
        )


def _family(root: type[AnabranchError]) -> list[type[AnabranchError]]:
    """Depth first in order of definition, so that the table of codes reads like this file."""
    return [root, *(c for child in root.__subclasses__() for c in _family(child))]


BY_CODE = {kind.code: kind for kind in _family(AnabranchError)}


def restore(code: str, message: str, facts: dict[str, Fact]) -> AnabranchError:
    """The error that the other side raised, as the same class where this version knows it."""
    kind = BY_CODE.get(code, AnabranchError)
    error = kind.__new__(kind)
    AnabranchError.__init__(error, message, **facts)
    return error
