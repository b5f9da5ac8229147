"""Which broker serves which log: roots apart from forks, forks of one tree together (AgileLog, 5.1;
spec R3).

Any broker can serve any log, so this decides nothing but whose cache is warm and who disturbs whom.
It is part of the replicated state: a fork is placed by the command that makes it. Every choice is
by counts and then by name, never by the order in which things came.
"""

import heapq

from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.errors import BrokerInUse, NoSpareBroker
from anabranch.core.types import LogId

READY, DRAINING, LOST = "ready", "draining", "lost"
SPARES_FROM = 4
"""A smaller pool has no broker to keep idle."""

NOBODY = ""


class Seat:
    """A broker of the pool, and what is placed on it."""

    __slots__ = ("address", "alone", "epoch", "name", "roots", "state", "trees")

    def __init__(self, name: str, address: str, epoch: int) -> None:
        self.name = name
        self.address = address
        self.epoch = epoch
        self.state = READY
        self.roots: set[LogId] = set()
        self.trees: set[LogId] = set()
        """Trees, by their root's id, whose forks it serves."""
        self.alone: set[LogId] = set()
        """Forks that want a broker of their own; more than one only if none was to spare."""

    @property
    def idle(self) -> bool:
        return not (self.roots or self.trees or self.alone)

    @property
    def load(self) -> int:
        return len(self.roots) + len(self.trees) + len(self.alone)


