"""Who declares a log has one, however often it asks; of those who take turns, the latest acts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.bolt.metadata.leader import blank
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Adopt,
    Command,
    CreateLog,
    DeleteLog,
    Description,
    Entry,
    ForkLog,
    Guardable,
    Guarded,
    Outcome,
    Promote,
    RaiseFormat,
    Squash,
)
from anabranch.core.bolt.protocol.queries import Describe, Listing, ListLogs
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.catalogue import ENDING
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import Kind, LogId
from anabranch_sim.bolt.twins import Twins

ROOT = LogId(1)
ANN, BOB = "k8s/team/Log/orders/1", "k8s/team/Fork/what-if/2"


@pytest.fixture
def state() -> State:
    made = State("test", Limits())
    tell(made, CreateLog("orders", owner=ANN))
    return made


def tell(state: State, command: Command, at: int = 1) -> Outcome:
    return state.apply(Entry(at, b"", command))


def described(state: State, command: Command) -> Description:
    outcome = tell(state, command)
    assert isinstance(outcome, Description), outcome
    return outcome


def code(outcome: object) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def owned(state: State, prefix: str) -> list[str]:
    answer = state.answer(ListLogs(owner=prefix))
    assert isinstance(answer, Listing)
    return [log.name for log in answer.logs]


def cfork(name: str, owner: str = "", *, promotable: bool = False) -> ForkLog:
    return ForkLog(ROOT, Kind.CONTINUOUS, name, owner=owner, promotable=promotable)


def test_an_owner_that_has_a_log_gets_that_one_whatever_it_asks_for(state: State) -> None:
    fork = described(state, cfork("what-if", BOB))
    assert (fork.name, fork.owner) == ("orders--what-if", BOB)
    assert described(state, cfork("another", BOB)).id == fork.id
    assert described(state, CreateLog("more", owner=BOB)).id == fork.id
    assert described(state, CreateLog("orders", owner=ANN)).id == ROOT
    assert code(tell(state, CreateLog("orders", owner=BOB + "x"))) == "log-exists"
    assert code(tell(state, CreateLog("orders"))) == "log-exists"
    assert len(state.replica.forest.logs) == 2


@pytest.mark.parametrize("ends", ["promoted", "squashed"])
def test_an_owner_whose_log_is_no_more_is_told_what_became_of_it(state: State, ends: str) -> None:
    fork = described(state, cfork("what-if", BOB, promotable=True))
    tell(state, Promote(fork.id) if ends == "promoted" else Squash(fork.id))
    assert code(tell(state, cfork("what-if", BOB))) == ends
    state.replica = snapshot.load(snapshot.save(state.replica), Limits())
    assert code(tell(state, cfork("another", BOB))) == ends
    assert described(state, cfork("what-if", ANN + "x")).name == "orders--what-if"
    assert state.replica.forest.owned.keys() == {ANN, ANN + "x"}


def test_a_refusal_says_whose_log_is_no_more(state: State) -> None:
    """An owner's own, or the parent that it asked to fork: both may bear the same name."""
    fork = described(state, cfork("what-if", BOB))
    tell(state, Squash(fork.id))
    own = tell(state, cfork("what-if", BOB))
    assert isinstance(own, Refused)
    assert (own.facts["owner"], own.facts["id"]) == (BOB, fork.id)
    child = ForkLog(fork.id, Kind.CONTINUOUS, "what-if", owner=ANN + "x")
    other = tell(state, child)
    assert isinstance(other, Refused)
    assert other.code == own.code
    assert "owner" not in other.facts
    assert "owner" not in state.replica.forest.graves[fork.id].refusal.facts


def test_a_deleted_log_and_its_forks_leave_their_owners_graves_until_those_are_forgotten() -> None:
    limits = Limits(tombstone_ms=1_000)
    state = State("test", limits)
    tell(state, CreateLog("orders", owner=ANN))
    tell(state, cfork("what-if", BOB))
    tell(state, DeleteLog(ROOT, force=True), at=10)
    assert code(tell(state, CreateLog("again", owner=BOB), at=20)) == "squashed"
    state.apply(Entry(1_011, b"a request", CreateLog("other")))
    assert described(state, CreateLog("again", owner=BOB)).owner == BOB
    assert state.replica.forest.graves_by_owner == {}


