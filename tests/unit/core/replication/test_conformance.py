"""A plain replicated log under each quorum: agreement, durability, fencing by view and tails that
are replaced. What another user of `core.replication` must hold is in `conformance.py`.
"""

import pytest
from tests.unit.core.replication.conformance import World
from tests.unit.core.replication.replica import PATIENCE, Sealed
from tests.unit.core.replication.stage import ABC, led

from anabranch.core.errors import StaleView
from anabranch.core.quorum import ALL, MAJORITY, Quorum, f_plus_one
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy
from anabranch.core.replication.replica import Role

GROUPS = [
    (1, MAJORITY),
    (2, MAJORITY),
    (3, MAJORITY),
    (5, MAJORITY),
    (2, ALL),
    (3, ALL),
    (3, f_plus_one(0)),
    (3, f_plus_one(1)),
    (4, f_plus_one(1)),
    (5, f_plus_one(2)),
]
NAMES = [f"{quorum.kind.value}-{quorum.failures}-of-{count}" for count, quorum in GROUPS]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("count", "quorum"), GROUPS, ids=NAMES)
def test_a_plain_log_conforms(count: int, quorum: Quorum, seed: int) -> None:
    world = World(seed, count, quorum=quorum)
    world.run(2_500)
    world.heal()
    assert world.observed


def test_everything_that_may_happen_happens_in_that_world() -> None:
    happened: dict[str, int] = {}
    for seed in range(6):
        world = World(seed, 3)
        world.run(2_500)
        happened = {what: happened.get(what, 0) + count for what, count in world.happened.items()}
    assert all(happened.values()), happened


@pytest.mark.parametrize(
    ("quorum", "durable"),
    [
        (MAJORITY, [0, 1, 1]),
        (ALL, [0, 0, 1]),
        (f_plus_one(0), [1, 1, 1]),
        (f_plus_one(1), [0, 1, 1]),
    ],
)
def test_durable_is_what_a_quorum_has(quorum: Quorum, durable: list[int]) -> None:
    stage = led(*ABC, quorum=quorum)
    stage.append("a", b"x")
    found: list[int] = []
    for node in ABC:
        stage.settle(node)
        found.append(stage["a"].replica.log.durable)
    assert found == durable


@pytest.mark.parametrize(("quorum", "lost"), [(ALL, 2), (f_plus_one(2), 2), (f_plus_one(1), 1)])
def test_what_is_durable_survives_the_loss_of_so_many(quorum: Quorum, lost: int) -> None:
    stage = led("a", "b", "c", "d", quorum=quorum)
    stage.append("a", b"x")
    stage.settle(*"abcd"[: quorum.size(4)])
    assert stage["a"].replica.log.durable == 1
    alive = "abcd"[lost:]
    for node in "abcd"[:lost]:
        stage[node].crash(kept=False)
    for node in alive:
        stage.seal(node, 2)
    stage.settle()
    sealed = [each for each in stage.said if isinstance(each, Sealed)]
    assert len(sealed) == len(alive) >= quorum.to_recover(4)
    assert max(each.last for each in sealed) == 1


def test_a_writer_of_an_earlier_view_is_refused_and_a_later_one_fences() -> None:
    stage = led(*ABC)
    stage.append("a", b"x", view=3)
    with pytest.raises(StaleView, match="is of view 2, and the log is in view 3"):
        stage.append("a", b"stale", view=2)
    with pytest.raises(StaleView):
        stage["a"].replica.replace_tail(0, [], view=2)
    with pytest.raises(StaleView):
        stage["a"].replica.fence(2)
    stage.append("a", b"y", view=3)
    stage.settle()
    assert [item.batch for item in stage["c"].told] == [b"x", b"y"]


def test_a_fence_holds_after_a_crash_and_at_the_next_primary() -> None:
    stage = led(*ABC)
    stage["a"].do(lambda: stage["a"].replica.fence(7))
    stage.settle()
    assert stage.primary("a").established
    stage.restart("a")
    stage.arrange(1, "a", *ABC)
    assert stage["a"].replica.view == 7
    stage.settle()
    stage.arrange(2, "b", "b", "c")
    with pytest.raises(StaleView):
        stage.append("b", b"stale", view=6)


def test_a_fence_is_established_when_a_quorum_has_journaled_it() -> None:
    stage = led(*ABC)
    stage["a"].do(lambda: stage["a"].replica.fence(1))
    stage.settle("a")
    assert not stage.primary("a").established
    stage.settle("b")
    assert stage.primary("a").established


