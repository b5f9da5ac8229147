"""Each rule about the replicated state is seen to be broken where it is, and nowhere else.

A rule that can't fail would let every test pass that relies on it.
"""

import heapq
from collections.abc import Callable

import pytest
from tests.unit.core.bolt.state.stored import Stored, batch

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.lineage import lineage_of
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    CommitCursor,
    Committed,
    CreateLog,
    EngineSettings,
    ForkLog,
    Promote,
    RaiseFormat,
    RegisterBroker,
    Sequenced,
    Squash,
    Trim,
)
from anabranch.core.bolt.state.audit import replica_faults
from anabranch.core.bolt.state.invariants import RULES, Broken, Witness, broken, held
from anabranch.core.types import Kind, LogId, ObjectId, OnPromote

Damage = Callable[[Stored], None]

ORDERS, FORK, SEVERED, UNDECIDED, OTHER, FOREIGN, GONE, DECLARED = map(LogId, range(1, 9))


@pytest.fixture
def stored() -> Stored:
    """A root with forks of each kind, one of them undecided; another root, a log of another engine,
    a fork that was squashed, and two owners.
    """
    stored = Stored()
    stored.begin("orders")
    stored.apply(RaiseFormat(FORMAT))
    stored.commit({ORDERS: [batch(b"1", b"2")]})
    stored.commit({ORDERS: [batch(b"3")]})
    stored.apply(ForkLog(ORDERS, Kind.CONTINUOUS, "fork", ttl_ms=1_000))
    stored.apply(ForkLog(ORDERS, Kind.SEVERED, "severed", past=1))
    stored.commit({FORK: [batch(b"own")], SEVERED: [batch(b"severed")], ORDERS: [batch(b"4")]})
    stored.apply(ForkLog(ORDERS, Kind.CONTINUOUS, "undecided", promotable=True))
    stored.commit({UNDECIDED: [batch(b"5")]})
    stored.apply(CreateLog("other", owner="k8s/n/Log/other/1"))
    stored.apply(CreateLog("foreign", engine="belfast", settings=EngineSettings()))
    stored.apply(ForkLog(OTHER, Kind.CONTINUOUS, "gone", owner="k8s/n/Fork/gone/2"))
    stored.apply(Squash(GONE))
    stored.apply(CreateLog("declared", owner="k8s/n/Log/declared/3"))
    stored.apply(CommitCursor(ORDERS, "here", 1))
    return stored


def log(stored: Stored, id: LogId) -> Log:
    return stored.state.replica.forest.logs[id]


def test_a_state_that_was_replayed_breaks_no_rule(stored: Stored) -> None:
    assert broken(stored.state.replica) == []


def rename(stored: Stored) -> None:
    log(stored, FORK).name = "orders--another"


def raise_the_dead(stored: Stored) -> None:
    forest = stored.state.replica.forest
    forest.graves[FORK] = forest.graves[GONE]


def give_an_id_too_early(stored: Stored) -> None:
    stored.state.replica.next_id = int(DECLARED)


def disown(stored: Stored) -> None:
    del log(stored, ORDERS).children[FORK]


def deepen(stored: Stored) -> None:
    log(stored, FORK).depth = 7


def swap_children(stored: Stored) -> None:
    log(stored, OTHER).children[FORK] = log(stored, FORK)


def forget_a_promotable_fork(stored: Stored) -> None:
    log(stored, ORDERS).promotable_forks.clear()


def miscount_undecided(stored: Stored) -> None:
    stored.state.replica.forest.undecided = 0


def keep_a_name(stored: Stored) -> None:
    stored.state.replica.forest.names["orders--alias"] = log(stored, FORK)


def overlap(stored: Stored) -> None:
    log(stored, ORDERS).index.first[1] = 1


def lose_a_column(stored: Stored) -> None:
    log(stored, ORDERS).index.at.pop()


def reach_beyond_the_tail(stored: Stored) -> None:
    log(stored, ORDERS).index.append(90, 1, ObjectId(3), 0, 1, 0)


def lose_an_extent(stored: Stored) -> None:
    index = log(stored, ORDERS).index
    for column in (index.first, index.upto, index.object, index.offset, index.length, index.at):
        del column[1]


def start_beyond_the_tail(stored: Stored) -> None:
    log(stored, OTHER).start = 5


def keep_an_old_lineage(stored: Stored) -> None:
    forest, fork = stored.state.replica.forest, log(stored, FORK)
    lineage_of(forest, fork, forest.tail(fork)).shifts[-1] += 1


def raise_a_tail(stored: Stored) -> None:
    forest = stored.state.replica.forest
    forest.tails.append(log(stored, ORDERS).place, 1)


def hold_one_entry_twice(stored: Stored) -> None:
    forest = stored.state.replica.forest
    first = log(stored, ORDERS).index
    place = forest.tail(log(stored, OTHER))
    forest.tails.append(log(stored, OTHER).place, 2)
    log(stored, OTHER).index.append(place, 2, ObjectId(first.object[0]), first.offset[0], 1, 0)


def block(stored: Stored) -> None:
    stored.state.replica.forest.tails.block_below(log(stored, OTHER).place, 1, [])
    stored.state.replica.forest.tails.block_below(log(stored, ORDERS).place, 1, [])


def uncount(stored: Stored) -> None:
    stored.state.replica.references.counts.clear()


def count_nothing(stored: Stored) -> None:
    stored.state.replica.references.counts[ObjectId(99)] = 2


def throw_away(stored: Stored) -> None:
    stored.state.replica.references.garbage[min(stored.objects)] = 1


