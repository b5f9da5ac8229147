"""Ways to get Belfast wrong as its operator: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch_operator.plan.belfast import sequencers, shard_members, shards
from anabranch_operator.plan.belfast.sequencers import Sight
from anabranch_operator.plan.belfast.shard_members import Group, Seen
from anabranch_operator.plan.metadata import evictions
from anabranch_sim.bolt.mutants import Breakage, Function, _always


def _at_once(_: Function) -> Function:
    def over(_group: Any, status: Any, _shard: Any) -> bool:
        return status is not None

    return over


def _as_if_another_led(original: Function) -> Function:
    def roll(sight: Sight, *more: Any) -> Any:
        if sight.status is None:
            return original(sight, *more)
        last = max(sight.status.members)
        return original(replace(sight, status=replace(sight.status, leader=last)), *more)

    return roll


def _anybody_else(original: Function) -> Function:
    return lambda *args: not original(*args)


def _ever(_: Function) -> Any:
    return property(lambda _: True)


def _none(_: Function) -> Function:
    return lambda *_: ()


MISHAPS = [
    Breakage("pods go before their shard has left", shard_members, "_over", _at_once),
    Breakage("the leader is rolled before others", sequencers, "_roll", _as_if_another_led),
    Breakage("the primary is rolled before others", Group, "leads", _anybody_else),
    Breakage(
        "two replicas of a shard are rolled at once",
        Seen,
        "whole",
        _ever,
        Breakage("and nobody waits for those that come", shards, "_settled", _always),
    ),
    Breakage("sequencers are let go side by side", evictions, "_sequencers_spare", _always),
    Breakage("replicas are let go side by side", evictions, "_shard_spares", _always),
    Breakage("a shard that has left isn't asked back", shards, "_returning", _none),
    Breakage("a shard that is over stays", shards, "_going", _none),
]
