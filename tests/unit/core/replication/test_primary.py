"""What a primary counts as durable, and how it brings its log to the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.replication.replica import PATIENCE
from tests.unit.core.replication.stage import ABC, led

from anabranch.core.quorum import ALL, MAJORITY, Quorum, f_plus_one
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Stored
from anabranch.core.replication.replica import Role


def test_durable_is_what_a_majority_has_the_primary_among_them() -> None:
    stage = led(*ABC)
    stage.append("a", b"x", b"y")
    stage.settle("b", "c")
    assert stage["b"].replica.log.last == 2, "copies don't wait for the primary's disk"
    assert stage["a"].replica.log.durable == 0
    stage["a"].write()
    assert stage["a"].replica.log.durable == 2

    stage.append("a", b"z")
    stage.settle("a")
    assert stage["a"].replica.log.durable == 2
    stage.settle("b")
    assert stage["a"].replica.log.durable == 3


def test_what_came_in_one_step_goes_as_one_group_and_one_letter() -> None:
    stage = led("a", "b")
    stage.append("a", b"x", b"y", b"z")
    copies = [send.message for _, send in stage.letters if isinstance(send.message, Copy)]
    assert [len(copy.items) for copy in copies] == [3]
    assert len(stage["a"].group or ()) == 3


@pytest.mark.parametrize(
    ("term", "adopted", "durable"),
    [(1, 1, 1), (1, 0, 0), (0, 0, 0), (2, 2, 0)],
    ids=["its own", "not adopted yet", "the one before", "one that isn't"],
)
def test_only_answers_in_the_own_term_count(term: int, adopted: int, durable: int) -> None:
    """Raft, 5.4.2: what came before a term is durable by a majority that knows the term."""
    stage = led("a", "b")
    stage["b"].crash(kept=True)
    stage["a"].crash(kept=True)
    stage["a"].start(0)
    stage.arrange(1, "a", "a", "b")
    stage.append("a", b"x")
    stage.settle()
    life = 1 << 32
    answer = Stored("a", 1, life + term, 1, life + adopted)
    stage["a"].do(lambda: stage["a"].replica.received("b", answer))
    assert stage["a"].replica.log.durable == durable


def test_a_primary_that_fell_takes_back_what_only_others_have() -> None:
    stage = led(*ABC)
    stage.append("a", b"lost")
    stage.settle("b")
    stage["a"].crash(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", *ABC)
    stage.append("a", b"kept")
    stage.settle()
    assert stage["a"].replica.log.durable == 1
    assert [stage[node].told for node in ABC] == [[Item(0, 1, b"kept")]] * 3


def test_who_owes_an_answer_is_silent_and_who_keeps_up_is_taken_in() -> None:
    stage = led(*ABC)
    stage["c"].crash(kept=False)
    stage.append("a", b"x")
    stage.wait(PATIENCE)
    assert stage.primary("a").silent == ()
    stage.wait(PATIENCE)
    assert stage.primary("a").silent == ("c",)

    stage.arrange(2, "a", "a", "b")
    stage.settle()
    stage["c"].start(stage.now)
    assert stage.primary("a").caught_up == ()
    stage.learn("c", 2, "a")
    stage.wait(PATIENCE)
    assert stage["c"].replica.role is Role.LEARNER
    assert stage.primary("a").caught_up == ("c",)
    assert stage["c"].told == stage["a"].told


def test_a_replica_far_behind_is_sent_what_was_read_back() -> None:
    stage = led("a", "b", cache_bytes=500)
    stage["b"].crash(kept=False)
    stage.arrange(2, "a", "a")
    for nth in range(50):
        stage.append("a", b"%d" % nth)
    stage.settle()
    stage["b"].start(stage.now)
    stage.learn("b", 2, "a")
    stage.settle()
    while stage["a"].reads:
        stage["a"].read()
        stage.settle()
    assert stage["b"].told == stage["a"].told
    assert len(stage["b"].told) == 50


FIVE: tuple[str, ...] = ("a", "b", "c", "d", "e")
answers = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "write", *FIVE[1:]]),
        st.integers(0, 6),
    ),
    min_size=12,
    max_size=40,
)


@pytest.mark.parametrize(
    ("quorum", "size"), [(MAJORITY, 3), (ALL, 5), (f_plus_one(1), 2)], ids=["majority", "all", "2"]
)
@given(answers)
def test_durable_is_what_the_primary_and_a_quorum_have_stored(
    quorum: Quorum, size: int, steps: list[tuple[str, int]]
) -> None:
    """Answers come in any order, and late ones say less than those before."""
    stage = led(*FIVE, quorum=quorum)
    log = stage["a"].replica.log
    term = log.terms.last
    own, stored = 0, dict.fromkeys(FIVE[1:], 0)
    for what, place in steps:
        match what:
            case "append":
                stage.append("a", b"x")
            case "write" if stage["a"].group is not None:
                own += len(stage["a"].group or ())
                stage["a"].write()
            case "write":
                pass
            case backup:
                upto = min(place, log.last)
                answer = Stored("a", 1, term=term, upto=upto, adopted=term)
                stage["a"].do(lambda b=backup, a=answer: stage["a"].replica.received(b, a))
                stored[backup] = max(stored[backup], upto)
        stage.letters.clear()
        agreed = sorted((own, *stored.values()))[-size]
        assert log.durable == min(own, agreed)
