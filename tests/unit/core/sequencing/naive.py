"""A sequencing replica in as few words as a controller's tests need: records are numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from anabranch.core.sequencing.protocol.letters import (
    AskState,
    Prepare,
    Prepared,
    Present,
    Seal,
    Sealed,
    SequencingLetter,
    Start,
    State,
)
from anabranch.core.sequencing.view import Ballot, View

Post = Callable[[str, str, SequencingLetter], None]
"""Sender, addressee, letter."""
NO_BALLOT = Ballot(0, 0)


@dataclass(slots=True)
class Held:
    """What one view left behind, or begins with."""

    ring: list[int] = field(default_factory=list[int])
    done: list[int] = field(default_factory=list[int])
    """The records that are ordered, in their order."""

    def copy(self) -> "Held":
        return Held(list(self.ring), list(self.done))

    @property
    def all(self) -> list[int]:
        return self.done + self.ring


class NaiveReplica:
    """Keeps everything over a crash, or nothing (`memory`)."""

    def __init__(self, node: str, post: Post, *, memory: bool = False) -> None:
        self.node = node
        self.memory = memory
        self.post = post
        self.up = True
        self.life = 1
        self.leaving = False
        self.fsync: bool | None = None
        """As it was started; None: it doesn't say."""
        self.forget()

    def forget(self) -> None:
        self.view: View | None = None
        self.sealed = False
        self.held = Held()
        self.promised = NO_BALLOT
        self.next: tuple[Ballot, Held] | None = None
        self.asked = ""
        self.version = 0

    @property
    def takes(self) -> bool:
        return self.up and self.view is not None and not self.sealed

    def crash(self) -> None:
        self.up = False

    def restart(self) -> None:
        assert not self.up
        self.up = True
        if self.memory:
            self.life += 1
            self.forget()

    def present(self) -> Present:
        return Present(
            node=self.node,
            life=self.life,
            view=self.view.number if self.view is not None else 0,
            started=self.takes,
            ordered=len(self.held.done),
            version=self.version,
            tail=len(self.held.all),
            sealed=self.sealed,
            leaving=self.leaving,
            fsync=self.fsync,
        )

    def append(self, record: int) -> bool:
        if not self.takes:
            return False
        if record not in self.held.all:
            self.held.ring.append(record)
        return True

    def receive(self, sender: str, letter: SequencingLetter) -> None:
        if not self.up:
            return
        match letter:
            case Start(view):
                self._start(view)
            case Seal():
                self._seal(sender, letter)
            case Prepare():
                self._prepare(sender, letter)
            case AskState():
                self._tell(sender, letter)
            case State():
                self._copy(letter)
            case _:
                raise AssertionError(letter)

    def _start(self, view: View) -> None:
        known = self.view is not None and self.view.number >= view.number
        if known or not view.has(self.node, self.life):
            return
        assert self.next is not None
        ballot, held = self.next
        assert ballot == view.ballot, "a configured view's state was replaced"
        self.view, self.held, self.sealed, self.next = view, held, False, None

    def _seal(self, sender: str, seal: Seal) -> None:
        if self.view is None or self.view.number != seal.view or seal.ballot < self.promised:
            return
        self.sealed = True
        self.promised = seal.ballot
        sealed = Sealed(
            ballot=seal.ballot,
            view=seal.view,
            node=self.node,
            life=self.life,
            ordered=len(self.held.done),
            records=len(self.held.ring),
        )
        self.post(self.node, sender, sealed)

    def _prepare(self, sender: str, prepare: Prepare) -> None:
        if prepare.ballot < self.promised:
            return
        if self.view is not None and self.view.number >= prepare.ballot.view:
            return
        self.promised = prepare.ballot
        self.asked = sender
        self.sealed = True
        if self.next is not None and self.next[0] == prepare.ballot:
            self._say_prepared()
        elif not prepare.source:
            # Positions that nobody here knows the records of.
            self._keep(prepare.ballot, Held(done=[0] * prepare.base))
        elif prepare.source == self.node:
            assert self.view is not None
            self._keep(prepare.ballot, self.held.copy())
        else:
            self.post(self.node, prepare.source, AskState(prepare.ballot, 0))

    def _tell(self, sender: str, asked: AskState) -> None:
        if self.sealed and self.view is not None and self.view.number == asked.ballot.view - 1:
            content = msgspec.json.encode((self.held.ring, self.held.done))
            state = State(ballot=asked.ballot, part=0, parts=1, content=content, digest=0)
            self.post(self.node, sender, state)

    def _copy(self, state: State) -> None:
        if state.ballot != self.promised:
            return
        ring, done = msgspec.json.decode(state.content, type=tuple[list[int], list[int]])
        if self.view is None or self.view.number < state.ballot.view:
            self._keep(state.ballot, Held(ring, done))

    def _keep(self, ballot: Ballot, held: Held) -> None:
        if self.next is None or self.next[0] != ballot:
            self.next = (ballot, held)
        self._say_prepared()

    def _say_prepared(self) -> None:
        assert self.next is not None
        ballot, held = self.next
        prepared = Prepared(ballot=ballot, node=self.node, life=self.life, base=len(held.done))
        self.post(self.node, self.asked, prepared)
