"""A stream's offsets and micro-batches, as Spark asks for them, against a real service.

These tests need no Spark: they ask what it asks, in its order.
"""

from collections.abc import Callable, Iterator

import pytest

import anabranch
from anabranch.errors import BadRequest, OutOfRange, Promoted, Squashed
from anabranch_spark.options import read_options
from anabranch_spark.source.parts import Part
from anabranch_spark.source.reading import read_part
from anabranch_spark.source.streams import stream
from anabranch_spark.source.streams.offsets import Offset
from anabranch_spark.source.streams.stream import Stream

Run = Callable[..., Stream]


@pytest.fixture
def run(url: str, log: anabranch.Log, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Starts a run of a query that reads `log`."""
    monkeypatch.setattr(stream, "IDLE_S", 0.0)
    started: list[Stream] = []

    def start(name: str = log.name, **options: str) -> Stream:
        started.append(made := Stream(read_options({"log": name, **options}, "stream"), url))
        return made

    yield start
    for each in started:
        each.close()


def fill(log: anabranch.Log, count: int) -> None:
    """Each record by itself, so that there are many extents."""
    for nth in range(count):
        log.append(b"%d" % nth)


def positions(url: str, parts: list[Part]) -> list[int]:
    return [
        position
        for part in parts
        for batch in read_part(part, ("position",), service=url, ask_broker=True)
        for position in batch.column(0).to_pylist()
    ]


def followed(url: str, run: Stream) -> list[list[int]]:
    """The micro-batches of a new query, until there is nothing to read."""
    at, found = run.initial(), []
    while (end := run.latest()).position > at.position:
        found.append(positions(url, run.parts(at, end)))
        run.commit(end)
        at = end
    return found


def plans_of(service: anabranch.Service, log: anabranch.Log) -> int:
    return sum(plan.name == log.name for plan in service.plans().plans)


def test_micro_batches_have_no_more_records_than_they_may(
    url: str, run: Run, log: anabranch.Log
) -> None:
    log.append_many([b"x"] * 350)
    found = followed(url, run(maxRecordsPerTrigger="100"))
    assert [len(batch) for batch in found] == [100, 100, 100, 50]
    assert [each for batch in found for each in batch] == [*range(350)]


def test_micro_batches_have_no_more_bytes_than_they_may(
    url: str, run: Run, log: anabranch.Log
) -> None:
    fill(log, 9)
    (size,) = {each.length for page in log.plan_scan().pages() for each in page}
    found = followed(url, run(maxBytesPerTrigger=str(4 * size)))
    assert [len(batch) for batch in found] == [4, 4, 1]
    assert [len(batch) for batch in followed(url, run(maxBytesPerTrigger="1"))] == [1] * 9


def test_both_bounds_hold_at_once(url: str, run: Run, log: anabranch.Log) -> None:
    fill(log, 5)
    log.append_many([b"x"] * 10)
    found = followed(url, run(maxBytesPerTrigger="1", maxRecordsPerTrigger="3"))
    assert [each for batch in found for each in batch] == [*range(15)]
    assert max(map(len, found)) == 3


def test_few_records_wait_until_there_are_enough(run: Run, log: anabranch.Log) -> None:
    query = run(minRecordsPerTrigger="5", maxTriggerDelay="1h")
    start = query.initial()
    fill(log, 4)
    assert query.latest() == start
    fill(log, 1)
    assert query.latest().position == 5
    assert run(minRecordsPerTrigger="99", maxTriggerDelay="0s").latest().position == 5


def test_a_restart_goes_on_where_the_last_micro_batch_ended(
    url: str, run: Run, log: anabranch.Log
) -> None:
    fill(log, 7)
    first = run(maxRecordsPerTrigger="3")
    start = first.initial()
    end = first.latest()
    first.parts(start, end)
    first.close()
    # Spark 4.1 asks for the parts of the last micro-batch first: again if it wasn't done.
    again = run(maxRecordsPerTrigger="2")
    assert positions(url, again.parts(start, end)) == [0, 1, 2]
    assert again.latest().position == 5
    done = run(maxRecordsPerTrigger="2")
    assert done.parts(end, end) == []
    assert done.latest().position == 5
    # Spark 4.2 says where it stands.
    told = run(maxRecordsPerTrigger="2")
    assert told.latest(end).position == 5


def test_no_offset_passes_what_is_settled(run: Run, log: anabranch.Log) -> None:
    fill(log, 2)
    fork = log.cfork("undecided", promotable=True)
    fill(log, 3)
    query = run()
    end = query.latest()
    assert end.position == 2
    fork.squash()
    query.parts(Offset(log.id, 0, 0), end)
    assert query.latest().position == 5


def test_a_query_begins_where_it_is_told_to(run: Run, log: anabranch.Log) -> None:
    fill(log, 6)
    assert run(**{"from": "4"}).initial().position == 4
    assert run(**{"from": "latest"}).initial().position == 6
    assert run().initial() == Offset(log.id, log.describe().generation, 0)
    with pytest.raises(OutOfRange):
        run(**{"from": "7"}).initial()


def test_a_run_with_an_end_looks_it_up_once(url: str, run: Run, log: anabranch.Log) -> None:
    fill(log, 5)
    query = run(to="latest", maxRecordsPerTrigger="2", minRecordsPerTrigger="2")
    start = query.initial()
    ends = [query.latest()]
    fill(log, 5)
    for _ in range(4):
        query.parts(start, ends[-1])
        start = ends[-1]
        ends.append(query.latest())
    assert [end.position for end in ends] == [2, 4, 5, 5, 5]


def test_a_run_of_what_there_is_now_ends_there_or_at_the_end_that_was_given(
    url: str, run: Run, log: anabranch.Log
) -> None:
    fill(log, 5)
    runs: list[tuple[Stream, int]] = []
    for to, end in (({}, 5), ({"to": "3"}, 3), ({"to": "8"}, 5)):
        by_option = run(availableNow="true", maxRecordsPerTrigger="2", **to)
        by_option.latest()
        by_trigger = run(maxRecordsPerTrigger="2", **to)
        by_trigger.aim()
        runs += [(by_option, end), (by_trigger, end)]
    fill(log, 5)
    for each, end in runs:
        assert [at for batch in followed(url, each) for at in batch] == [*range(end)]


def test_once_reads_everything_whatever_the_options_say(run: Run, log: anabranch.Log) -> None:
    fill(log, 5)
    limited = run(maxRecordsPerTrigger="2", maxBytesPerTrigger="1", minRecordsPerTrigger="2")
    assert limited.latest().position == 1
    assert limited.latest(whole=True).position == 5
    assert run(minRecordsPerTrigger="99").latest(whole=True).position == 5


def test_offsets_are_equal_while_nothing_is_read(run: Run, log: anabranch.Log) -> None:
    query = run()
    fill(log, 1)
    start, end = query.initial(), query.latest()
    query.parts(start, end)
    log.cfork("passing", promotable=True).promote()
    assert log.describe().generation != end.generation
    assert query.latest() == end


def test_plans_end_with_their_micro_batches_and_with_the_run(
    service: anabranch.Service, run: Run, log: anabranch.Log
) -> None:
    fill(log, 4)
    query = run(maxRecordsPerTrigger="2", maxBytesPerTrigger="1m")
    start = query.initial()
    one = query.latest()
    query.parts(start, one)
    two = query.latest()
    query.parts(one, two)
    assert plans_of(service, log) == 2
    query.commit(one)
    assert plans_of(service, log) == 1
    query.close()
    assert plans_of(service, log) == 0


def test_a_promoted_or_squashed_fork_ends_the_query(run: Run, log: anabranch.Log) -> None:
    fill(log, 1)
    better = log.cfork("better", promotable=True)
    query, query_again = run(better.name), run(better.name)
    end = query.latest()
    better.promote()
    with pytest.raises(Promoted, match=f"use {log.name}"):
        query.latest()
    # Also if there is another fork of the name by now: the checkpoint's log is that one.
    log.cfork("better")
    with pytest.raises(Promoted, match=f"use {log.name}"):
        query_again.parts(end, end)
    worse = log.cfork("worse")
    query = run(worse.name)
    query.initial()
    worse.squash()
    with pytest.raises(Squashed):
        query.latest()


def test_a_log_that_was_made_anew_is_another(
    service: anabranch.Service, run: Run, log: anabranch.Log
) -> None:
    fill(log, 3)
    end = run().latest()
    service.delete(log)
    fill(service.create(log.name), 5)
    with pytest.raises(Squashed, match="was deleted, and its records are gone"):
        run().parts(end, end)
    long_ago = Offset(1 << 40, 0, 3)  # what became of it is forgotten by now
    with pytest.raises(BadRequest, match="begin with a new checkpoint"):
        run().parts(long_ago, long_ago)


def test_a_checkpoint_of_another_log_is_refused(
    service: anabranch.Service, run: Run, log: anabranch.Log
) -> None:
    end = run().latest()
    other = service.create(f"{log.name}-other")
    with pytest.raises(BadRequest, match=f"that log is {log.name}: name it"):
        run(other.name).latest(end)


def test_a_trim_past_the_query_is_loud_or_ignored(
    url: str, run: Run, log: anabranch.Log, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(log, 6)
    loud, start = run(), Offset(log.id, 0, 0)
    loud.parts(start, start)
    log.trim(4)
    with pytest.raises(OutOfRange, match="from 4 to"):
        loud.latest()
    for options in ({}, {"maxBytesPerTrigger": "1m"}):
        query = run(onDataLoss="ignore", **options)
        query.parts(start, start)
        end = query.latest()
        assert positions(url, query.parts(start, end)) == [4, 5]
        assert f"lost: records 0 to 3 of {log.name}" in capsys.readouterr().err


def test_a_micro_batch_in_the_wrong_order_is_refused(run: Run, log: anabranch.Log) -> None:
    fill(log, 3)
    with pytest.raises(BadRequest, match="doesn't come before"):
        run().parts(Offset(log.id, 0, 2), Offset(log.id, 0, 1))
