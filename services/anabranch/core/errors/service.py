"""What stands in the way of a request as such: its form, its size, its time, who asks and whom."""

from anabranch.core.errors.base import Damage, Fenced, Mistake, Refresh, Retry
from anabranch.core.errors.logs import ReceiptPending


class Overloaded(Retry):
    code = "overloaded"
    status = 429
    says = "{what}: the limit of {limit} ({setting}) is reached; slow down and try again"

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(what=what, limit=limit, setting=setting)


class QuotaExceeded(Retry):
    """The log has been given a quota, and it is used up; nothing was done."""

    code = "quota-exceeded"
    status = 429
    says = (
        "{log} may take {limit} ({quota}), and {used} are used at the moment: try again in "
        "{retry_after_ms} ms, send less, or set a larger quota"
    )

    def __init__(self, log: str, quota: str, limit: int, used: int, retry_after_ms: int) -> None:
        super().__init__(
            log=log, quota=quota, limit=limit, used=used, retry_after_ms=retry_after_ms
        )

    @property
    def retry_after_ms(self) -> int:
        found = self.facts["retry_after_ms"]
        assert isinstance(found, int)
        return found


class Unavailable(Retry):
    code = "unavailable"
    status = 503
    says = "{what} is not available now: {reason}; try again"

    def __init__(self, what: str, reason: str) -> None:
        # A reason that is such an error's message needn't say the advice a second time.
        super().__init__(what=what, reason=reason.removesuffix("; try again"))


class NotReady(Retry):
    """What a probe is told: some of what the service should do it can't do now."""

    code = "not-ready"
    status = 503
    says = "not ready: {reason}"

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class DeadlineExceeded(Retry):
    """The outcome isn't known, and the same call may be repeated: it reads, or doing it again
    changes nothing, or it carries a request id under which it is done once.
    """

    code = "deadline-exceeded"
    status = 504
    says = "{what} was not answered within {deadline_ms} ms and {outcome}: {advice}"

    def __init__(
        self,
        what: str,
        deadline_ms: int,
        request_id: str | None = None,
        advice: str = "",
        outcome: str = "may or may not have happened",
    ) -> None:
        if not advice:
            advice = (
                f"repeat it with request id {request_id}, under which it is done once"
                if request_id
                else "repeat it, which does no harm"
            )
        super().__init__(
            what=what,
            deadline_ms=deadline_ms,
            request_id=request_id,
            outcome=outcome,
            advice=advice,
        )

    @staticmethod
    def of_read(what: str, deadline_ms: int) -> "DeadlineExceeded":
        """Of a request that only reads."""
        advice = "ask again, and allow more time if it happens again"
        return DeadlineExceeded(what, deadline_ms, advice=advice, outcome="has changed nothing")


class PositionPending(DeadlineExceeded, ReceiptPending):
    """An acknowledged append has no position yet. Only the question for it may be repeated: the
    record is durable, and appended again it would be in the log twice.
    """

    code = "position-pending"
    status = 504
    says = (
        "{log} holds the record, and its position isn't bound yet: ask the receipt for the "
        "position again, and don't append the record again"
    )

    def __init__(self, log: str) -> None:
        Retry.__init__(self, log=log)


class OutcomeUnknown(Refresh):
    """It carries no request id and would be done twice if it were repeated blindly, so it must not
    be: this error is no `Retry`.
    """

    code = "outcome-unknown"
    status = 504
    says = "{what} may or may not have happened: {reason}; {advice}"

    def __init__(self, what: str, reason: str, advice: str = "") -> None:
        if not advice:
            advice = (
                "look at the log before you repeat it. Under a request id it could be repeated "
                "without looking"
            )
        super().__init__(what=what, reason=reason, advice=advice)

    @staticmethod
    def late(what: str, deadline_ms: int, advice: str = "") -> "OutcomeUnknown":
        """Nobody answered in time."""
        return OutcomeUnknown(what, f"it was not answered within {deadline_ms} ms", advice)


class RequestForgotten(Refresh):
    code = "request-forgotten"
    status = 409
    says = "{what} is older than the replies that are kept: look at the state, then decide"

    def __init__(self, what: str) -> None:
        super().__init__(what=what)


class StaleView(Refresh):
    """A write of a replicated log's client whose configuration is out of date; nothing was done."""

    code = "stale-view"
    says = "{what} is of view {asked}, and the log is in view {view}: refresh and write again"

    def __init__(self, what: str, asked: int, view: int) -> None:
        super().__init__(what=what, asked=asked, view=view)


class RequestReused(Mistake):
    """Another request has the same id, and was done."""

    code = "request-reused"
    status = 422
    says = (
        "the request id was used before, for something else or by somebody else, and nothing was "
        "done now: choose another id, or repeat exactly what was asked first"
    )

    def __init__(self) -> None:
        super().__init__()


