"""Subscriptions against a log that is known: whatever fails, and in whatever order it is told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.belfast.world import World, settle

from anabranch.client.belfast.event_queue import EventQueue
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session.effects import Opened, Taken
from anabranch.client.session.records import Confirm, Deliver, Event, Fail
from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol.messages import Confirmed, Delivered
from anabranch.core.errors import BatchUnreadable
from anabranch.core.records.record import BATCH_HEADERS_CEILING, Record, encode

SHARDS = ("a", "b", "c", "d")

Action = tuple[str, int, int]


class Application:
    """Takes what it is told, and holds the subscription to its promises."""

    def __init__(
        self,
        world: World,
        start: int = 0,
        *,
        shards: frozenset[str] | None = None,
        speculative: bool = True,
    ) -> None:
        subscriber = Subscriber(start, shards=shards, speculative=speculative)
        self.world, self.subscriber, self.start = world, subscriber, start
        self.speculative = speculative
        self.shards = world.nodes.keys() if shards is None else shards
        self.queue = EventQueue(subscriber)
        self.seen: list[tuple[int, bytes | None]] = []
        self.final = 0
        """So many of `seen` are final."""
        self.confirmed = 0
        self.fails: list[int] = []
        self.events: list[Event] = []
        world.give(Opened(subscriber))

    def expected(self) -> list[tuple[int, bytes]]:
        """What it is told once all is confirmed."""
        found: list[tuple[int, bytes]] = []
        for position, value in self.world.expected():
            if position >= self.start and self.world.owner[position] in self.shards:
                found.append((position, value))
        return found

    def take(self, records_max: int) -> None:
        queue = self.queue
        queue.take(records_max)
        self.check_resumption()
        while (event := queue.pop()) is not None:
            self._told(event)
            self.check_resumption()
        self.world.give(Taken(self.subscriber))

    def check_resumption(self) -> None:
        """Another subscription from `final` on repeats nothing that is confirmed, and omits
        nothing.
        """
        final = self.queue.final
        assert final >= self.start
        confirmed = [each for each in self.expected() if each[0] < final]
        assert self.seen[: self.final] == confirmed, f"resumed at {final}"

    def _told(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Deliver(record, speculative):
                assert not self.seen or self.seen[-1][0] < record.position, "G2"
                assert record.position >= self.confirmed
                self.seen.append((record.position, record.value))
                assert self.speculative or not speculative
                assert speculative or record.position < self.world.confirmed
                if not speculative:
                    self.final = len(self.seen)
                    self.confirmed = record.position + 1
            case Confirm(up_to):
                assert up_to >= self.confirmed
                self.confirmed = up_to
                self.final = sum(position < up_to for position, _ in self.seen)
            case Fail(since):
                assert since >= self.confirmed, "G4"
                assert self.seen[-1][0] >= since, "nothing is failed in vain"
                self.fails.append(since)
                self.seen = [each for each in self.seen if each[0] < since]
        expected = self.expected()
        final = self.seen[: self.final]
        assert final == [each for each in expected if each[0] < self.confirmed][: len(final)], "G5"


ACTIONS = (
    "publish",
    "fill",
    "cut",
    "fail",
    "restore",
    "apply",
    "push",
    "hear",
    "snap",
    "take",
    "ring",
)
LIKELY = ("fill", "apply", "push", "hear", "take", "fill", "all", "all", "take", "fail", "cut")

actions = st.lists(
    st.tuples(st.sampled_from((*ACTIONS, *LIKELY)), st.integers(0, 1_000), st.integers(0, 1_000)),
    max_size=150,
)


def act(world: World, app: Application, action: Action) -> None:
    what, which, much = action
    shard = SHARDS[which % len(SHARDS)]
    match what:
        case "publish":
            alive = world.alive()
            seated = [s for nth, s in enumerate(alive) if (which >> nth) & 1] or alive
            world.publish([(s, 1 + (much >> nth) % 3) for nth, s in enumerate(seated)], 2)
        case "fill":
            values = [
                None if (much >> nth) & 1 else b"%s%d.%d" % (shard.encode(), which, nth)
                for nth in range(1 + much % 4)
            ]
            world.fill(shard, values)
        case "cut":
            world.cut(world.confirmed + 1 + much % 6)
        case "fail":
            if much % 4 == 0:
                world.fail(shard)
        case "restore":
            if much % 2:
                world.restore(shard)
        case "apply":
            for _ in range(1 + much % 5):
                world.apply(shard)
        case "push":
            world.push(shard)
        case "hear":
            world.hear(shard, 1 + much % 5)
        case "all":
            for each in SHARDS:
                for _ in world.decisions:
                    world.apply(each)
                world.push(each)
                world.hear(each, 1_000)
        case "snap":
            world.snap(shard)
        case "take":
            app.take(much % 6)
        case _:
            world.ring()


def conclude(world: World, app: Application) -> None:
    """Everything that is published is filled, cut, told and taken."""
    for shard in SHARDS:
        world.restore(shard)
    for _ in range(3):
        for shard in world.alive():
            for _ in world.decisions:
                world.apply(shard)
            world.fill(shard, [b"%s end" % shard.encode()] * len(world.owner))
        world.cut(world.covered())
    settle(world)
    app.take(1 << 20)
    settle(world)
    app.take(1 << 20)


@pytest.mark.parametrize("speculative", [True, False])
@settings(max_examples=300, deadline=None)
@given(program=actions, start=st.integers(0, 10))
def test_a_subscription_is_the_confirmed_log(
    program: list[Action], start: int, speculative: bool
) -> None:
    world = World(SHARDS)
    world.publish([(shard, 2) for shard in SHARDS[:2]], 2)
    app = Application(world, start, speculative=speculative)
    for action in program:
        act(world, app, action)
        app.check_resumption()
    conclude(world, app)
    assert app.seen == app.expected()
    assert app.final == len(app.seen)
    assert len(app.fails) <= len(world.views), "a view fails once"
    assert speculative or not app.fails
    assert not app.world.session.pending_bytes


@pytest.mark.parametrize("speculative", [True, False])
def test_a_subscription_says_how_far_it_is_also_where_there_is_nothing_for_it(
    speculative: bool,
) -> None:
    world = World(SHARDS)
    world.publish([("a", 2), ("b", 2)], 2)
    app = Application(world, shards=frozenset({"a"}), speculative=speculative)
    wanted = app.subscriber
    settle(world)
    world.fill("a", [b"first", b"second", None, None])
    world.fill("b", [b"other"] * 4)
    world.cut(world.covered())
    assert wanted.final == 0
    settle(world)
    assert wanted.final == 0, "what has come isn't taken"
    app.take(10)
    assert [position for position, _ in app.seen] == [0, 1]
    settle(world)
    assert wanted.final == 8
    assert not wanted.ready()
    world.publish([("b", 3)], 1)
    settle(world)
    world.fill("b", [b"other"] * 3)
    world.cut(world.covered())
    settle(world)
    assert wanted.final == 11
    assert not wanted.ready()


def test_a_run_that_is_confirmed_in_part_is_delivered_in_part() -> None:
    world = World(("a",))
    world.publish([("a", 8)], 1)
    learn(world, "a")
    app = Application(world, speculative=False)
    settle(world)
    world.fill("a", [b"%d" % number for number in range(8)])
    world.cut(3)
    settle(world)
    app.take(100)
    assert [position for position, _ in app.seen] == [0, 1, 2]
    world.cut(8)
    settle(world)
    app.take(100)
    assert [position for position, _ in app.seen] == list(range(8))


def test_predictions_are_not_passed_before_their_confirmation_is_given_out() -> None:
    world = World(("a", "b"))
    world.publish([("a", 4), ("b", 4)], 1)
    learn(world, "a", "b")
    app = Application(world)
    settle(world)
    world.fill("a", [b"a"] * 4)
    learn(world, "a", "b")
    app.take(100)
    assert app.final == 0
    assert [position for position, _ in app.seen] == [0, 1, 2, 3]
    world.cut(4)
    learn(world, "a", "b")
    assert app.queue.final == 0, "heard of, and not given out"
    app.queue.take(100)
    assert app.queue.final == 0, "at hand, and not given out"
    assert app.queue.pop() == Confirm(4)
    assert app.queue.final == 4


def test_a_confirmation_ahead_of_a_failure_counts_once_it_is_given_out() -> None:
    world = World(("a", "b"))
    world.publish([("a", 2), ("b", 2)], 2)
    learn(world, "a", "b")
    app = Application(world)
    settle(world)
    world.fill("a", [b"a"] * 4)
    world.fill("b", [b"b"] * 2)
    learn(world, "a", "b")
    app.take(100)
    assert [position for position, _ in app.seen] == [0, 1, 2, 3, 4, 5]
    world.cut(3)
    world.fail("b")
    learn(world, "a", "b")
    assert app.queue.final == 0
    app.queue.take(0)
    assert app.queue.pop() == Confirm(3)
    assert app.queue.final == 3
    assert app.queue.pop() == Fail(3)


def learn(world: World, *shards: str) -> None:
    for shard in shards:
        for _ in world.decisions:
            world.apply(shard)
        world.push(shard)
        world.hear(shard, 1_000)


def test_a_subscription_that_begins_anew_goes_no_further_back_than_its_start() -> None:
    world = World(SHARDS)
    world.publish([("a", 2), ("b", 2)], 2)
    learn(world, "a", "b")
    app = Application(world, 5)
    settle(world)
    for shard in ("a", "b"):
        world.fill(shard, [b"0", b"1", b"2", b"3"])
    learn(world, "a", "b")
    app.take(1)
    assert [position for position, _ in app.seen] == [5]
    for shard in ("c", "d"):
        world.fail(shard)
    world.snap("a")
    learn(world, "a")
    for _ in range(3):
        world.ring()
        learn(world, "a")
        app.take(10)
    world.cut(8)
    settle(world)
    app.take(10)
    assert app.seen == app.expected()


BATCH = encode([Record(b"same")] * 4, now=1)


@pytest.mark.parametrize(
    ("parts", "batches"),
    [(((0, 4), (0, 4)), 2), (((2, 2), (0, 4)), 2), (((0, 1), (2, 1)), 1)],
    ids=["alike", "alike-from-within", "parts-of-one"],
)
def test_a_batch_is_credited_once_and_another_that_is_alike_once_more(
    parts: tuple[tuple[int, int], ...], batches: int
) -> None:
    world = World(("a",))
    world.publish([("a", 8)], 1)
    learn(world, "a")
    app = Application(world)
    settle(world)
    count = sum(each for _, each in parts)
    world.fill("a", [b"same"] * count + [None] * (8 - count))
    world.cut(8)
    node = world.nodes["a"]
    (request,) = node.feeds
    runs = (Run(0, count),)
    delivered = Delivered(0, 8, False, runs, (BATCH,) * len(parts), parts)
    world.reply("a", [(request, delivered), (request, Confirmed(0, 8))])
    app.take(8)
    assert len(app.seen) == count
    assert node.credited == batches * len(BATCH)


def test_what_lies_before_a_batch_that_costs_too_much_is_delivered_and_its_place_is_named() -> None:
    world = World(("a",))
    world.publish([("a", 8)], 1)
    learn(world, "a")
    app = Application(world)
    settle(world)
    world.fill("a", [b"same"] * 2 + [b"poison"] * 3 + [b"same"] * 3)
    world.cut(8)
    (request,) = world.nodes["a"].feeds
    headers = (("", b""),) * (BATCH_HEADERS_CEILING + 1)
    poison = encode([Record(b"poison", headers=headers)] * 3, now=1)
    runs, parts = (Run(0, 4), Run(4, 4)), ((0, 2), (0, 3), (0, 3))
    delivered = Delivered(0, 8, False, runs, (BATCH, poison, BATCH), parts)
    world.reply("a", [(request, delivered), (request, Confirmed(0, 8))])
    app.take(8)
    assert [position for position, _ in app.seen] == [0, 1]
    error = app.subscriber.error
    assert isinstance(error, BatchUnreadable)
    assert (error.facts["position"], error.facts["after"]) == (2, 5)