def forget_to_expire(stored: Stored) -> None:
    replica = stored.state.replica
    replica.expiring.clear()
    heapq.heapify(replica.expiring)


def move_a_cursor(stored: Stored) -> None:
    log(stored, ORDERS).cursors["here"] = 50


def choose_for_no_cursor(stored: Stored) -> None:
    log(stored, ORDERS).on_promote["nowhere"] = OnPromote.STAY


def own_two(stored: Stored) -> None:
    log(stored, ORDERS).owner = "k8s/n/Log/other/1"


def own_a_grave_beside_a_log(stored: Stored) -> None:
    stored.state.replica.forest.graves[GONE].owner = "k8s/n/Log/other/1"


def own_a_grave_of_nobody(stored: Stored) -> None:
    stored.state.replica.forest.graves_by_owner["nobody"] = GONE


def serve_nowhere(stored: Stored) -> None:
    stored.state.replica.placement.roots[ORDERS] = "nobody"


def mix_forks_with_roots(stored: Stored) -> None:
    stored.apply(RegisterBroker("b-1"))
    stored.apply(RegisterBroker("b-2"))
    placed = stored.state.replica.placement
    placed.trees[ORDERS] = placed.roots[ORDERS]


def forget_an_engine(stored: Stored) -> None:
    stored.state.replica.forest.foreign.clear()


def forget_settings(stored: Stored) -> None:
    log(stored, FOREIGN).settings = None


def keep_a_foreign_cursor(stored: Stored) -> None:
    log(stored, FOREIGN).cursors["here"] = 0


def fork_a_foreign_log(stored: Stored) -> None:
    log(stored, FOREIGN).kind = Kind.SEVERED


DAMAGES: list[tuple[str, Damage]] = [
    ("forest", rename),
    ("forest", raise_the_dead),
    ("forest", give_an_id_too_early),
    ("forest", disown),
    ("forest", deepen),
    ("forest", swap_children),
    ("forest", forget_a_promotable_fork),
    ("forest", miscount_undecided),
    ("forest", keep_a_name),
    ("index", overlap),
    ("index", reach_beyond_the_tail),
    ("B3", start_beyond_the_tail),
    ("B3", keep_an_old_lineage),
    ("B6", raise_a_tail),
    ("B5", hold_one_entry_twice),
    ("B6", block),
    ("D6", uncount),
    ("D6", count_nothing),
    ("D6", throw_away),
    ("D7", forget_to_expire),
    ("cursors", move_a_cursor),
    ("cursors", choose_for_no_cursor),
    ("owners", own_two),
    ("owners", own_a_grave_beside_a_log),
    ("owners", own_a_grave_of_nobody),
    ("R3", serve_nowhere),
    ("R3", mix_forks_with_roots),
    ("engines", forget_an_engine),
    ("engines", forget_settings),
    ("engines", keep_a_foreign_cursor),
    ("engines", fork_a_foreign_log),
]


@pytest.mark.parametrize(
    ("rule", "damage"), DAMAGES, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_breach_is_seen_by_its_rule(stored: Stored, rule: str, damage: Damage) -> None:
    damage(stored)
    assert any(RULES[rule](stored.state.replica))


@pytest.mark.parametrize("damage", [lose_a_column, lose_an_extent])
def test_records_that_are_lost_are_noticed_by_some_rule_or_by_the_look_up(
    stored: Stored, damage: Damage
) -> None:
    damage(stored)
    assert replica_faults(stored.state.replica) != []


def test_a_position_that_a_promotion_may_still_move_is_not_told(stored: Stored) -> None:
    replica = stored.state.replica
    stored.commit({ORDERS: [batch(b"6")]})
    tail = replica.forest.tail(log(stored, ORDERS))
    assert replica.forest.settled(log(stored, ORDERS))[0] < tail
    for outcome in (Committed([tail - 1]), Committed([Sequenced([tail - 1])])):
        (breach,) = held(replica, [ORDERS], outcome)
        assert (breach.rule, breach.log) == ("B9", "orders")
    assert held(replica, [ORDERS], Committed([1])) == []
    assert held(replica, [LogId(99)], Committed([tail - 1])) == []
    stored.apply(Promote(UNDECIDED))
    assert held(replica, [ORDERS], Committed([tail - 1])) == []


def test_what_was_settled_is_watched_for_ever(stored: Stored) -> None:
    witness = Witness()
    assert witness.look(stored.state.replica) == []
    stored.commit({OTHER: [batch(b"7")], FORK: [batch(b"8")]})
    stored.apply(Trim(ORDERS, 1))
    stored.apply(Promote(UNDECIDED))
    assert witness.look(stored.state.replica) == []
    log(stored, OTHER).index.object[0] = 77
    assert witness.look(stored.state.replica) == [
        Broken("B2", "other", "a settled position changed")
    ]


def test_a_witness_that_reads_sees_what_a_rewritten_place_holds(stored: Stored) -> None:
    """Compaction puts the same batches elsewhere: that is no change."""
    content = {(ObjectId(log(stored, ORDERS).index.object[0]), 0): [(2, "12")]}

    def batches(object: ObjectId, offset: int, length: int) -> list[tuple[int, str]]:
        return content.get((object, offset), [(1 << 40, f"{object} {offset}")])

    witness = Witness(batches)
    assert witness.look(stored.state.replica) == []
    index = log(stored, ORDERS).index
    content[ObjectId(500), 7] = [(2, "12")]
    index.object[0], index.offset[0] = 500, 7
    assert witness.look(stored.state.replica) == []
    content[ObjectId(500), 7] = [(1, "1"), (1, "other")]
    assert {each.log for each in witness.look(stored.state.replica)} >= {"orders"}
