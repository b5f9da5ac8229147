"""A replica applies what was decided in order and once, however letters come; and it says that it
is there.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.decisions import Admit, AnyDecision, Release, encode_entry
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.rules import ALIVE_INTERVALS, Rules
from anabranch.core.belfast.protocol.letters import Alive, Decided, Leading, Restored
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.machine import Effect, Send
from anabranch.core.types import MS

SEQUENCERS = ("s1", "s2")
ENTRIES = 12
DECISIONS: list[tuple[AnyDecision, ...]] = [
    (Admit(f"shard-{nth}", ("one",), nth), Release(nth)) for nth in range(ENTRIES)
]


@dataclass
class Told:
    """Whoever follows: it writes down what it is told."""

    decided_: list[AnyDecision] = field(default_factory=list[AnyDecision])
    done: int = 0
    restores: int = 0
    leaders: int = 0
    ticks: int = 0
    away: bool = False

    def decided(self, decision: AnyDecision) -> None:
        self.decided_.append(decision)

    def entry_done(self) -> None:
        self.done += 1

    def restored(self) -> None:
        self.restores += 1

    def on_leader(self) -> None:
        self.leaders += 1

    def on_tick(self) -> None:
        self.ticks += 1

    def claim(self) -> tuple[int, Standing | None, int, int] | None:
        return None if self.away else (4, Standing.LEFT, 77, 9)


@dataclass
class Scene:
    told: Told = field(default_factory=Told)
    effects: list[Effect] = field(default_factory=list[Effect])

    def __post_init__(self) -> None:
        config = ShardConfig(
            shard="shard-2", node="a1", replicas=("a1", "a2"), sequencers=SEQUENCERS, quota=6
        )
        self.alarms = Alarms(self.effects)
        self.following = Following(config, self.effects, self.alarms, self.told)

    def decide(self, first: int, end: int, sender: str = "s1") -> None:
        entries = [encode_entry(DECISIONS[nth - 1]) for nth in range(first, end)]
        self.following.decided(sender, Decided(1, first, entries))

    def restore(self, index: int) -> None:
        self.following.restored(Restored(term=1, index=index, image=after(index).image()))

    def said(self) -> list[tuple[str, Alive]]:
        """Since it was last asked for."""
        found = [
            (each.to, each.message)
            for each in self.effects
            if isinstance(each, Send) and isinstance(each.message, Alive)
        ]
        self.effects.clear()
        return found

    def sleep(self, intervals: int) -> None:
        for _ in range(intervals):
            self.alarms.now += self.following.rules.t_ord
            self.alarms.ring()


def after(index: int) -> Ledger:
    ledger = Ledger()
    for decisions in DECISIONS[:index]:
        ledger.apply(decisions)
    return ledger


spans = st.lists(
    st.tuples(st.booleans(), st.integers(1, ENTRIES), st.integers(0, ENTRIES)),
    min_size=8,
    max_size=30,
)


@given(spans)
def test_entries_are_applied_in_order_and_once_however_they_come(
    letters: list[tuple[bool, int, int]],
) -> None:
    scene, known, restores = Scene(), 0, 0
    told: list[AnyDecision] = []
    for whole, first, count in letters:
        if whole:
            restores += first > known
            scene.restore(first)
            known = max(known, first)
        else:
            end = min(first + count, ENTRIES + 1)
            scene.decide(first, end)
            if first <= known + 1 < end:
                told += [each for decided in DECISIONS[known : end - 1] for each in decided]
                known = end - 1
        assert scene.following.applied == known
        assert scene.following.ledger.image() == after(known).image()
        assert scene.told.decided_ == told
        assert scene.told.restores == restores
    assert 2 * scene.told.done == len(told)


@given(spans)
def test_a_gap_is_asked_about_once_and_whoever_told_beyond_it_is_asked(
    letters: list[tuple[bool, int, int]],
) -> None:
    scene = Scene()
    scene.following.begin()
    scene.said()
    asked = -1
    for _, first, count in letters:
        known = scene.following.applied
        scene.decide(first, min(first + count, ENTRIES + 1), "s2")
        questions = [(to, alive.applied) for to, alive in scene.said()]
        gap = first > known + 1
        assert questions == ([("s2", known)] if gap and asked != known else [])
        asked = known if gap else asked


def test_what_was_asked_for_is_asked_for_again_after_a_while() -> None:
    scene = Scene()
    scene.following.begin()
    scene.decide(3, 4)
    scene.said()
    scene.decide(4, 5)
    assert scene.said() == []
    scene.sleep(ALIVE_INTERVALS)
    scene.said()
    scene.decide(5, 6)
    assert [to for to, _ in scene.said()] == ["s1"]


def test_nobody_hears_of_a_replica_before_its_journal_says_which_it_is() -> None:
    scene = Scene()
    scene.following.linked("s1")
    scene.sleep(3 * ALIVE_INTERVALS)
    assert scene.said() == []
    scene.following.begin()
    assert [to for to, _ in scene.said()] == ["s1", "s2"]


def test_it_says_who_it_is_and_what_it_has() -> None:
    scene = Scene()
    scene.restore(5)
    scene.following.begin()
    ((_, alive), _) = scene.said()
    assert alive == Alive(
        "shard-2",
        ("a1", "a2"),
        6,
        epoch=4,
        applied=5,
        view=0,
        standing=int(Standing.LEFT),
        disk=77,
        fsync=True,
        placed=9,
    )


def test_it_says_so_every_few_intervals_unless_it_is_to_be_missed() -> None:
    scene = Scene()
    scene.following.begin()
    scene.said()
    scene.sleep(4 * ALIVE_INTERVALS)
    assert [to for to, _ in scene.said()] == [*SEQUENCERS] * 4
    assert scene.told.ticks == 4
    scene.told.away = True
    scene.sleep(4 * ALIVE_INTERVALS)
    assert scene.said() == []
    assert scene.told.ticks == 8


@pytest.mark.parametrize(
    ("terms", "leader", "leaders"),
    [
        ([1], "s1", 1),
        ([1, 1], "s1", 1),
        ([1, 2], "s2", 2),
        ([2, 1], "s1", 1),
        ([1, 2, 3], "s1", 3),
        ([1, 3, 2, 3], "s2", 2),
    ],
    ids=str,
)
def test_who_leads_in_the_latest_term_is_the_leader(
    terms: list[int], leader: str, leaders: int
) -> None:
    """Letters come from one sequencer and the other by turns."""
    scene = Scene()
    for nth, term in enumerate(terms):
        scene.following.leading(SEQUENCERS[nth % 2], Leading(term, Rules()))
    assert scene.following.leader == leader
    assert scene.following.term == max(terms)
    assert scene.told.leaders == leaders


def test_rules_and_rest_are_those_of_the_leader_and_not_of_one_before() -> None:
    scene = Scene()
    scene.following.leading("s1", Leading(2, Rules(t_ord_us=7_000), at_rest=True))
    scene.following.leading("s2", Leading(1, Rules(t_ord_us=9_000), at_rest=False))
    assert scene.following.rules.t_ord == 7 * MS
    assert scene.following.at_rest
    scene.following.leading("s1", Leading(2, Rules(t_ord_us=7_000), at_rest=False))
    assert not scene.following.at_rest


def test_another_connection_to_the_leader_may_have_lost_what_was_told() -> None:
    scene = Scene()
    scene.following.begin()
    scene.following.leading("s1", Leading(1, Rules()))
    scene.said()
    scene.following.linked("s2")
    scene.following.linked("another shard's replica")
    assert [to for to, _ in scene.said()] == ["s2"]
    assert scene.told.leaders == 1
    scene.following.linked("s1")
    assert scene.told.leaders == 2


def test_it_knows_itself_once_its_shard_is_admitted() -> None:
    scene = Scene()
    scene.decide(1, 3)
    assert scene.following.me is None
    scene.decide(3, 4)
    me = scene.following.me
    assert me is not None
    assert (me.id, me.name, me.standing) == (2, "shard-2", Standing.LEFT)
