"""A Belfast log without an event loop, before real shards in memory, over a network that loses
requests and answers.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from tests.unit.client.lossy import Fate, Network

import anabranch
from anabranch import Confirm, Deliver, Fail, testing
from anabranch.belfast import Where
from anabranch.client.driver.loop import LoopThread
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    NotOffered,
    OutcomeUnknown,
    PositionTrimmed,
    RequestReused,
    TrimTooFar,
    Unavailable,
    UnknownShard,
)

Lossy = tuple[Network, LoopThread]
PATIENCE_S = 20
SETTINGS = anabranch.Settings(backoff_ms=1, backoff_ms_max=5, timeout_ms=20_000)


def losing(seed: int, share: float) -> Callable[[], Fate]:
    random = Random(seed)
    lost = (Fate.LOSE_REQUEST, Fate.LOSE_ANSWER)
    return lambda: random.choice(lost) if random.random() < share else Fate.PASS


@pytest.fixture(scope="module")
def shared(server: testing.Server) -> tuple[str, list[str]]:
    """A log of two shards, which a test adds to, and their names."""
    with anabranch.connect(server.url) as service:
        log = service.create("belfast-shared", engine="belfast", shards=2)
        log.append(b"first")
        return log.name, [each.name for each in log.directory().shards]


@pytest.fixture
def log(service: anabranch.Service, shared: tuple[str, list[str]]) -> anabranch.SpeculativeLog:
    return service.log(shared[0], engine="belfast")


@pytest.fixture
def shards(shared: tuple[str, list[str]]) -> list[str]:
    return shared[1]


def values(log: anabranch.SpeculativeLog, start: int) -> list[bytes | None]:
    return [each.value for each in log.read(start)]


@pytest.mark.parametrize("seed", range(2))
def test_over_a_network_that_loses_things_each_shards_appends_keep_their_order(
    log: anabranch.SpeculativeLog, shards: list[str], lossy: Lossy, seed: int
) -> None:
    network, _ = lossy
    start = log.tail()
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        there = service.log(log.name, engine="belfast")
        network.fate = losing(seed, 0.1)
        pending = [
            (n, there.append_nowait(b"%d %d" % (seed, n), shard=shards[n % 2])) for n in range(40)
        ]
        placed = {each.result().position: b"%d %d" % (seed, n) for n, each in pending}
        network.fate = lambda: Fate.PASS
    found = {each.position: each.value for each in log.read(start)}
    assert found == placed
    for shard in range(2):
        mine = [n for n, each in pending if n % 2 == shard]
        places = [at for n in mine for at, value in placed.items() if value == b"%d %d" % (seed, n)]
        assert places == sorted(places, key=lambda place: place or 0)


def test_a_request_id_gives_its_first_position_whoever_repeats_it(
    server: testing.Server, log: anabranch.SpeculativeLog, shards: list[str], lossy: Lossy
) -> None:
    network, _ = lossy
    start, shard = log.tail(), shards[0]
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        there = service.log(log.name, engine="belfast")
        there.append(b"before", shard=shard)
        fates = iter([Fate.LOSE_ANSWER])
        network.fate = lambda: next(fates, Fate.PASS)
        first = there.append_many([b"1", b"2"], shard=shard, request_id="once")
    with anabranch.connect(server.url) as service:
        again = service.log(log.name, engine="belfast")
        assert again.append_many([b"1", b"2"], shard=shard, request_id="once") == first
        with pytest.raises(RequestReused):
            again.append(b"another", shard=shard, request_id="once")
    assert sorted(map(str, values(log, start))) == sorted(map(str, [b"before", b"1", b"2"]))
    with pytest.raises(BadRequest, match="name the shard"):
        log.append(b"1", request_id="once")


def test_a_subscription_skips_and_repeats_nothing_however_often_it_is_cut(
    log: anabranch.SpeculativeLog, lossy: Lossy
) -> None:
    network, thread = lossy
    start = log.tail()
    with (
        anabranch.connect(network.url, settings=SETTINGS) as service,
        service.log(log.name, engine="belfast").subscribe(start) as events,
    ):
        view: dict[int, bytes | None] = {}
        final = start
        for number in range(0, 100, 10):
            places = [each.position or 0 for each in log.append_many([b"%d" % number] * 10)]
            while final <= max(places):
                for event in events.take(timeout=PATIENCE_S):
                    match event:
                        case Deliver(record, speculative):
                            assert record.position not in view
                            assert not view or record.position > max(view)
                            view[record.position] = record.value
                            final = final if speculative else record.position + 1
                        case Confirm(up_to):
                            final = max(final, up_to)
                        case Fail(since):
                            assert since >= final
                            view = {at: view[at] for at in view if at < since}
            if number % 30 == 0:
                thread.run(network.cut())
    assert view == {each.position: each.value for each in log.read(start)}
    assert len(view) == 100


def test_a_timeout_holds_also_while_the_subscription_is_opened(
    log: anabranch.SpeculativeLog, lossy: Lossy
) -> None:
    network, thread = lossy
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        events = service.log(log.name, engine="belfast").subscribe()
        network.refusing = True
        thread.run(network.cut())
        assert events.take(timeout=0.05) == []
        network.refusing = False


def test_a_where_leaves_out_the_same_records_wherever_it_is_looked_at(
    log: anabranch.SpeculativeLog, shards: list[str]
) -> None:
    start = log.tail()
    for number in range(20):
        headers = {"even": b"yes"} if number % 2 == 0 else {}
        log.append(b"%d" % number, key=b"k%d" % (number % 3), headers=headers)
    asked = [
        (Where(key_prefix=b"k1"), lambda record: record.key == b"k1"),
        (Where(header="even"), lambda record: bool(record.headers)),
        (Where(header="even", header_value=b"no"), lambda _: False),
        (
            Where(key_prefix=b"k2", header="even"),
            lambda record: record.key == b"k2" and bool(record.headers),
        ),
    ]
    everything = list(log.read(start))
    for where, same in asked:
        wanted = [each for each in everything if same(each)]
        assert list(log.read(start, where=where)) == wanted
        assert list(log.read(start, where=same)) == wanted
    some = list(log.read(start, shards=shards[:1]))
    assert some == [each for each in everything if each.shard == shards[0]]


def test_a_read_is_of_what_is_confirmed_from_here_to_there(log: anabranch.SpeculativeLog) -> None:
    start = log.tail()
    log.append_many([b"%d" % number for number in range(5)])
    found = list(log.read(start))
    assert [each.value for each in found] == [b"%d" % number for number in range(5)]
    assert list(log.read(start, 2)) == found[:2]
    assert list(log.read(found[2].position)) == found[2:]
    tail = log.tail()
    assert list(log.read(tail)) == []
    assert list(log.read(tail + 1_000)) == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: list(log.read(tail, wait=PATIENCE_S)))
        log.append(b"late")
        assert [each.value for each in waiting.result(PATIENCE_S)] == [b"late"]
    for wrong in (-1, True, "0"):
        with pytest.raises(BadRequest):
            list(log.read(wrong))  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadRequest, match="count must be 1 or more"):
        list(log.read(0, 0))


def test_values_may_come_from_a_generator_that_uses_the_same_client(
    log: anabranch.SpeculativeLog,
) -> None:
    start = log.tail()
    log.append_many([b"1", b"2"])
    log.append_many(b"again " + (each.value or b"") for each in log.read(start))
    found = sorted(map(str, values(log, start)))
    assert found == sorted(map(str, [b"1", b"2", b"again 1", b"again 2"]))
    with pytest.raises(BadRequest, match="must be a list"):
        log.append_many(b"12")  # pyright: ignore[reportArgumentType]


def test_a_subscription_that_another_thread_closes_ends_for_who_iterates(
    log: anabranch.SpeculativeLog,
) -> None:
    events = log.subscribe(log.tail())
    log.append(b"1")
    entered = threading.Event()

    def follow() -> AnabranchError:
        try:
            for _ in events:
                entered.set()
        except AnabranchError as closed:
            return closed
        raise AssertionError("it ended without a word")

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        assert entered.wait(PATIENCE_S)
        events.close()
        assert isinstance(following.result(PATIENCE_S), Unavailable)


@pytest.mark.parametrize("what", ["append", "read"])
def test_a_thread_that_waits_when_the_client_is_closed_is_told_so(
    log: anabranch.SpeculativeLog, lossy: Lossy, what: str
) -> None:
    network, _ = lossy
    service = anabranch.connect(network.url)
    there = service.log(log.name, engine="belfast")
    held = threading.Event()

    def hold() -> Fate:
        held.set()
        return Fate.HOLD

    network.fate = hold
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            lambda: [there.append(b"1")] if what == "append" else list(there.read())
        )
        assert held.wait(PATIENCE_S)
        service.close(wait=False)
        with pytest.raises((Unavailable, OutcomeUnknown)):
            waiting.result(PATIENCE_S)


def test_what_cant_be_done_is_refused_at_once(log: anabranch.SpeculativeLog) -> None:
    with pytest.raises(UnknownShard, match="shard-9"):
        log.append(b"1", shard="shard-9")
    with pytest.raises(TrimTooFar, match=f"^{log.name} can't be trimmed below"):
        log.trim(log.tail() + 1_000)
    with pytest.raises(NotOffered, match="no promote"):
        log.promote()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    with pytest.raises(UnknownShard):
        next(iter(log.subscribe(0, shards=["shard-9"])))
    for wrong in ([], "shard-0", [1]):
        with pytest.raises(BadRequest):
            log.subscribe(0, shards=wrong)  # pyright: ignore[reportArgumentType]
    for where in (5, Where(key_modulus=-1), Where(key_modulus=2, key_remainder=2)):
        with pytest.raises(BadRequest):
            log.subscribe(0, where=where)  # pyright: ignore[reportArgumentType]


def test_a_new_logs_shards_can_be_named_at_once(service: anabranch.Service, name: str) -> None:
    """Its nodes start one after the other."""
    log = service.create(name, engine="belfast", shards=8)
    assert not list(log.read())
    with log.subscribe(0, shards=["shard-6"]) as events:
        place = log.append(b"6", shard="shard-6").position
        assert [each.record.value for each in events.take() if isinstance(each, Deliver)] == [b"6"]
    assert log.append(b"7", shard="shard-7", request_id="once").position is not None
    assert [(each.position, each.value) for each in log.read(0, 1)] == [(place, b"6")]
    with pytest.raises(UnknownShard):
        log.append(b"8", shard="shard-8")


def test_what_was_trimmed_is_gone_and_says_where_to_begin(
    service: anabranch.Service, name: str
) -> None:
    log = service.create(name, engine="belfast")
    log.append_many([b"%d" % number for number in range(5)])
    tail = log.tail()
    log.trim(tail)
    with pytest.raises(PositionTrimmed, match=f"below {tail}"):
        for _ in log.subscribe(0):
            pass
    place = log.append(b"after").position
    assert [(each.position, each.value) for each in log.read(tail)] == [(place, b"after")]
