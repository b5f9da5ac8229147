"""An Erwin log for programs without an event loop, at a real server, over a network that loses."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.unit.client.lossy import Fate, Network

import anabranch
from anabranch import ErwinLog
from anabranch.client.driver.loop import LoopThread
from anabranch.client.session.records import Deliver
from anabranch.core.errors import (
    BadRequest,
    DeadlineExceeded,
    NotOffered,
    PositionTrimmed,
    TrimTooFar,
)

MODES = ("m", "st")


@pytest.fixture(params=MODES)
def log(
    request: pytest.FixtureRequest, service: anabranch.Service, name: str
) -> Iterator[ErwinLog]:
    yield service.create(
        name, engine="erwin", shards=2, sequencers=2, mode=request.param, durability="memory"
    )
    # The server runs the nodes of so many logs at once, and no more.
    service.delete(name)


def values(log: ErwinLog, start: int = 0, count: int | None = None) -> list[bytes | None]:
    return [each.value for each in log.read(start, count)]


def test_what_was_acknowledged_is_read_in_its_order(log: ErwinLog) -> None:
    expected = [b"%d" % i for i in range(200)]
    for value in expected[:20]:
        appended = log.append(value)
        assert appended.position is None
    many = log.append_many(expected[20:])
    assert values(log) == expected
    assert values(log, 30, 3) == expected[30:33]
    receipt = many[-1].receipt
    assert receipt is not None
    assert receipt.position() == 199
    assert log.tail() == 200
    assert log.describe().settled == 200


def test_a_position_is_what_reads_give_the_record_at(log: ErwinLog) -> None:
    for i in range(10):
        position = log.append_sync(b"%d" % i)
        assert values(log, position, 1) == [b"%d" % i]


def test_a_subscription_goes_on_with_what_is_appended(log: ErwinLog) -> None:
    log.append(b"0")
    got: list[bytes | None] = []
    with log.subscribe(0) as events:
        for i in range(1, 30):
            log.append_nowait(b"%d" % i)
        for event in events:
            assert isinstance(event, Deliver)
            got.append(event.record.value)
            if len(got) == 30:
                break
        assert events.final == 30
    assert got == [b"%d" % i for i in range(30)]


def test_a_record_s_id_is_no_other_record_s(service: anabranch.Service, log: ErwinLog) -> None:
    """Also not of another log, and the same however it is read."""
    log.append_many([b"0", b"1"])
    read = list(log.read())
    assert [each.id for each in read] == [f"{log.id}-0", f"{log.id}-1"]
    assert read[0].origin == (log.id, 0)
    with log.subscribe(0) as events:
        assert [each.record for each in events.take() if isinstance(each, Deliver)] == read[:2]


def test_a_trim_past_what_is_ordered_is_refused_in_words_for_this_log(log: ErwinLog) -> None:
    log.append_sync(b"0")
    refused = f"^{log.name} can't be trimmed below 1000: only positions below 1 are final"
    with pytest.raises(TrimTooFar, match=refused):
        log.trim(1_000)


def test_shards_are_not_added_to_what_one_process_runs(log: ErwinLog) -> None:
    with pytest.raises(BadRequest, match="only where `anabranch up --processes` runs them"):
        log.add_shards()


def test_trimmed_positions_are_gone(log: ErwinLog) -> None:
    last = [log.append_sync(b"%d" % i) for i in range(10)][-1]
    log.trim(last)
    with pytest.raises(PositionTrimmed):
        values(log, 0)
    assert values(log, last) == [b"9"]


def test_a_log_says_what_it_is(service: anabranch.Service, log: ErwinLog) -> None:
    status = log.status()
    assert (status.durability, len(status.shards), len(status.members)) == ("memory", 2, 2)
    found = service.log(log.name, engine="erwin")
    assert found.directory().view >= 1
    with pytest.raises(NotOffered):
        service.log(log.name, engine="bolt")


@pytest.mark.parametrize("seed", range(3))
def test_no_acknowledged_append_is_lost_and_none_is_there_twice(
    lossy: tuple[Network, LoopThread], log: ErwinLog, seed: int
) -> None:
    network, _ = lossy
    settings = anabranch.Settings(timeout_ms=20_000, backoff_ms=1, backoff_ms_max=10)
    with anabranch.connect(network.url, settings=settings) as service:
        mode = log.status().mode
        log = service.log(log.name, engine="erwin")
        log.append(b"first")
        network.fate = _some(Random(seed), 60)
        expected = [b"%d" % i for i in range(60)]
        pending = [log.append_nowait(value) for value in expected]
        for each in pending:
            assert each.result().receipt is not None
        requested = log.append(b"once", request_id="r")
        repeated = log.append(b"once", request_id="r")
        assert requested.receipt is not None
        assert repeated.receipt is not None
        assert requested.receipt.position() == repeated.receipt.position()
        found = values(log)
    assert Counter(found) == Counter([b"first", *expected, b"once"])
    if mode == "m":
        assert found == [b"first", *expected, b"once"]


def _some(random: Random, count: int) -> Callable[[], Fate]:
    """So many fates at random, and then a network that loses nothing."""
    fates = (Fate.PASS, Fate.PASS, Fate.PASS, Fate.LOSE_ANSWER, Fate.LOSE_REQUEST)
    drawn = iter([random.choice(fates) for _ in range(count)])
    return lambda: next(drawn, Fate.PASS)


def test_a_program_learns_that_nobody_answers(lossy: tuple[Network, LoopThread], name: str) -> None:
    network, _ = lossy
    with anabranch.connect(network.url) as service:
        log = service.create(name, engine="erwin", durability="memory")
        log.append(b"x")
        network.fate = lambda: Fate.LOSE_REQUEST
        with pytest.raises((DeadlineExceeded, anabranch.AnabranchError)) as caught:
            log.append(b"y", timeout=0.3)
        assert caught.value.code in ("outcome-unknown", "unavailable")