def test_a_log_is_adopted_by_one_and_released(state: State) -> None:
    plain = described(state, CreateLog("plain"))
    assert plain.owner == ""
    assert described(state, Adopt(plain.id, BOB)).owner == BOB
    assert described(state, Adopt(plain.id, BOB)).owner == BOB
    assert code(tell(state, Adopt(plain.id, BOB + "x"))) == "owned-by-another"
    assert code(tell(state, Adopt(ROOT, BOB))) == "owned-by-another"
    assert described(state, Adopt(plain.id, "")).owner == ""
    assert described(state, Adopt(plain.id, "")).owner == ""
    assert code(tell(state, Adopt(plain.id, ANN))) == "owns-another"
    assert code(tell(state, Adopt(LogId(99), BOB))) == "unknown-log"
    assert described(state, Adopt(plain.id, BOB + "x")).owner == BOB + "x"


def test_who_adopts_a_log_is_no_longer_told_of_the_one_before(state: State) -> None:
    first = described(state, cfork("what-if", BOB))
    tell(state, Squash(first.id))
    second = described(state, cfork("what-if"))
    assert described(state, Adopt(second.id, BOB)).owner == BOB
    assert described(state, cfork("anything", BOB)).id == second.id
    assert described(state, Adopt(second.id, "")).owner == ""
    again = snapshot.load(snapshot.save(state.replica), Limits())
    assert again.forest.graves_by_owner == state.replica.forest.graves_by_owner == {}


@pytest.mark.parametrize("ends", ["promoted", "squashed"])
def test_a_request_of_an_owner_that_has_changed_its_mind_since_makes_no_second_log(
    state: State, ends: str
) -> None:
    """An owner is the same with and without what it says about its log's end."""
    tell(state, RaiseFormat(FORMAT))
    fork = described(state, cfork("what-if", BOB + ENDING, promotable=True))
    assert described(state, Adopt(fork.id, BOB)).owner == BOB
    assert described(state, cfork("what-if", BOB + ENDING)).id == fork.id
    assert described(state, CreateLog("more", owner=BOB + ENDING)).owner == BOB
    tell(state, Adopt(ROOT, ""))
    assert code(tell(state, Adopt(ROOT, BOB + ENDING))) == "owns-another"
    tell(state, Promote(fork.id) if ends == "promoted" else Squash(fork.id))
    late = tell(state, cfork("what-if", BOB + ENDING))
    assert isinstance(late, Refused)
    assert (late.code, late.facts["owner"]) == (ends, BOB + ENDING)
    assert described(state, Adopt(ROOT, BOB + ENDING)).id == ROOT
    assert described(state, cfork("what-if", BOB)).id == ROOT


def test_in_a_journal_of_an_earlier_format_two_spellings_are_two_owners(state: State) -> None:
    tell(state, RaiseFormat(5))
    fork = described(state, cfork("what-if", BOB + ENDING))
    assert code(tell(state, Adopt(fork.id, BOB))) == "owned-by-another"
    assert described(state, cfork("another", BOB)).id != fork.id


def test_logs_are_listed_by_what_their_owners_begin_with(state: State) -> None:
    tell(state, CreateLog("plain"))
    tell(state, CreateLog("alpha", owner="k8s/other/Log/alpha/3"))
    tell(state, cfork("what-if", BOB))
    assert owned(state, "k8s/team/") == ["orders", "orders--what-if"]
    assert owned(state, "k8s/") == ["alpha", "orders", "orders--what-if"]
    assert owned(state, BOB) == ["orders--what-if"]
    assert owned(state, "somebody") == []
    paged = state.answer(ListLogs(owner="k8s/", after="alpha", count_max=1))
    assert isinstance(paged, Listing)
    assert ([log.name for log in paged.logs], paged.more) == (["orders"], True)


