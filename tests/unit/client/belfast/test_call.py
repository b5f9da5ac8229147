"""A question about a shard, while shards join."""

from tests.unit.client.belfast.counters import Counters

from anabranch.client.belfast.call import Call
from anabranch.client.session.effects import Asked
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import Done, Leave
from anabranch.core.errors import UnknownShard

TIMEOUT_MS = 20_000


def asked(world: Counters) -> Call:
    call = Call(Leave("b"), "let shard b go", TIMEOUT_MS)
    world.give(Asked(call))
    return call


def test_a_shard_that_has_yet_to_join_is_asked_for_again() -> None:
    world = Counters(("a",), Settings())
    world.session.whereabouts.expected = 2
    call = asked(world)
    for _ in range(8):
        world.ring()
    assert not call.finished
    world.join("b")
    while not call.finished:
        world.ring()
    assert call.answer == Done()


def test_a_shard_that_never_joins_is_unknown_at_the_deadline_and_else_at_once() -> None:
    world = Counters(("a",), Settings())
    call = asked(world)
    assert isinstance(call.error, UnknownShard)
    world.session.whereabouts.expected = 2
    call = asked(world)
    while not call.finished:
        world.ring()
    assert isinstance(call.error, UnknownShard)
    assert world.now == TIMEOUT_MS * 1_000_000
