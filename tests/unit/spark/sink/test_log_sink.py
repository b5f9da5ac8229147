"""Both modes against a service, with drivers that die at every point (no Spark, no Java)."""

import weakref
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anabranch
from anabranch import testing
from anabranch.errors import (
    AnabranchError,
    NoWriterMarks,
    PartDiffers,
    ReadBlocked,
    RecordTooLarge,
    Squashed,
    UnknownLog,
    WriterConflict,
)
from anabranch_spark.sink.columns import Columns
from anabranch_spark.sink.identity import Version, fork_name
from anabranch_spark.sink.log_sink import LogSink
from anabranch_spark.sink.messages import PartWritten
from anabranch_spark.sink.options import Mode

pa: Any = pytest.importorskip("pyarrow", reason="the extra `spark` isn't installed")

PARTS = 2
WRITER = "query"
AWAY_S = 40 * 86_400
"""Longer than the service remembers requests, producers and what became of forks."""
BOTH = pytest.mark.parametrize("mode", Mode)
_names, _executions = count(), count()


@pytest.fixture(scope="module")
def server() -> Iterator[testing.Server]:
    with testing.server() as server:
        yield server


@pytest.fixture(scope="module")
def service(server: testing.Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


def values_of(batch: int, part: int) -> list[bytes]:
    """What is meant to be in the log; some parts are empty."""
    return [b"%d %d %d" % (batch, part, row) for row in range((batch + 2 * part) % 4)]


def arrow(values: list[Any]) -> Any:
    return pa.record_batch([pa.array(values, pa.binary())], names=["value"])


class Query:
    """A streaming query, as Spark's driver runs it: executions of one batch after the other."""

    def __init__(self, server: testing.Server, service: anabranch.Service, mode: Mode) -> None:
        self.server, self.service = server, service
        self.log = service.create(f"orders-{next(_names)}")
        self.mode = mode
        self.batch = 0
        self.executions: list[tuple[LogSink, int, dict[int, PartWritten]]] = []
        self.start()

    def start(self) -> None:
        """Plan the batch anew, as after a failure or in a new process."""
        sink = LogSink(
            url=self.server.url,
            log=self.log.name,
            mode=self.mode,
            columns=Columns(0),
            execution=f"{next(_executions):016x}",
            fork_ttl_s=3_600,
        )
        self.executions.append((sink, self.batch, {}))

    def task(self, part: int, execution: int = -1, values: list[bytes] | None = None) -> None:
        sink, batch, reported = self.executions[execution]
        content = [arrow(values_of(batch, part) if values is None else values)]
        reported[part] = sink.write(content, version=Version(WRITER, batch), part=part)

    def tasks(self) -> None:
        for part in range(PARTS):
            self.task(part)

    def commit(self, execution: int = -1) -> None:
        sink, batch, reported = self.executions[execution]
        sink.commit([reported.get(part) for part in range(PARTS)], expected=batch)

    def complete_only(self) -> None:
        """What a driver has done that dies in the middle of a commit."""
        _, batch, reported = self.executions[-1]
        parts = {each.part: each.batches for each in reported.values()}
        forks = {each.fork for each in reported.values()} - {None}
        for log in [self.service.log(name, engine="bolt") for name in forks if name]:
            log.writer(WRITER).complete(batch, parts)

    def abort(self, execution: int = -1) -> None:
        sink, _, reported = self.executions[execution]
        sink.abort([reported.get(part) for part in range(PARTS)])

    def next(self) -> None:
        """The commit is in Spark's own log."""
        self.batch += 1
        self.start()

    def values(self) -> list[bytes]:
        return [each.value or b"" for each in self.log.read()]

    def finish(self) -> None:
        self.start()
        self.tasks()
        self.commit()

    def check(self, batches: int) -> None:
        """Each record of these batches is in the log once, a part's records in their order."""
        found = self.values()
        expected = [values_of(batch, part) for batch in range(batches) for part in range(PARTS)]
        assert sorted(found) == sorted(each for part in expected for each in part)
        for part in expected:
            assert [each for each in found if each in part] == part
        assert [int(each.split()[0]) for each in found] == sorted(
            int(each.split()[0]) for each in found
        ), "a batch comes after the one before it"


@pytest.fixture
def query(server: testing.Server, service: anabranch.Service, mode: Mode) -> Query:
    return Query(server, service, mode)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "task",
                "tasks",
                "commit",
                "commit",
                "commit and forget",
                "die",
                "die in commit",
                "abort",
                "late task",
                "late commit",
                "late abort",
                "away",
            ]
        ),
        st.integers(0, 1_000),
    ),
    max_size=14,
)


