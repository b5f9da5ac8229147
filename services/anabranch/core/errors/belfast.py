"""What stands in the way of a speculative log: whom one asked, and what became of its shard."""

from anabranch.core.errors.base import AnabranchError, Mistake, Refresh, Retry
from anabranch.core.errors.logs import OutOfRange


class RecordVoided(Retry):
    """It was durable, and never acknowledged; its place is a no-op by decree."""

    code = "record-voided"
    status = 503
    says = "shard {shard} failed before {what} was confirmed: it isn't in the log; append it again"

    def __init__(self, shard: str, what: str = "an append") -> None:
        super().__init__(shard=shard, what=what)


class UnknownShard(Mistake):
    code = "unknown-shard"
    status = 404
    says = "there is no shard {shard}: the status of the log names those that there are"

    def __init__(self, shard: str) -> None:
        super().__init__(shard=shard)


class LastShard(Mistake):
    """Appends to an Erwin log need a shard that takes them."""

    code = "last-shard"
    status = 409
    says = "shard {shard} is the last open one of its log: open or add another before you close it"

    def __init__(self, shard: str) -> None:
        super().__init__(shard=shard)


class NotPrimary(Refresh):
    """Another replica of the shard takes appends and serves subscribers."""

    code = "not-primary"
    status = 421
    says = "{node} isn't the primary of shard {shard} (that is: {primary}): ask there"

    def __init__(self, node: str, shard: str, primary: str) -> None:
        super().__init__(node=node, shard=shard, primary=primary or "not known yet")


class ShardAway(Retry):
    """It has no seat, or too few replicas: nothing of the request was done."""

    code = "shard-away"
    status = 503
    says = "shard {shard} takes no appends now: {reason}; append to another, or try again"

    def __init__(self, shard: str, reason: str) -> None:
        super().__init__(shard=shard, reason=reason)


class ShardFailed(Refresh):
    """As a whole: its slots are no-ops until it is back and admitted again (Belfast, 4.8)."""

    code = "shard-failed"
    status = 409
    says = (
        "shard {shard} has failed and holds no seat: it may be taken away as it is, or comes back "
        "with its replicas"
    )

    def __init__(self, shard: str) -> None:
        super().__init__(shard=shard)


class ShardLeft(Refresh):
    code = "shard-left"
    status = 409
    says = "shard {shard} is leaving or has left the log: append to another"

    def __init__(self, shard: str) -> None:
        super().__init__(shard=shard)


class CantJoin(Retry):
    """A shard that has left, and is asked for again."""

    code = "cant-join"
    status = 503
    says = "shard {shard} can't join the log now: {reason}; try again"

    def __init__(self, shard: str, reason: str) -> None:
        super().__init__(shard=shard, reason=reason)


class ShardElsewhere(Refresh):
    """Neither a replica of the shard that counts, nor one that stands in for it."""

    code = "shard-elsewhere"
    status = 421
    says = "{node} doesn't serve shard {shard}: ask any node where it is"

    def __init__(self, node: str, shard: str) -> None:
        super().__init__(node=node, shard=shard)


class PositionTrimmed(OutOfRange):
    """What a Bolt log says as OutOfRange, so that a program may catch that for logs of any
    engine.
    """

    code = "position-trimmed"
    status = 410
    says = "position {position} is gone, the log was trimmed below {trimmed}: start from there"

    def __init__(self, position: int, trimmed: int) -> None:
        AnabranchError.__init__(self, position=position, trimmed=trimmed)


class TrimTooFar(Mistake):
    code = "trim-too-far"
    status = 409
    says = (
        "{log} can't be trimmed below {position}: only positions below {confirmed} are final; trim "
        "no further, or wait"
    )

    def __init__(self, position: int, confirmed: int, log: str = "the log") -> None:
        """`log`: its name, which its nodes don't know and its clients add."""
        super().__init__(position=position, confirmed=confirmed, log=log)

    def named(self, log: str) -> "TrimTooFar":
        """The same, told by a client that knows the log's name."""
        position, confirmed = self.facts["position"], self.facts["confirmed"]
        assert isinstance(position, int), "positions travel as numbers"
        assert isinstance(confirmed, int), "positions travel as numbers"
        return TrimTooFar(position, confirmed, log)
