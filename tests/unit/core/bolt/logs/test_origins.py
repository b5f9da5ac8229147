"""A record's origin is its identity: noted where records move, and the same wherever it is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.logs.origins import HERE, Origins
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    Entry,
    ForkLog,
    Promote,
    RaiseFormat,
    RegisterBroker,
    Row,
    Squash,
)
from anabranch.core.bolt.protocol.queries import At, PositionAt, Resolve, Resolved
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import NEVER, Kind, LogId, Milliseconds, Position
from anabranch_sim.bolt.twins import Twins

NOTES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-2, 2)), max_size=12)
"""How far behind the one before, from which log, moved by how much."""


@given(NOTES, st.integers(0, 40), st.integers(0, 40))
def test_origins_are_those_noted_last_before_a_position(
    notes: list[tuple[int, int, int]], low: Position, high: Position
) -> None:
    origins, known = Origins(), [(HERE, 0)] * 40
    position = 0
    for ahead, log, shift in notes:
        position += ahead
        origins.note(position, LogId(log), shift)
        known[position:] = [(LogId(log), shift)] * (40 - position)

    def told(start: Position) -> list[tuple[LogId, int]]:
        found: list[tuple[LogId, int]] = []
        for first, log, shift in origins.within(start, 40):
            found[first - start :] = [(log, shift)] * (40 - first)
        return found

    assert told(0) == known
    for at in range(40):
        log, there, end = origins.at(at)
        assert (log, at - there) == known[at]
        assert known[at : end or 40] == [known[at]] * ((end or 40) - at)
    assert len(origins) <= len(notes)
    origins.drop_below(low)
    assert told(low) == known[low:]
    origins.cut(high)
    assert told(low)[: max(0, high - low)] == known[low:high]


def origins(twins: Twins, log: LogId) -> list[tuple[LogId, Position]]:
    answer = twins.state.answer(Resolve(log, 0, NEVER, NEVER))
    assert isinstance(answer, Resolved)
    return [(s.origin, s.origin_first + nth) for s in answer.slices for nth in range(s.count)]


def test_promotion_orphaning_compaction_and_a_restart_keep_every_origin() -> None:
    twins = Twins(Limits())
    root = twins.root("a")
    twins.append(root, 2)
    fork = twins.cfork(root, promotable=True)
    twins.append(fork, 1)
    twins.append(root, 2)
    twins.append(fork, 1)
    told = [(root, 0), (root, 1), (fork, 2), (root, 2), (root, 3), (fork, 5)]
    assert origins(twins, fork) == told
    twins.apply(Promote(fork))
    assert origins(twins, root) == told
    lost = twins.cfork(root)
    twins.append(lost, 1)
    kept = twins.sfork(lost)
    twins.apply(Squash(lost))
    twins.append(kept, 1)
    assert origins(twins, kept) == [*told, (lost, 6), (kept, 7)]
    copy = twins.copied(root, 0, [4])
    assert not twins.swap(copy).why
    twins.restart()
    twins.append(root, 1)
    assert origins(twins, root) == [*told, (root, 6)]
    twins.compare()


class Timed:
    """A log whose records were committed when somebody says."""

    def __init__(self, known: int = FORMAT) -> None:
        self.state = State("c", Limits())
        self.turn = 0
        self.tell(0, RaiseFormat(known))
        self.tell(0, RegisterBroker("b"))
        made = self.tell(0, CreateLog("a"))
        assert isinstance(made, Description)
        self.log = made.id

    def tell(
        self,
        at: Milliseconds,
        command: RaiseFormat | RegisterBroker | CreateLog | ForkLog | CommitObject,
    ) -> object:
        self.turn += 1
        return self.state.apply(Entry(at, b"", command))

    def append(self, at: Milliseconds) -> None:
        row = Row(self.log, 0, [Batch(10, 1)])
        done = self.tell(at, CommitObject("b", object_id(1, self.turn), [row]))
        assert isinstance(done, Committed)

    def severed(self, at: Milliseconds) -> object:
        """The tail of a fork at this time, or why there is none."""
        made = self.tell(NEVER, ForkLog(self.log, Kind.SEVERED, at=at))
        return made.tail if isinstance(made, Description) else getattr(made, "code", None)

    def position(self, at: Milliseconds) -> Position:
        found = self.state.answer(PositionAt(self.log, at))
        assert isinstance(found, At)
        return found.position


TIMES = st.lists(st.integers(1, 9), max_size=8).map(sorted)


@given(TIMES, TIMES, st.integers(0, 11))
def test_a_fork_at_a_time_ends_where_the_time_has_its_position(
    settled: list[Milliseconds], later: list[Milliseconds], at: Milliseconds
) -> None:
    """Refused only if what isn't settled was committed before that time."""
    timed = Timed()
    for time in settled:
        timed.append(time)
    timed.tell(0, ForkLog(timed.log, Kind.CONTINUOUS, promotable=True))
    later = [time + 9 for time in later]
    for time in later:
        timed.append(time)
    before = sum(time < at for time in settled)
    assert timed.position(at) == before
    blocked = any(time < at for time in later)
    assert timed.severed(at) == ("fork-blocked" if blocked else before)


def test_a_fork_at_a_time_is_replayed_as_its_format_had_it() -> None:
    for known, tail in ((2, 2), (FORMAT, 1)):
        timed = Timed(known)
        timed.append(10)
        timed.append(20)
        assert timed.severed(20) == tail


def test_origins_that_were_loaded_are_apart_from_those_of_other_logs() -> None:
    noted, fresh = Origins(), Origins()
    noted.note(5, LogId(7), 2)
    loaded, empty = Origins(), Origins()
    loaded.load(noted.first.tobytes(), noted.log.tobytes(), noted.shift.tobytes())
    empty.load(b"", b"", b"")
    empty.note(9, LogId(3), 1)
    assert loaded.at(6) == (LogId(7), 4, None)
    assert empty.at(9) == (LogId(3), 8, None)
    assert fresh.at(9) == (HERE, 9, None), "what other logs note is not seen here"
    fresh.cut(0)
    fresh.drop_below(4)
    assert not len(Origins()), "a new log begins without any"
