"""What stands in the way of an append whose shard failed as a whole (Belfast, 4.8)."""

from anabranch.core.errors.base import Refresh, Retry


class RecordVoided(Retry):
    """It was durable, and never acknowledged; its place is a no-op by decree."""

    code = "record-voided"
    status = 503
    says = "shard {shard} failed before {what} was confirmed: it isn't in the log; append it again"

    def __init__(self, shard: str, what: str = "an append") -> None:
        super().__init__(shard=shard, what=what)


class OutcomeUnknown(Refresh):
    """Only `retry_unknown` makes the client append it again: it may be in the log already."""

    code = "outcome-unknown"
    status = 504
    says = (
        "an append to shard {shard} was sent and not answered, and the shard has failed: it may be "
        "in the log or not; look there, or append with retry_unknown where twice does no harm"
    )

    def __init__(self, shard: str) -> None:
        super().__init__(shard=shard)
