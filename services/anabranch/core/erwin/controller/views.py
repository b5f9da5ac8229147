"""Which sequencing replicas are members: the first view, and each view change (LazyLog, 4.5).

A view ends when a member is silent, has lost what it held, straggles, or was sealed by another
controller; and, not too often, to take a node in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from anabranch.core.erwin.controller.contacts import Contacts
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.controller.shards import Shards
from anabranch.core.erwin.controller.stragglers import Stragglers
from anabranch.core.quorum import MAJORITY
from anabranch.core.sequencing.ids import Member
from anabranch.core.sequencing.letters import (
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
        plan: Plan,
        contacts: Contacts[Present],
        shards: Shards,
        stragglers: Stragglers,
        *,
        now: Nanoseconds,
        accept_loss: bool,
        send: Callable[[str, SequencingLetter], None],
    ) -> None:
        self._plan = plan
        self._contacts = contacts
        self._stragglers = stragglers
        self._shards = shards
        self._counters = plan.counters
        self._limits = plan.limits
        self._accepts_loss = accept_loss
        self._send = send
        self._began: Nanoseconds = now
        self._changed_at: Nanoseconds = now
        self._attempt: _Attempt | None = None
        self._attempts = 0

    @property
    def phase(self) -> Phase | None:
        """Of the view change under way."""
        return self._attempt.reconfiguration.phase if self._attempt is not None else None

    def present(self, letter: Present, now: Nanoseconds) -> None:
        view = self._plan.configuration.view
        if view is None:
            return
        if awaits_start(view, letter):
            self._send(letter.node, Start(view))
        elif letter.started and view.has(letter.node, letter.life) and letter.view == view.number:
            self._stragglers.note(letter.node, letter.ordered, now)

    def received(self, letter: Sealed | Prepared) -> None:
        if self._attempt is not None:
            self._attempt.reconfiguration.received(letter)

    def watch(self, now: Nanoseconds) -> None:
        """At the end of each step."""
        if self._plan.busy:
            return
        attempt = self._attempt
        if attempt is None:
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
        for node in view.nodes:
            self._send(node, Start(view))

    def silent(self, now: Nanoseconds) -> tuple[str, ...]:
        nodes = self._plan.configuration.sequencers
        return tuple(node for node in nodes if self._contacts.silent(node, now))

    def lost_all(self, view: View) -> bool:
        """Is every member there in a later life? So long as one is only silent, it may come back,
        and what was acknowledged with it.
        """
        return all(self._contacts.reborn(member.node, member.life) for member in view.members)

    def _view_should_end(self, now: Nanoseconds) -> bool:
        view = self._plan.configuration.view
        if view is None:
            return self._may_begin(now)
        if any(self._gone(member, view, now) for member in view.members):
            return True
        if self._rest_straggler(view, now):
            return True
        rested = now - self._changed_at >= self._limits.return_ms * MS
        return rested and any(node not in view.nodes for node in self._candidates(now))

    def _may_begin(self, now: Nanoseconds) -> bool:
        """The first view waits a while for all nodes, and then goes on with a majority."""
        nodes = self._plan.configuration.sequencers
        there = len(self._candidates(now))
        waited = now - self._began >= self._limits.return_ms * MS
        needed = MAJORITY.size(len(nodes)) if waited else len(nodes)
        return there >= needed and self._shards.ready

    def _gone(self, member: Member, view: View, now: Nanoseconds) -> bool:
        """It holds appends up, because it is silent, lost what it held, or was sealed by another
        controller; or it isn't to be a member any more.
        """
        letter = self._contacts.sign(member.node)
        known = member.node in self._plan.configuration.sequencers
        if not known or self._contacts.silent(member.node, now):
            return True
        if self._contacts.replaced(member.node, member.life, now):
            return True
        return letter is not None and is_sealed(view, letter)

    def _rest_straggler(self, view: View, now: Nanoseconds) -> bool:
        """One at a time: without it the others may be fast enough."""
        if len(view.members) <= NOT_STRAGGLING_MIN:
            return False
        for node in view.nodes:
            if self._stragglers.straggles(node, now):
                self._stragglers.rest(node, now)
                self._counters.stragglers += 1
                return True
        return False

    def _candidates(self, now: Nanoseconds) -> tuple[str, ...]:
        """Nodes that are there; those that straggled only if there are no others."""
        nodes = self._plan.configuration.sequencers
        there = [node for node in nodes if self._contacts.present(node, now) is not None]
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
        attempt = _Attempt(
            reconfiguration=Reconfiguration(
                ballot=Ballot(number, self._plan.term, self._attempts),
                ended=ended,
                candidates=candidates,
                awaited=self._awaited(ended, candidates, now),
                send=self._send,
                on_prepared=self._on_prepared,
                empty_from=empty_from,
            ),
            lives={node: life for node in nodes if (life := self._life(node)) is not None},
            lost=ended is not None and empty_from is not None,
            repeated_at=now,
            phase_since=now,
        )
        self._attempt = attempt
        attempt.reconfiguration.start()

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
            return self._shards.hold(now)
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