def test_what_a_primary_logged_before_it_heard_of_a_later_epoch_is_void() -> None:
    """The old primary is fenced by the epoch: it takes the letters of the next one, and no replica
    takes its letters any more.
    """
    stage = led(*ABC)
    stage.append("a", b"x")
    stage.settle()
    stage.append("a", b"late")
    late = [send for _, send in stage.letters if isinstance(send.message, Copy)]
    stage.letters.clear()
    for node in "bc":
        stage.seal(node, 2)
    stage.settle("b", "c")
    for send in late:
        stage[send.to].receive("a", send.message)
    assert stage["b"].replica.log.last == stage["c"].replica.log.last == 1
    stage["a"].write()
    assert stage["a"].replica.log.durable == 1
    stage.arrange(2, "b", *ABC)
    stage.append("b", b"y")
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 1, b"x"), Item(1, 1, b"y")]


def test_a_late_letter_of_an_earlier_term_changes_nothing() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    late = [send for _, send in stage.letters if isinstance(send.message, Copy)]
    stage.letters.clear()
    replica = stage["a"].replica
    stage["a"].do(lambda: replica.replace_tail(0, [(b"new", 1)], view=1))
    stage.settle()
    for send in late:
        stage["b"].receive("a", send.message)
    stage.settle()
    assert stage["b"].told == [Item(0, 1, b"new")]


@pytest.mark.parametrize("quorum", [MAJORITY, ALL, f_plus_one(1)])
def test_a_replaced_tail_is_the_same_on_all_replicas_and_after_a_crash(quorum: Quorum) -> None:
    stage = led(*ABC, quorum=quorum)
    stage.append("a", b"stable", b"old", b"older")
    stage.settle()
    tail = [(b"new", 2), (b"newer", 1)]
    replica = stage["a"].replica
    for _ in range(2):  # once more, as after an answer that was lost
        stage["a"].do(lambda: replica.replace_tail(1, tail, view=1))
        assert replica.log.durable == 1
        stage.settle()
        assert replica.log.durable == 4
    log = [Item(0, 1, b"stable"), Item(1, 2, b"new"), Item(3, 1, b"newer")]
    assert [stage[node].told for node in ABC] == [log] * 3
    for node in ABC:
        stage.restart(node)
    assert [stage[node].told for node in ABC] == [log] * 3


def test_a_tail_may_be_replaced_by_nothing() -> None:
    stage = led("a", "b")
    stage.append("a", b"stable", b"old")
    stage.settle()
    replica = stage["a"].replica
    stage["a"].do(lambda: replica.replace_tail(1, [], view=1))
    stage.settle()
    assert stage["b"].told == [Item(0, 1, b"stable")]
    assert (replica.log.durable, replica.log.last) == (1, 1)


def test_a_replaced_tail_is_not_durable_before_a_quorum_has_it() -> None:
    stage = led(*ABC)
    stage.append("a", b"old")
    stage.settle()
    replica = stage["a"].replica
    stage["a"].do(lambda: replica.replace_tail(0, [(b"new", 1)], view=1))
    stage.settle("a")
    assert replica.log.durable == 0
    stage.settle("b")
    assert replica.log.durable == 1


def test_a_tail_that_no_other_replica_took_over_is_lost_with_its_primary() -> None:
    stage = led(*ABC)
    stage.append("a", b"old")
    stage.settle()
    replica = stage["a"].replica
    stage["a"].do(lambda: replica.replace_tail(0, [(b"new", 1)], view=1))
    stage["a"].write()
    stage.letters.clear()
    stage.arrange(2, "b", *ABC)
    stage.wait(PATIENCE)
    assert [stage[node].told for node in ABC] == [[Item(0, 1, b"old")]] * 3
    assert stage["b"].replica.view == 0


def test_only_whole_items_are_replaced_and_only_by_the_primary() -> None:
    stage = led("a", "b")
    stage["a"].append((b"three", 3))
    stage.settle()
    with pytest.raises(AssertionError, match="as a whole"):
        stage["a"].replica.replace_tail(2, [], view=0)
    assert stage["b"].replica.role is Role.BACKUP
    with pytest.raises(AssertionError):
        stage["b"].replica.replace_tail(3, [], view=0)
