"""A log without an event loop, before a real server: over a network that loses requests and
answers, from several threads, and closed while something is under way.
"""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import cast

import pytest
from tests.unit.client.lossy import Fate, Network

import anabranch
from anabranch import Confirm, Deliver, Fail, testing
from anabranch.client.driver.loop import LoopThread
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    NotOffered,
    OutcomeUnknown,
    Overloaded,
    RequestReused,
    Squashed,
    Unavailable,
)

Lossy = tuple[Network, LoopThread]
PATIENCE_S = 20
SETTINGS = anabranch.Settings(backoff_ms=1, backoff_ms_max=5, timeout_ms=20_000)


def losing(seed: int, share: float) -> Callable[[], Fate]:
    """So many of the requests, or of the answers, are lost with their connection."""
    random = Random(seed)
    lost = (Fate.LOSE_REQUEST, Fate.LOSE_ANSWER)
    return lambda: random.choice(lost) if random.random() < share else Fate.PASS


def values(log: anabranch.Log, start: int = 0) -> list[bytes | None]:
    return [each.value for each in log.read(start)]


@pytest.fixture
def log(service: anabranch.Service, name: str) -> anabranch.Log:
    return service.create(name)


@pytest.mark.parametrize("seed", range(3))
def test_over_a_network_that_loses_things_nothing_is_lost_doubled_or_out_of_order(
    server: testing.Server, log: anabranch.Log, lossy: Lossy, seed: int
) -> None:
    network, _ = lossy
    wanted = [b"%d" % number for number in range(60)]
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        there = service.log(log.name, engine="bolt")
        network.fate = losing(seed, 0.15)
        pending = [there.append_nowait(each) for each in wanted[:20]]
        places = [each.result().position for each in pending]
        places += [there.append(each).position for each in wanted[20:40]]
        places += [each.position for each in there.append_many(wanted[40:])]
        network.fate = lambda: Fate.PASS
        assert network.connections > 1
    assert places == list(range(60))
    assert values(log) == wanted


def test_what_changes_logs_is_done_once_though_its_answers_are_lost(
    log: anabranch.Log, lossy: Lossy, name: str
) -> None:
    network, _ = lossy
    log.append_many([b"1", b"2", b"3"])
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        there = service.log(name, engine="bolt")
        network.fate = losing(3, 0.4)
        there.trim(1)
        there.cursor("here").commit(2)
        fork = there.cfork("try", promotable=True)
        fork.append(b"4")
        assert fork.promote().into == name
        other = there.sfork("side")
        other.squash()
        network.fate = lambda: Fate.PASS
        assert [each.name for each in service.logs(tree=name)] == [name]
    assert values(log, 1) == [b"2", b"3", b"4"]
    assert log.cursors() == {"here": 2}


def test_a_request_id_gives_its_first_result_whoever_repeats_it(
    server: testing.Server, log: anabranch.Log, lossy: Lossy
) -> None:
    network, _ = lossy
    fates = iter([Fate.PASS, Fate.LOSE_ANSWER])
    with anabranch.connect(network.url, settings=SETTINGS) as service:
        there = service.log(log.name, engine="bolt")
        network.fate = lambda: next(fates, Fate.PASS)
        log.append(b"before")
        first = there.append_many([b"1", b"2"], request_id="once")
    with anabranch.connect(server.url) as service:
        again = service.log(log.name, engine="bolt")
        assert again.append_many([b"1", b"2"], request_id="once") == first
        assert service.append(log.name, [b"1", b"2"], request_id="once") == first
        with pytest.raises(RequestReused):
            again.append(b"another", request_id="once")
    assert [each.position for each in first] == [1, 2]
    assert values(log) == [b"before", b"1", b"2"]


