"""What two twins are asked besides: how two logs differ, and set sums of ranges."""

from collections import Counter

from anabranch.core.bolt.protocol.queries import Compare, Comparison, together
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.records.set_sum import combined
from anabranch.core.types import LogId, ObjectId
from anabranch_sim.bolt.batch_results import positions_of, value_at
from anabranch_sim.bolt.twins import Twins


def compare_two(twins: Twins, a: LogId, b: LogId, *, by_page: bool = False) -> None:
    """From `since` up to `shared` they are one, and no further. What else the other log can't
    show, it never had or may have trimmed. By page, what orphans took over isn't compared whole.
    """
    answer, mirrored = compared(twins, a, b), compared(twins, b, a)
    if by_page and not (answer.complete and mirrored.complete):
        return
    assert (mirrored.shared, mirrored.only_a, mirrored.trimmed_a) == (
        answer.shared,
        answer.only_b,
        answer.trimmed_b,
    )
    one, other = twins.naive.logs[a], twins.naive.logs[b]
    since, shared = max(one.start, other.start), answer.shared
    end = max(since, min(one.settled(), other.settled()))
    assert answer.since == since <= shared <= end
    assert answer.complete
    assert one.records[since:shared] == other.records[since:shared]
    assert shared == end or one.records[shared] != other.records[shared]
    for log, beside, lacking, unknown in (
        (one, other, answer.only_a, answer.trimmed_a),
        (other, one, answer.only_b, answer.trimmed_b),
    ):
        readable = {*beside.records[beside.start : beside.settled()]}
        trimmed = {*beside.records[: beside.start]}
        absent = [at for at in range(log.start, log.settled()) if log.records[at] not in readable]
        sure, unsure = positions_of(lacking), positions_of(unknown)
        assert sorted(sure + unsure) == absent
        assert not trimmed & {log.records[at] for at in sure}
        assert trimmed or not unsure


def compared(twins: Twins, a: LogId, b: LogId) -> Comparison:
    """All pages of a comparison as one."""
    pages: list[Comparison] = []
    while not pages or pages[-1].next is not None:
        page = twins.state.answer(Compare(a, b, pages[-1].next if pages else None))
        assert isinstance(page, Comparison), page
        pages.append(page)
    return together(pages)


def compare_sum(twins: Twins, id: LogId, start: int, end: int) -> SetSum:
    """The sum is that of the records' batches, of all of them but those in the ranges named."""
    answer = twins.state.answer(ReadSetSum(id, start, end))
    assert isinstance(answer, SetSum), answer
    log = twins.naive.logs[id]
    assert answer.start == start <= answer.end <= end <= log.settled() == answer.settled
    assert answer.end == end or answer.end > start
    reached = start
    for first, after in answer.unsummed:
        assert reached <= first < after <= answer.end, "ranges are in order and apart"
        reached = after
    unsummed = {*positions_of(answer.unsummed)}
    summed = [log.records[at] for at in range(start, answer.end) if at not in unsummed]
    assert answer.summed == len(summed)
    batches = Counter((record.object, record.offset) for record in summed)
    for (object, offset), count in batches.items():
        batch = twins.objects[ObjectId(object)][offset]
        assert batch.count == count, "only whole batches are summed"
    assert answer.sum == combined(value_at(*place) for place in batches)
    return answer
