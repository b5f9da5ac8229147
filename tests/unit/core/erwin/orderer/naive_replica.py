"""A sequencing replica whose members drop what is ordered when the test says so."""

from collections.abc import Callable, Sequence

from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.state.ring import Announcement, Entry, Ring
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position

NODE = "q0"


class NaiveReplica:
    """Leads every view that it starts."""

    def __init__(self) -> None:
        self.view: View | None = None
        self.leads = False
        self.begun = 0
        self.ordered: Position = 0
        self.stable: Position = 0
        self.ring = Ring()
        self.on_started: Callable[[View], None] = lambda view: None
        self.on_ended: Callable[[], None] = lambda: None
        self.on_stable: Callable[[Position], None] = lambda position: None
        self.on_order: Callable[[Sequence[AppendId], Sequence[Position], Position], None] = (
            lambda ids, positions, upto: None
        )
        self.unstable: list[tuple[Position, list[Entry]]] = []
        """Ordered here from these positions on; some member may not have dropped it."""
        self.uncounted = 0
        self._taken = 0
        self._sequence = 0

    def append(
        self,
        size: int,
        *,
        count: int = 1,
        shard: str = "",
        announced: Announcement | None = None,
    ) -> Entry:
        id = AppendId(1, 0, self._sequence)
        self._sequence += count
        batch = b"" if shard else b"%d" % id.sequence + b"x" * size
        entry = Entry(id, count, size, batch, shard)
        self.ring.add(entry, announced)
        return entry

    def take(self, *, bytes_max: int, count_max: int) -> list[Entry]:
        assert bytes_max > 0
        assert count_max > 0
        taken: list[Entry] = []
        for entry in list(self.ring)[self._taken :]:
            if len(taken) == count_max or sum(len(each.batch) for each in taken) >= bytes_max:
                break
            taken.append(entry)
        self._taken += len(taken)
        return taken

    def order(self, ids: Sequence[AppendId], positions: Sequence[Position], upto: Position) -> None:
        self.on_order(ids, positions, upto)
        dropped: list[Entry] = []
        self.unstable.append((self.ordered, dropped))
        for id, position in zip(ids, positions, strict=True):
            entry = self.ring.remove(id)
            assert entry is not None, "an append is ordered once"
            assert position == self.ordered
            self.ordered += entry.count
            self._taken -= 1
            dropped.append(entry)
        assert upto == self.ordered

    def bound_uncounted(self, size: int) -> None:
        self.uncounted += size

    def drop(self) -> None:
        """All members have dropped what is ordered."""
        self.stable = self.ordered
        self.unstable.clear()
        self.on_stable(self.stable)

    def start_view(self, number: int, *, kept: int = 0, moved: int = 0) -> None:
        """Its ring comes from a member that has dropped so many times what is unstable, and had
        some of its appends in another order.
        """
        assert 0 <= kept <= len(self.unstable)
        if self.leads:
            self.leads = False
            self.on_ended()
        void = self.unstable[kept:]
        again = [entry for _, entries in void for entry in entries] + list(self.ring)
        self.ordered = void[0][0] if void else self.ordered
        at = moved % len(again) if again else 0
        self.ring = Ring()
        for entry in again[at:] + again[:at]:
            self.ring.add(entry)
        self.view = View(
            ballot=Ballot(number, 1), members=(Member(NODE, 1),), leader=NODE, base=self.ordered
        )
        self.stable = self.ordered
        self.unstable.clear()
        self.begun = 0
        self._begin()

    def restart(self) -> None:
        """In its view: what the members have dropped it has yet to hear again."""
        assert self.view is not None
        self.stable = self.unstable[0][0] if self.unstable else self.ordered
        self._begin()

    def _begin(self) -> None:
        assert self.view is not None
        self.begun += 1
        self._taken = 0
        self.leads = True
        self.on_started(self.view)