def test_a_subscription_skips_and_repeats_nothing_however_often_it_is_cut(
    log: anabranch.Log, lossy: Lossy
) -> None:
    network, thread = lossy
    wanted = [b"%d" % number for number in range(200)]
    settings = anabranch.Settings(backoff_ms=1, backoff_ms_max=5, subscription_bytes=2_000)
    seen: list[tuple[int, bytes | None]] = []
    with (
        anabranch.connect(network.url, settings=settings) as service,
        service.log(log.name, engine="bolt").subscribe(0) as events,
    ):
        for number in range(0, 200, 10):
            log.append_many(wanted[number : number + 10])
            while len(seen) < number + 10:
                event = next(iter(events))
                assert isinstance(event, Deliver)
                seen.append((event.record.position, event.record.value))
                if len(seen) % 23 == 0:
                    thread.run(network.cut())
    assert seen == list(enumerate(wanted))


def test_speculation_is_confirmed_or_failed_and_what_stands_is_the_log(
    service: anabranch.Service, log: anabranch.Log, lossy: Lossy
) -> None:
    network, thread = lossy
    log.append(b"base")
    with (
        anabranch.connect(network.url, settings=SETTINGS) as other,
        other.log(log.name, engine="bolt").subscribe(0) as events,
    ):
        fork = log.cfork("decided", promotable=True)
        fork.append(b"forked")
        log.append(b"withheld")
        view: dict[int, bytes | None] = {}
        final = 0
        promoted = False
        while len(view) < 3 or final < 3:
            for event in events.take(timeout=PATIENCE_S):
                match event:
                    case Deliver(record, speculative):
                        assert record.position == len(view)
                        view[record.position] = record.value
                        final = final if speculative else record.position + 1
                    case Confirm(up_to):
                        final = max(final, up_to)
                    case Fail(since):
                        assert since >= final, "what is final stays"
                        view = {at: view[at] for at in view if at < since}
            if len(view) == 2 and not promoted:
                promoted = True
                thread.run(network.cut())
                fork.promote()
    assert list(view.values()) == values(log) == [b"base", b"forked", b"withheld"]


def test_a_subscription_that_another_thread_closes_ends_for_who_iterates(
    log: anabranch.Log,
) -> None:
    events = log.subscribe(0)
    log.append(b"1")
    entered = threading.Event()

    def follow() -> list[object]:
        seen: list[object] = []
        try:
            for event in events:
                seen.append(event)
                entered.set()
        except Unavailable as closed:
            seen.append(closed.message)
        return seen

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow)
        assert entered.wait(PATIENCE_S)
        events.close()
        _, said = following.result(PATIENCE_S)
    assert "it was closed" in str(said)


@pytest.mark.parametrize("what", ["tail", "subscription", "append"])
def test_a_thread_that_waits_when_the_client_is_closed_is_told_so(
    server: testing.Server, log: anabranch.Log, lossy: Lossy, what: str
) -> None:
    network, _ = lossy
    held = threading.Event()
    service = anabranch.connect(network.url)
    there = service.log(log.name, engine="bolt")

    def hold() -> Fate:
        held.set()
        return Fate.HOLD

    def wait() -> None:
        match what:
            case "tail":
                list(there.read(0, wait=60, timeout=60))
            case "subscription":
                next(iter(there.subscribe(0)))
            case _:
                there.append(b"1")

    network.fate = hold
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        assert held.wait(PATIENCE_S)
        service.close(wait=False)
        with pytest.raises((Unavailable, OutcomeUnknown)):
            waiting.result(PATIENCE_S)


def test_a_client_is_closed_once_all_that_was_put_is_appended(
    server: testing.Server, log: anabranch.Log
) -> None:
    with anabranch.connect(server.url) as service:
        there = service.log(log.name, engine="bolt")
        for number in range(500):
            there.append_nowait(b"%d" % number)
    assert values(log) == [b"%d" % number for number in range(500)]


def test_an_append_that_nobody_asked_about_tells_at_the_end(
    server: testing.Server, name: str
) -> None:
    service = anabranch.connect(server.url)
    gone = service.create(name)
    service.delete(name)
    gone.append_nowait(b"1")
    with pytest.raises(Squashed):
        service.close()
    service.close()


