"""What subscribers of a shard get, whatever comes in whatever order: against all slots of all
windows and the shard's own journal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.belfast.shard.shard_stage import Stage, Where

from anabranch.core.belfast.ledger.windows import Window
from anabranch.core.belfast.protocol.messages import Confirmed, Delivered
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.record import decode
from anabranch.core.replication.entries import Item, decode_entry
from anabranch.core.wire.session import Credit

NODES = ("a1", "b1")
SHARDS = {"a": ("a1",), "b": ("b1",)}
PREFIXES = ("x", "y")
AMPLE = 1 << 20


@dataclass
class Follower:
    token: int
    shard: int
    start: int
    prefix: str | None


@dataclass
class Scene:
    cache_bytes: int
    slots: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """For each position: whose it is, and which of its shard's records."""
    followers: list[Follower] = field(default_factory=list[Follower])
    made: int = 0

    def __post_init__(self) -> None:
        self.stage = Stage(SHARDS, cache_bytes=self.cache_bytes)
        self.stage.admit()

    def open(self, rounds: int, *quotas: int) -> None:
        windows = self.stage.ledger.windows
        if len(windows) > 3:
            return
        bases = [sum(owner == shard for owner, _ in self.slots) for shard in range(2)]
        self.stage.open(*quotas, rounds=rounds)
        for _ in range(rounds):
            for shard, quota in enumerate(quotas):
                self.slots += [(shard, bases[shard] + nth) for nth in range(quota)]
                bases[shard] += quota

    def cut(self, more: int) -> None:
        """As far as both shards have come."""
        ledger = self.stage.ledger
        window: Window | None = ledger.current
        done = ledger.cut
        if window is not None and done == window.cuts:
            window, done = ledger.window(window.number + 1), 0
        if window is None:
            return
        logs = [self.stage.nodes[node].machine.replica.log.last for node in NODES]
        met = [(logs[seat.shard] - seat.base) // seat.quota for seat in window.seats]
        to = min(done + more, window.rounds, *met)
        if to > done:
            self.stage.cut(window.number, to)

    def append(self, shard: int, count: int) -> None:
        values = [f"{PREFIXES[nth % 2]}{nth}" for nth in range(self.made, self.made + count)]
        self.made += count
        self.stage.append(NODES[shard], *values)

    def subscribe(self, shard: int, start: int, prefix: str | None, window: int) -> Follower:
        where = None if prefix is None else Where(key_prefix=prefix.encode())
        token = self.stage.subscribe(
            NODES[shard], "ab"[shard], start, where=where, window_bytes=window
        )
        follower = Follower(token, shard, start, prefix)
        self.followers.append(follower)
        return follower

    def credit(self, follower: Follower, size: int) -> None:
        self.stage.ask(NODES[follower.shard], Credit(follower.token, size))

    def logged(self, shard: int) -> list[str | None]:
        """The shard's records by their local sequence; None for no-ops."""
        return list(self._logged(shard))

    def _logged(self, shard: int) -> Iterator[str | None]:
        for _, content in sorted(self.stage.nodes[NODES[shard]].disk.items()):
            entry = decode_entry(content)
            if isinstance(entry, Item) and entry.batch:
                yield from ((record.value or b"").decode() for record in decode(entry.batch))
            elif isinstance(entry, Item):
                yield from [None] * entry.count

    def due(self, follower: Follower) -> list[tuple[int, str]]:
        """All that the follower should have by now: what is durable, and has a place."""
        log = self.logged(follower.shard)
        found: list[tuple[int, str]] = []
        for position, (shard, local) in enumerate(self.slots):
            if shard != follower.shard or position < follower.start or local >= len(log):
                continue
            value = log[local]
            if value is not None and value.startswith(follower.prefix or ""):
                found.append((position, value))
        return found

    def got(self, follower: Follower) -> list[tuple[int, str]]:
        return [(at, value) for at, value, _ in self.stage.delivered(follower.token)]

    def check(self, follower: Follower) -> None:
        stage, token = self.stage, follower.token
        assert not stage.of(token, Refused)
        uptos = [each.upto for each in stage.of(token, Delivered)]
        assert uptos == sorted(uptos), "positions only go on"
        assert all(at < upto for upto in uptos[-1:] for at, _ in self.got(follower))
        confirmed = [each.upto for each in stage.of(token, Confirmed)]
        assert confirmed == sorted(set(confirmed))
        assert all(upto <= stage.ledger.confirmed for upto in confirmed)
        final = [at for at, _, speculative in stage.delivered(token) if not speculative]
        assert all(at < stage.ledger.confirmed for at in final)


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 5 + ["open"] * 2 + ["cut"] * 3 + ["wait", "subscribe", "subscribe"]
        ),
        st.integers(0, 1),
        st.integers(1, 4),
    ),
    min_size=12,
    max_size=30,
)