@BOTH
@given(steps=STEPS)
def test_whatever_dies_is_repeated_or_comes_late_a_batch_is_in_the_log_once(
    server: testing.Server, service: anabranch.Service, mode: Mode, steps: list[tuple[str, int]]
) -> None:
    query = Query(server, service, mode)
    for step, number in steps:
        _play(query, step, number)
    query.finish()
    query.check(query.batch + 1)


def _play(query: Query, step: str, number: int) -> None:
    old = number % len(query.executions)
    match step:
        case "task" | "tasks" | "commit" | "commit and forget" | "die in commit":
            # A fork may have expired or been squashed by the promotion of an earlier execution:
            # then Spark aborts the batch, and runs it again.
            try:
                _play_driver(query, step, number)
            except (Squashed, UnknownLog):
                query.abort()
                query.start()
        case "die":
            query.start()
        case "abort":
            query.abort()
            query.start()
        case "away":
            query.server.advance(AWAY_S)
        case "late task":
            with suppress(AnabranchError):
                query.task(number % PARTS, old)
        case "late commit" if len(query.executions[old][2]) == PARTS:
            with suppress(AnabranchError):
                query.commit(old)
        case "late abort" if old != len(query.executions) - 1:
            query.abort(old)
        case _:
            pass


def _play_driver(query: Query, step: str, number: int) -> None:
    if step == "task":
        query.task(number % PARTS)
        return
    if step == "tasks" or len(query.executions[-1][2]) < PARTS:
        query.tasks()
    if step == "die in commit":
        query.complete_only()
        query.start()
    elif step.startswith("commit"):
        query.commit()
        if step == "commit":
            query.next()
        else:
            query.start()


@BOTH
def test_a_commit_that_is_called_again_changes_nothing(query: Query) -> None:
    for _ in range(3):
        query.tasks()
        query.commit()
        query.commit()
        query.commit()
        query.next()
    query.check(3)


@BOTH
def test_an_abort_after_a_commit_whose_answer_was_lost_takes_nothing_back(query: Query) -> None:
    query.batch = 3
    query.start()
    query.tasks()
    query.commit()
    query.abort()
    assert query.values() == values_of(3, 0) + values_of(3, 1) != []
    query.finish()
    assert query.values() == values_of(3, 0) + values_of(3, 1)


@BOTH
def test_a_driver_that_dies_in_commit_goes_on_however_long_it_was_away(query: Query) -> None:
    for _ in range(3):
        query.tasks()
        query.complete_only()
        query.server.advance(AWAY_S)
        query.start()
        query.tasks()
        query.commit()
        query.server.advance(AWAY_S)
        query.start()  # the commit isn't in Spark's own log
        query.tasks()
        assert query.log.describe().forks == 0, "what is in the log blocks no reader again"
        query.commit()
        query.next()
    query.check(3)


