"""A sequencing replica: acknowledges appends, holds them until the leader has ordered them, and
hands them over when views change (LazyLog, 4; docs/decisions/0057).

Between a client's append and its order lies only this: every member of the view has it, in its
ring, and in its journal where appends are acknowledged from disk.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.sequencing.appends import Appends
from anabranch.core.sequencing.config import SequencingConfig
from anabranch.core.sequencing.drops import Drops
from anabranch.core.sequencing.letter_checks import LetterChecks
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.positions import Positions
from anabranch.core.sequencing.protocol import letters
from anabranch.core.sequencing.protocol.checks import check
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import SequencingLetter
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    Elsewhere,
    FindPosition,
    Tail,
)
from anabranch.core.sequencing.state.entries import Added, Began, MemberEntry, Ordered, Started
from anabranch.core.sequencing.state.ring import Entry, Ring
from anabranch.core.sequencing.strays import Strays
from anabranch.core.sequencing.transfer import Transfer
from anabranch.core.sequencing.uncounted import Uncounted
from anabranch.core.sequencing.view import View
from anabranch.core.storage.group_journal import GroupJournal
from anabranch.core.types import Position


class SequencingReplica:
    """A part of a machine: the only one that persists.

    The owner sets the `on_...` callbacks, replays what the journal held, and calls `start`; it
    calls `settle` at the end of each step, and keeps `alarms.now`. Callbacks may come from within
    `settle`.
    """

    def __init__(
        self, config: SequencingConfig, limits: Limits, effects: list[Effect], alarms: Alarms
    ) -> None:
        self.config = config
        self.on_started: Callable[[View], None] = lambda view: None
        """Appends of this view are taken; also after a restart in it. A leader has to order what
        `take` gives it, from `ordered` on.
        """
        self.on_ended: Callable[[], None] = lambda: None
        """The view is sealed, or another one begins. Follows each `on_started`."""
        self.on_stable: Callable[[Position], None] = lambda stable: None
        """At the leader."""
        self._effects = effects
        self._alarms = alarms
        self._member = member = Member(config, limits, effects, alarms)
        self._checks = LetterChecks(member)
        self._appends = Appends(member)
        self._positions = Positions(member)
        self._transfer = Transfer(member)
        self.uncounted = Uncounted(member)
        """The owner's process sets its `on_uncounted`, if it counts appends."""
        self._strays = Strays(member, self._appends, self.uncounted)
        self._drops: Drops | None = None
        """While this replica leads and orders."""
        self._beginning: Began | None = None
        """The last one that was journaled."""
        self._announced = False
        """The owner was told of the view."""
        self._owes_dropped = False
        """The leader is to be told what is ordered here."""
        member.on_stored[Added] = self._added
        member.on_stored[Ordered] = self._ordered
        member.on_stored[Started] = self._started
        member.on_stored[Began] = self._began
        self._table: dict[type, Callable[[str, Any], None]] = {
            letters.Seal: self._seal,
            letters.Prepare: self._transfer.prepare,
            letters.AskState: self._transfer.asked,
            letters.State: self._transfer.received,
            letters.Start: self._start,
            letters.Drop: self._drop,
            letters.Dropped: self._dropped,
            letters.Strays: self._strays.received,
            letters.Void: self._strays.void,
            letters.Uncounted: self.uncounted.received,
        }

    # What it knows.

    @property
    def ring(self) -> Ring:
        return self._member.state.ring

    @property
    def view(self) -> View | None:
        """The last one that was started here."""
        return self._member.view

    @property
    def sealed(self) -> bool:
        return self._member.sealed is not None

    @property
    def life(self) -> int:
        return self._member.life

    @property
    def leads(self) -> bool:
        """It orders: its view is started and not sealed, and it is the leader."""
        return self._drops is not None

    @property
    def begun(self) -> int:
        """How often this leader began to order in its view."""
        return self._member.begun

    @property
    def ordered(self) -> Position:
        """Everything below is ordered, by this member's journal."""
        return self._member.ordered

    @property
    def tail(self) -> Position:
        """As many records are ordered or in the ring."""
        return self._member.state.tail

    @property
    def stable(self) -> Position:
        """At the leader: everything below is ordered at all members."""
        if self._drops is not None:
            return self._drops.stable
        return self._member.view.base if self._member.view else 0

    @property
    def stable_awaits(self) -> tuple[str, ...]:
        """Members that a restarted leader has yet to hear: until then more may be stable than it
        knows, and may have been shown.
        """
        return tuple(sorted(self._drops.awaited)) if self._drops is not None else ()

    @property
    def waiting_bytes(self) -> int:
        """Of appends for which the ring has no room."""
        return self._appends.waiting_bytes

    @property
    def obstacle(self) -> str | None:
        """Why the journal can't be written."""
        return self._member.journal.obstacle

    @property
    def idle(self) -> bool:
        """No client waits for anything."""
        return not len(self._appends) and not len(self._positions)

    def knows(self, id: AppendId) -> bool:
        """Would the append be answered without being taken? False too once it is forgotten."""
        return self._member.state.known.knows(id)

    # Its life.

    def recover(self, snapshot: bytes | None) -> None:
        self._member.recover(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        self._member.replayed(index, entry)

    def check_life(self) -> None:
        """Before `start`. Raises BadRequest if the journal is another member's."""
        self._member.check_life()

    def start(self) -> None:
        """Everything that the journal held was replayed."""
        member = self._member
        member.born()
        if member.leads:
            self._beginning = member.begin()
        elif member.takes:
            member.journal.when_stored(self._announce)
        self._alive()
        self._retry()
        self._look_for_strays()
        member.flush()

    def settle(self) -> None:
        """The end of a step: what came together in it is journaled and sent together."""
        self._member.settle()
        if self._drops is not None:
            self._drops.settle()
        if self._owes_dropped:
            self._send_dropped()
        self._appends.settle()

    def persisted(self, last: int) -> None:
        journal = self._member.journal
        assert isinstance(journal, GroupJournal)
        journal.persisted(last)

    def persist_failed(self, error: AnabranchError) -> None:
        journal = self._member.journal
        assert isinstance(journal, GroupJournal)
        journal.persist_failed(error)

    def linked(self, node: str) -> None:
        """There is a new connection: letters under way on an earlier one may be lost."""
        if self._drops is not None:
            self._drops.linked(node)
        self._transfer.linked(node)
        if node in self.config.controllers:
            self._member.send(node, self._member.present())

    def configured(self, version: int, sequencers: Collection[str]) -> None:
        """The owner knows the configuration of this version: controllers hear of it. `sequencers`:
        all nodes that may be members by it.
        """
        if version > self._member.version:
            self._checks.configured(sequencers)
            self._member.version = version
            self._tell_controllers()

    def leave(self) -> None:
        """The owner's process is about to end: controllers go on without this replica."""
        assert not self._member.leaving, "a process ends once"
        self._member.leaving = True
        self._tell_controllers()

    def ask_again(self) -> None:
        """Clients that wait for positions are to ask anew: what they are told has changed."""
        self._positions.end()

    def gone(self, token: Token) -> None:
        self._appends.drop(token)
        self._positions.drop(token)

    # What clients ask.

    def requested(self, token: Token, message: object) -> bool:
        """False for a message that is for somebody else."""
        if not isinstance(message, Append | AppendMeta | FindPosition | AskTail):
            return False
        try:
            check(message)
            match message:
                case Append():
                    self._appends.append(token, message)
                case AppendMeta():
                    self._appends.append_meta(token, message)
                case FindPosition():
                    self._find(token, message)
                case AskTail(view):
                    self._member.check_view("a question for the log's tail", view)
                    state = self._member.state
                    self._effects.append(Reply(token, Tail(state.ordered, state.tail)))
        except AnabranchError as error:
            self._effects.append(Reply(token, Refused.of(error)))
        self._member.flush()
        return True

    def _find(self, token: Token, message: FindPosition) -> None:
        member = self._member
        if member.leads:
            self._positions.find(token, message, self.stable)
        else:
            leader = member.view.leader if member.view and member.takes else ""
            self._effects.append(Reply(token, Elsewhere(leader)))

    # What the leader's engine does.

    def take(self, *, bytes_max: int, count_max: int) -> list[Entry]:
        """The next entries of the leader's ring that are stored, each once after `on_started`."""
        assert self._drops is not None, "only the leader orders"
        return self._drops.take(bytes_max=bytes_max, count_max=count_max)

    def order(self, ids: Sequence[AppendId], positions: Sequence[Position], upto: Position) -> None:
        """These appends are ordered for good, as far as this view goes: drop them everywhere. They
        are the next ones that `take` gave, in that order, and they end at `upto`.
        """
        assert self._drops is not None, "only the leader orders"
        self._drops.order(ids, positions, upto)
        for id, position in zip(ids, positions, strict=True):
            self._positions.ordered(id, position)
        self._appends.retry()

    def bound_uncounted(self, size: int) -> None:
        """So many bytes more than was announced are bound to positions."""
        assert self._drops is not None, "only the leader orders"
        self.uncounted.add(size, 0)

    # Letters.

    def is_controller(self, sender: str) -> bool:
        """May it send what controllers send?"""
        return self._checks.is_controller(sender)

    def received(self, sender: str, letter: SequencingLetter) -> bool:
        """False for a letter that is dropped, because its sender may not send it or it says what
        can't be.
        """
        if not self._checks.takes(sender, letter):
            return False
        answer = self._table.get(type(letter))
        if answer is not None:  # others are a controller's, and came to the wrong node
            answer(sender, letter)
        self._member.flush()
        return True

    def _drop(self, sender: str, letter: letters.Drop) -> None:
        member = self._member
        if not member.takes or letter.view != member.number or member.leads:
            return
        self._owes_dropped = True
        # Behind a gap there is nothing to do: the leader learns from the answer where it is.
        if letter.first <= member.state.ordered < letter.upto:
            member.order(
                Ordered(
                    first=letter.first,
                    upto=letter.upto,
                    ids=letter.ids,
                    positions=letter.positions,
                    forgotten=letter.forgotten,
                    shards=letter.shards,
                )
            )
            self._strays.left()
            self._appends.retry()

    def _dropped(self, sender: str, letter: letters.Dropped) -> None:
        if self._drops is None:
            return
        stable = self._drops.stable
        self._drops.dropped(sender, letter)
        assert self._drops is None or self._drops.stable >= stable, "stable is stable"

    def _seal(self, sender: str, letter: letters.Seal) -> None:
        """End the view. Asked again, also by another controller, it answers again."""
        member = self._member
        if member.view is None or letter.view != member.number:
            return
        if member.sealed is None:
            self._end()
            member.seal(letter.ballot)
            self._appends.retry()
            member.journal.when_stored(self._tell_controllers)
        member.journal.when_stored(lambda: self._answer_seal(sender, letter))

    def _answer_seal(self, sender: str, letter: letters.Seal) -> None:
        member = self._member
        if letter.view != member.number or member.sealed is None:
            return
        sealed = letters.Sealed(
            ballot=letter.ballot,
            view=letter.view,
            node=self.config.node,
            life=member.life,
            ordered=member.state.ordered,
            records=member.state.ring.records,
        )
        member.send(sender, sealed)

    def _start(self, sender: str, letter: letters.Start) -> None:
        member, view = self._member, letter.view
        if view.number == member.number and member.active:
            member.send(sender, member.present())
        if view.number <= member.number:
            return
        if member.prepared == view.ballot and view.has(self.config.node, member.life):
            self._end()
            self._appends.restart()
            member.start(view)
            self._transfer.started()
            self._appends.retry()
            if member.leads:
                self._beginning = member.begin()
        elif member.takes:
            # The others have gone on without this node.
            self._end()
            member.seal(view.ballot)
            self._appends.retry()

    # What is in the journal.

    def _added(self, entry: MemberEntry) -> None:
        assert isinstance(entry, Added)
        current = self._appends.stored(entry.entry)
        if current and self._drops is not None:
            self._drops.added(entry.entry)

    def _ordered(self, entry: MemberEntry) -> None:
        assert isinstance(entry, Ordered)
        if self._drops is not None:
            self._drops.stored(entry)
        else:
            self._owes_dropped = True

    def _started(self, entry: MemberEntry) -> None:
        assert isinstance(entry, Started)
        member = self._member
        if member.view is not entry.view or not member.takes:
            return
        member.active = True
        self._tell_controllers()
        if not member.leads:
            self._announce()

    def _began(self, entry: MemberEntry) -> None:
        """The leader orders from now on; what it did before a restart is over."""
        assert isinstance(entry, Began)
        member = self._member
        if not member.leads or entry is not self._beginning:
            return
        stored = [each for each in member.state.ring if not self._appends.stores(each.id)]
        self._drops = Drops(member, stored, self._on_stable)
        self._announce()
        self._drops.start()

    def _announce(self) -> None:
        member = self._member
        if member.view is not None and member.takes and not self._announced:
            self._announced = True
            self.on_started(member.view)

    def _end(self) -> None:
        self._drops = None
        self._positions.end()
        if self._announced:
            self._announced = False
            self.on_ended()

    def _on_stable(self, stable: Position) -> None:
        self._positions.stable(stable)
        self.on_stable(stable)

    def _send_dropped(self) -> None:
        member = self._member
        if member.takes and not member.active:
            return  # the journal is still that of the view before
        self._owes_dropped = False
        if member.view is not None and member.takes and not member.leads:
            member.send(member.view.leader, letters.Dropped(member.number, member.ordered))

    # Time.

    def _alive(self) -> None:
        self._tell_controllers()
        self._alarms.after(self._member.limits.present_ms, self._alive)

    def _tell_controllers(self) -> None:
        for node in self.config.controllers:
            self._member.send(node, self._member.present())

    def _retry(self) -> None:
        self._transfer.retry()
        if self._drops is not None:
            self._drops.retry()
        self._alarms.after(self.config.retry_ms, self._retry)

    def _look_for_strays(self) -> None:
        self._strays.look()
        self._alarms.after(self.config.stray_ms, self._look_for_strays)