class Placement:
    """Trees and exclusive forks on seats. A tree is known by the id that its root had."""

    def __init__(self, spare_brokers_max: int) -> None:
        self.spare_brokers_max = spare_brokers_max
        self.seats: dict[str, Seat] = {}
        self.roots: dict[LogId, str] = {}
        self.trees: dict[LogId, str] = {}
        self.forks: dict[LogId, int] = {}
        """Live forks of each tree that has any, exclusive ones left out."""
        self.alone: dict[LogId, str] = {}

    def serving(self, log: LogId, tree: LogId, *, is_root: bool) -> Seat | None:
        if is_root:
            name = self.roots.get(log, NOBODY)
        else:
            name = self.alone.get(log) or self.trees.get(tree, NOBODY)
        return self.seats.get(name)

    def pool(self) -> list[BrokerSeat]:
        return [
            BrokerSeat(
                seat.name,
                seat.address,
                seat.epoch,
                seat.state,
                len(seat.roots),
                len(seat.trees),
                len(seat.alone),
            )
            for _, seat in sorted(self.seats.items())
        ]

    def add_root(self, root: LogId) -> None:
        self._put_root(root)
        if self._take(self.roots[root]).trees:
            self._relieve()

    def add_fork(self, tree: LogId) -> None:
        if tree not in self.forks:
            self.forks[tree] = 0
            self._put_tree(tree)
        self.forks[tree] += 1

    def check_spare(self, name: str) -> None:
        if self._spare() is None:
            raise NoSpareBroker(name, len(self.seats))

    def add_alone(self, fork: LogId) -> None:
        self._put_alone(fork)

    def remove_root(self, root: LogId) -> None:
        seat = self._take(self.roots.pop(root, NOBODY))
        seat.roots.discard(root)
        self._left(seat)

    def remove_fork(self, fork: LogId, tree: LogId) -> None:
        if fork in self.alone:
            seat = self._take(self.alone.pop(fork))
            seat.alone.discard(fork)
            self._left(seat)
            return
        self.forks[tree] -= 1
        assert self.forks[tree] >= 0, "more forks went than came"
        if not self.forks[tree]:
            del self.forks[tree]
            seat = self._take(self.trees.pop(tree, NOBODY))
            seat.trees.discard(tree)
            self._left(seat)

    def register(self, name: str, address: str, epoch: int) -> None:
        """A broker's life begins, or it is back: what nobody serves, or not as it should be, is
        its gain.
        """
        assert name, "a broker has a name"
        seat = self.seats.get(name)
        if seat is None:
            seat = self.seats[name] = Seat(name, address, epoch)
        seat.address, seat.epoch, seat.state = address, epoch, READY
        self._settle()

    def even_out(self, name: str) -> None:
        """A broker that has come takes from others what they serve two more of than it does.

        It serves roots or forks as whoever is free would be chosen for; nothing else moves.
        """
        assert name in self.seats, "it isn't of the pool"
        seat, ready = self.seats[name], self._ready()
        if seat.state != READY or seat.alone:
            return
        others = [each for each in ready if each is not seat]
        if not seat.trees and (seat.roots or self._has_room_for_roots(ready)):
            _take_from([each.roots for each in others], seat.roots, self.roots, name)
        if not seat.roots and (seat.trees or self._has_room_for_trees(ready)):
            _take_from([each.trees for each in others], seat.trees, self.trees, name)

    def lose(self, name: str, epoch: int) -> None:
        """One that drains has nothing to lose, and isn't to be found again."""
        self._leave(name, epoch, LOST, (READY,))

    def find(self, name: str, epoch: int) -> None:
        """It was thought lost, and is alive in the same life."""
        seat = self.seats.get(name)
        if seat is not None and seat.epoch == epoch and seat.state == LOST:
            seat.state = READY
            self._settle()

    def drain(self, name: str, epoch: int) -> None:
        self._leave(name, epoch, DRAINING, (READY, LOST))

    def forget(self, name: str) -> None:
        """What leaves has nothing placed on it any more, so that nothing else moves."""
        seat = self.seats[name]
        if seat.state == READY:
            raise BrokerInUse(name, seat.state)
        assert seat.idle, "who isn't ready serves nothing"
        del self.seats[name]

    def _leave(self, name: str, epoch: int, state: str, states: tuple[str, ...]) -> None:
        assert state not in states, "nothing would change"
        seat = self.seats.get(name)
        if seat is not None and seat.epoch == epoch and seat.state in states:
            seat.state = state
            self._settle()

    def _left(self, seat: Seat) -> None:
        """Something has gone from a seat."""
        assert seat.load >= 0
        if seat.idle:
            self._relieve()

    def _relieve(self) -> None:
        """Settle, if it makes anything better: a forest has far more logs than seats."""
        ready = self._ready()
        mixed = any(seat.roots and seat.trees for seat in ready)
        shared = any(seat.alone and seat.load > 1 for seat in ready)
        if (mixed and any(not seat.roots and not seat.alone for seat in ready)) or (
            shared and any(seat.idle for seat in ready)
        ):
            self._settle()

    def _settle(self) -> None:
        """Give what nobody serves to somebody, and take forks away from brokers with roots."""
        for root in sorted(root for root, name in self.roots.items() if not self._serves(name)):
            self._put_root(root)
        for tree in sorted(
            tree
            for tree, name in self.trees.items()
            if not self._serves(name) or self.seats[name].roots
        ):
            self._put_tree(tree)
        for fork in sorted(
            fork
            for fork, name in self.alone.items()
            if not self._serves(name) or self.seats[name].load > 1
        ):
            self._put_alone(fork)

    def _serves(self, name: str) -> bool:
        seat = self.seats.get(name)
        return seat is not None and seat.state == READY

    def _ready(self) -> list[Seat]:
        return [seat for _, seat in sorted(self.seats.items()) if seat.state == READY]

    def _spare(self) -> Seat | None:
        return next((seat for seat in self._ready() if seat.idle), None)

    def _has_room_for_roots(self, ready: list[Seat]) -> bool:
        """May one more of these serve roots?"""
        return len(_with_roots(ready)) < max(1, len(ready) // 2)

    def _has_room_for_trees(self, ready: list[Seat]) -> bool:
        """May one more of these serve forks, and leave what is to be kept idle?"""
        spares = self.spare_brokers_max if len(ready) >= SPARES_FROM else 0
        return len(_with_trees(ready)) < max(1, len(ready) - len(ready) // 2 - spares)

    def _for_root(self) -> Seat | None:
        ready = self._ready()
        hosts = _with_roots(ready)
        free = [seat for seat in ready if seat.idle]
        if free and self._has_room_for_roots(ready):
            return free[0]
        unshared = [seat for seat in hosts if not seat.trees and not seat.alone]
        return _least(unshared or hosts or [seat for seat in ready if not seat.alone] or ready)

    def _for_tree(self) -> Seat | None:
        ready = self._ready()
        hosts = _with_trees(ready)
        free = [seat for seat in ready if seat.idle]
        if free and self._has_room_for_trees(ready):
            return free[0]
        return _least(hosts or free or [seat for seat in ready if not seat.alone] or ready)

    def _for_alone(self) -> Seat | None:
        return self._spare() or self._for_tree()

    def _put_root(self, root: LogId) -> None:
        """Where it was counts for nothing: so what is placed well is placed there again."""
        self._take(self.roots.get(root, NOBODY)).roots.discard(root)
        seat = self._for_root() or self._take(NOBODY)
        self.roots[root] = seat.name
        seat.roots.add(root)

    def _put_tree(self, tree: LogId) -> None:
        self._take(self.trees.get(tree, NOBODY)).trees.discard(tree)
        seat = self._for_tree() or self._take(NOBODY)
        self.trees[tree] = seat.name
        seat.trees.add(tree)

    def _put_alone(self, fork: LogId) -> None:
        self._take(self.alone.get(fork, NOBODY)).alone.discard(fork)
        seat = self._for_alone() or self._take(NOBODY)
        self.alone[fork] = seat.name
        seat.alone.add(fork)

    def _take(self, name: str) -> Seat:
        """What nobody serves is on a seat that isn't there."""
        return self.seats.get(name) or Seat(NOBODY, "", 0)


def _with_roots(seats: list[Seat]) -> list[Seat]:
    return [seat for seat in seats if seat.roots]


def _with_trees(seats: list[Seat]) -> list[Seat]:
    """Those that serve forks as they should be served."""
    return [seat for seat in seats if seat.trees and not seat.roots and not seat.alone]


def _take_from(
    others: list[set[LogId]], mine: set[LogId], served: dict[LogId, str], name: str
) -> None:
    """The latest of whoever has most, again and again while that has two more."""
    assert all(each is not mine for each in others), "nobody takes from itself"
    most = [(-len(each), turn) for turn, each in enumerate(others)]
    heapq.heapify(most)
    given = [0] * len(others)
    taken = len(mine)
    while most and -most[0][0] - taken > 1:
        left, turn = most[0]
        heapq.heapreplace(most, (left + 1, turn))
        given[turn] += 1
        taken += 1
    for theirs, count in zip(others, given, strict=True):
        for log in heapq.nlargest(count, theirs):
            theirs.discard(log)
            mine.add(log)
            served[log] = name


def _least(seats: list[Seat]) -> Seat | None:
    return min(seats, key=lambda seat: (seat.load, seat.name), default=None)
