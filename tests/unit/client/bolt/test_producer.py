"""Appends through the client's machine: batching, order, and once whatever happens (spec D4)."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.unit.client.bolt.world import World

from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.session import Session
from anabranch.client.session.effects import Ended, Written
from anabranch.client.session.pledge import stamp
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import Append, Appended
from anabranch.core.errors import (
    AppendBlocked,
    BadRequest,
    BatchTooLarge,
    CorruptBatch,
    OutcomeUnknown,
    Overloaded,
    Promoted,
    RecordTooLarge,
    SequenceGap,
    StorageFull,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.records.batch import peek, verify
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import LogId


def values(pledge: Pledge) -> list[bytes | None]:
    return [record.value for record in decode(pledge.batch)]


def position(pledge: Pledge) -> int | None:
    assert isinstance(pledge.outcome, Appended)
    return pledge.outcome.position


def test_what_is_added_in_one_turn_travels_in_one_batch(world: World) -> None:
    pledges = world.append(b"a", b"b", b"c")
    assert pledges[0] is pledges[2]
    _, append = world.take(Append)
    assert [record.value for record in decode(append.batch)] == [b"a", b"b", b"c"]


def test_records_gather_while_the_window_is_full(make_world: Callable[..., World]) -> None:
    world = make_world(batches_in_flight_max=2)
    world.connect()
    for value in (b"a", b"b", b"c", b"d", b"e"):
        world.append(value)
    assert len(world.requests) == 2
    world.serve()
    world.deliver()
    world.serve()
    _, append = world.take(Append)
    assert [record.value for record in decode(append.batch)] == [b"c", b"d", b"e"]


def test_a_batch_is_closed_at_its_size_and_at_the_servers_count(
    make_world: Callable[..., World],
) -> None:
    world = make_world(batch_bytes=500)
    world.connect()
    world.append(*[b"x" * 100] * 8)
    assert [peek(append.batch).count for append in world.appends] == [3, 3, 2]
    world = make_world()
    world.connect()
    world.append(*[b""] * 150)
    assert [peek(append.batch).count for append in world.appends] == [100, 50]


def test_sequences_count_records_and_go_on_from_batch_to_batch(world: World) -> None:
    world.append(b"a", b"b")
    world.append(b"c")
    headers = [peek(append.batch) for append in world.appends]
    assert [header.base_sequence for header in headers] == [0, 2]
    assert headers[0].producer_id == headers[1].producer_id >= 0


def test_a_lost_acknowledgement_is_asked_for_again_and_nothing_is_appended_twice(
    world: World,
) -> None:
    first, second = world.append(b"a")[0], world.append(b"b")[0]
    world.serve()
    world.cut()
    world.heal(lambda: len(world.settled) == 2)
    assert world.log.values == [b"a", b"b"]
    assert [position(first), position(second)] == [0, 1]


def test_everything_unanswered_is_sent_again_in_order_before_anything_new(world: World) -> None:
    for value in (b"a", b"b", b"c"):
        world.append(value)
    world.cut()
    world.append(b"d")
    world.advance(30)
    world.connect()
    sent = [[record.value for record in decode(each.batch)] for each in world.appends]
    assert sent == [[b"a"], [b"b"], [b"c"], [b"d"]]


def test_a_copy_that_arrives_after_its_resend_changes_nothing(world: World) -> None:
    world.append(b"a")
    world.append(b"b")
    world.cut()
    world.heal(lambda: len(world.settled) == 2)
    for append in world.wandering:
        world.log.append(append.batch)
    assert world.log.values == [b"a", b"b"]


def test_after_a_refusal_everything_behind_it_waits_its_turn(world: World) -> None:
    first, second = world.append(b"a")[0], world.append(b"b")[0]
    world.refuse(Overloaded("appends", 1, "queue_bytes_max"))
    world.serve()
    world.append(b"c")
    assert not world.requests, "nothing overtakes what was refused"
    world.deliver()
    world.heal(lambda: len(world.settled) == 3)
    assert world.log.values == [b"a", b"b", b"c"]
    assert [position(first), position(second)] == [0, 1]


def test_tries_are_spaced_out_more_and_more(world: World) -> None:
    world.append(b"a")
    pauses: list[int] = []
    for _ in range(12):
        world.refuse(StorageFull("the disk"))
        before = world.now
        while not world.requests:
            world.advance(1)
        pauses.append((world.now - before) // 1_000_000)
    assert 5 <= pauses[0] <= 11
    assert pauses[3] > 2 * pauses[0]
    assert max(pauses) <= 1_001
    world.heal(lambda: len(world.settled) == 1)
    assert world.log.values == [b"a"]


def test_a_forgotten_producer_starts_anew_if_nothing_is_in_doubt(world: World) -> None:
    world.append(b"a")
    world.heal(lambda: len(world.settled) == 1)
    world.log.producers.clear()
    world.append(b"b")
    world.append(b"c")
    world.heal(lambda: len(world.settled) == 3)
    assert world.log.values == [b"a", b"b", b"c"]
    assert [position(pledge) for pledge in world.settled] == [0, 1, 2]


def test_a_forgotten_producer_in_doubt_is_said_so_and_not_appended_again(world: World) -> None:
    world.append(b"a")
    world.heal(lambda: len(world.settled) == 1)
    pledge = world.append(b"b")[0]
    world.serve()
    world.cut()
    world.log.producers.clear()
    world.heal(lambda: len(world.settled) == 2)
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert pledge.in_doubt
    assert world.log.values == [b"a", b"b"]
    world.append(b"c")
    world.heal(lambda: len(world.settled) == 3)
    assert world.log.values == [b"a", b"b", b"c"]


def test_a_gap_that_time_mends_is_only_sent_again(world: World) -> None:
    world.append(b"a")
    world.append(b"b")
    (one, first), (two, _) = world.take(), world.take()
    world.hear(two, Refused.of(SequenceGap("log", 1, 0, 1)))
    world.hear(one, world.log.append(first.batch))
    world.heal(lambda: len(world.settled) == 2)
    assert world.log.values == [b"a", b"b"]


def test_a_refusal_for_good_concerns_its_batch_only(world: World) -> None:
    bad, good = world.append(b"bad")[0], world.append(b"good")[0]
    request, _ = world.take()
    world.serve()
    world.hear(request, Refused.of(CorruptBatch("it is odd", "of log")))
    world.deliver()
    world.heal(lambda: len(world.settled) == 2)
    assert isinstance(bad.outcome, CorruptBatch)
    assert not bad.in_doubt
    assert position(good) == 0
    assert world.log.values == [b"good"]


def test_promoted_forks_surface_and_are_never_followed(world: World) -> None:
    pledge = world.append(b"a")[0]
    world.refuse(Promoted("orders--what-if", "orders"))
    assert isinstance(pledge.outcome, Promoted)
    assert pledge.outcome.facts["into"] == "orders"
    assert not world.requests


def test_a_receipt_instead_of_a_position(world: World) -> None:
    pledge = world.append(b"a")[0]
    request, _ = world.take()
    world.hear(request, Appended(None, Receipt(LogId(1), 3, 17)))
    assert pledge.outcome == Appended(None, Receipt(LogId(1), 3, 17))


def test_a_deadline_that_passes_unanswered_leaves_the_outcome_unknown(world: World) -> None:
    pledge = world.append(b"a", timeout_ms=100)[0]
    world.advance(99)
    assert pledge.outcome is None
    world.advance(1)
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert pledge.in_doubt


def test_a_refusal_that_proves_nothing_leaves_the_outcome_unknown(world: World) -> None:
    pledge = world.append(b"a", timeout_ms=10)[0]
    request, append = world.take(Append)
    world.log.append(append.batch)
    world.hear(request, Refused.of(Unavailable("the journal", "it failed")))
    world.advance(10)
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert isinstance(pledge.outcome.__cause__, Unavailable)
    assert pledge.in_doubt


def test_a_deadline_that_passes_before_there_is_a_connection_is_certain(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    pledge = world.append(b"a", timeout_ms=100)[0]
    world.advance(100)
    assert isinstance(pledge.outcome, Unavailable)
    assert not pledge.in_doubt
    assert world.session.pending_bytes == 0
    world.append(b"b")
    world.heal(lambda: len(world.settled) == 2)
    assert world.log.values == [b"b"]


def test_what_expired_stays_before_what_comes_after_it(world: World) -> None:
    expired = world.append(b"a", timeout_ms=100)[0]
    alive = world.append(b"b", timeout_ms=1_000)[0]
    world.cut()
    world.advance(150)
    assert isinstance(expired.outcome, OutcomeUnknown)
    world.heal(lambda: len(world.settled) == 2)
    assert position(alive) == 1
    assert world.log.values == [b"a", b"b"]


def test_what_expired_blocked_makes_way_for_what_comes_after_it(world: World) -> None:
    expired = world.append(b"a", timeout_ms=100)[0]
    alive = world.append(b"b", timeout_ms=10_000)[0]
    while expired.outcome is None:
        while world.requests:
            world.refuse(AppendBlocked("orders--plain", "orders--what-if"))
        world.advance(5)
    world.heal(lambda: len(world.settled) == 2)
    assert position(alive) == 0
    assert world.log.values == [b"b"]


def test_pending_bytes_are_bounded_and_room_is_announced(make_world: Callable[..., World]) -> None:
    world = make_world(pending_bytes_max=400)
    world.connect()
    world.append(b"x" * 100, b"x" * 100)
    with pytest.raises(Overloaded):
        world.append(b"x" * 200)
    assert world.roomy == 0
    world.heal(lambda: len(world.settled) == 1)
    assert world.roomy == 1
    assert world.session.pending_bytes == 0
    world.append(b"x" * 900)
    world.heal(lambda: len(world.settled) == 2)


def test_limits_are_the_servers(world: World) -> None:
    world.append(b"x" * 1_000)
    with pytest.raises(RecordTooLarge):
        world.append(b"x" * 1_001)
    producer = world.session.producer(LogId(1), "log")
    with pytest.raises(BatchTooLarge):
        producer.add_batch(encode([Record(b"x" * 11_000)], now=1), 1_000)
    with pytest.raises(BatchTooLarge):
        producer.add_batch(encode([Record(b"")] * 101, now=1), 1_000)
    with pytest.raises(CorruptBatch):
        producer.add_batch(b"x" * 100, 1_000)
    with pytest.raises(BadRequest):
        Session(Settings(batches_in_flight_max=17), Random(1).getrandbits)


def test_a_batch_that_was_made_elsewhere_is_appended_as_it_is(world: World) -> None:
    made = encode([Record(b"a", b"k", (("h", None),), 5), Record(b"b")], now=9)
    producer = world.session.producer(LogId(1), "log")
    world.append(b"before")
    pledge = producer.add_batch(made, 1_000)
    world.step(Written())
    world.append(b"after")
    world.heal(lambda: len(world.settled) == 3)
    assert world.log.values == [b"before", b"a", b"b", b"after"]
    assert decode(pledge.batch) == decode(made)


def test_closing_tells_all_that_wait(world: World) -> None:
    sent, unsent = world.append(b"a")[0], None
    world.cut()
    unsent = world.append(b"b")[0]
    world.step(Ended())
    assert isinstance(sent.outcome, OutcomeUnknown), "it may be in the log"
    assert isinstance(unsent.outcome, Unavailable)
    assert sent.in_doubt
    assert not unsent.in_doubt
    with pytest.raises(Unavailable):
        world.append(b"c")


def test_a_record_that_joins_a_waiting_batch_has_most_of_its_time(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    first = world.append(b"a", timeout_ms=800)[0]
    world.advance(50)
    assert world.append(b"b", timeout_ms=800)[0] is first
    world.advance(100)
    late = world.append(b"c", timeout_ms=800)[0]
    assert late is not first
    world.advance(650)
    assert first.outcome is not None
    assert late.outcome is None


@given(st.lists(st.binary(max_size=50), min_size=1), st.integers(0, 2**31 - 1), st.integers(0, 9))
def test_a_stamp_changes_the_name_and_nothing_else(
    contents: list[bytes], sequence: int, epoch: int
) -> None:
    made = encode([Record(each) for each in contents], now=1)
    stamped = stamp(made, 77, epoch, sequence)
    header = verify(stamped, "")
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        77,
        epoch,
        sequence,
    )
    assert decode(stamped) == decode(made)
    assert stamped[61:] == made[61:]


class Losses(RuleBasedStateMachine):
    """Whatever is lost, late, refused or forgotten: nothing twice, nothing out of order, no lie."""

    make_world: Callable[..., World]

    @initialize(window=st.integers(1, 4))
    def begin(self, window: int) -> None:
        self.world = type(self).make_world(batches_in_flight_max=window, silence_ms=5_000)
        self.added: list[tuple[bytes, Pledge]] = []
        self.outcomes: dict[int, object] = {}

    @rule(count=st.integers(1, 3), timeout_ms=st.sampled_from([200, 5_000, 60_000]))
    def append(self, count: int, timeout_ms: int) -> None:
        values = [b"%d" % (len(self.added) + n) for n in range(count)]
        self.added += zip(values, self.world.append(*values, timeout_ms=timeout_ms), strict=True)

    @precondition(lambda self: self.world.dialing)
    @rule()
    def connect(self) -> None:
        self.world.connect()

    @precondition(lambda self: self.world.connected)
    @rule()
    def cut(self) -> None:
        self.world.cut()

    @precondition(lambda self: self.world.requests)
    @rule(count=st.integers(1, 4))
    def serve(self, count: int) -> None:
        for _ in range(min(count, len(self.world.requests))):
            self.world.serve()

    @precondition(lambda self: self.world.replies)
    @rule(count=st.integers(1, 4))
    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.world.replies))):
            self.world.deliver()

    @precondition(lambda self: self.world.requests)
    @rule(
        error=st.sampled_from(
            [
                Overloaded("appends", 1, "queue_bytes_max"),
                AppendBlocked("a", "b"),
                Unavailable("the store", "it sleeps"),
                CorruptBatch("it is odd", "of log"),
            ]
        ),
        done=st.booleans(),
    )
    def refuse(self, error: Any, done: bool) -> None:
        request, message = self.world.requests.popleft()
        # Only an error that leaves the outcome open may follow a batch that was appended.
        if done and isinstance(error, Unavailable) and isinstance(message, Append):
            self.world.log.append(message.batch)
        self.world.replies.append((request, Refused.of(error)))

    @precondition(lambda self: self.world.wandering)
    @rule(at=st.integers(0, 3), gone=st.booleans())
    def wander(self, at: int, gone: bool) -> None:
        wandering = self.world.wandering
        wandering.rotate(-(at % len(wandering)))
        append = wandering.popleft()
        if not gone:
            self.world.log.append(append.batch)

    @rule(ms=st.sampled_from([1, 30, 300, 3_000]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @precondition(lambda self: not self.world.wandering)
    @rule()
    def forget(self) -> None:
        """Far later than any copy could still wander, and than any deadline."""
        if not any(pledge.outcome is None for _, pledge in self.added):
            if self.world.connected:
                self.world.cut()
            self.world.wandering.clear()
            self.world.log.producers.clear()

    @invariant()
    def nothing_is_there_twice(self) -> None:
        values = self.world.log.values
        assert len(set(values)) == len(values)

    @invariant()
    def outcomes_are_true_and_stay(self) -> None:
        log = self.world.log.values
        last = -1
        seen: dict[int, int] = {}
        for value, pledge in self.added:
            index = seen[id(pledge)] = seen.get(id(pledge), -1) + 1
            if pledge.outcome is not None:
                assert self.outcomes.setdefault(id(pledge), pledge.outcome) is pledge.outcome
            if isinstance(pledge.outcome, Appended):
                place = pledge.outcome.position
                assert place is not None
                assert log[place + index] == value
                assert place + index > last, "in the order in which they were added"
                last = place + index
            elif pledge.outcome is not None and not pledge.in_doubt:
                assert value not in log

    def teardown(self) -> None:
        world = self.world
        if world.connected:
            world.cut()
        world.heal(lambda: all(pledge.outcome for _, pledge in self.added))
        self.nothing_is_there_twice()
        self.outcomes_are_true_and_stay()
        assert world.session.pending_bytes == 0
        more = world.append(b"last")[0]
        world.heal(lambda: more.outcome is not None)
        assert isinstance(more.outcome, Appended)


def test_no_loss_no_duplicate_and_order_kept(make_world: Callable[..., World]) -> None:
    class Here(Losses):
        pass

    Here.make_world = staticmethod(make_world)
    run_state_machine_as_test(Here)
