"""The lazy tail tree against tails moved one by one on an explicit tree (AgileLog, 5.5.2)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from anabranch.core.bolt.logs.euler_tour import PRIORITY_OF_ROOT, Mark, walk
from anabranch.core.bolt.logs.tails import LazyTailTree, Tail


class Log:
    """A node of the explicit tree: its tail a number, its block count from the definition."""

    def __init__(self, handle: Tail, tail: int, parent: Log | None, promotable: bool) -> None:
        self.handle = handle
        self.tail = tail
        self.parent = parent
        self.promotable = promotable
        self.children: list[Log] = []

    def subtree(self) -> Iterator[Log]:
        heap: list[Log] = [self]
        while heap:
            log = heap.pop()
            yield log
            heap.extend(log.children)

    def promotable_children(self) -> list[Log]:
        return [child for child in self.children if child.promotable]

    def blocks(self) -> int:
        """Spec 6.2: edges up to a log with a live promotable fork, but not through such a fork."""
        count, log = 0, self
        while log.parent is not None:
            count += not log.promotable and bool(log.parent.promotable_children())
            log = log.parent
        return count


class Forest:
    """Every call goes to the lazy tail tree and, node by node, to the explicit one."""

    def __init__(self) -> None:
        self.tails = LazyTailTree()
        self.roots: list[Log] = []
        self.logs: list[Log] = []

    def root(self, tail: int) -> Log:
        log = Log(self.tails.root(tail), tail, None, promotable=False)
        self.roots.append(log)
        self.logs.append(log)
        return log

    def fork(self, parent: Log, promotable: bool = False) -> Log:
        first = promotable and not parent.promotable_children()
        log = Log(self.tails.fork(parent.handle), parent.tail, parent, promotable)
        parent.children.append(log)
        self.logs.append(log)
        if first:
            self.tails.block_below(parent.handle, 1, (log.handle,))
        return log

    def append(self, log: Log, count: int) -> None:
        assert self.tails.append(log.handle, count) == log.tail
        for each in log.subtree():
            each.tail += count

    def squash(self, log: Log) -> None:
        parent, gone = log.parent, set(log.subtree())
        self.tails.cut(log.handle)
        self.logs = [each for each in self.logs if each not in gone]
        if parent is None:
            self.roots.remove(log)
            return
        parent.children.remove(log)
        if log.promotable and not parent.promotable_children():
            self.tails.block_below(parent.handle, -1, ())

    def promote(self, log: Log) -> None:
        parent = log.parent
        assert parent is not None
        for rival in parent.promotable_children():
            if rival is not log:
                self.squash(rival)
        # The fork's own promotable forks become the parent's, and go on blocking the others.
        if not log.promotable_children():
            self.tails.block_below(parent.handle, -1, (log.handle,))
        self.tails.absorb(parent.handle, log.handle)
        records, inside = log.tail - parent.tail, set(log.subtree())
        for each in parent.subtree():
            if each not in inside:
                each.tail += records
        for child in log.children:
            child.parent = parent
        parent.children.remove(log)
        parent.children.extend(log.children)
        self.logs.remove(log)

    def restore(self) -> None:
        """What a snapshot keeps is each log's parent, tail and block count."""
        self.tails = LazyTailTree()
        for root in self.roots:
            for log in root.subtree():
                if log.parent is None:
                    log.handle = self.tails.root(log.tail)
                else:
                    log.handle = self.tails.fork(log.parent.handle, log.tail, log.blocks())

    def may_fork(self, parent: Log, promotable: bool) -> bool:
        return promotable or not parent.promotable_children()  # spec D3

    def check(self) -> None:
        for root in self.roots:
            logs = list(root.subtree())
            assert self.tails.check(logs[-1].handle) == len(logs)
            self.check_order(root)
        for log in self.logs:
            assert self.tails.tail(log.handle) == log.tail
            assert self.tails.block(log.handle) == log.blocks()

    def check_order(self, root: Log) -> None:
        """Every log is entered inside its parent's range, and left before its parent is."""
        by_mark: dict[Mark, Log] = {log.handle: log for log in root.subtree()}
        above: list[Log] = []
        for mark in walk(root.handle):
            if above and above[-1].handle.exit is mark:
                above.pop()
                continue
            log = by_mark.pop(mark)
            assert log.parent is (above[-1] if above else None)
            if log.children:
                above.append(log)
        assert not by_mark
        assert above in ([], [root])


