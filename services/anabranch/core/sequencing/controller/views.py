"""Which sequencing replicas are members: the first view, and each view change (LazyLog, 4.5).

A view ends when a member is silent, has lost what it held, straggles, or was sealed by another
controller; and, not too often, to take a node in.

Nobody starts a configured view before a member has shown that it lives and knows of it. If all of
them are gone by then, the log goes back to the view before, whose sealed members have everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from anabranch.core.quorum import MAJORITY
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.controller.plan import OrderedRecords, ViewPlan
from anabranch.core.sequencing.controller.stragglers import Stragglers
from anabranch.core.sequencing.protocol.ids import AppendId, Member
from anabranch.core.sequencing.protocol.letters import (
    Prepared,
    Present,
    Sealed,
    SequencingLetter,
    Start,
)
from anabranch.core.sequencing.reconfiguration import (
    Phase,
    Reconfiguration,
    awaits_start,
    is_sealed,
)
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import MS, Nanoseconds, Position

COPY_PATIENCES = 4
"""A ring may be large: candidates have so many times as long to copy it as to answer."""
NOT_STRAGGLING_MIN = 2
"""A straggler is kept rather than fewer members than this."""


@dataclass(slots=True)
class _Attempt:
    reconfiguration: Reconfiguration
    lives: dict[str, int]
    """Of its nodes when it began: another life has lost what it was asked for."""
    ended: View | None
    lost: bool
    """Nothing of the ended view is left."""
    repeated_at: Nanoseconds
    phase: Phase = Phase.SEALING
    phase_since: Nanoseconds = 0
    ready: View | None = None
    """All is prepared; to be journaled."""
    out: set[str] = field(default_factory=set[str])


class Views:
    def __init__(
        self,
        plan: ViewPlan,
        contacts: Contacts[Present],
        records: OrderedRecords,
        stragglers: Stragglers,
        *,
        now: Nanoseconds,
        accept_loss: bool,
        send: Callable[[str, SequencingLetter], None],
        settle: Callable[[Ballot], None] | None = None,
    ) -> None:
        """`settle`: closes the log to the views before this one, where ordering is final; answered
        with `settled`. Such a log doesn't go back to an earlier view, which others do.
        """
        self.on_gone_back: Callable[[], None] = lambda: None
        """A view was given up that nobody was left to start."""
        self._plan = plan
        self._contacts = contacts
        self._stragglers = stragglers
        self._records = records
        self._settle = settle
        self._counters = plan.counters
        self._limits = plan.limits
        self._accepts_loss = accept_loss
        self._send = send
        self._began: Nanoseconds = now
        self._changed_at: Nanoseconds = now
        self._attempt: _Attempt | None = None
        self._attempts = 0
        self._untold: View | None = None
        """The view before, as long as nobody was told to start the configured one."""

    @property
    def phase(self) -> Phase | None:
        """Of the view change under way."""
        return self._attempt.reconfiguration.phase if self._attempt is not None else None

    def present(self, letter: Present, now: Nanoseconds) -> None:
        view = self._plan.configuration.view
        if view is None:
            return
        if self._untold is not None:
            known = letter.version >= self._plan.configuration.version
            if known and view.has(letter.node, letter.life):
                self._start(view)
        elif awaits_start(view, letter):
            self._send(letter.node, Start(view))
        elif letter.started and view.has(letter.node, letter.life) and letter.view == view.number:
            self._stragglers.note(letter.node, letter.ordered, letter.tail, now)

    def received(self, letter: Sealed | Prepared) -> None:
        if self._attempt is not None:
            self._attempt.reconfiguration.received(letter)

    def settled(
        self, ballot: Ballot, ids: Sequence[tuple[AppendId, Position]], base: Position
    ) -> None:
        """The log is closed to the views before this ballot's, ends at `base`, and holds these."""
        assert base >= 0
        assert self._settle is not None, "only what was asked for is answered"
        if self._attempt is not None and self._attempt.reconfiguration.ballot == ballot:
            self._attempt.reconfiguration.settled(ids, base)

    @property
    def settling(self) -> Ballot | None:
        """The ballot that waits for `settled`."""
        change = self._attempt.reconfiguration if self._attempt is not None else None
        return change.ballot if change is not None and change.phase is Phase.SETTLING else None

    def watch(self, now: Nanoseconds) -> None:
        """At the end of each step."""
        if self._plan.busy:
            return
        attempt = self._attempt
        if self._untold is not None:
            self._go_back(self._untold, now)
        elif attempt is None:
            if self._view_should_end(now):
                self._begin(now)
        elif attempt.reconfiguration.stalled:
            self._begin(now)
        else:
            self._go_on(attempt, now)
        if self._attempt is not None and self._attempt.ready is not None:
            self._configure(self._attempt.ready)

    def journaled(self, now: Nanoseconds) -> None:
        """The plan's configuration is another; if its view is, members can start."""
        view = self._plan.configuration.view
        attempt = self._attempt
        if attempt is None or view is None or attempt.ready != view:
            return
        assert view.ballot == attempt.reconfiguration.ballot, "what was journaled is the attempt's"
        self._attempt = None
        self._changed_at = now
        self._stragglers.begin()
        if attempt.ended is None or attempt.lost or self._settle is not None:
            self._start(view)
        else:
            self._untold = attempt.ended

    def silent(self, now: Nanoseconds) -> tuple[str, ...]:
        nodes = self._plan.configuration.sequencers
        return tuple(node for node in nodes if self._contacts.silent(node, now))

    def leaving(self, now: Nanoseconds) -> tuple[str, ...]:
        nodes = self._plan.configuration.sequencers
        return tuple(node for node in nodes if self._contacts.leaves(node, now))

    def lost_all(self, view: View) -> bool:
        """Is every member there in a later life? So long as one is only silent, it may come back,
        and what was acknowledged with it.
        """
        return all(self._is_over(member) for member in view.members)

    def _is_over(self, member: Member) -> bool:
        """The node has another life, which knows of a configuration in which this life is a member:
        so it came later, whatever its clock says.
        """
        letter = self._contacts.sign(member.node)
        known = self._plan.configuration.version
        return letter is not None and letter.life != member.life and letter.version >= known

    def _view_should_end(self, now: Nanoseconds) -> bool:
        view = self._plan.configuration.view
        if view is None:
            return self._may_begin(now)
        if any(self._gone(member, view, now) for member in view.members):
            return True
        if self._rest_straggler(view, now):
            return True
        candidates = self._candidates(now)
        for node in view.nodes:
            if node not in candidates and self._contacts.must_be_replaced(node, now):
                return True
        rested = now - self._changed_at >= self._limits.return_ms * MS
        return rested and any(node not in view.nodes for node in candidates)

    def _may_begin(self, now: Nanoseconds) -> bool:
        """The first view waits a while for all nodes, and then goes on with a majority."""
        nodes = self._plan.configuration.sequencers
        there = len(self._candidates(now))
        waited = now - self._began >= self._limits.return_ms * MS
        needed = MAJORITY.size(len(nodes)) if waited else len(nodes)
        return there >= needed and self._records.ready

    def _gone(self, member: Member, view: View, now: Nanoseconds) -> bool:
        """It holds appends up, because it is silent, lost what it held or was sealed by another
        controller; or it isn't to be a member any more, or was started as none.
        """
        letter = self._contacts.sign(member.node)
        known = member.node in self._plan.configuration.sequencers
        if not known or self._is_away(member, now):
            return True
        return letter is not None and (is_sealed(view, letter) or not self._plan.fits(letter))

    def _rest_straggler(self, view: View, now: Nanoseconds) -> bool:
        """One at a time: without it the others may be fast enough."""
        if len(view.members) <= NOT_STRAGGLING_MIN:
            return False
        for node in view.nodes:
            if self._stragglers.straggles(node):
                self._stragglers.rest(node, now)
                self._counters.stragglers += 1
                return True
        return False

    def _candidates(self, now: Nanoseconds) -> tuple[str, ...]:
        """Nodes that are there; those that straggled, or are about to end, only if there are no
        others.
        """
        nodes = self._plan.configuration.sequencers
        letters = [(node, self._contacts.present(node, now)) for node in nodes]
        there = [node for node, it in letters if it is not None and self._plan.fits(it)]
        there = [node for node in there if not self._contacts.leaves(node, now)] or there
        fast = [node for node in there if not self._stragglers.resting(node, now)]
        return tuple(fast or there)

    def _begin(self, now: Nanoseconds) -> None:
        """Another attempt, if anybody is there for one."""
        self._attempt = None
        candidates = self._candidates(now)
        ended = self._plan.configuration.view
        if not candidates:
            return
        empty_from: Position | None = None if ended is not None else 0
        if ended is not None and self._is_lost(ended):
            empty_from = self._after_loss(ended, now)
            if empty_from is None:
                return
        self._attempts += 1
        self._counters.attempts += 1
        number = ended.number + 1 if ended is not None else 1
        nodes = {*candidates, *(ended.nodes if ended is not None else ())}
        ballot = Ballot(number, self._plan.term, self._attempts)
        settle = partial(self._settle, ballot) if self._settle is not None else None
        attempt = _Attempt(
            reconfiguration=Reconfiguration(
                ballot=ballot,
                ended=ended,
                candidates=candidates,
                awaited=self._awaited(ended, candidates, now),
                send=self._send,
                on_prepared=self._on_prepared,
                settle=settle,
                empty_from=empty_from,
            ),
            ended=ended,
            lives={node: life for node in nodes if (life := self._life(node)) is not None},
            lost=ended is not None and empty_from is not None,
            repeated_at=now,
            phase_since=now,
        )
        self._attempt = attempt
        attempt.reconfiguration.start()

    def _start(self, view: View) -> None:
        """A member lives that has its state, so the view before isn't needed any more."""
        self._untold = None
        for node in view.nodes:
            self._send(node, Start(view))

    def _go_back(self, ended: View, now: Nanoseconds) -> None:
        """Every node that prepared was gone before it could start the view. Nobody has taken
        anything in it, and members of the view before are sealed, with all that they held.
        """
        view = self._plan.configuration.view
        assert view is not None, "it was configured"
        if all(self._is_away(member, now) for member in view.members):
            self._untold = None
            self.on_gone_back()
            self._plan.decide(view=ended)

    def _is_away(self, member: Member, now: Nanoseconds) -> bool:
        silent = self._contacts.silent(member.node, now)
        return silent or self._contacts.replaced(member.node, member.life, now)

    def _is_lost(self, view: View) -> bool:
        """Once that is journaled it stays so, wherever the nodes are by now."""
        return self._is_noted(view) or (self._accepts_loss and self.lost_all(view))

    def _is_noted(self, view: View) -> bool:
        return view.number in dict(self._plan.configuration.lost_views)

    def _after_loss(self, view: View, now: Nanoseconds) -> Position | None:
        """Where the log goes on. First everybody is told that the view is lost: what shards say of
        themselves after that is said when nobody orders any more.
        """
        if self._is_noted(view):
            return self._records.hold(now)
        self._counters.lost_views += 1
        self._plan.note_lost_view(view.number, now // MS)
        return None

    def _awaited(
        self, ended: View | None, candidates: Sequence[str], now: Nanoseconds
    ) -> tuple[str, ...]:
        """Members that can be expected to say soon that they are sealed."""
        members = ended.members if ended is not None else ()
        letters = [(member, self._contacts.present(member.node, now)) for member in members]
        alive = [m.node for m, it in letters if it is not None and it.life == m.life]
        return tuple(node for node in alive if node in candidates)

    def _life(self, node: str) -> int | None:
        letter = self._contacts.sign(node)
        return None if letter is None else letter.life

    def _go_on(self, attempt: _Attempt, now: Nanoseconds) -> None:
        change = attempt.reconfiguration
        self._follow_nodes(attempt, now)
        if change.phase is not attempt.phase:
            attempt.phase, attempt.phase_since = change.phase, now
        ended = self._plan.configuration.view
        if ended is not None and not attempt.lost and self._is_lost(ended):
            self._begin(now)
            return
        patience = self._contacts.patience(now)
        if change.phase is Phase.PREPARING:
            patience *= COPY_PATIENCES
        if now - attempt.phase_since >= patience:
            attempt.phase_since = now
            change.hurry()
        if now - attempt.repeated_at >= self._limits.present_ms * MS:
            attempt.repeated_at = now
            change.repeat()

    def _follow_nodes(self, attempt: _Attempt, now: Nanoseconds) -> None:
        """Who falls silent or is in another life is done without; who comes in time takes part."""
        change = attempt.reconfiguration
        ended = self._plan.configuration.view
        members = ended.nodes if ended is not None else ()
        for node in dict.fromkeys((*change.candidates, *members)):
            known = attempt.lives.get(node)
            away = self._contacts.silent(node, now)
            away = away or (known is not None and self._contacts.replaced(node, known, now))
            if away and node not in attempt.out:
                attempt.out.add(node)
                change.without(node)
        for node in self._candidates(now):
            if change.phase < Phase.PREPARING and node not in change.candidates:
                attempt.out.discard(node)
                life = self._life(node)
                assert life is not None, "candidates have said who they are"
                attempt.lives[node] = life
                change.join(node)

    def _on_prepared(self, view: View) -> None:
        assert self._attempt is None or self._attempt.ready is None, "an attempt ends once"
        assert self._attempt is not None
        self._attempt.ready = view

    def _configure(self, view: View) -> None:
        """Journaled before anybody starts: with the old configuration a controller would copy a
        ring of the ended view once more, which lacks what the new view took.
        """
        ended = self._plan.configuration.view
        assert ended is None or view.number == ended.number + 1
        self._plan.decide(view=view)
        self._counters.views += 1
