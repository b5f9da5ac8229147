"""Ways to get Belfast wrong as its operator: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch_operator.plan.groups import sequencers, shard_members, shards
from anabranch_operator.plan.groups.sequencer_members import Sight
from anabranch_operator.plan.groups.shard_members import Group, Seen
from anabranch_operator.plan.metadata import evictions
from anabranch_sim.world.mutants import Function, Mutant, being, returning


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


MUTANTS = [
    Mutant("pods go before their shard has left", shard_members, "_over", _at_once),
    Mutant("the leader is rolled before others", sequencers, "_roll", _as_if_another_led),
    Mutant("the primary is rolled before others", Group, "leads", _anybody_else),
    Mutant(
        "two replicas of a shard are rolled at once",
        Seen,
        "whole",
        being(value=True),
        Mutant("and nobody waits for those that come", shards, "_settled", returning(True)),
    ),
    Mutant("sequencers are let go side by side", evictions, "_sequencers_spare", returning(True)),
    Mutant("replicas are let go side by side", evictions, "_shard_spares", returning(True)),
    Mutant("a shard that has left isn't asked back", shards, "_returning", returning(())),
    Mutant("a shard that is over stays", shards, "_going", returning(())),
]
