"""Explores acknowledgements by some members instead of all (LazyLog, 5.5; docs/decisions/0065).

Of 2f + 1 members f may be lost, the leader among them, so a view change has to do with the logs of
f + 1 followers. Skyros orders two records as enough of these logs do. The model follows all ways in
which records come to the members, while one of them is sent only after another was acknowledged: a
`World`. Where several worlds leave the same logs behind, the next view must suit them all.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

Log = tuple[int, ...]
Logs = tuple[Log, ...]
"""Of the followers that are left after the leader and others were lost."""


class World(NamedTuple):
    """The second record was sent when the first one was acknowledged."""

    first: int
    second: int


class Group(NamedTuple):
    failures: int
    needed: int
    """Members that have a record when it is acknowledged, the leader included."""

    @property
    def left(self) -> int:
        return self.failures + 1

    @property
    def lost(self) -> int:
        """Members that nobody can ask at the view change."""
        return self.failures


def supermajority(failures: int) -> int:
    """f + ceil(f / 2) + 1."""
    return failures + -(-failures // 2) + 1


def reachable(group: Group, records: Log, world: World) -> set[Logs]:
    """All that the followers that are left may hold when they hold everything. Members that are
    lost had each record as soon as it was sent, which makes the most records acknowledged.
    """
    begin: Logs = ((),) * group.left
    found: set[Logs] = {begin}
    todo: list[Logs] = [begin]
    while todo:
        for after in _deliveries(group, records, world, todo.pop()):
            if after not in found:
                found.add(after)
                todo.append(after)
    return {logs for logs in found if all(len(log) == len(records) for log in logs)}


def _deliveries(group: Group, records: Log, world: World, logs: Logs) -> Iterator[Logs]:
    for record in records:
        if record == world.second and not _acknowledged(group, logs, world.first):
            continue
        for n, log in enumerate(logs):
            if record not in log:
                yield (*logs[:n], (*log, record), *logs[n + 1 :])


def _acknowledged(group: Group, logs: Logs, record: int) -> bool:
    return group.lost + sum(record in log for log in logs) >= group.needed


def orders_that_suit(records: Log, worlds: list[World]) -> list[Log]:
    """Orders of the next view that break the promise of none of these worlds."""
    return [
        order
        for order in permutations(records)
        if all(order.index(world.first) < order.index(world.second) for world in worlds)
    ]


def worst(group: Group, records: Log) -> tuple[Logs, list[World]] | None:
    """Logs of which no order suits all the worlds that leave them behind; None: there are none."""
    worlds: dict[Logs, list[World]] = {}
    for pair in permutations(records, 2):
        world = World(*pair)
        for logs in reachable(group, records, world):
            worlds.setdefault(logs, []).append(world)
    for logs in sorted(worlds):
        if not orders_that_suit(records, worlds[logs]):
            return logs, worlds[logs]
    return None