def depth(mark: Mark) -> int:
    count = 0
    while mark.up is not None:
        mark, count = mark.up, count + 1
    return count


def shape(root: Mark) -> list[tuple[int, int, int, int]]:
    return [(mark.priority, depth(mark), mark.value, mark.lazy) for mark in walk(root)]


def test_agilelog_fig_4_tails() -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    assert tails.append(root, 1) == 0
    fork = tails.fork(root)
    assert tails.append(fork, 1) == 1
    assert tails.append(root, 1) == 1
    assert tails.append(fork, 1) == 3
    assert tails.append(root, 1) == 2
    assert (tails.tail(root), tails.tail(fork)) == (3, 5)


def test_agilelog_5_5_2_an_append_reaches_its_subtree_and_nothing_else() -> None:
    forest = Forest()
    root = forest.root(10)
    other_root = forest.root(3)
    left, right = forest.fork(root), forest.fork(root)
    below = forest.fork(left)
    forest.append(left, 5)
    assert [log.tail for log in (root, other_root, left, right, below)] == [10, 3, 15, 10, 15]
    forest.check()
    forest.append(below, 2)
    forest.append(root, 1)
    forest.check()


def test_agilelog_4_1_promote_moves_the_siblings_by_the_promoted_records() -> None:
    tails = LazyTailTree()
    root = tails.root(100)
    sibling = tails.fork(root)
    below_sibling = tails.fork(sibling)
    tails.append(sibling, 1)
    chosen = tails.fork(root)
    below_chosen = tails.fork(chosen)
    tails.append(root, 2)
    tails.append(chosen, 30)
    tails.append(below_chosen, 4)
    tails.absorb(root, chosen)
    logs = (root, sibling, below_sibling, below_chosen)
    assert [tails.tail(log) for log in logs] == [132, 133, 133, 136]
    assert tails.check(root) == 4
    # What was the fork's is now the parent's: the next record reaches all of them.
    assert tails.append(root, 1) == 132
    assert [tails.tail(log) for log in logs] == [133, 134, 134, 137]


def test_agilelog_5_6_a_nested_promotable_goes_on_blocking_after_its_parents_promote() -> None:
    forest = Forest()
    root = forest.root(0)
    parent = forest.fork(root)
    sibling = forest.fork(parent)
    chosen = forest.fork(parent, promotable=True)
    plain, nested = forest.fork(chosen), forest.fork(chosen, promotable=True)
    forest.append(nested, 7)
    forest.append(chosen, 2)
    forest.check()
    forest.promote(chosen)
    forest.check()
    blocks = [forest.tails.block(log.handle) for log in (parent, sibling, plain, nested)]
    assert blocks == [0, 1, 1, 0]
    forest.promote(nested)
    forest.check()
    assert parent.tail == 9
    assert all(forest.tails.block(log.handle) == 0 for log in forest.logs)


def test_agilelog_5_6_the_first_promote_squashes_its_rivals() -> None:
    forest = Forest()
    root = forest.root(0)
    rivals = [forest.fork(root, promotable=True) for _ in range(5)]
    below = [forest.fork(rival) for rival in rivals]
    forest.append(rivals[2], 3)
    forest.promote(rivals[2])
    forest.check()
    assert forest.logs == [root, below[2]]


