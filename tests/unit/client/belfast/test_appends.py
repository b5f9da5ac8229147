"""Appends to shards that fail: each is in the log once, or its caller knows that it may not be."""

from collections import Counter as Count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.belfast.counters import STRIDE, Counters

from anabranch.client.belfast.appends import Pledge
from anabranch.client.session.effects import Ended, Written
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import Appended
from anabranch.core.errors import (
    DeadlineExceeded,
    OutcomeUnknown,
    Overloaded,
    QuotaExceeded,
    RecordVoided,
    Retry,
    ShardAway,
    Unavailable,
    UnknownShard,
)
from anabranch.core.quota import Meter, Quota
from anabranch.core.records.record import Record
from anabranch.core.types import MS

SHARDS = ("a", "b", "c")
SETTINGS = Settings(batches_in_flight_max=3, batch_bytes=200)
TIMEOUT_MS = 20_000


def add(
    world: Counters, value: bytes, shard: str | None = None, *, retry_unknown: bool = False
) -> tuple[Pledge, int]:
    pledge = world.session.appender.add(
        Record(value), TIMEOUT_MS, shard, retry_unknown=retry_unknown
    )
    return pledge, pledge.count - 1


def append(world: Counters, value: bytes, shard: str | None = None) -> tuple[Pledge, int]:
    made = add(world, value, shard)
    world.give(Written())
    return made


def in_log(world: Counters) -> "Count[bytes | None]":
    return Count(
        value for shard in world.shards.values() for each in shard.logged for value in each.values
    )


def at(world: Counters, position: int) -> bytes | None:
    shard = next(each for each in world.shards.values() if each.number == position // STRIDE)
    local = position % STRIDE
    return next(
        each.values[local - each.first]
        for each in shard.logged
        if each.first <= local < each.first + len(each.values)
    )


def finish(world: Counters, shards: tuple[str, ...] = SHARDS) -> None:
    for _ in range(60):
        for shard in shards:
            world.take_in(shard, 1_000)
            world.confirm(shard, 1_000)
        world.ring()


ACTIONS = (
    *("append", "append", "append", "take", "take", "confirm", "snap", "promote"),
    *("fail", "restore", "away", "ring", "quota"),
)

actions = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.integers(0, 1_000),
        st.integers(0, 1_000),
    ),
    max_size=120,
)


def act(
    world: Counters, made: list[tuple[bytes, Pledge, int]], action: tuple[str, int, int]
) -> None:
    what, which, much = action
    shard = SHARDS[which % len(SHARDS)]
    match what:
        case "append":
            for nth in range(1 + much % 5):
                value = b"%d.%d" % (len(made), nth)
                named = shard if which % 2 else None
                made.append((value, *add(world, value, named, retry_unknown=which % 5 == 0)))
            world.give(Written())
        case "take":
            world.take_in(shard, 1 + much % 4)
        case "confirm":
            world.confirm(shard, 1 + much % 4)
        case "snap" | "promote":
            world.snap(shard, elsewhere=what == "promote")
        case "fail":
            if not all(each.failed for each in world.shards.values() if each.name != shard):
                world.fail(shard, answered=bool(much % 2))
        case "restore":
            world.shards[shard].failed = world.shards[shard].away = False
        case "away":
            world.shards[shard].away = much % 3 == 0
        case "quota":
            quota = Quota(append_records_per_s=1 + much % 50, burst_ms=1 + much)
            world.shards[shard].meter = Meter("ticks", quota) if much % 3 else None
        case _:
            world.ring()


@settings(max_examples=300, deadline=None)
@given(program=actions)
def test_what_becomes_of_an_append_is_what_its_caller_is_told(
    program: list[tuple[str, int, int]],
) -> None:
    world = Counters(SHARDS, SETTINGS)
    made: list[tuple[bytes, Pledge, int]] = []
    for action in program:
        act(world, made, action)
    for shard in world.shards.values():
        shard.failed = shard.away = False
    finish(world)
    found = in_log(world)
    for value, pledge, index in made:
        match pledge.outcome:
            case Appended():
                assert at(world, pledge.position(index)) == value
                assert found[value] == 1 or pledge.retry_unknown
            case RecordVoided():
                assert pledge.named
                assert found[value] == 0
            case OutcomeUnknown():
                assert found[value] <= 1 or pledge.retry_unknown
            case other:
                assert isinstance(other, Unavailable), other
                assert found[value] == 0
    assert not world.session.pending_bytes


def test_a_batch_that_was_not_answered_goes_to_the_new_primary_under_the_same_number() -> None:
    world = Counters(SHARDS, SETTINGS)
    pledge, index = append(world, b"once", "a")
    world.take_in("a", 1)
    world.snap("a", elsewhere=True)
    finish(world)
    assert isinstance(pledge.outcome, Appended)
    assert at(world, pledge.position(index)) == b"once"
    assert in_log(world)[b"once"] == 1


