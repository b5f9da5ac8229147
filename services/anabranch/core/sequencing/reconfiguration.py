"""One view change, as a controller runs it (LazyLog, 4.5; decision 57).

Rules it holds: nothing is prepared before a member of the ended view is sealed, because an append
needs all members and so none is acknowledged there any more; all members of the next view copy the
same source; who leads the next view is one of them. The owner journals the view before it sends
the first `Start`. An attempt that can't come to its end is replaced by one with a later ballot.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum

from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import (
    Prepare,
    Prepared,
    Present,
    Seal,
    Sealed,
    SequencingLetter,
    Start,
)
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position


class Phase(IntEnum):
    SEALING = 0
    SETTLING = 1
    """An engine whose ordering is final closes its log to the ended view, and says which ids the
    log holds.
    """
    PREPARING = 2
    PREPARED = 3


class Reconfiguration:
    """A part of a machine. The owner passes on letters, calls `repeat` now and then, `without` for
    nodes that fall silent or lose what they hold, and `hurry` when it has waited for long enough.
    """

    def __init__(
        self,
        *,
        ballot: Ballot,
        ended: View | None,
        candidates: Sequence[str],
        awaited: Sequence[str] = (),
        send: Callable[[str, SequencingLetter], None],
        on_prepared: Callable[[View], None],
        settle: Callable[[], None] | None = None,
        empty_from: Position | None = None,
    ) -> None:
        """`candidates`: nodes that may be members, as long as they answer. `awaited`: members of
        the ended view that can be expected to answer a seal; one answer is enough if the owner
        hurries. `settle` starts what ends with a call of `settled`. `empty_from`: begin with empty
        rings and this base, because there was no view, or nothing is left of it.
        """
        assert candidates, "a view has members"
        assert ended is None or ballot.view == ended.number + 1, "a view is followed by the next"
        assert ended is not None or empty_from is not None, "the first view has nothing to copy"
        self.ballot = ballot
        self.phase = Phase.SEALING
        self.source = ""
        """Whose state all members copy; empty: none is known yet, or rings begin empty."""
        self.sealed: dict[str, Sealed] = {}
        """Members of the ended view that can be the source."""
        self.prepared: dict[str, Prepared] = {}
        self.stalled = False
        """Only another attempt can come to an end."""
        self._ended = ended
        self._candidates = list(dict.fromkeys(candidates))
        self._awaited = set(awaited)
        self._send = send
        self._on_prepared = on_prepared
        self._settle = settle
        self._empty = empty_from is not None
        self._base: Position = empty_from or 0
        """For `Prepare`: at least so much is ordered."""
        self._settled: tuple[tuple[AppendId, Position], ...] = ()

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(self._candidates)

    def start(self) -> None:
        assert self.phase is Phase.SEALING, "an attempt starts once"
        if self._empty:
            self._end_seals()
        else:
            self.repeat()

    def repeat(self) -> None:
        """Send again what has no answer."""
        if self.phase is Phase.SEALING:
            assert self._ended is not None
            for node in self._ended.nodes:
                if node not in self.sealed:
                    # A member that missed its start has to know of the view before it can end it.
                    self._send(node, Start(self._ended))
                    self._send(node, Seal(self.ballot, self._ended.number))
        elif self.phase is Phase.PREPARING and not self.stalled:
            prepare = Prepare(
                ballot=self.ballot, source=self.source, base=self._base, settled=self._settled
            )
            for node in self._candidates:
                if node not in self.prepared:
                    self._send(node, prepare)

    def received(self, letter: Sealed | Prepared) -> None:
        if letter.ballot != self.ballot:
            return  # the answer to another attempt
        match letter:
            case Sealed():
                self._on_sealed(letter)
            case Prepared():
                self._on_prepared_node(letter)

    def settled(self, ids: Sequence[tuple[AppendId, Position]], base: Position) -> None:
        """The log is closed to the ended view, ends at `base`, and holds these ids of it."""
        if self.phase is Phase.SETTLING:
            self._settled = tuple(ids)
            self._base = max(self._base, base)
            self._prepare()

    def hurry(self) -> None:
        """Go on with those that have answered by now, if there are enough."""
        if self.phase is Phase.SEALING and self.sealed:
            self._end_seals()
        elif self.phase is Phase.PREPARING:
            if self.prepared:
                self._finish()
            else:
                self.stalled = True

    def join(self, node: str) -> None:
        """Another node can be a member, unless the others copy already."""
        if self.phase < Phase.PREPARING and node not in self._candidates:
            self._candidates.append(node)

    def without(self, node: str) -> None:
        """The node is silent, or another life of it has begun: it takes no part in this attempt."""
        if self.phase is Phase.PREPARED:
            return
        self._awaited.discard(node)
        self.sealed.pop(node, None)
        self.prepared.pop(node, None)
        if node in self._candidates:
            self._candidates.remove(node)
        if not self._candidates:
            self.stalled = True
        elif self.phase is Phase.SEALING:
            self._count_seals()
        elif self.phase is Phase.PREPARING:
            if node == self.source:
                self._lose_source()
            self._count_prepared()

    def _on_sealed(self, letter: Sealed) -> None:
        ended = self._ended
        if ended is None or letter.view != ended.number:
            return
        if self.phase is Phase.SEALING and ended.has(letter.node, letter.life):
            self.sealed[letter.node] = letter
            self._count_seals()

    def _count_seals(self) -> None:
        if self.sealed and self._awaited <= self.sealed.keys():
            self._end_seals()

    def _end_seals(self) -> None:
        assert self._empty or self.sealed, "one member is sealed, and so nothing is acknowledged"
        if self._settle is not None and self._ended is not None:
            self.phase = Phase.SETTLING
            self._settle()
        else:
            self._prepare()

    def _prepare(self) -> None:
        if not self._empty:
            if not self.sealed:
                self.stalled = True  # the last one was lost while the log was settled
                return
            self.source = max(self.sealed, key=self._merit)
        self.phase = Phase.PREPARING
        self.repeat()

    def _merit(self, node: str) -> tuple[bool, Position, int]:
        """Any sealed member will do (LazyLog, 4.5). A candidate needn't fetch its own state, and
        what is ordered needn't be ordered again.
        """
        letter = self.sealed[node]
        return node in self._candidates, letter.ordered, letter.records

    def _on_prepared_node(self, letter: Prepared) -> None:
        if self.phase is not Phase.PREPARING or letter.node not in self._candidates:
            return
        others = next(iter(self.prepared.values()), letter)
        if letter.base == others.base >= self._base:
            self.prepared[letter.node] = letter
            self._count_prepared()

    def _count_prepared(self) -> None:
        complete = len(self.prepared) == len(self._candidates)
        if self.phase is Phase.PREPARING and complete and not self.stalled:
            self._finish()

    def _lose_source(self) -> None:
        """Who hasn't copied it yet, never will. With another source all candidates can be members;
        without one, those that have the whole copy can.
        """
        if self.sealed or not self.prepared:
            self.stalled = len(self.prepared) < len(self._candidates)
        else:
            self._finish()

    def _finish(self) -> None:
        assert self.prepared, "a view has members"
        nodes = [node for node in self._candidates if node in self.prepared]
        bases = {letter.base for letter in self.prepared.values()}
        assert len(bases) == 1, "all have copied the same state"
        self.phase = Phase.PREPARED
        view = View(
            ballot=self.ballot,
            members=tuple(Member(node, self.prepared[node].life) for node in nodes),
            leader=self._leader(nodes),
            base=bases.pop(),
        )
        self._on_prepared(view)

    def _leader(self, nodes: Sequence[str]) -> str:
        """The one before, for clients know it."""
        wishes = (self._ended.leader if self._ended is not None else "", self.source)
        return next((node for node in wishes if node in nodes), nodes[0])


def awaits_start(view: View, present: Present) -> bool:
    """Is this a member of a configured view that hasn't heard so yet? `Start` is repeated to it."""
    return view.has(present.node, present.life) and present.view < view.number


def is_sealed(view: View, present: Present) -> bool:
    """Has somebody begun to end this view? Nothing is acknowledged in it any more."""
    member = view.has(present.node, present.life)
    return member and present.view == view.number and present.sealed
