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
    says = "{where} holds records of {theirs}, not of {ours}: name another one, which is empty"

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
        "missing, so the log isn't served. Bring them back from a copy. Delete neither the log nor "
        "{where} before: what both still hold would be lost too"
    )

    def __init__(self, where: str, first: int, last: int, proof: str) -> None:
        super().__init__(where=where, first=first, last=last, proof=proof)


class BlackBoxReplaced(Damage):
    """The records that were there may be somewhere still, so nobody is told to delete anything."""

    code = "black-box-replaced"
    says = (
        "{where} holds records of {theirs}, but entry {noted} of {ours} was there before: it was "
        "made again under the same name, or others wrote in its place, so the log isn't served. "
        "Bring back the former one from a copy. Copy this one before you change anything in it"
    )

    def __init__(self, where: str, theirs: str, ours: str, noted: int) -> None:
        super().__init__(where=where, theirs=theirs, ours=ours, noted=noted)


class BlackBoxChanged(Damage):
    """While its shard runs: what was appended from now on would be lost with the next start."""

    code = "black-box-changed"
    says = (
        "somebody else changed {where}: {proof}. Nothing more is written there; what is appended "
        "waits at the sequencers. Read the log and copy what it still has before you restart its "
        "shard: after a restart the log isn't served until the missing records are back"
    )

    def __init__(self, where: str, proof: str) -> None:
        super().__init__(where=where, proof=proof)


BLACK_BOX_TROUBLES = (
    BlackBoxFailed,
    BlackBoxTaken,
    BlackBoxUnfit,
    BlackBoxBehind,
    BlackBoxReplaced,
    BlackBoxChanged,
)
"""Of a start: they pass when somebody sees to the black box."""