def perform(scene: Scene, what: str, shard: int, count: int, *, window: int) -> None:
    match what:
        case "append":
            scene.append(shard, count)
        case "open":
            scene.open(count, 1 + shard, 1 + count % 2)
        case "cut":
            scene.cut(count)
        case "wait":
            scene.stage.sleep(count)
        case _:
            prefix = None if count < 3 else PREFIXES[count % 2]
            scene.subscribe(shard, count * 3 % (len(scene.slots) + 1), prefix, window)


@settings(deadline=None)
@given(steps, st.sampled_from([1, 1 << 20]))
def test_a_subscriber_gets_every_record_that_is_durable_and_placed_and_wanted(
    done: list[tuple[str, int, int]], cache_bytes: int
) -> None:
    """With a cache for all records or for hardly any: those are read back from the journal."""
    scene = Scene(cache_bytes)
    for what, shard, count in done:
        perform(scene, what, shard, count, window=AMPLE)
        for follower in scene.followers:
            scene.check(follower)
    for follower in scene.followers:
        assert scene.got(follower) == scene.due(follower)


@settings(deadline=None)
@given(steps, st.lists(st.tuples(st.integers(0, 9), st.integers(1, 300)), max_size=12))
def test_with_little_credit_a_subscriber_gets_the_beginning_and_the_rest_with_more(
    done: list[tuple[str, int, int]], credits_: list[tuple[int, int]]
) -> None:
    scene = Scene(1 << 20)
    for what, shard, count in done:
        perform(scene, what, shard, count, window=1)
    for nth, size in credits_:
        if scene.followers:
            scene.credit(scene.followers[nth % len(scene.followers)], size)
        for follower in scene.followers:
            got = scene.got(follower)
            assert got == scene.due(follower)[: len(got)]
    for follower in scene.followers:
        scene.credit(follower, AMPLE)
        assert scene.got(follower) == scene.due(follower)


def test_a_record_travels_once_its_place_is_published_and_not_before() -> None:
    """F8: nobody is told of a position beyond the last published window."""
    scene = Scene(1 << 20)
    follower = scene.subscribe(0, 0, None, AMPLE)
    scene.append(0, 3)
    assert scene.got(follower) == []
    scene.open(2, 1, 1)
    assert scene.got(follower) == [(0, "x0"), (2, "y1")]
    scene.open(1, 1, 1)
    assert scene.got(follower) == [(0, "x0"), (2, "y1"), (4, "x2")]
    assert scene.stage.of(follower.token, Confirmed)[-1:] == [Confirmed(0, 0)]


def test_where_nothing_is_wanted_it_is_still_told_how_far_there_is_nothing() -> None:
    """Spec, D10: a filter that nothing passes must not keep others from their records."""
    scene = Scene(1 << 20)
    scene.open(2, 1, 1)
    scene.append(0, 2)
    follower = scene.subscribe(0, 0, "nothing", AMPLE)
    assert scene.got(follower) == []
    assert scene.stage.upto(follower.token) == 4


def test_whoever_asks_beyond_what_is_published_waits_for_it() -> None:
    scene = Scene(1 << 20)
    scene.open(1, 1, 1)
    follower = scene.subscribe(0, 4, None, AMPLE)
    scene.append(0, 3)
    assert scene.got(follower) == []
    scene.open(2, 1, 1)
    assert scene.got(follower) == [(4, "x2")]


@pytest.mark.parametrize(("many", "refused"), [(2, False), (3, True)])
def test_subscriptions_are_bounded(many: int, refused: bool) -> None:
    stage = Stage(SHARDS, limits=Limits(subscriptions_max=2))
    stage.admit(1, 1)
    last = [stage.subscribe("a1", "a") for _ in range(many)][-1]
    assert [each.code for each in stage.of(last, Refused)] == ["overloaded"] * refused


def test_who_has_gone_makes_room_for_another() -> None:
    stage = Stage(SHARDS, limits=Limits(subscriptions_max=1))
    stage.admit(1, 1)
    first = stage.subscribe("a1", "a")
    stage.gone("a1", first)
    told = len(stage.answers[first])
    second = stage.subscribe("a1", "a")
    stage.append("a1", "v")
    assert [value for _, value, _ in stage.delivered(second)] == ["v"]
    assert len(stage.answers[first]) == told