def test_in_a_fork_an_execution_need_not_agree_with_the_one_before(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.task(0, values=[b"a", b"b"])
    query.start()
    query.task(0, values=[b"c"])
    query.task(1, values=[b"b", b"a"])
    query.commit()
    assert sorted(query.values()) == [b"a", b"b", b"c"]


def test_in_direct_mode_a_part_that_differs_is_refused_with_advice(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.DIRECT)
    query.task(0, values=[b"a", b"b"])
    with pytest.raises(PartDiffers) as caught:
        query.task(0, values=[b"b", b"a"])
    assert "Make it deterministic, or write with mode=fork" in caught.value.__notes__[0]
    query.task(1, values=[b"c"])
    query.executions[-1][2].pop(1)
    query.task(1, values=[])
    with pytest.raises(WriterConflict) as conflict:
        query.commit()
    assert "with the settings that it had" in conflict.value.__notes__[0]
    assert query.values() == [b"a", b"b", b"c"]


@BOTH
def test_a_checkpoint_that_is_older_than_the_log_is_refused(query: Query) -> None:
    for _ in range(3):
        query.tasks()
        query.commit()
        query.next()
    query.batch = 1
    query.start()
    with pytest.raises(WriterConflict, match=r"version 2 is complete already.*checkpoint is older"):
        query.task(0)
    query.check(3)


def test_readers_see_a_fork_modes_batch_whole_and_not_before_its_commit(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.log.append(b"before")
    query.task(0, values=[b"a"])
    query.task(1, values=[b"b"])
    assert query.values() == [b"before"]
    assert query.log.describe().undecided == query.executions[-1][2][0].fork
    query.commit()
    assert query.values() == [b"before", b"a", b"b"]
    assert query.log.describe().forks == 0


def test_an_abort_squashes_the_executions_fork_so_that_readers_go_on(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.task(0, values=[b"a"])
    query.log.append(b"beside")
    with pytest.raises(ReadBlocked):
        query.values()
    query.abort()
    query.abort()
    assert query.values() == [b"beside"]


def test_a_fork_that_nobody_commits_or_aborts_ends_with_its_time_to_live(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.task(0, values=[b"a"])
    query.log.append(b"beside")
    server.advance(3_601)
    (found,) = query.log.read(wait=30)
    assert found.value == b"beside"
    with pytest.raises(Squashed):
        query.task(1, values=[b"b"])


def test_a_commit_whose_fork_is_gone_is_refused_and_the_batch_written_again(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.task(0, values=[b"a"])
    query.task(1, values=[b"b"])
    server.advance(AWAY_S)
    with pytest.raises((Squashed, UnknownLog)):
        query.commit()
    assert query.log.writers() == []
    query.abort()
    query.start()
    query.task(0, values=[b"a"])
    query.task(1, values=[b"b"])
    query.commit()
    assert sorted(query.values()) == [b"a", b"b"]


def test_a_record_that_somebody_else_appends_to_the_fork_is_not_promoted(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    query.task(0, values=[b"a"])
    query.task(1, values=[])
    fork = query.executions[-1][2][0].fork
    assert fork is not None
    service.log(fork, engine="bolt").append(b"intruder")
    with pytest.raises(AnabranchError, match="2 records of its own where 1 were expected"):
        query.commit()
    query.abort()
    query.finish()
    assert b"intruder" not in query.values()


@BOTH
def test_batches_without_records_leave_nothing_behind(query: Query) -> None:
    for _ in range(2):
        for part in range(PARTS):
            query.task(part, values=[])
        query.commit()
        query.commit()
        query.next()
    description = query.log.describe()
    assert (description.tail, description.forks) == (0, 0)
    (state,) = query.log.writers()
    assert (state.complete, state.open) == (1, [])


@BOTH
def test_a_record_over_the_limit_is_refused_with_its_place(query: Query) -> None:
    sink, batch, _ = query.executions[-1]
    batches = [arrow([b"a"] * 3), arrow([b"b", bytes(2 << 20)])]
    with pytest.raises(RecordTooLarge, match="record_bytes_max") as caught:
        sink.write(iter(batches), version=Version(WRITER, batch), part=7)
    assert caught.value.__notes__ == ["The record is row 4 of partition 7, counted from 0"]


@BOTH
def test_a_task_holds_no_more_than_a_few_batches_of_its_partition(query: Query) -> None:
    sink, batch, _ = query.executions[-1]
    seen: list[Any] = []
    most = 0

    def partition() -> Iterator[Any]:
        nonlocal most
        for _ in range(30):
            made = arrow([bytes(1_000)] * 1_000)
            seen.append(weakref.ref(made))
            yield made
            del made
            most = max(most, sum(each() is not None for each in seen))

    written = sink.write(partition(), version=Version(WRITER, batch), part=0)
    assert written.records == 30_000
    assert most <= 1


def test_two_modes_on_one_log_know_what_the_other_has_committed(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.DIRECT)
    for mode in (Mode.DIRECT, Mode.FORK, Mode.DIRECT, Mode.FORK):
        query.mode = mode
        query.start()
        query.tasks()
        query.commit()
        query.mode = Mode.FORK if mode is Mode.DIRECT else Mode.DIRECT
        query.start()
        query.tasks()
        query.commit()
        query.next()
    query.check(4)


def test_a_log_without_marks_says_so(server: testing.Server, service: anabranch.Service) -> None:
    query = Query(server, service, Mode.DIRECT)
    query.log = service.create(f"lazy-{next(_names)}", append="lazy")
    query.start()
    with pytest.raises(NoWriterMarks, match="lazy front"):
        query.task(0, values=[b"a"])


def test_a_fork_that_only_resembles_ours_is_left_alone(
    server: testing.Server, service: anabranch.Service
) -> None:
    query = Query(server, service, Mode.FORK)
    taken = fork_name(Version(WRITER, 0), query.executions[-1][0].execution)
    query.log.cfork(taken)
    with pytest.raises(AnabranchError, match="exists"):
        query.task(0, values=[b"a"])
