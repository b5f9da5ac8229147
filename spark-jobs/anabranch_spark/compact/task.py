"""What Spark runs of a compaction: a share comes as bytes, what was written goes back as bytes."""

from hashlib import sha256

from anabranch import CompactorJob, ScanPlan
from anabranch.core.bolt.protocol.compactors import NewCopy
from anabranch.errors import AnabranchError
from anabranch_spark.compact.copying import Away, Damaged, copied
from anabranch_spark.compact.shares import (
    Answer,
    Numbered,
    Share,
    Unmade,
    Written,
    packed,
    unpacked_share,
)
from anabranch_spark.compact.writing import Refused, write
from anabranch_spark.service import connect
from anabranch_spark.source.fetch import Fetcher


def copy_share(content: bytes | bytearray) -> bytes:
    """A function of Spark's SQL: an answer for a share."""
    return packed(answered(unpacked_share(bytes(content))))


def answered(share: Share) -> Answer:
    """Copy a share. What stands in the way is an answer, too: other tasks go on."""
    answer = Answer([], [])
    try:
        with connect(share.service) as service, Fetcher() as fetcher:
            compactor = service.running_compactor(share.compactor)
            plan = service.scan_plan(share.plan)
            for each in share.orders:
                _copy(share, each, compactor, plan, fetcher, answer)
    except (AnabranchError, OSError) as error:
        done = {each.sequence for each in (*answer.written, *answer.unmade)}
        reason = f"a task stopped: {error}"
        left = [each for each in share.orders if each.sequence not in done]
        answer.unmade.extend(_unmade(each, reason) for each in left)
    return answer


def _copy(
    share: Share,
    numbered: Numbered,
    compactor: CompactorJob,
    plan: ScanPlan,
    fetcher: Fetcher,
    answer: Answer,
) -> None:
    try:
        content = copied(numbered.order, plan, fetcher, share.cluster)
        new = NewCopy(numbered.sequence, len(content), sha256(content).digest())
        (target,) = compactor.sign([new])
        write(target, content)
    except Damaged as damage:
        answer.unmade.append(_unmade(numbered, str(damage), damaged=True))
    except (Away, Refused) as fault:
        answer.unmade.append(_unmade(numbered, str(fault)))
    else:
        answer.written.append(Written(numbered.sequence, len(content)))


def _unmade(numbered: Numbered, reason: str, *, damaged: bool = False) -> Unmade:
    position = numbered.order.extents[0].first
    return Unmade(numbered.sequence, position, reason, damaged)
