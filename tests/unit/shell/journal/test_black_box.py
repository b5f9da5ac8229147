"""A journal in a black box, against a list, whatever the black box does."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import (
    BlackBoxBehind,
    BlackBoxFenced,
    BlackBoxTaken,
    StorageFailed,
)
from anabranch.core.storage.black_box import CONTENT_BYTES_MAX, PART_BYTES_MAX
from anabranch.shell.journal.black_box import BlackBoxJournal
from anabranch_sim.world.black_box import SimBlackBox

OWNER = "cluster audit.1.2 shard-0"


class Opened:
    """A journal that was recovered, and what that gave."""

    def __init__(self, box: SimBlackBox, life: int, *, owner: str = OWNER, noted: int = 0) -> None:
        self.journal = BlackBoxJournal(box, owner, life, noted=noted, now=lambda: 0.0)
        self.snapshot: bytes | None = None
        self.entries: dict[int, bytes] = {}
        self.last = self.journal.recover_into(self._restore, self._take).last

    def _restore(self, content: bytes | None) -> None:
        self.snapshot = content

    def _take(self, index: int, entry: bytes) -> None:
        self.entries[index] = entry


def box() -> SimBlackBox:
    return SimBlackBox(Random(7))


def test_entries_are_there_again_after_a_restart() -> None:
    kept = box()
    first = Opened(kept, 1)
    assert first.journal.append([b"a", b"b"]) == 2
    assert first.journal.append([b"c"]) == 3
    second = Opened(kept, 2)
    assert second.entries == {1: b"a", 2: b"b", 3: b"c"}
    assert second.journal.append([b"d"]) == 4
    assert second.journal.read(2, 5) == [b"b", b"c", b"d"]
    assert Opened(kept, 3).entries[4] == b"d"


def test_an_entry_larger_than_a_record_is_kept_in_several() -> None:
    kept = box()
    large = bytes(range(256)) * (PART_BYTES_MAX // 100)
    opened = Opened(kept, 1)
    opened.journal.append([b"small", large, b"after"])
    assert opened.journal.read(2, 4) == [large, b"after"]
    assert max(len(record) for _, record in kept.records) < PART_BYTES_MAX + 200
    assert Opened(kept, 2).entries == {1: b"small", 2: large, 3: b"after"}


def test_a_snapshot_lets_entries_go_and_is_given_first() -> None:
    kept = box()
    opened = Opened(kept, 1)
    opened.journal.append([b"a", b"b", b"c"])
    opened.journal.save_snapshot(2, b"ab")
    assert all(b"a" not in record[-1:] for _, record in kept.records)
    again = Opened(kept, 2)
    assert (again.snapshot, again.entries) == (b"ab", {3: b"c"})
    again.journal.append([b"d"])
    again.journal.save_snapshot(4, b"abcd")
    last = Opened(kept, 3)
    assert (last.snapshot, last.entries, last.last) == (b"abcd", {}, 4)
    assert last.journal.append([b"e"]) == 5
    with pytest.raises(StorageFailed, match="forgotten"):
        last.journal.read(3, 5)


def test_a_snapshot_that_nobody_could_read_is_refused_and_trims_nothing() -> None:
    kept = box()
    opened = Opened(kept, 1)
    opened.journal.append([b"a", b"b"])
    with pytest.raises(StorageFailed, match="512 MiB, so nothing is trimmed"):
        opened.journal.save_snapshot(2, bytes(CONTENT_BYTES_MAX + 1))
    assert opened.journal.append([b"c"]) == 3
    assert Opened(kept, 2).entries == {1: b"a", 2: b"b", 3: b"c"}


def test_a_writer_that_was_replaced_is_fenced_and_its_late_records_are_void() -> None:
    kept = box()
    old = Opened(kept, 1)
    old.journal.append([b"a"])
    new = Opened(kept, 2)
    with pytest.raises(BlackBoxFenced):
        old.journal.append([b"old"])
    with pytest.raises(BlackBoxFenced):
        old.journal.append([b"old"])
    assert new.journal.append([b"new"]) == 2
    assert Opened(kept, 3).entries == {1: b"a", 2: b"new"}


def test_what_an_old_writer_had_acknowledged_before_the_opening_is_kept() -> None:
    """The opening is written last: whatever lies before it counts."""
    kept = box()
    old = Opened(kept, 1)

    class Racing(SimBlackBox):
        def append(self, records: object) -> list[int]:
            old.journal.append([b"acknowledged meanwhile"])
            return kept.append(records)  # type: ignore[arg-type]  # passed on

        bounds = kept.bounds  # type: ignore[assignment]  # another's
        read = kept.read  # type: ignore[assignment]  # another's

    new = Opened(Racing(Random(1)), 2)
    assert new.entries == {1: b"acknowledged meanwhile"}


def test_of_two_that_open_at_once_the_first_counts() -> None:
    kept = box()
    Opened(kept, 1)
    began: list[Opened] = []

    class Racing(SimBlackBox):
        def append(self, records: object) -> list[int]:
            if not began:
                began.append(Opened(kept, 3))
            return kept.append(records)  # type: ignore[arg-type]  # passed on

        bounds = kept.bounds  # type: ignore[assignment]  # another's
        read = kept.read  # type: ignore[assignment]  # another's

    with pytest.raises(StorageFailed, match="at the same time"):
        Opened(Racing(Random(1)), 2)
    assert began[0].journal.append([b"a"]) == 1


def test_another_owners_records_are_refused() -> None:
    kept = box()
    Opened(kept, 1).journal.append([b"a"])
    with pytest.raises(BlackBoxTaken, match=r"audit\.1\.2"):
        Opened(kept, 2, owner="my log")
    foreign = box()
    foreign.append([b"not ours"])
    with pytest.raises(BlackBoxTaken, match="somebody else"):
        Opened(foreign, 1)


def test_a_log_that_ends_before_what_is_noted_is_refused() -> None:
    kept = box()
    Opened(kept, 1).journal.append([b"a", b"b"])
    with pytest.raises(BlackBoxBehind, match="entry 3"):
        Opened(kept, 2, noted=3)
    assert Opened(kept, 4, noted=2).last == 2


def test_entries_deleted_by_somebody_else_are_missed() -> None:
    kept = box()
    Opened(kept, 1).journal.append([b"a", b"b", b"c"])
    kept.trim(3)
    with pytest.raises(BlackBoxBehind, match="no snapshot"):
        Opened(kept, 2)


def until_done(call: Callable[..., object], *arguments: object) -> None:
    """As machines do: what fails is repeated."""
    for _ in range(10_000):
        try:
            call(*arguments)
        except StorageFailed:
            continue
        return
    raise AssertionError("the black box never answers")


@given(
    seed=st.integers(0, 1 << 30),
    actions=st.lists(st.sampled_from("aaaabbrrsk"), max_size=40),
    chance=st.sampled_from([0.0, 0.1, 0.4]),
)
def test_a_journal_is_a_list_whatever_the_black_box_does(
    seed: int, actions: list[str], chance: float
) -> None:
    """Every acknowledged entry is there once, in order; what was not acknowledged when a writer was
    killed is there or not, as a prefix of its group.
    """
    rng = Random(seed)
    kept = SimBlackBox(rng)
    kept.faults = chance
    known: list[bytes] = []
    snapshots: dict[int, bytes] = {}
    life = 0

    def opened() -> Opened:
        nonlocal life
        while True:
            life += 1
            try:
                return Opened(kept, life)
            except StorageFailed:
                continue

    journal = opened()
    for action in actions:
        group = [b"%d" % rng.randrange(1 << 40) for _ in range(rng.randint(1, 4))]
        match action:
            case "a" | "b":
                until_done(journal.journal.append, group)
                known += group
            case "k":  # killed amid an append
                try:
                    journal.journal.append(group)
                except StorageFailed:
                    journal = opened()
                    more = journal.last - len(known)
                    assert 0 <= more <= len(group)
                    known += group[:more]
                else:
                    known += group
            case "s":
                index = rng.randint(0, len(known))
                if index > max(snapshots, default=0):
                    snapshots[index] = b"up to %d" % index
                    until_done(journal.journal.save_snapshot, index, snapshots[index])
            case _:
                journal = opened()
                held = max(snapshots, default=0)
                first = min(journal.entries, default=len(known) + 1)
                assert first <= held + 1
                assert journal.last == len(known)
                assert journal.entries == {
                    index: known[index - 1] for index in range(first, len(known) + 1)
                }
                if first > 1:
                    assert journal.snapshot == snapshots[held]
    first = max(snapshots, default=0) + 1
    if first <= len(known):
        read: list[list[bytes]] = []
        until_done(lambda: read.append(journal.journal.read(first, len(known) + 1)))
        assert read == [known[first - 1 :]]