def test_one_that_was_asked_about_tells_nobody_else(server: testing.Server, name: str) -> None:
    with anabranch.connect(server.url) as service:
        gone = service.create(name)
        service.delete(name)
        pending = gone.append_nowait(b"1")
        for _ in range(2):
            with pytest.raises(Squashed):
                pending.result()
        assert pending.done


def test_several_threads_append_to_one_log_each_in_its_order(log: anabranch.Log) -> None:
    def append(who: int) -> None:
        pending = [log.append_nowait(b"%d %d" % (who, number)) for number in range(100)]
        places = [each.result().position or 0 for each in pending]
        assert places == sorted(places)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    assert sorted(map(str, values(log))) == sorted(
        str(b"%d %d" % (who, number)) for who in range(4) for number in range(100)
    )


def test_values_may_come_from_a_generator_that_uses_the_same_client(log: anabranch.Log) -> None:
    log.append_many([b"1", b"2"])
    log.append_many(b"again " + (each.value or b"") for each in log.read())
    log.append_many((b"once " + (each.value or b"") for each in log.read(0, 2)), request_id="it")
    assert values(log) == [b"1", b"2", b"again 1", b"again 2", b"once 1", b"once 2"]


@pytest.mark.parametrize("wrong", [b"12", "12", None, 12], ids=["bytes", "text", "none", "number"])
@pytest.mark.parametrize("request_id", [None, "it"])
def test_what_is_no_list_of_values_is_refused_at_once(
    log: anabranch.Log, wrong: object, request_id: str | None
) -> None:
    with pytest.raises(BadRequest, match="must be a list"):
        log.append_many(wrong, request_id=request_id)  # pyright: ignore[reportArgumentType]
    assert values(log) == []


def test_too_much_at_once_waits_for_room_and_is_all_there(
    server: testing.Server, name: str
) -> None:
    settings = anabranch.Settings(pending_bytes_max=1_000, batch_bytes=200)
    with anabranch.connect(server.url, settings=settings) as service:
        log = service.create(name)
        pending = [log.append_nowait(b"%100d" % number) for number in range(60)]
        log.append_many(b"%100d" % number for number in range(60, 120))
        assert [each.result().position for each in pending] == list(range(60))
    with anabranch.connect(server.url) as service:
        assert values(service.log(name, engine="bolt")) == [b"%100d" % n for n in range(120)]


def test_what_finds_no_room_in_its_time_is_certainly_not_appended(
    server: testing.Server, log: anabranch.Log, lossy: Lossy
) -> None:
    network, thread = lossy
    settings = anabranch.Settings(pending_bytes_max=100)
    service = anabranch.connect(network.url, settings=settings)
    there = service.log(log.name, engine="bolt")
    network.fate = lambda: Fate.HOLD
    first = there.append_nowait(b"first")
    with pytest.raises(Overloaded, match="pending_bytes_max"):
        there.append(bytes(90), timeout=0.05)
    thread.run(network.release())
    assert first.result().position == 0
    service.close()
    assert values(log) == [b"first"]


def test_what_the_other_engine_has_is_refused_by_name(log: anabranch.Log) -> None:
    with pytest.raises(NotOffered, match="no status"):
        log.status()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        log.no_such_verb()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]


@pytest.mark.parametrize("taken", [1, 5])
def test_a_read_that_is_left_in_the_middle_leaves_nothing_behind(
    server: testing.Server, log: anabranch.Log, taken: int
) -> None:
    log.append_many([bytes(500)] * 50)
    settings = anabranch.Settings(read_bytes=1_000)
    with anabranch.connect(server.url, settings=settings) as service:
        there = service.log(log.name, engine="bolt")
        reading = cast("Generator[object]", there.read())
        for _ in range(taken):
            next(reading)
        reading.close()
        assert len(list(there.read(0, 7))) == 7
        left = there.read()
        next(left)
    with pytest.raises(AnabranchError):
        list(left)