class BrokerFenced(Fenced):
    code = "broker-fenced"
    says = (
        "broker {broker} of epoch {epoch} has been replaced by epoch {current}, or forgotten: it "
        "must stop"
    )

    def __init__(self, broker: str, epoch: int, current: int) -> None:
        super().__init__(broker=broker, epoch=epoch, current=current)


class BadRequest(Mistake):
    code = "bad-request"
    status = 422
    says = "{what}: {reason}"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what=what, reason=reason)


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


class TooManyHeaders(Mistake):
    code = "too-many-headers"
    status = 413
    says = (
        "{what} has {count} headers, and the limit is {limit} ({setting}): put what they say into "
        "values, or send smaller batches"
    )

    def __init__(self, what: str, count: int, limit: int, setting: str) -> None:
        super().__init__(what=what, count=count, limit=limit, setting=setting)


class TooMany(Mistake):
    """A structural limit: more of these are refused until some are gone."""

    code = "too-many"
    status = 409
    may_pass = True
    says = "{what}: the limit is {limit} ({setting}); remove some, or raise it"

    def __init__(self, what: str, limit: int, setting: str) -> None:
        super().__init__(what=what, limit=limit, setting=setting)


class CorruptBatch(Mistake):
    code = "corrupt-batch"
    status = 422
    says = "the record batch {where} is damaged: {reason}; nothing of it was appended"

    def __init__(self, reason: str, where: str) -> None:
        super().__init__(reason=reason, where=where)


class BatchUnreadable(Damage):
    """It was taken before there was a limit that refuses it now; only reading finds it."""

    code = "batch-unreadable"
    says = (
        "the records of log {log} from {position} on can't be decoded: {reason}; they are kept, "
        "and reading goes on at {after}"
    )

    def __init__(self, log: str, position: int, after: int, reason: str) -> None:
        super().__init__(log=log, position=position, after=after, reason=reason)


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
    says = "no valid token was given: put one into the address or the settings"

    def __init__(self) -> None:
        super().__init__()


class Unauthenticated(Mistake):
    """The service asks Kubernetes who its clients are, and it doesn't know this one."""

    code = "unauthenticated"
    status = 401
    says = (
        "the token isn't accepted: {reason}; show a service account's token for the audience "
        "{audience}: with ?token_file=FILE in the address a projected one, or one that `kubectl "
        "create token NAME` makes for this audience"
    )

    def __init__(self, reason: str, audience: str) -> None:
        super().__init__(reason=reason, audience=audience)


class Forbidden(Mistake):
    """Kubernetes knows who asks, and its RBAC doesn't allow it."""

    code = "forbidden"
    status = 403
    says = (
        "{user} may not {verb} {resource} {name} in namespace {namespace}: what allows it is a "
        "Role there with apiGroups [anabranch.dev], resources [{resource}], verbs [{verb}], and a "
        "RoleBinding of it to {user}"
    )

    def __init__(self, user: str, verb: str, resource: str, name: str, namespace: str) -> None:
        super().__init__(
            user=user, verb=verb, resource=resource, name=name or "*", namespace=namespace
        )


class BrokerDraining(Refresh):
    code = "broker-draining"
    status = 503
    says = "broker {broker} is about to end: ask another which broker serves the log now"

    def __init__(self, broker: str) -> None:
        super().__init__(broker=broker)


class NoSpareBroker(Retry):
    code = "no-spare-broker"
    status = 503
    says = (
        "{log} wants a broker of its own and none of the {brokers} is free: add brokers, or fork "
        "it without"
    )

    def __init__(self, log: str, brokers: int) -> None:
        super().__init__(log=log, brokers=brokers)


class LateCommit(Refresh):
    """Nobody waits for the answer: what it was is forgotten."""

    code = "late-commit"
    says = "commit {number} of broker {broker} comes after its answer has been forgotten"

    def __init__(self, broker: str, number: int) -> None:
        super().__init__(broker=broker, number=number)


class UnknownBroker(Mistake):
    code = "unknown-broker"
    status = 404
    says = "there is no broker {broker}: choose one of those that the service lists"

    def __init__(self, broker: str) -> None:
        super().__init__(broker=broker)


class BrokerInUse(Mistake):
    """Whoever would forget it must be sure that it is over."""

    code = "broker-in-use"
    status = 409
    says = (
        "broker {broker} can't be forgotten while it is {state}: end it, and wait until it is "
        "lost, or drain it first"
    )

    def __init__(self, broker: str, state: str) -> None:
        super().__init__(broker=broker, state=state)