def test_what_a_failed_shard_voided_goes_to_another_if_its_caller_did_not_say_where() -> None:
    world = Counters(SHARDS, SETTINGS)
    free, _ = append(world, b"free")
    named, _ = append(world, b"named", free.shard)
    failed = free.shard
    world.take_in(failed, 2)
    world.fail(failed, answered=True)
    finish(world, tuple(each for each in SHARDS if each != failed))
    assert isinstance(free.outcome, Appended)
    assert free.shard != failed
    assert isinstance(named.outcome, RecordVoided)


@pytest.mark.parametrize("retry_unknown", [True, False])
def test_what_a_failed_shard_left_open_is_appended_again_only_where_that_was_asked_for(
    retry_unknown: bool,
) -> None:
    world = Counters(SHARDS, SETTINGS)
    pledge, _ = add(world, b"maybe", retry_unknown=retry_unknown)
    world.give(Written())
    failed = pledge.shard
    world.take_in(failed, 1)
    world.fail(failed, answered=False)
    finish(world, tuple(each for each in SHARDS if each != failed))
    if retry_unknown:
        assert isinstance(pledge.outcome, Appended)
        assert pledge.shard != failed
    else:
        assert isinstance(pledge.outcome, OutcomeUnknown)


def test_appends_go_to_whoever_has_least_to_do() -> None:
    world = Counters(SHARDS, SETTINGS)
    for nth in range(30):
        append(world, b"%0100d" % nth)
    assert sorted(len(each.inbox) for each in world.shards.values()) == [3, 3, 3], "in flight"
    finish(world)
    counts = [sum(len(b.values) for b in each.logged) for each in world.shards.values()]
    assert sum(counts) == 30
    assert min(counts) >= 5


def test_a_shard_that_nobody_knows_is_told_at_once() -> None:
    world = Counters(SHARDS, SETTINGS)
    pledge, _ = append(world, b"lost", "z")
    for _ in range(8):
        world.ring()
    assert isinstance(pledge.outcome, UnknownShard)
    assert world.now < TIMEOUT_MS * 1_000_000


def test_a_shard_that_has_yet_to_join_is_waited_for() -> None:
    world = Counters(SHARDS, SETTINGS)
    world.session.whereabouts.expected = 4
    pledge, _ = append(world, b"early", "z")
    for _ in range(8):
        world.ring()
    assert pledge.outcome is None
    world.join("z")
    finish(world, ("z",))
    assert isinstance(pledge.outcome, Appended)
    assert at(world, pledge.position(0)) == b"early"


def test_while_shards_join_nobody_is_asked_faster_than_at_other_times() -> None:
    world = Counters(SHARDS, SETTINGS)
    world.session.whereabouts.expected = 4
    append(world, b"early", "z")
    asked = world.located
    while world.now < 10_000 * MS:
        world.ring()
    assert 0 < world.located - asked <= 10_000 / SETTINGS.directory_ms


def test_a_deadline_that_passes_while_shards_join_says_so() -> None:
    world = Counters(SHARDS, SETTINGS)
    world.session.whereabouts.expected = 4
    pledge, _ = append(world, b"early", "z")
    while pledge.outcome is None:
        world.ring()
    assert isinstance(pledge.outcome, ShardAway)
    assert "3 of 4 shards have joined" in pledge.outcome.message
    assert world.now == TIMEOUT_MS * MS


def test_once_all_have_joined_a_shard_that_nobody_knows_is_told_at_once() -> None:
    world = Counters(SHARDS, SETTINGS)
    world.session.whereabouts.expected = 4
    pledge, _ = append(world, b"lost", "z")
    world.ring()
    world.join("d")
    for _ in range(8):
        world.ring()
    assert isinstance(pledge.outcome, UnknownShard)


def test_what_is_held_is_bounded() -> None:
    world = Counters(SHARDS, Settings(pending_bytes_max=1_000))
    for _ in range(7):
        append(world, b"x" * 100)
    with pytest.raises(Overloaded):
        append(world, b"x" * 100)
    finish(world)
    append(world, b"there is room again")


def over_quota(world: Counters, retry_after_ms: int) -> None:
    """Shard a's log owes so much."""
    meter = world.shards["a"].meter = Meter("ticks", Quota(append_records_per_s=1_000, burst_ms=1))
    assert meter.append(world.now, 100, retry_after_ms + 1) is None


