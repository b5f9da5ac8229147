"""Quotas as the client heeds them: it comes again when told to, within its caller's deadline."""

from collections.abc import Callable

from tests.unit.client.bolt.world import LOG, World

from anabranch.core.bolt.protocol.messages import Append, Appended, Read, Survey
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import QuotaExceeded
from anabranch.core.errors.refused import Refused
from anabranch.core.quota import Bucket
from anabranch.core.records.batch import verify
from anabranch.core.types import MS


def exceeded(retry_after_ms: int) -> QuotaExceeded:
    return QuotaExceeded("log", "append_bytes_per_s", 1_000, 2_500, retry_after_ms)


def test_an_append_is_not_sent_again_before_the_quota_lets_it(world: World) -> None:
    (pledge,) = world.append(b"a")
    world.refuse(exceeded(900))
    world.advance(899)
    assert not world.appends
    world.heal(lambda: pledge.outcome is not None)
    assert isinstance(pledge.outcome, Appended)


def test_a_call_is_not_asked_again_before_the_quota_lets_it(world: World) -> None:
    call = world.ask(Survey())
    world.refuse(exceeded(700))
    world.advance(699)
    assert not world.requests
    world.advance(100)
    request, _ = world.take(Survey)
    world.hear(request, Census("c", 1, 0, 0, 0, 0, 0))
    assert call.error is None


def test_a_quota_that_asks_for_very_long_is_looked_at_again_meanwhile(world: World) -> None:
    """Somebody may have raised it: no try makes the next one wait longer."""
    world.append(b"a")
    for _ in range(20):
        world.refuse(exceeded(3_600_000))
        world.advance(999)
        assert not world.appends
        world.advance(100)
        assert world.appends


def test_a_deadline_that_passes_over_quota_says_so_and_that_nothing_was_done(
    world: World,
) -> None:
    (pledge,) = world.append(b"a", timeout_ms=500)
    call = world.ask(Read(LOG, 0, 1, 1), timeout_ms=500)
    world.refuse(exceeded(60_000))
    world.refuse(exceeded(60_000))
    world.advance(500)
    for error in (pledge.outcome, call.error):
        assert isinstance(error, QuotaExceeded)
        assert error.facts["retry_after_ms"] == 60_000
    assert not pledge.in_doubt


def test_a_deadline_that_passed_over_quota_does_not_hold_what_comes_after(world: World) -> None:
    (late,) = world.append(b"late", timeout_ms=100)
    world.refuse(exceeded(60_000))
    world.advance(100)
    assert isinstance(late.outcome, QuotaExceeded)
    (next_,) = world.append(b"next")
    world.heal(lambda: next_.outcome is not None)
    assert world.log.values == [b"next"]


def test_a_producer_over_quota_loses_nothing_keeps_its_order_and_takes_what_it_may(
    make_world: Callable[..., World],
) -> None:
    """Against a server that enforces one, the refused batches among those behind them too."""
    world = make_world(batch_bytes=200)
    world.connect()
    bucket = Bucket(rate=20, burst_ms=1_000)
    sent = [b"%d" % number for number in range(200)]
    pledges = [world.append(value)[0] for value in sent]
    began, refused = world.now, 0
    while not all(pledge.outcome for pledge in pledges):
        while world.requests:
            request, message = world.take(Append)
            if bucket.owes_until > world.now:
                refused += 1
                wait_ms = -(-(bucket.owes_until - world.now) // MS)
                world.hear(request, Refused.of(exceeded(wait_ms)))
                continue
            bucket.take(world.now, verify(message.batch, "").count)
            done = world.log.append(message.batch)
            world.hear(request, done if isinstance(done, Appended) else Refused.of(done))
        world.advance(10)
    assert all(isinstance(pledge.outcome, Appended) for pledge in pledges)
    assert world.log.values == sent
    assert refused
    seconds = (world.now - began) / (1_000 * MS)
    assert seconds >= (len(sent) - 20 - 8 * 5) / 20, "as fast as the quota, and no faster"
    assert seconds < 3 * len(sent) / 20