def test_agilelog_5_6_squash_of_an_inner_log_takes_all_below_it() -> None:
    forest = Forest()
    root = forest.root(5)
    kept, inner = forest.fork(root), forest.fork(root)
    below = [forest.fork(inner) for _ in range(3)]
    deeper = forest.fork(below[1])
    forest.append(inner, 2)
    forest.squash(inner)
    forest.check()
    assert forest.logs == [root, kept]
    for gone in (inner, below[0], deeper):
        with pytest.raises(AssertionError):
            forest.tails.tail(gone.handle)
        with pytest.raises(AssertionError):
            forest.tails.append(gone.handle, 1)
        # Marks refer to each other in circles: taken apart, they are freed without a collection.
        handle = gone.handle
        assert handle.up is handle.left is handle.right is handle.exit is None


def test_squash_of_a_severed_fork_takes_its_whole_tour() -> None:
    tails = LazyTailTree()
    severed = tails.root(5)
    fork = tails.fork(severed)
    tails.cut(severed)
    for gone in (severed, fork):
        with pytest.raises(AssertionError):
            tails.tail(gone)
        with pytest.raises(AssertionError):
            tails.append(gone, 1)


def test_a_promoted_log_has_no_tail_of_its_own() -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    fork = tails.fork(root)
    tails.absorb(root, fork)
    with pytest.raises(AssertionError):
        tails.tail(fork)


def test_a_log_without_forks_takes_one_mark_again_once_they_are_gone() -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    log = tails.fork(root)
    squashed, promoted = tails.fork(log), tails.fork(log)
    assert len(list(walk(root))) == 5
    tails.cut(squashed)
    assert log.exit is not None
    tails.append(promoted, 4)
    tails.absorb(log, promoted)
    assert list(walk(root)) == [root, log]
    assert tails.append(log, 1) == 4


def test_add_moves_a_whole_subtree() -> None:
    tails = LazyTailTree()
    root = tails.root(7)
    log = tails.fork(root)
    below = tails.fork(log)
    tails.add(log, 3)
    tails.add(below, 1)
    tails.add(root, 10)
    assert [tails.tail(each) for each in (root, log, below)] == [17, 20, 21]


def test_tails_and_block_counts_do_not_touch_each_other_at_their_limits() -> None:
    tails = LazyTailTree()
    root = tails.root((1 << 60) - 2)
    log = tails.fork(root)
    below = tails.fork(log)
    tails.append(root, 1)
    for _ in range(1_000):
        tails.block_below(log, 1, ())
    assert [tails.tail(each) for each in (root, log, below)] == [(1 << 60) - 1] * 3
    assert [tails.block(each) for each in (root, log, below)] == [0, 0, 1_000]


def test_agilelog_6_3_a_thousand_logs_at_random() -> None:
    rng = random.Random(4)
    forest = Forest()
    for tail in (0, 50):
        forest.root(tail)
    most = 0
    for step in range(6_000):
        log = rng.choice(forest.logs)
        dice = rng.random()
        if dice < 0.55:
            promotable = rng.random() < 0.2
            if forest.may_fork(log, promotable):
                forest.fork(log, promotable)
        elif dice < 0.95:
            forest.append(log, rng.randrange(1, 100))
        elif log.promotable:
            forest.promote(log)
        elif log.parent is not None and rng.random() < 0.25:
            forest.squash(log)
        most = max(most, len(forest.logs))
        if step % 200 == 0:
            forest.check()
    forest.check()
    assert most > 1_000


def test_a_chain_of_ten_thousand_forks() -> None:
    tails = LazyTailTree()
    chain = [tails.root(0)]
    for _ in range(10_000):
        chain.append(tails.fork(chain[-1]))
        tails.append(chain[-1], 1)
    tails.append(chain[0], 5)
    tails.append(chain[5_000], 7)
    for level in range(10_001):
        assert tails.tail(chain[level]) == 5 + level + 7 * (level >= 5_000)
    assert tails.check(chain[0]) == 10_001
    # A perfect tree of 20,001 marks is 14 deep; the shape depends on the history alone.
    assert max(depth(mark) for mark in walk(chain[0])) <= 50
    tails.absorb(chain[4_999], chain[5_000])
    assert tails.tail(chain[10_000]) == 10_012
    tails.cut(chain[2])
    assert tails.check(chain[0]) == 2


