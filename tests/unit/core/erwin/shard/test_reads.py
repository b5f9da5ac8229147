"""Reads: fast ones, slow ones, short ones; none holds up pushes or another read."""

import pytest
from tests.unit.core.erwin.shard.erwin_stage import FENCE, LEADER, Stage, batch

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.protocol.messages import Read
from anabranch.core.limits import Limits
from anabranch.core.machine import Received, Request


def pushed(stage: Stage, count: int, *, stable: int | None = None, size: int = 1) -> None:
    """Batches of one record each, at positions 0 up to `count`, all on shard a."""
    for first in range(count):
        stage.push("a1", first, [stage.row(first, 1, 0)], [batch(f"v{first:0{size}}")])
    stage.push("a1", count, [], stable=count if stable is None else stable)


def test_a_stable_position_is_answered_at_once() -> None:
    stage = Stage()
    pushed(stage, 3)
    assert stage.contents(stage.read("a1", 1)) == [(1, ["v1"]), (2, ["v2"])]


def test_a_read_inside_a_batch_gets_the_whole_batch() -> None:
    stage = Stage()
    stage.push("a1", 0, [stage.row(0, 3, 0)], [batch("x", "y", "z")])
    stage.push("a1", 3, [], stable=3)
    found = stage.records(stage.read("a1", 2))
    assert (found.firsts, found.counts, found.upto) == ((0,), (3,), 3)


def test_what_is_not_stable_is_not_read() -> None:
    """Its position may still change (LazyLog, 4.4)."""
    stage = Stage()
    pushed(stage, 3, stable=2)
    found = stage.records(stage.read("a1", 0))
    assert (found.upto, found.firsts, found.stable) == (2, (0, 1), 2)
    short = stage.records(stage.read("a1", 2))
    assert (short.upto, short.firsts) == (2, ())


def test_a_slow_read_is_answered_when_its_position_is_stable() -> None:
    stage = Stage()
    token = stage.read("a1", 1, wait_ms=10_000)
    pushed(stage, 3, stable=1)
    assert stage.waits(token)
    other = stage.read("a1", 0)
    assert stage.contents(other) == [(0, ["v0"])]
    stage.push("a1", 3, [], stable=3)
    assert stage.contents(token) == [(1, ["v1"]), (2, ["v2"])]
    assert stage.nodes["a1"].machine.counters.slow_reads == 1


def test_a_slow_read_is_answered_short_in_the_end() -> None:
    stage = Stage()
    token = stage.read("a1", 0, wait_ms=2_000)
    stage.sleep(1_999)
    assert stage.waits(token)
    stage.sleep(1)
    assert stage.records(token).upto == 0
    pushed(stage, 1)
    assert len(stage.answers[token]) == 1


def test_no_read_waits_longer_than_the_server_lets_it() -> None:
    stage = Stage(limits=Limits(read_wait_ms_max=500))
    token = stage.read("a1", 0, wait_ms=1 << 40)
    stage.sleep(500)
    assert stage.records(token).upto == 0


def test_reads_that_wait_are_limited_in_number() -> None:
    stage = Stage(limits=Limits(waits_max=2))
    waiting = [stage.read("a1", 0, wait_ms=1_000) for _ in range(2)]
    refused = stage.answer(stage.read("a1", 0, wait_ms=1_000))
    assert isinstance(refused, Refused)
    assert refused.code == "overloaded"
    stage.gone("a1", waiting[0])
    assert stage.waits(stage.read("a1", 0, wait_ms=1_000))
    assert stage.nodes["a1"].machine.waiting_reads == 2


def test_a_read_whose_client_has_gone_is_not_answered() -> None:
    stage = Stage()
    token = stage.read("a1", 0, wait_ms=1_000)
    stage.gone("a1", token)
    pushed(stage, 1)
    stage.sleep(1_000)
    assert stage.waits(token)


