"""etcd as a metadata group sees it: a journal that only the leader can write to, keys that lapse.

What it holds it never loses; but it may be away, full, or behind a network that is cut, and its
answers may be lost after what was asked for was done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.events import World
from anabranch_sim.world.network import Network

ETCD = "etcd"
_PATIENCE: Nanoseconds = 300 * MS
"""How long a client waits for an answer."""

T = TypeVar("T")
Act = Callable[[Callable[[], None]], None]


@dataclass(slots=True)
class Key:
    """A member's in the election; the one of the lowest revision leads."""

    revision: int
    lapses: Nanoseconds


@dataclass(frozen=True, slots=True)
class Page:
    """What a follower is given: entries from `first` on, after a snapshot if need be."""

    snapshot: tuple[int, bytes] | None
    first: int
    entries: list[bytes]

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1


class SimEtcd:
    def __init__(self, world: World, network: Network, lease: Nanoseconds, kept: int) -> None:
        self.world = world
        self.network = network
        self.lease = lease
        self.entries: list[bytes] = []
        """All there ever were; those up to `forgotten` can't be read any more."""
        self.forgotten = 0
        self.snapshot: tuple[int, bytes] | None = None
        self.full = False
        self._kept = kept
        self._watching: list[Callable[[], None]] = []
        self._keys: dict[str, Key] = {}
        self._revision = 0
        self._appended: dict[int, int] = {}
        self._down_until: Nanoseconds = 0

    @property
    def last(self) -> int:
        return len(self.entries)

    @property
    def leader(self) -> str | None:
        """Whose key is the oldest that hasn't lapsed."""
        self._lapse()
        return min(self._keys, key=lambda name: self._keys[name].revision, default=None)

    def ask(
        self,
        name: str,
        act: Act,
        do: Callable[[], T],
        then: Callable[[T | None], None],
        ready: Callable[[], bool] | None = None,
    ) -> None:
        """`then` gets the answer, or None if nothing is known of what became of it.

        What isn't `ready` is answered when the next entry is there.
        """
        world, network = self.world, self.network

        def arrive() -> None:
            if self._away(name, ETCD):
                give_up()
                return
            if ready is None or ready():
                answer()
            else:
                self._watching.append(answer)

        def answer() -> None:
            world.after(network.stream_delay(), partial(come_back, do()))

        def come_back(answer: T) -> None:
            if self._away(ETCD, name):
                give_up()
            else:
                act(partial(then, answer))

        def give_up() -> None:
            world.after(_PATIENCE, partial(act, partial(then, None)))

        world.after(network.stream_delay(), arrive)

    def go_down(self, duration: Nanoseconds) -> None:
        """Nobody is answered; leases are good for their whole time again when it is back."""
        self._lapse()
        self._down_until = self.world.now + duration
        for key in self._keys.values():
            key.lapses = max(key.lapses, self._down_until + self.lease)

    def heal(self) -> None:
        self._down_until = 0
        self.full = False

    def enter(self, name: str) -> int:
        """A new key; one that this member has left behind counts no more."""
        self._revision += 1
        self._keys[name] = Key(self._revision, self.world.now + self.lease)
        return self._revision

    def keep(self, name: str, revision: int) -> bool:
        """Is the key still there? Then it is for the time of a lease."""
        if not self._holds(name, revision):
            return False
        self._keys[name].lapses = self.world.now + self.lease
        return True

    def leave(self, name: str, revision: int) -> bool:
        if self._holds(name, revision):
            del self._keys[name]
        return True

    def leads(self, name: str, revision: int) -> bool:
        return self.leader == name and self._holds(name, revision)

    def append(self, name: str, revision: int, attempt: int, entries: Sequence[bytes]) -> int:
        """The last index; 0 if another leads, -1 if there is no room. Asked again, as before."""
        if attempt in self._appended:
            return self._appended[attempt]
        if not self.leads(name, revision):
            return 0
        if self.full:
            return -1
        self.entries.extend(entries)
        self._appended[attempt] = self.last
        watching, self._watching = self._watching, []
        for tell in watching:
            tell()
        return self.last

    def keep_snapshot(self, name: str, revision: int, index: int, image: bytes) -> bool:
        """Of the leader of the day, if it is newer; what it makes needless is forgotten."""
        if self.leads(name, revision) and (self.snapshot is None or self.snapshot[0] < index):
            self.snapshot = index, image
            self.forgotten = max(self.forgotten, index - self._kept)
        return True

    def read(self, after: int, count: int) -> Page:
        snapshot = None
        if after < self.forgotten:
            assert self.snapshot is not None, "only what a snapshot holds is forgotten"
            snapshot = self.snapshot
            after = snapshot[0]
        return Page(snapshot, after + 1, self.entries[after : after + count])

    def _holds(self, name: str, revision: int) -> bool:
        self._lapse()
        key = self._keys.get(name)
        return key is not None and key.revision == revision

    def _lapse(self) -> None:
        now = self.world.now
        for name in [name for name, key in self._keys.items() if key.lapses < now]:
            del self._keys[name]

    def _away(self, sender: str, receiver: str) -> bool:
        lost = self.world.chance(self.network.faults.loss / 4)
        return lost or self.world.now < self._down_until or self.network.cuts(sender, receiver)