def test_what_is_too_long_is_refused(state: State) -> None:
    long = "x" * (Limits().owner_chars_max + 1)
    assert code(tell(state, CreateLog("a", owner=long))) == "bad-request"
    assert code(tell(state, cfork("a", long))) == "bad-request"
    assert code(tell(state, Adopt(ROOT, long))) == "bad-request"
    assert described(state, CreateLog("a", owner=long[1:])).owner == long[1:]
    assert code(tell(state, Guarded(long, 1, CreateLog("b")))) == "bad-request"
    assert code(tell(state, Guarded("", 1, CreateLog("b")))) == "bad-request"
    assert "b" not in state.replica.forest.names


def test_one_whose_turn_is_over_changes_nothing_more(state: State) -> None:
    def guarded(epoch: int, command: Guardable, scope: str = "k8s/team/anabranch") -> Outcome:
        return tell(state, Guarded(scope, epoch, command))

    assert isinstance(guarded(3, CreateLog("a")), Description)
    assert code(guarded(2, CreateLog("b"))) == "deposed"
    assert isinstance(guarded(3, CreateLog("b")), Description)
    assert code(guarded(5, CreateLog("b"))) == "log-exists"
    assert code(guarded(4, CreateLog("c"))) == "deposed", "who came later was heard, if refused"
    assert isinstance(guarded(1, CreateLog("c"), "another"), Description)
    state.replica = snapshot.load(snapshot.save(state.replica), Limits())
    assert code(guarded(4, DeleteLog(ROOT))) == "deposed"
    assert isinstance(state.answer(Describe(ROOT)), Description)
    assert isinstance(tell(state, CreateLog("d")), Description), "who takes no turns is let alone"


def test_scopes_are_bounded_and_those_there_are_go_on() -> None:
    state = blank("test", Limits(guard_scopes_max=2))
    state.replica.limit({"guard_scopes_max": 2})
    for scope in ("one", "two"):
        assert isinstance(tell(state, Guarded(scope, 1, CreateLog(scope))), Description)
    assert code(tell(state, Guarded("three", 1, CreateLog("three")))) == "too-many"
    assert isinstance(tell(state, Guarded("two", 2, CreateLog("three"))), Description)


OWNERS = ("", "ann", "ann.end", "bob", "bob.end", "cid")
STEP = st.tuples(
    st.sampled_from(["create", "fork", "adopt", "squash", "promote", "delete", "restart"]),
    st.integers(0, 20),
    st.sampled_from(OWNERS),
    st.one_of(st.none(), st.tuples(st.sampled_from("st"), st.integers(1, 4))),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, min_size=5, max_size=50))
def test_whatever_is_declared_and_guarded_is_what_copied_lists_say(
    steps: list[tuple[str, int, str, tuple[str, int] | None]],
) -> None:
    twins = Twins(Limits())
    for number, (what, choice, owner, guard) in enumerate(steps):
        if what == "restart":
            twins.restart()
            continue
        command = drawn(twins, what, choice, owner, f"log{number}")
        twins.apply(Guarded(*guard, command) if guard else command)
        assert broken(twins.state.replica) == []
    twins.compare()
    for owner in OWNERS[1:]:
        answer = twins.state.answer(ListLogs(owner=owner))
        assert isinstance(answer, Listing)
        mine = [log.name for log in twins.naive.logs.values() if log.owner.startswith(owner)]
        assert [log.name for log in answer.logs] == mine
    twins.replay()


def drawn(twins: Twins, what: str, choice: int, owner: str, name: str) -> Guardable:
    ids = [*twins.naive.logs]
    if not ids or what == "create":
        return CreateLog(name, owner=owner)
    id = ids[choice % len(ids)]
    match what:
        case "fork":
            promotable = choice % 2 == 0 and twins.naive.logs[id].held_from() is None
            return ForkLog(id, Kind.CONTINUOUS, name, promotable=promotable, owner=owner)
        case "adopt":
            return Adopt(id, owner)
        case "squash":
            return Squash(id)
        case "promote":
            return Promote(id)
        case _:
            return DeleteLog(id, force=choice % 2 == 0)