@pytest.mark.parametrize(("limit", "firsts"), [(1, (0,)), (2, (0, 1)), (9, (0, 1, 2, 3))])
def test_an_answer_has_no_more_records_than_were_asked_for(
    limit: int, firsts: tuple[int, ...]
) -> None:
    stage = Stage()
    pushed(stage, 4)
    found = stage.records(stage.read("a1", 0, records_max=limit))
    assert (found.firsts, found.upto) == (firsts, len(firsts))


def test_an_answer_has_no_more_bytes_than_were_asked_for_but_one_batch_at_least() -> None:
    stage = Stage()
    stage.push("a1", 0, [stage.row(n, 1, 0) for n in range(4)], [batch(f"v{n}") for n in range(4)])
    stage.push("a1", 4, [], stable=4)
    size = len(batch("v0"))
    for bytes_max, count in [(1, 1), (size, 1), (2 * size, 2), (2 * size + 1, 2)]:
        found = stage.records(stage.read("a1", 0, bytes_max=bytes_max))
        assert (len(found.batches), found.upto) == (count, count)


def test_what_is_not_in_the_cache_is_read_back_from_the_journal() -> None:
    stage = Stage(cache_bytes=300)
    pushed(stage, 20)
    assert stage.contents(stage.read("a1", 0))[0] == (0, ["v0"])
    machine = stage.nodes["a1"].machine
    assert machine.counters.journal_reads == 1
    assert stage.contents(stage.read("a1", 19)) == [(19, ["v19"])]
    assert machine.counters.journal_reads == 1
    assert machine.waiting_reads == 0


def test_reads_of_the_journal_take_turns() -> None:
    stage = Stage(cache_bytes=300)
    pushed(stage, 40)
    node = stage.nodes["a1"]
    tokens = range(1_000, 1_030)
    for token in tokens:
        message = Read(shard="a", start=token - 1_000, bytes_max=1, records_max=1)
        node.give(Request(token, message))
    assert len(stage.later) == 16
    stage.settle()
    assert [stage.records(token).firsts for token in tokens] == [(n,) for n in range(30)]


def test_positions_below_a_trim_are_gone() -> None:
    stage = Stage()
    pushed(stage, 4)
    stage.push("a1", 4, [], stable=4, trimmed=2)
    assert stage.pushed("a1").trimmed == 2
    refused = stage.answer(stage.read("a1", 1))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.facts) == ("position-trimmed", {"position": 1, "trimmed": 2})
    assert stage.contents(stage.read("a1", 2)) == [(2, ["v2"]), (3, ["v3"])]


def test_one_client_leaves_places_for_the_reads_of_others() -> None:
    stage = Stage(limits=Limits(waits_max=8))
    bad, good = (seat_number(1, 1) << REQUEST_BITS, seat_number(2, 2) << REQUEST_BITS)
    for n in range(8):
        stage.read("a1", 0, wait_ms=1_000, token=bad | n)
    assert stage.nodes["a1"].machine.waiting_reads == 4
    token = stage.read("a1", 0, wait_ms=1_000, token=good)
    pushed(stage, 1)
    assert stage.records(token).upto == 1


def test_a_read_that_waits_its_turn_is_refused_if_its_position_is_trimmed_meanwhile() -> None:
    stage = Stage(cache_bytes=300)
    pushed(stage, 60)
    node = stage.nodes["a1"]
    tokens = range(1_000, 1_030)
    for token in tokens:
        message = Read(shard="a", start=token - 1_000, bytes_max=1, records_max=1)
        node.give(Request(token, message))
    trim = Push(fence=FENCE, base=0, first=60, rows=[], batches=[], stable=60, trimmed=50)
    node.give(Received(LEADER, trim))
    stage.sleep(1)
    for token in tokens:
        answer = stage.answer(token)
        assert isinstance(answer, Refused), answer
        assert answer.code == "position-trimmed"
    assert node.machine.waiting_reads == 0
    assert stage.contents(stage.read("a1", 50)) == [(n, [f"v{n}"]) for n in range(50, 60)]