def test_a_hundred_thousand_forks_of_one_log() -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    parent = tails.fork(root)
    forks = [tails.fork(parent) for _ in range(100_000)]
    tails.append(parent, 3)
    tails.append(forks[500], 2)
    tails.block_below(parent, 1, forks[:3])
    assert [tails.tail(forks[i]) for i in (0, 499, 500, 501, 99_999)] == [3, 3, 5, 3, 3]
    assert [tails.block(forks[i]) for i in (0, 2, 3, 99_999)] == [0, 0, 1, 1]
    assert tails.check(parent) == 100_002
    assert max(depth(fork) for fork in forks) <= 58
    for fork in forks[::2]:
        tails.cut(fork)
    assert tails.check(parent) == 50_002
    tails.cut(parent)
    assert tails.check(root) == 1


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("damage", ["up", "priority"])
def test_check_finds_a_damaged_link(side: str, damage: str) -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    for _ in range(50):
        tails.fork(root)
    child = next(c for mark in walk(root) if mark is not root and (c := getattr(mark, side)))
    assert tails.check(root) == 51
    setattr(child, damage, root if damage == "up" else PRIORITY_OF_ROOT)
    with pytest.raises(AssertionError, match="a child"):
        tails.check(root)


def test_check_finds_an_exit_mark_that_nothing_needs() -> None:
    tails = LazyTailTree()
    root = tails.root(0)
    first = tails.fork(root)
    second = tails.fork(root)
    second.exit = first
    with pytest.raises(AssertionError, match="without forks"):
        tails.check(root)


def test_equal_histories_give_equal_trees() -> None:
    def tree() -> Tail:
        tails = LazyTailTree()
        logs = [tails.root(0)]
        for i in range(300):
            logs.append(tails.fork(logs[i * i % len(logs)]))
            tails.append(logs[i // 2], 1)
        return logs[0]

    assert shape(tree()) == shape(tree())
    assert shape(tree())[0][0] == PRIORITY_OF_ROOT


PICK = st.integers(0, 1 << 16)


class TailsAgainstExplicitTree(RuleBasedStateMachine):
    """After every step all tails, all block counts and the structure of every tour are right."""

    def __init__(self) -> None:
        super().__init__()
        self.forest = Forest()
        self.forest.root(0)

    def log(self, pick: int) -> Log:
        return self.forest.logs[pick % len(self.forest.logs)]

    @rule(tail=st.integers(0, 1_000))
    def root(self, tail: int) -> None:
        self.forest.root(tail)

    @rule(pick=PICK, promotable=st.booleans())
    def fork(self, pick: int, promotable: bool) -> None:
        if self.forest.may_fork(self.log(pick), promotable):
            self.forest.fork(self.log(pick), promotable)

    @precondition(lambda self: len(self.forest.logs) < 300)
    @rule(pick=PICK, count=st.integers(2, 60), deep=st.booleans())
    def forks(self, pick: int, count: int, deep: bool) -> None:
        log = self.log(pick)
        if self.forest.may_fork(log, promotable=False):
            for _ in range(count):
                fork = self.forest.fork(log)
                log = fork if deep else log

    @rule(pick=PICK, count=st.integers(1, 1 << 40))
    def append(self, pick: int, count: int) -> None:
        self.forest.append(self.log(pick), count)

    @precondition(lambda self: any(log.promotable for log in self.forest.logs))
    @rule(pick=PICK)
    def promote(self, pick: int) -> None:
        promotable = [log for log in self.forest.logs if log.promotable]
        self.forest.promote(promotable[pick % len(promotable)])

    @precondition(lambda self: len(self.forest.logs) > 1)
    @rule(pick=PICK)
    def squash(self, pick: int) -> None:
        log = self.log(pick)
        if log.parent is not None or len(self.forest.roots) > 1:
            self.forest.squash(log)

    @rule()
    def restore(self) -> None:
        self.forest.restore()

    @invariant()
    def all_is_right(self) -> None:
        self.forest.check()


TestTailsAgainstExplicitTree = TailsAgainstExplicitTree.TestCase
TestTailsAgainstExplicitTree.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None
)
