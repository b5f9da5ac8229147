"""Appends to a log that takes none: refused in time, and certainly not done (decision 38)."""

from tests.unit.client.bolt.world import World

from anabranch.core.bolt.protocol.messages import Append
from anabranch.core.errors import AppendBlocked, OutcomeUnknown
from anabranch.core.errors.refused import Refused


def test_a_deadline_that_passes_while_blocked_says_what_blocks(world: World) -> None:
    pledge = world.append(b"a", timeout_ms=100)[0]
    blocked = AppendBlocked("orders--plain", "orders--what-if")
    while pledge.outcome is None:
        if world.requests:
            world.refuse(blocked)
        world.advance(5)
    assert isinstance(pledge.outcome, AppendBlocked)
    assert not pledge.in_doubt


def test_a_server_may_hold_a_blocked_append_to_a_second_before_its_deadline(world: World) -> None:
    pledge = world.append(b"a", timeout_ms=4_000)[0]
    request, append = world.take(Append)
    assert append.wait_ms == 3_000
    world.advance(1_000)
    world.hear(request, Refused.of(AppendBlocked("orders--plain", "orders--what-if")))
    while not world.requests:
        world.advance(1)
    request, append = world.take(Append)
    assert append.wait_ms < 2_000, "what is left"
    world.advance(append.wait_ms)
    world.hear(request, Refused.of(AppendBlocked("orders--plain", "orders--what-if")))
    assert isinstance(pledge.outcome, AppendBlocked), "told at once, with time to spare"
    assert not pledge.in_doubt
    world.advance(10_000)
    assert not world.requests, "and never sent again"


def test_a_blocked_append_of_which_an_earlier_try_was_not_answered_is_in_doubt(
    world: World,
) -> None:
    """A broker that lost sight of the client may hold it still."""
    pledge = world.append(b"a", timeout_ms=4_000)[0]
    world.take(Append)
    world.cut()
    while not world.dialing:
        world.advance(1)
    world.connect()
    while pledge.outcome is None:
        if world.requests:
            world.refuse(AppendBlocked("orders--plain", "orders--what-if"))
        world.advance(100)
    assert isinstance(pledge.outcome, OutcomeUnknown)
