"""One view change: example by example, and any number of attempts on a lossy network."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.sequencing.naive import NaiveReplica

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
from anabranch.core.sequencing.reconfiguration import (
    Phase,
    Reconfiguration,
    awaits_start,
    is_sealed,
)
from anabranch.core.sequencing.view import Ballot, View

ABC = ("a", "b", "c")
FIRST = View(ballot=Ballot(1, 1), members=tuple(Member(n, 1) for n in ABC), leader="a")
SECOND = Ballot(2, 1)


class Desk:
    """Whoever runs one attempt, and the letters that it sends."""

    def __init__(
        self,
        *candidates: str,
        ended: View | None = FIRST,
        awaited: Sequence[str] | None = None,
        empty_from: int | None = None,
        settles: bool = False,
    ) -> None:
        self.sent: list[tuple[str, SequencingLetter]] = []
        self.views: list[View] = []
        self.asked_to_settle = 0
        self.attempt = Reconfiguration(
            ballot=SECOND if ended is not None else Ballot(1, 1),
            ended=ended,
            candidates=candidates,
            awaited=candidates if awaited is None else awaited,
            send=lambda to, letter: self.sent.append((to, letter)),
            on_prepared=self.views.append,
            settle=self._settle if settles else None,
            empty_from=empty_from,
        )
        self.attempt.start()

    def _settle(self) -> None:
        self.asked_to_settle += 1

    def take(self) -> list[tuple[str, SequencingLetter]]:
        sent, self.sent = self.sent, []
        return sent

    def sealed(self, node: str, ordered: int = 0, records: int = 0, life: int = 1) -> None:
        self.attempt.received(
            Sealed(
                ballot=self.attempt.ballot,
                view=1,
                node=node,
                life=life,
                ordered=ordered,
                records=records,
            )
        )

    def prepared(self, *nodes: str, base: int = 0, life: int = 1) -> None:
        for node in nodes:
            letter = Prepared(ballot=self.attempt.ballot, node=node, life=life, base=base)
            self.attempt.received(letter)

    @property
    def sources(self) -> dict[str, str]:
        return {to: letter.source for to, letter in self.take() if isinstance(letter, Prepare)}


def test_members_of_the_ended_view_are_sealed_and_the_one_that_ordered_most_is_copied() -> None:
    desk = Desk(*ABC)
    seal = Seal(SECOND, 1)
    assert desk.take() == [(n, each) for n in ABC for each in (Start(FIRST), seal)]
    desk.sealed("a", ordered=4)
    desk.sealed("b", ordered=6)
    assert desk.attempt.phase is Phase.SEALING
    desk.sealed("c", ordered=5, records=9)
    assert desk.sources == dict.fromkeys(ABC, "b")
    desk.prepared(*ABC, base=6)
    [view] = desk.views
    assert view == View(ballot=SECOND, members=FIRST.members, leader="a", base=6)


def test_one_sealed_member_is_enough_and_who_didnt_prepare_is_out() -> None:
    desk = Desk("b", "c", "d", awaited=("b", "c"))
    desk.sealed("b", ordered=3)
    desk.attempt.hurry()
    desk.prepared("d", "b", base=3)
    assert desk.views == []
    desk.attempt.hurry()
    assert desk.views[0].nodes == ("b", "d")
    assert desk.views[0].leader == "b", "the old leader is out, and nobody knows more than b"


def test_nobody_is_prepared_before_a_member_is_sealed() -> None:
    desk = Desk("a", "d")
    desk.attempt.hurry()
    desk.sealed("d")
    desk.sealed("a", life=2)
    assert desk.attempt.phase is Phase.SEALING
    assert not desk.sources


def test_what_has_no_answer_is_sent_again() -> None:
    desk = Desk(*ABC)
    desk.sealed("a")
    desk.take()
    desk.attempt.repeat()
    assert {to for to, _ in desk.take()} == {"b", "c"}
    desk.attempt.hurry()
    desk.take()
    desk.prepared("c")
    desk.attempt.repeat()
    assert desk.sources == {"a": "a", "b": "a"}


def test_answers_to_another_attempt_dont_count() -> None:
    desk = Desk("a")
    sealed = Sealed(ballot=Ballot(2, 2), view=1, node="a", life=1, ordered=0, records=0)
    desk.attempt.received(sealed)
    assert desk.attempt.phase is Phase.SEALING
    desk.sealed("a")
    desk.attempt.received(Prepared(ballot=Ballot(2, 1, 1), node="a", life=1, base=0))
    assert desk.attempt.phase is Phase.PREPARING


def test_a_copy_of_other_length_is_no_copy() -> None:
    desk = Desk("a", "b")
    desk.sealed("a", ordered=5)
    desk.sealed("b", ordered=5)
    desk.prepared("a", base=5)
    desk.prepared("b", base=4)
    assert desk.views == []


def test_the_first_view_begins_empty() -> None:
    desk = Desk("c", "a", ended=None, empty_from=0)
    assert desk.sources == {"c": "", "a": ""}
    desk.prepared("a", "c")
    assert desk.views == [
        View(ballot=Ballot(1, 1), members=(Member("c", 1), Member("a", 1)), leader="c")
    ]


def test_a_lost_view_is_followed_by_one_that_begins_empty_where_the_shards_end() -> None:
    desk = Desk("a", "b", empty_from=70)
    assert {(it.source, it.base) for _, it in desk.take() if isinstance(it, Prepare)} == {("", 70)}
    desk.prepared("a", "b", base=70, life=2)
    assert desk.views[0].base == 70
    assert desk.views[0].members == (Member("a", 2), Member("b", 2))


def test_a_final_log_is_settled_between_seal_and_prepare() -> None:
    desk = Desk("a", settles=True)
    desk.sealed("a", ordered=2)
    assert (desk.attempt.phase, desk.asked_to_settle) == (Phase.SETTLING, 1)
    desk.take()
    ids = ((AppendId(1, 0, 5), 8),)
    desk.attempt.settled(ids, 9)
    desk.attempt.settled((), 90)
    [(_, prepare)] = desk.take()
    assert prepare == Prepare(ballot=SECOND, source="a", base=9, settled=ids)
    desk.prepared("a", base=8)
    assert not desk.views, "less than the log holds"
    desk.prepared("a", base=9)
    assert desk.views[0].base == 9


def test_without_a_source_another_attempt_is_needed() -> None:
    desk = Desk(*ABC)
    for node in ABC:
        desk.sealed(node, ordered=node == "b")
    desk.prepared("a", base=1)
    desk.attempt.without("b")
    assert desk.attempt.stalled, "c can't copy b, but there is a to copy"
    desk.take()
    desk.attempt.repeat()
    assert desk.take() == []


def test_who_has_the_whole_copy_goes_on_without_the_only_source() -> None:
    desk = Desk("b", "d", "e", awaited=("b",))
    desk.sealed("b", ordered=1)
    desk.prepared("d", base=1)
    desk.attempt.without("b")
    assert desk.views[0].nodes == ("d",)


def test_a_source_that_goes_when_all_have_copied_it_is_no_loss() -> None:
    desk = Desk("b", "d", awaited=("b",))
    desk.sealed("b")
    desk.prepared("d")
    desk.attempt.without("b")
    assert desk.views[0].nodes == ("d",)


def test_a_silent_candidate_isnt_waited_for() -> None:
    desk = Desk(*ABC)
    desk.sealed("a")
    desk.sealed("b")
    desk.attempt.without("c")
    desk.prepared("a")
    desk.attempt.without("b")
    assert desk.views[0].nodes == ("a",)


@pytest.mark.parametrize("seals", [0, 1])
def test_an_attempt_without_candidates_is_stalled(seals: int) -> None:
    desk = Desk("a", awaited=("a", "b"))
    if seals:
        desk.sealed("a")
        desk.attempt.hurry()
    desk.attempt.without("a")
    assert desk.attempt.stalled


def test_a_prepare_that_nobody_answers_leads_to_another_attempt() -> None:
    desk = Desk("a", "b")
    desk.sealed("a")
    desk.attempt.hurry()
    desk.attempt.hurry()
    assert desk.attempt.stalled


def test_a_member_that_comes_back_while_none_is_sealed_can_be_one_again() -> None:
    desk = Desk("d", awaited=())
    desk.attempt.join("b")
    desk.sealed("b")
    assert desk.sources == {"d": "b", "b": "b"}
    desk.attempt.join("c")
    assert desk.attempt.candidates == ("d", "b"), "too late"


def test_settling_may_outlive_every_sealed_member() -> None:
    desk = Desk("a", "b", awaited=("a",), settles=True)
    desk.sealed("a")
    desk.attempt.without("a")
    desk.attempt.settled((), 0)
    assert desk.attempt.stalled


def test_a_member_that_is_behind_awaits_its_start_and_one_that_is_sealed_doesnt() -> None:
    def present(view: int, started: bool, life: int = 1, *, sealed: bool = False) -> Present:
        return Present(node="a", life=life, view=view, started=started, ordered=0, sealed=sealed)

    assert awaits_start(FIRST, present(0, started=False))
    assert not awaits_start(FIRST, present(0, started=False, life=2))
    assert not awaits_start(FIRST, present(1, started=True))
    assert not awaits_start(FIRST, present(1, started=False))
    assert is_sealed(FIRST, present(1, started=False, sealed=True))
    assert not is_sealed(FIRST, present(1, started=False)), "its start is being journaled"
    assert not is_sealed(FIRST, present(1, started=False, life=2, sealed=True))
    assert not is_sealed(FIRST, present(0, started=False, sealed=True))


NODES = (*ABC, "d")
CONTROLLERS = ("k", "l")


class World:
    """Replicas in view 1 and two controllers that try to start view 2, in terms that grow."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str, SequencingLetter]] = []
        self.replicas = {node: NaiveReplica(node, self._post) for node in NODES}
        for node in ABC:
            replica = self.replicas[node]
            replica.view = FIRST
        self.attempts: dict[str, Reconfiguration] = {}
        self.leads = ""
        self.term = 1
        self.tried = 0
        self.configured: View | None = None
        self.taken: dict[int, set[str]] = {}
        """Who holds a record in view 1."""

    def _post(self, sender: str, to: str, letter: SequencingLetter) -> None:
        self.letters.append((sender, to, letter))

    @property
    def acknowledged(self) -> set[int]:
        return {record for record, nodes in self.taken.items() if len(nodes) == len(ABC)}

    def begin(self, controller: str, candidates: Sequence[str]) -> None:
        """A controller that isn't the last one to lead is elected, in a term of its own."""
        if self.configured is not None:
            return
        if controller != self.leads:
            self.leads = controller
            self.term += 1
        self.tried += 1
        term, ballot = self.term, Ballot(2, self.term, self.tried)
        attempt = self.attempts[controller] = Reconfiguration(
            ballot=ballot,
            ended=FIRST,
            candidates=candidates,
            send=lambda to, letter: self._post(controller, to, letter),
            on_prepared=lambda view: self._configure(controller, term, view),
        )
        attempt.start()

    def _configure(self, controller: str, term: int, view: View) -> None:
        """The journal refuses a controller whose term is over."""
        if term == self.term and self.configured is None:
            assert self.attempts[controller].ballot == view.ballot
            self.configured = view

    def append(self, record: int, node: str) -> None:
        replica = self.replicas[node]
        if replica.view == FIRST and replica.append(record):
            self.taken.setdefault(record, set()).add(node)

    def order(self, node: str) -> None:
        """What the leader orders next, the others order after it."""
        replica, leader = self.replicas[node], self.replicas["a"]
        if not replica.takes or replica.view != FIRST:
            return
        if node == "a":
            if replica.held.ring:
                replica.held.done.append(replica.held.ring.pop(0))
        elif len(replica.held.done) < len(leader.held.done):
            record = leader.held.done[len(replica.held.done)]
            replica.held.done.append(record)
            if record in replica.held.ring:
                replica.held.ring.remove(record)

    def deliver(self, index: int, *, keep: bool = False, lose: bool = False) -> None:
        if not self.letters:
            return
        index %= len(self.letters)
        sender, to, letter = self.letters[index]
        if not keep:
            del self.letters[index]
        if lose:
            return
        if to in self.replicas:
            self.replicas[to].receive(sender, letter)
        elif to in self.attempts and isinstance(letter, Sealed | Prepared):
            self.attempts[to].received(letter)

    def finish(self) -> None:
        """Letters aren't lost any more, and all nodes are up."""
        for replica in self.replicas.values():
            if not replica.up:
                replica.restart()
        if self.configured is None:
            self.begin("k", NODES)
        for _ in range(4):
            while self.letters:
                self.deliver(0)
            if self.configured is None:
                self.attempts["k"].hurry()
                self.attempts["k"].repeat()
        assert self.configured is not None
        for node in self.configured.nodes:
            self._post("k", node, Start(self.configured))
        while self.letters:
            self.deliver(0)

    def check(self) -> None:
        view = self.configured
        assert view is not None
        members = [self.replicas[node] for node in view.nodes]
        assert all(member.view == view and not member.sealed for member in members)
        states = {(tuple(m.held.done), tuple(m.held.ring)) for m in members}
        assert len(states) == 1, "all members begin with the same state"
        [(done, ring)] = states
        assert len(done) == view.base
        assert self.acknowledged <= {*done, *ring}
        assert len({*done, *ring}) == len(done) + len(ring)


