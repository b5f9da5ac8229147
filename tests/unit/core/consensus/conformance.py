"""What every user of `core.consensus` must hold, whatever fails.

Seeded schedules of letters that are lost, repeated, cut short and late, of links that are cut, and
of disks that fail, are slow or lost, while members crash, resign and come back. At all times
members are told the same entries in the same order, come to the same states, and elect one leader
in a term; nothing that was committed is lost; and when all is well again, every member holds
everything.
"""

from collections.abc import Callable
from random import Random

from tests.unit.core.consensus.council import Conditions, Council, State


def conform(seed: int, user: Callable[[], State]) -> None:
    chance = Random(seed)
    council = Council(
        members=chance.choice([3, 3, 3, 1]),
        seed=seed,
        kept_entries=chance.choice([10, 50, 20_000]),
        snapshot_entries=chance.choice([10, 50, 10_000]),
        user=user,
    ).start()
    for _ in range(4):
        _trouble(council, chance)
        council.converge()
    assert len(council.committed) > 10


def _trouble(council: Council, chance: Random) -> None:
    """At most one disk is lost, and only while the group is well."""
    if len(council.names) > 1 and chance.random() < 0.5:
        victim = council.members[chance.choice(council.names)]
        victim.crash()
        victim.paper = type(victim.paper)()
        victim.start()
    for _ in range(chance.randrange(5, 15)):
        slow = chance.choice([1, 5, 40, 200])
        council.conditions = Conditions(
            loss=chance.choice([0, 0, 0.1, 0.4]),
            twice=chance.choice([0, 0.2]),
            short=chance.choice([0, 0, 0.2]),
            letter_ms=(0.1, slow),
            disk_ms=(0.1, chance.choice([1, 10, 300])),
            disk_failures=chance.choice([0, 0, 0, 0.1]),
        )
        if chance.random() < 0.3:
            council.cut_off(chance.choice(council.names))
        if chance.random() < 0.2:
            one, two = chance.choice(council.names), chance.choice(council.names)
            council.conditions.cut.add((one, two))
        _crashes(council, chance)
        for _ in range(chance.randrange(0, 40)):
            council.propose()
            council.run(chance.choice([0.1, 1, 20, 50]))
        leader = council.leader
        if leader is not None and chance.random() < 0.1:
            leader.resign()


def _crashes(council: Council, chance: Random) -> None:
    everybody = chance.random() < 0.05
    for member in council.members.values():
        if member.up and (everybody or chance.random() < 0.1):
            member.crash()
        elif not member.up and chance.random() < 0.6:
            member.start()
