"""Which broker serves which log (AgileLog, 5.1; spec R3): examples, and any history against the
rules, counted anew.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.bolt.protocol.commands import (
    CommitObject,
    CreateLog,
    DeleteLog,
    DrainBroker,
    Entry,
    FindBroker,
    ForgetBroker,
    ForkLog,
    LoseBroker,
    Promote,
    RaiseFormat,
    RegisterBroker,
    Squash,
)
from anabranch.core.bolt.protocol.queries import Describe
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.placement import DRAINING, LOST, READY, Placement, Seat
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import NoSpareBroker
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId, OnParentDelete

NAMES = tuple("abcdefg")


def pool(*names: str, spare_brokers_max: int = 1) -> Placement:
    placement = Placement(spare_brokers_max)
    for epoch, name in enumerate(names, 1):
        placement.register(name, f"{name}:1", epoch)
    return placement


def at(placement: Placement, log: int, tree: int | None = None) -> str:
    """Who serves a root, or a fork of a tree."""
    root = tree is None
    seat = placement.serving(LogId(log), LogId(log if root else tree), is_root=root)
    return seat.name if seat else ""


def test_a_fork_is_not_served_where_roots_are() -> None:
    placement = pool("a", "b")
    placement.add_root(LogId(1))
    placement.add_fork(LogId(1))
    assert (at(placement, 1), at(placement, 2, tree=1)) == ("a", "b")


def test_forks_of_one_tree_are_together_and_of_others_spread() -> None:
    placement = pool(*"abcdef")
    for tree in (1, 2):
        placement.add_fork(LogId(tree))
        placement.add_fork(LogId(tree))
    assert at(placement, 10, tree=1) == at(placement, 11, tree=1)
    assert at(placement, 10, tree=1) != at(placement, 20, tree=2)


def test_roots_spread_over_half_of_the_pool() -> None:
    placement = pool(*"abcdef")
    for root in range(1, 7):
        placement.add_root(LogId(root))
    assert {at(placement, root) for root in range(1, 7)} == {"a", "b", "c"}
    assert {len(placement.seats[name].roots) for name in "abc"} == {2}


def test_an_exclusive_fork_is_alone_and_refused_where_no_broker_is_to_spare() -> None:
    placement = pool("a", "b", "c")
    placement.add_root(LogId(1))
    placement.add_fork(LogId(1))
    placement.check_spare("one")
    placement.add_alone(LogId(9))
    assert at(placement, 9, tree=1) == "c"
    with pytest.raises(NoSpareBroker):
        placement.check_spare("two")
    placement.add_fork(LogId(2))
    assert at(placement, 8, tree=2) == "b"


@pytest.mark.parametrize("brokers", [4, 5, 6, 7])
def test_from_four_brokers_on_one_stays_free(brokers: int) -> None:
    placement = pool(*NAMES[:brokers])
    for tree in range(1, 30):
        placement.add_root(LogId(tree))
        placement.add_fork(LogId(tree))
    assert sum(seat.idle for seat in placement.seats.values()) == 1
    placement.check_spare("a fork")


def test_a_lost_brokers_logs_go_elsewhere_and_found_it_takes_what_nobody_serves() -> None:
    placement = pool("a")
    placement.add_root(LogId(1))
    placement.lose("a", 1)
    assert at(placement, 1) == ""
    placement.lose("a", 1)
    placement.find("a", 99)
    assert at(placement, 1) == "", "another life was heard of"
    placement.find("a", 1)
    assert at(placement, 1) == "a"


def test_forks_leave_a_broker_that_had_to_take_roots_as_soon_as_there_is_another() -> None:
    """Also one that serves forks only: not just one that comes into the pool."""
    placement = pool("a", "b", "c")
    placement.add_root(LogId(1))
    placement.add_fork(LogId(1))
    placement.add_fork(LogId(2))
    assert [at(placement, 1), at(placement, 9, 1), at(placement, 9, 2)] == ["a", "b", "c"]
    placement.lose("a", 1)
    assert [at(placement, 1), at(placement, 9, 1), at(placement, 9, 2)] == ["b", "c", "c"]


def test_what_shared_a_broker_for_want_of_another_leaves_it_when_one_becomes_free() -> None:
    placement = pool("a", "b", "c")
    placement.add_root(LogId(1))
    placement.add_fork(LogId(1))
    placement.add_alone(LogId(9))
    placement.lose("b", 2)
    assert at(placement, 8, tree=1) == "a"
    placement.remove_fork(LogId(9), LogId(1))
    assert at(placement, 8, tree=1) == "c"


def test_a_broker_that_drains_is_not_lost_nor_found() -> None:
    """Or, having been silent for a while, it would be given logs again while it ends."""
    placement = pool("a", "b")
    placement.add_root(LogId(1))
    placement.drain("a", 1)
    placement.lose("a", 1)
    placement.find("a", 1)
    assert placement.seats["a"].state == DRAINING
    assert at(placement, 1) == "b"


def test_a_broker_that_was_thought_lost_drains_too() -> None:
    placement = pool("a", "b")
    placement.lose("a", 1)
    placement.drain("a", 1)
    placement.find("a", 1)
    assert placement.seats["a"].state == DRAINING


def test_an_earlier_lifes_drain_that_comes_late_drains_nobody() -> None:
    state = State("test", Limits())
    for command in (RegisterBroker("a", "a:1"), RegisterBroker("a", "a:1"), DrainBroker("a", 1)):
        state.apply(Entry(1, b"", command))
    assert [seat.state for seat in state.replica.placement.pool()] == [READY]
    state.apply(Entry(1, b"", DrainBroker("a", 2)))
    assert [seat.state for seat in state.replica.placement.pool()] == [DRAINING]


def test_a_pool_without_a_log_survives_a_snapshot() -> None:
    state = State("test", Limits())
    state.apply(Entry(1, b"", RegisterBroker("a", "a:1")))
    image = snapshot.save(state.replica)
    assert snapshot.save(snapshot.load(image, state.replica.limits)) == image


def test_an_exclusive_fork_is_described_where_it_is() -> None:
    state = State("test", Limits())
    for name in "abc":
        state.apply(Entry(1, b"", RegisterBroker(name, f"{name}:1")))
    state.apply(Entry(1, b"", CreateLog("r")))
    state.apply(Entry(1, b"", ForkLog(LogId(1), Kind.CONTINUOUS, "f")))
    state.apply(Entry(1, b"", ForkLog(LogId(1), Kind.CONTINUOUS, "x", exclusive=True)))
    told = [state.answer(Describe(name)) for name in ("r", "r--f", "r--x")]
    assert [getattr(each, "broker", each) for each in told] == ["a", "b", "c"]
    refused = state.apply(Entry(1, b"", ForkLog(LogId(1), Kind.CONTINUOUS, "y", exclusive=True)))
    assert getattr(refused, "code", "") == "no-spare-broker"


def rolled(placement: Placement, names: str) -> None:
    """One broker after another ends and comes back."""
    for epoch, name in enumerate(names, 100):
        placement.drain(name, placement.seats[name].epoch)
        placement.register(name, f"{name}:1", epoch)
        placement.even_out(name)


@pytest.mark.parametrize("brokers", [4, 5, 6, 7])
def test_after_brokers_ended_one_after_another_logs_are_spread_as_before(brokers: int) -> None:
    names = NAMES[:brokers]
    placement = pool(*names)
    for tree in range(1, 41):
        placement.add_root(LogId(tree))
        placement.add_fork(LogId(tree))
    rolled(placement, "".join(names))
    roots = sorted(len(seat.roots) for seat in placement.seats.values() if seat.roots)
    trees = sorted(len(seat.trees) for seat in placement.seats.values() if seat.trees)
    assert len(roots) == brokers // 2
    assert sum(seat.idle for seat in placement.seats.values()) == 1
    assert max(roots) - min(roots) <= 1
    assert max(trees) - min(trees) <= 1
    assert breaches(placement) == []


def test_a_pool_that_grows_gives_those_who_come_their_share() -> None:
    placement = pool("a", "b")
    for tree in range(1, 13):
        placement.add_root(LogId(tree))
        placement.add_fork(LogId(tree))
    for epoch, name in enumerate("cdefgh", 10):
        placement.register(name, f"{name}:1", epoch)
        placement.even_out(name)
        assert breaches(placement) == []
    shares = {name: (len(seat.roots), len(seat.trees)) for name, seat in placement.seats.items()}
    assert sorted(shares.values()) == [(0, 0), *[(0, 4)] * 3, *[(3, 0)] * 4]


def test_who_comes_takes_no_more_than_evens_it_out() -> None:
    placement = pool("a", "b", "c", "d")
    for root in (1, 2, 3):
        placement.add_root(LogId(root))
    placement.lose("b", 2)
    assert [len(placement.seats[name].roots) for name in "acd"] == [3, 0, 0]
    placement.find("b", 2)
    placement.even_out("b")
    assert (at(placement, 1), at(placement, 2), at(placement, 3)) == ("a", "a", "b")
    placement.register("c", "c:1", 9)
    placement.even_out("c")
    assert not placement.seats["c"].roots, "half of the pool serves roots already"
    placement.even_out("b")
    assert len(placement.seats["b"].roots) == 1, "one more is no reason to move"


def test_an_earlier_formats_journal_places_as_it_always_did() -> None:
    """A member of an earlier version, beside this one, moves nothing when a broker comes."""
    ends = (DrainBroker("b", 2), RegisterBroker("b", "b:1"))
    found: list[list[int]] = []
    for first in ((), (RaiseFormat(2),)):
        state = State("test", Limits())
        for name in "abcd":
            state.apply(Entry(1, b"", RegisterBroker(name, f"{name}:1")))
        for root in range(6):
            state.apply(Entry(1, b"", CreateLog(f"log-{root}")))
        for command in (*first, *ends):
            state.apply(Entry(1, b"", command))
        found.append([seat.roots for seat in state.replica.placement.pool()])
    assert found == [[6, 0, 0, 0], [3, 3, 0, 0]]


def test_only_a_broker_that_is_over_can_be_forgotten_and_it_commits_nothing_more() -> None:
    state = State("test", Limits())

    def tell(command: object) -> str:
        outcome = state.apply(Entry(1, b"", command))  # pyright: ignore[reportArgumentType]
        return getattr(outcome, "code", type(outcome).__name__)

    for name in "ab":
        tell(RegisterBroker(name, f"{name}:1"))
    tell(CreateLog("orders"))
    assert tell(ForgetBroker("a", 1)) == "broker-in-use"
    assert tell(ForgetBroker("a", 2)) == "unknown-broker"
    assert tell(ForgetBroker("nobody", 1)) == "unknown-broker"
    assert tell(DrainBroker("a", 1)) == "Done"
    assert tell(DrainBroker("a", 1)) == "Done"
    assert tell(ForgetBroker("a", 1)) == "Done"
    assert tell(ForgetBroker("a", 1)) == "unknown-broker"
    assert [seat.name for seat in state.replica.placement.pool()] == ["b"]
    assert at(state.replica.placement, 1) == "b"
    assert tell(CommitObject("a", object_id(1, 1), [])) == "broker-fenced"
    tell(LoseBroker("b", 2))
    assert tell(ForgetBroker("b", 2)) == "Done"
    assert at(state.replica.placement, 1) == ""
    assert tell(RegisterBroker("b", "b:1")) == "Epoch"
    assert at(state.replica.placement, 1) == "b"


def breaches(placement: Placement) -> list[str]:
    """What the rules say, from who serves what alone."""
    ready = {name for name, seat in placement.seats.items() if seat.state == READY}
    roots, trees, alone = placement.roots, placement.trees, placement.alone
    found: list[str] = []
    for kind, served in (("root", roots), ("tree", trees), ("exclusive", alone)):
        for log, name in served.items():
            if (name not in ready) if ready else name:
                found.append(f"{kind} {log} is served by {name or 'nobody'}")
    with_roots, with_alone = set(roots.values()), list(alone.values())
    free_of_both = ready - with_roots - set(with_alone)
    idle = free_of_both - set(trees.values())
    for tree, name in trees.items():
        if name in with_roots and free_of_both:
            found.append(f"forks of {tree} are with roots on {name}, not on {min(free_of_both)}")
    for fork, name in alone.items():
        shared = name in with_roots or name in trees.values() or with_alone.count(name) > 1
        if shared and idle:
            found.append(f"{fork} isn't alone on {name}, and {min(idle)} is free")
    for name, seat in placement.seats.items():
        counted = [
            {log for log, at in each.items() if at == name} for each in (roots, trees, alone)
        ]
        if [seat.roots, seat.trees, seat.alone] != counted:
            found.append(f"{name}'s seat doesn't know what it serves")
    return found


MAKING = ["root", "root", "fork", "fork", "alone"]
ENDING = ["delete", "squash", "promote"]
POOL = ["register", "register", "lose", "find", "drain", "forget"]
STEP = st.tuples(st.sampled_from([*MAKING, *ENDING, *POOL]), st.integers(0, 30))


class Story:
    """Commands that a list of choices makes, of the state as it is then."""

    def __init__(self) -> None:
        self.state = State("test", Limits())
        self.made = 0

    def command(self, what: str, choice: int) -> object:
        replica = self.state.replica
        logs = list(replica.forest.logs.values())
        log = logs[choice % len(logs)] if logs else None
        name = NAMES[choice % 5]
        seat = replica.placement.seats.get(name) or Seat(name, "", 0)
        self.made += 1
        match what:
            case "register":
                return RegisterBroker(name, f"{name}:1")
            case "format":
                return RaiseFormat(choice)
            case "lose":
                return LoseBroker(name, seat.epoch)
            case "find":
                return FindBroker(name, seat.epoch)
            case "drain":
                return DrainBroker(name, seat.epoch)
            case "forget":
                return ForgetBroker(name, seat.epoch)
            case "fork" | "alone" if log is not None:
                severed = choice % 3 == 0
                policy = OnParentDelete.CASCADE if choice % 2 else OnParentDelete.ORPHAN
                kind = Kind.SEVERED if severed else Kind.CONTINUOUS
                promotable = not severed and choice % 5 == 1
                return ForkLog(
                    log.id,
                    kind,
                    promotable=promotable,
                    on_parent_delete=policy,
                    exclusive=what == "alone",
                )
            case "delete" if log is not None:
                return DeleteLog(log.id, force=True)
            case "squash" if log is not None:
                return Squash(log.id)
            case "promote" if log is not None:
                return Promote(log.id)
            case _:
                return CreateLog(f"log-{self.made}")

    def tell(self, command: object) -> None:
        self.state.apply(Entry(self.made, b"", command))  # pyright: ignore[reportArgumentType]


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, min_size=20, max_size=80), st.integers(0, 80))
def test_the_rules_hold_after_any_command_and_a_snapshot_at_any_point_changes_nothing(
    steps: list[tuple[str, int]], saved_after: int
) -> None:
    story, again = Story(), State("test", Limits())
    if saved_after % 2:
        steps = [("format", 2), *steps]
    for number, (what, choice) in enumerate(steps):
        command = story.command(what, choice)
        story.tell(command)
        placement = story.state.replica.placement
        assert breaches(placement) == [], command
        again.apply(Entry(story.made, b"", command))  # pyright: ignore[reportArgumentType]
        if number == saved_after:
            image = snapshot.save(again.replica)
            again.replica = snapshot.load(image, again.replica.limits)
    assert snapshot.save(again.replica) == snapshot.save(story.state.replica)
    forest, placement = story.state.replica.forest, story.state.replica.placement
    forks = [log for log in forest.logs.values() if log.kind is not Kind.ROOT]
    assert placement.roots.keys() == {log.id for log in forest.logs.values()} - {
        log.id for log in forks
    }
    shared = [log.family.id for log in forks if log.id not in placement.alone]
    assert placement.forks == {tree: shared.count(tree) for tree in shared}
    assert placement.trees.keys() == placement.forks.keys()


@given(
    st.lists(st.sampled_from(["root", "fork", "drop"]), min_size=10, max_size=40), st.integers(4, 7)
)
def test_whatever_is_made_and_squashed_one_of_four_or_more_brokers_is_free(
    steps: list[str], brokers: int
) -> None:
    placement = pool(*NAMES[:brokers])
    forked: list[LogId] = []
    for tree, what in enumerate(steps, 1):
        if what == "root":
            placement.add_root(LogId(tree))
        elif what == "fork":
            placement.add_fork(LogId(tree))
            forked.append(LogId(tree))
        elif forked:
            placement.remove_fork(LogId(0), forked.pop(0))
        placement.check_spare("a fork")


def test_placing_again_what_is_placed_moves_nothing() -> None:
    """Two brokers that both have roots don't hand forks to and fro."""
    placement = pool("a", "b")
    placement.add_root(LogId(1))
    placement.lose("b", 2)
    placement.add_fork(LogId(1))
    placement.add_alone(LogId(9))
    before = (dict(placement.trees), dict(placement.alone))
    for epoch in range(5, 9):
        placement.register("a", "a:1", epoch)
        assert (placement.trees, placement.alone) == before
    assert placement.seats["b"].state == LOST