def test_an_append_is_not_sent_again_before_the_quota_lets_it() -> None:
    world = Counters(SHARDS, SETTINGS)
    pledge, _ = append(world, b"x", "a")
    over_quota(world, 900)
    world.take_in("a", 1)
    while not world.shards["a"].inbox:
        world.ring()
    assert 900 * MS <= world.now < 1_000 * MS
    finish(world)
    assert at(world, pledge.position(0)) == b"x"


def test_a_quota_that_asks_for_very_long_is_looked_at_again_meanwhile() -> None:
    """Somebody may have raised it."""
    world = Counters(SHARDS, SETTINGS)
    pledge, _ = append(world, b"x", "a")
    over_quota(world, 3_600_000)
    for tries in range(1, 6):
        world.take_in("a", 1)
        while not world.shards["a"].inbox:
            world.ring()
        assert world.now < tries * 1_100 * MS
    world.shards["a"].meter = None
    finish(world)
    assert isinstance(pledge.outcome, Appended)


def test_a_deadline_that_passes_over_quota_says_so_and_that_nothing_was_done() -> None:
    world = Counters(SHARDS, SETTINGS)
    late = world.session.appender.add(Record(b"late"), 500, "a", retry_unknown=False)
    world.give(Written())
    over_quota(world, 60_000)
    world.take_in("a", 1)
    while late.outcome is None:
        world.ring()
    assert isinstance(late.outcome, QuotaExceeded)
    assert late.outcome.facts["retry_after_ms"] == 60_000
    behind = world.session.appender.add(Record(b"behind"), 100, "a", retry_unknown=False)
    world.give(Written())
    while behind.outcome is None:
        world.ring()
    assert isinstance(behind.outcome, QuotaExceeded), "it wasn't sent, and is told the same cause"
    world.shards["a"].meter = None
    after, _ = append(world, b"after", "a")
    finish(world)
    assert isinstance(after.outcome, Appended)
    assert in_log(world) == {b"after": 1}
    assert world.session.appender.idle


def test_a_client_that_is_closed_says_so() -> None:
    world = Counters(SHARDS, SETTINGS)
    pledge, _ = append(world, b"waiting", "a")
    world.give(Ended())
    assert isinstance(pledge.outcome, OutcomeUnknown), "it may be in the log"
    with pytest.raises(Unavailable):
        append(world, b"late")


def request(
    world: Counters, value: bytes, *, request_id: str = "k", timeout_ms: int = 500
) -> Pledge:
    pledge = world.session.appender.add_batch([Record(value)], timeout_ms, "a", request_id)
    world.give(Written())
    return pledge


def test_a_request_that_nobody_answered_is_repeated_under_its_id_and_is_there_once() -> None:
    """By another client, whose producers have other names."""
    world = Counters(SHARDS, SETTINGS)
    lost = request(world, b"once")
    world.take_in("a", 1)
    while lost.outcome is None:
        world.ring()
    assert isinstance(lost.outcome, DeadlineExceeded)
    assert lost.outcome.request_id == "k"
    other = Counters(SHARDS, SETTINGS)
    other.shards = world.shards
    again = request(other, b"once", timeout_ms=TIMEOUT_MS)
    finish(other)
    assert at(other, again.position(0)) == b"once"
    assert in_log(other)[b"once"] == 1
    assert other.session.appender.idle


def test_requests_of_different_ids_are_different() -> None:
    world = Counters(SHARDS, SETTINGS)
    pledges = [request(world, b"x", request_id=id, timeout_ms=TIMEOUT_MS) for id in "kkl"]
    finish(world)
    places = [pledge.position(0) for pledge in pledges]
    assert places[0] == places[1] != places[2]
    assert in_log(world)[b"x"] == 2


@settings(max_examples=100, deadline=None)
@given(program=actions)
def test_a_request_is_never_twice_in_the_log_whatever_fails(
    program: list[tuple[str, int, int]],
) -> None:
    """A stubborn caller repeats it for as long as that is advised."""
    world = Counters(SHARDS, SETTINGS)
    pledge = request(world, b"stubborn")
    for action in program:
        if isinstance(pledge.outcome, Retry):
            pledge = request(world, b"stubborn")
        act(world, [], ("ring", 0, 0) if action[0] == "append" else action)
        assert in_log(world)[b"stubborn"] <= 1
    for shard in world.shards.values():
        shard.failed = shard.away = False
    while pledge.outcome is None or isinstance(pledge.outcome, Retry):
        if pledge.outcome is not None:
            pledge = request(world, b"stubborn", timeout_ms=TIMEOUT_MS)
        finish(world)
    assert in_log(world)[b"stubborn"] <= 1
    if isinstance(pledge.outcome, Appended):
        assert at(world, pledge.position(0)) == b"stubborn"
