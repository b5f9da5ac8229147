"""What some members haven't counted against the quota: all of them count it when it is ordered."""

from tests.unit.core.sequencing.group import Group, batch_of, id_of

from anabranch.core.quota import Meter, Quota
from anabranch.core.sequencing.protocol.letters import Uncounted
from anabranch.core.sequencing.view import Ballot

NAMES = ("a", "b", "c")
RATE, BURST_MS, STRAY_MS = 10, 1_000, 2_000
"""Records in a second, and after how long a member shows what it has."""


def group_of(*names: str) -> Group:
    group = Group(*names)
    group.run()
    group.change(Ballot(1, 1), *names)
    return group


def test_what_was_sent_to_one_member_alone_is_counted_by_the_others() -> None:
    group = group_of(*NAMES)
    told: list[tuple[str, int, int]] = []
    for name in NAMES:
        group[name].replica.uncounted.on_uncounted = lambda size, records, name=name: told.append(
            (name, size, records)
        )
    group.append(1, id_of(0), "b", values=3)
    group.append(1, id_of(3), *NAMES)
    group.run()
    for _ in range(3):
        group.wait(STRAY_MS)
        group.run()
    size = len(batch_of(id_of(0), values=3))
    assert sorted(told) == [("a", size, 3), ("c", size, 3)]


def test_only_the_leader_of_the_view_says_what_was_not_counted() -> None:
    group = group_of(*NAMES)
    told: list[int] = []
    group["c"].replica.uncounted.on_uncounted = lambda size, _: told.append(size)
    group["c"].receive("b", Uncounted(1, 7, 0))
    group["c"].receive("a", Uncounted(0, 7, 0))
    assert not told
    group["c"].receive("a", Uncounted(1, 7, 0))
    assert told == [7]


def test_a_log_keeps_its_quota_when_each_member_is_sent_other_appends() -> None:
    """Each member alone let the whole quota pass, and all of it was ordered."""
    group = group_of(*NAMES)
    quota = Quota(append_records_per_s=RATE, burst_ms=BURST_MS)
    meters = {name: Meter("log", quota) for name in NAMES}
    for name in NAMES:
        group[name].replica.uncounted.on_uncounted = lambda size, records, name=name: meters[
            name
        ].charge(group.now, size, records)
    sequence, seconds = 0, 120
    for _ in range(10 * seconds):
        for name in NAMES:
            while meters[name].append(group.now, 1, 1) is None:
                group.append(1, id_of(sequence, producer=ord(name)), name, lowest=sequence)
                sequence += 1
        group.wait(100)
        group.run()
        taken = group["a"].take()
        if taken:
            group["a"].order(taken)
            group.run()
    assert RATE * seconds / 2 < group["a"].ordered
    at_once = len(NAMES) * (RATE * BURST_MS // 1_000 + RATE * 2 * STRAY_MS // 1_000)
    assert group["a"].ordered <= RATE * seconds + at_once
