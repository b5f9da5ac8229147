"""What a disk holds after a crash, and what does not count as written."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.consensus.alone import member, read, restarted_from_a_snapshot

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.disk import RETRY_MS, Ballot, GroupDisk, Joined, Written
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
    Entry,
    Offer,
    Vote,
)
from anabranch.core.consensus.log import GroupLog
from anabranch.core.machine import Effect, Persist, SaveSnapshot
from anabranch.core.types import MS
from anabranch.ports import Recovered, Snapshot


def test_a_vote_survives_a_snapshot_and_a_restart() -> None:
    council, alone = restarted_from_a_snapshot()
    read(alone, "c", AskVote(2, 0, 0, probing=False, bidden=False))
    council.run(10)
    told = [(to, each.granted) for _, to, each in council.letters if isinstance(each, Vote)]
    assert told == [("c", False)], "it voted for b in this term"


def test_a_member_that_has_joined_isnt_fresh_after_a_snapshot_and_a_restart() -> None:
    council, alone = restarted_from_a_snapshot()
    read(alone, "b", AskVote(2, 0, 0, probing=False, bidden=False))
    assert council.letters == [("a", "b", Vote(2, granted=True, probing=False, fresh=False))]


def test_entries_cut_off_while_in_flight_with_the_new_term_do_not_count_as_durable() -> None:
    """The old leader's entries and the new term's ballot are one write. What the new leader puts
    in the entries' place is on no disk yet when that write is done.
    """
    council, alone = member(Joined(), Ballot(2, "b"), Written(1, Entry(1, b"x")))
    council.conditions.disk_ms = (50, 50)
    read(alone, "b", Offer(2, 1, 1, [Entry(2, b"w")], committed=0, joined=False))
    read(alone, "b", Offer(2, 2, 2, [Entry(2, b"y"), Entry(2, b"z")], committed=0, joined=False))
    read(alone, "c", AskVote(3, 2, 4, probing=False, bidden=True))
    council.run(60)
    read(alone, "c", Offer(3, 1, 1, [Entry(3, b"new")], committed=0, joined=False))
    council.run(45)
    told = [each for _, _, each in council.letters if isinstance(each, Accepted)]
    assert told[-1:] == [Accepted(3, durable=1, matched=2, fresh=False)]
    council.run(60)
    assert council.letters[-1] == ("a", "c", Accepted(3, durable=2, matched=2, fresh=False))


def test_a_member_whose_disk_refuses_is_silent_until_the_disk_is_back() -> None:
    """A leader that heard from it would count it as reachable, and lead a majority that can't
    commit anything.
    """
    council, alone = member(Joined(), Ballot(2, "b"))
    read(alone, "b", Offer(2, 0, 0, [], committed=0, joined=False))
    council.letters.clear()
    council.conditions.disk_failures = 1.0
    read(alone, "b", Offer(2, 0, 0, [Entry(2, b"x")], committed=0, joined=False))
    council.run(10)
    assert alone.consensus.last == 1
    read(alone, "b", Offer(2, 1, 2, [], committed=1, joined=False))
    read(alone, "c", AskVote(3, 2, 1, probing=True, bidden=True))
    council.run(2_000)
    assert council.letters == []
    assert alone.consensus.committed == 0
    council.conditions.disk_failures = 0.0
    council.run(1_000)
    read(alone, "b", Offer(2, 1, 2, [], committed=1, joined=False))
    told = [each for _, _, each in council.letters if isinstance(each, Accepted)]
    assert told == [Accepted(2, durable=1, matched=1, fresh=False)]


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 5
            + ["write"] * 5
            + ["cut"] * 2
            + ["vote", "rebase", "fail", "fail", "promise", "promise", "join"]
        ),
        st.integers(0, 3),
    ),
    min_size=20,
    max_size=50,
)


State = tuple[int, str, bool, dict[int, tuple[int, bytes]]]
"""The term, the vote, whether it has joined, and the entries by their index."""


class Drive:
    """A disk beside the log in memory; what it was told to write, and what it has written."""

    def __init__(self, snapshot_entries: int) -> None:
        self.effects: list[Effect] = []
        self.alarms = Alarms(self.effects)
        self.log = GroupLog()
        self.snapshot_entries = snapshot_entries
        self.committed = 0
        self.disk = self._disk(self.log)
        self.journal: list[bytes] = []
        self.snapshot: Snapshot | None = None
        self.writing: list[bytes] | None = None
        self.expected = self.state(self.disk, self.log)
        """What a member would find that restarted now."""
        self._written = self.expected
        self.promised = 0
        self.kept: list[State] = []
        """What was in memory when each promise was made."""

    def _disk(self, log: GroupLog) -> GroupDisk:
        return GroupDisk(
            log, self.effects, self.alarms, self.snapshot_entries, lambda: (self.committed, b"")
        )

    def state(self, disk: GroupDisk, log: GroupLog) -> State:
        indexes = range(log.base + 1, log.last + 1)
        entries = {nth: (log.term_at(nth), log.content_at(nth)) for nth in indexes}
        return disk.term, disk.vote, disk.joined, entries

    def promise(self) -> None:
        """Keep it when all that it rests on is on the disk, and not before."""
        made = self.state(self.disk, self.log)
        self.promised += 1
        self.disk.when_durable(lambda: self.kept.append(made))

    def settle(self) -> None:
        self.disk.settle()
        for effect in self.effects:
            if isinstance(effect, Persist):
                assert self.writing is None, "one group is in flight"
                self.writing = list(effect.entries)
                self._written = self.state(self.disk, self.log)
        self.effects.clear()

    def write(self) -> None:
        assert self.writing is not None
        self.journal += self.writing
        self.writing = None
        self.expected = self._written
        before = len(self.kept)
        self.disk.persisted(len(self.journal))
        for term, vote, joined, _ in self.kept[before:]:
            assert term < self.disk.term or vote in {"", self.expected[1]}
            assert term <= self.expected[0]
            assert joined <= self.expected[2]
        for effect in self.effects:
            if isinstance(effect, SaveSnapshot):
                self.snapshot = Snapshot(effect.index, effect.image)
                self.disk.snapshot_saved()
        self.effects.clear()

    def fail(self) -> None:
        self.writing = None
        self.disk.persist_failed()
        self.alarms.now += RETRY_MS * MS
        self.alarms.ring()
        self.effects.clear()

    def restarted(self) -> State:
        log = GroupLog()
        disk = self._disk(log)
        first = self.snapshot.index + 1 if self.snapshot is not None else 1
        disk.recover(Recovered(self.snapshot, first, self.journal[first - 1 :]))
        return self.state(disk, log)


@given(steps, st.sampled_from([1, 3, 1_000]))
def test_a_restart_finds_what_was_written_when_the_last_write_was_done(
    done: list[tuple[str, int]], snapshot_entries: int
) -> None:
    drive = Drive(snapshot_entries)
    for what, count in done:
        disk, log = drive.disk, drive.log
        match what:
            case "append":
                disk.append(Entry(disk.term, b"%d" % log.last))
            case "cut" if log.last - log.base > count:
                # A leader of a later term puts others there.
                disk.cast(disk.term + 1, "")
                disk.cut_back(log.last - 1 - count)
                disk.append(Entry(disk.term, b"instead"))
            case "vote":
                disk.cast(disk.term + 1, "abc"[count % 3])
            case "promise":
                drive.promise()
            case "join" if not disk.joined:
                disk.join()
            case "rebase":
                disk.rebase(log.last + 1 + count, disk.term, b"")
                drive.committed = log.base
            case "write" if drive.writing is not None:
                drive.write()
            case "fail" if drive.writing is not None:
                drive.fail()
            case _:
                pass
        drive.settle()
        assert drive.restarted() == drive.expected
        assert disk.durable <= log.last
        there = drive.expected[3]
        for index in range(max(log.base, min(there, default=0)) + 1, disk.durable + 1):
            assert there[index] == (log.term_at(index), log.content_at(index))
    for _ in range(2):
        if drive.writing is not None:
            drive.write()
        drive.settle()
    assert len(drive.kept) == drive.promised
    assert drive.restarted() == drive.state(drive.disk, drive.log)