_node = st.sampled_from(NODES)
_some = st.lists(_node, min_size=1, max_size=4, unique=True)
_step = st.one_of(
    st.tuples(st.just("deliver"), st.integers(0, 40)),
    st.tuples(st.just("flow"), st.integers(1, 12)),
    st.tuples(st.just("flow"), st.integers(1, 12)),
    st.tuples(st.just("repeat letter"), st.integers(0, 40)),
    st.tuples(st.just("lose"), st.integers(0, 40)),
    st.tuples(st.just("append"), st.integers(1, 5), st.sampled_from(ABC)),
    st.tuples(st.just("append"), st.integers(1, 5), st.sampled_from(ABC)),
    st.tuples(st.just("order"), st.sampled_from(ABC)),
    st.tuples(st.just("begin"), st.sampled_from(CONTROLLERS), _some),
    st.tuples(st.just("again"), st.sampled_from(CONTROLLERS)),
    st.tuples(st.just("hurry"), st.sampled_from(CONTROLLERS)),
    st.tuples(st.just("without"), st.sampled_from(CONTROLLERS), _node),
    st.tuples(st.just("crash"), _node),
    st.tuples(st.just("restart"), _node),
)


@settings(max_examples=300)
@given(st.lists(_step, min_size=20, max_size=120))
def test_whatever_is_lost_late_or_repeated_the_next_view_holds_what_was_acknowledged(
    steps: list[tuple],
) -> None:
    world = World()
    for record, nodes in enumerate((ABC, "cab", "bca", "ab"), 10):
        for node in nodes:
            world.append(record, node)
    world.begin("l", NODES)
    for step in steps:
        _take(world, step)
    world.finish()
    world.check()


def _take(world: World, step: tuple) -> None:
    match step:
        case ("deliver", int(index)):
            world.deliver(index)
        case ("flow", int(count)):
            for _ in range(count):
                world.deliver(0)
        case ("repeat letter", int(index)):
            world.deliver(index, keep=True)
        case ("lose", int(index)):
            world.deliver(index, lose=True)
        case ("append", int(record), str(node)):
            world.append(record, node)
        case ("order", str(node)):
            world.order(node)
        case ("begin", str(controller), candidates):
            world.begin(controller, candidates)
        case ("crash", str(node)):
            world.replicas[node].crash()
        case ("restart", str(node)):
            if not world.replicas[node].up:
                world.replicas[node].restart()
        case (what, str(controller), *rest):
            attempt = world.attempts.get(controller)
            if attempt is None:
                return
            if what == "again":
                attempt.repeat()
            elif what == "hurry":
                attempt.hurry()
            else:
                attempt.without(rest[0])
        case _:
            raise AssertionError(step)
