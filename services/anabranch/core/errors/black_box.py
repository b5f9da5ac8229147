"""What stands in the way of keeping a journal in a log of another system."""

from anabranch.core.errors.base import Damage, Fenced, Mistake
from anabranch.core.errors.storage import StorageFailed


class BlackBoxFailed(StorageFailed):
    code = "black-box-failed"
    says = (
        "{where} failed: {reason}. What was acknowledged waits at the sequencers, and is written "
        "when it answers again"
    )


class BlackBoxFenced(Fenced):
    code = "black-box-fenced"
    says = (
        "{where} was opened by another process, which writes there now: this one writes nothing "
        "there any more. Stop one of the two; start this one again if it is to go on"
    )

    def __init__(self, where: str) -> None:
        super().__init__(where=where)


class BlackBoxTaken(Mistake):
    code = "black-box-taken"
    status = 409
    says = "{where} holds records of {theirs}, not of {ours}: name an empty one, or delete it"

    def __init__(self, where: str, theirs: str, ours: str) -> None:
        super().__init__(where=where, theirs=theirs, ours=ours)


class BlackBoxUnfit(Mistake):
    code = "black-box-unfit"
    status = 409
    says = "{where} can't keep a log's records: {reason}"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where=where, reason=reason)


class BlackBoxBehind(Damage):
    """Served all the same, it would give positions out again."""

    code = "black-box-behind"
    says = (
        "{where} has entries {first} to {last} of its log, and {proof}: acknowledged records are "
        "missing, so the log isn't served. Bring these records back, or delete the log"
    )

    def __init__(self, where: str, first: int, last: int, proof: str) -> None:
        super().__init__(where=where, first=first, last=last, proof=proof)


BLACK_BOX_TROUBLES = (BlackBoxFailed, BlackBoxTaken, BlackBoxUnfit, BlackBoxBehind)
"""Of a start: they pass when somebody sees to the black box."""
