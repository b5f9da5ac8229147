"""Sequencers that have lost decisions: a shard that knows better serves nobody, and no position is
given out twice.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.belfast.shard.shard_stage import Stage

from anabranch.core.belfast.ledger.decisions import decode_entry
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.protocol.letters import Alive
from anabranch.core.belfast.protocol.messages import Appended
from anabranch.core.errors.refused import Refused


@dataclass
class Scene:
    stage: Stage = field(default_factory=lambda: Stage({"a": ("a1",)}))
    appended: list[int] = field(default_factory=list[int])
    """Tokens."""

    def __post_init__(self) -> None:
        self.stage.admit()

    @property
    def forgotten(self) -> bool:
        return self.stage.nodes["a1"].machine.forgotten

    def work(self, quota: int, records: int) -> None:
        """Another window, records, and a cut of what is reported since."""
        stage = self.stage
        stage.open(quota, rounds=3)
        self.appended.append(stage.append("a1", *(f"v{nth}" for nth in range(records))))
        self.cut()

    def cut(self) -> None:
        """As the sequencers do it: each window to its end, by the reports of this order."""
        stage, ledger = self.stage, self.stage.ledger
        for window in list(ledger.windows):
            done = ledger.cut if window is ledger.windows[0] else 0
            rounds = [each.rounds for each in stage.reports("a1") if each.window == window.number]
            past = any(each.window > window.number for each in stage.reports("a1"))
            to = window.rounds if past else max(rounds, default=0)
            if to > done:
                stage.cut(window.number, to)
            if to < window.rounds:
                return

    def lose(self, count: int, idle: int) -> None:
        """The last decisions; all that follows is decided anew, after some that mean nothing."""
        stage = self.stage
        stage.letters.clear()
        stage.crash("a1")
        kept = max(1, len(stage.entries) - count)
        del stage.entries[kept:]
        stage.ledger = Ledger()
        for entry in stage.entries:
            stage.ledger.apply(decode_entry(entry))
        stage.restart("a1")
        stage.tell("a1", 1)
        for _ in range(idle):
            stage.decide()

    def places(self) -> list[int]:
        found: list[int] = []
        for token in self.appended:
            for each in self.stage.of(token, Appended):
                found += [place for run in each.runs for place in range(run.first, run.end)]
        return found


def test_a_shard_whose_sequencers_begin_anew_serves_nobody_and_says_why() -> None:
    """Once their order has come as far as the shard's journal, places would be given out again."""
    scene = Scene()
    for _ in range(3):
        scene.work(quota=2, records=6)
    known = scene.places()
    assert len(known) == 18
    scene.lose(count=99, idle=len(scene.stage.entries))
    assert scene.forgotten
    token = scene.stage.append("a1", "more")
    refused = scene.stage.answer(token)
    assert isinstance(refused, Refused)
    assert refused.code == "shard-away"
    assert "restore their journals" in refused.message
    (answer,) = scene.stage.of(scene.stage.subscribe("a1", "a"), Refused)
    assert answer.code == "shard-away"


def test_a_shard_that_knows_better_falls_silent() -> None:
    """Its sequencers must not count on it, nor cut what it reports."""
    scene = Scene()
    scene.work(quota=2, records=5)
    scene.lose(count=99, idle=9)
    scene.stage.letters.clear()
    scene.stage.sleep(20)
    assert scene.stage.reports("a1") == []
    assert not any(isinstance(letter, Alive) for _, letter in scene.stage.letters)


def test_where_only_what_meant_nothing_to_it_is_lost_a_shard_goes_on() -> None:
    scene = Scene()
    scene.work(quota=2, records=6)
    for _ in range(4):
        scene.stage.decide()
    scene.lose(count=4, idle=6)
    assert not scene.forgotten
    scene.work(quota=2, records=6)
    assert len(set(scene.places())) == 12


works = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=5)


@settings(deadline=None)
@given(works, st.integers(1, 12), st.integers(0, 15), works)
def test_no_place_is_given_out_twice_whatever_is_lost(
    before: list[tuple[int, int]], lost: int, idle: int, after: list[tuple[int, int]]
) -> None:
    scene = Scene()
    for quota, records in before:
        scene.work(quota, records)
    scene.lose(lost, idle)
    for quota, records in after:
        scene.work(quota, records)
    places = scene.places()
    assert len(set(places)) == len(places)


def test_a_shard_that_was_told_less_than_it_knew_says_what_it_waits_for() -> None:
    """It may yet be told; until then whoever asks hears why it doesn't serve."""
    scene = Scene()
    scene.work(quota=2, records=6)
    entries = list(scene.stage.entries)
    scene.lose(count=2, idle=0)
    stage = scene.stage
    for token in (stage.append("a1", "new"), stage.subscribe("a1", "a")):
        refused = stage.answer(token)
        assert isinstance(refused, Refused)
        assert "they have lost what they decided" in refused.message
    stage.entries = entries
    stage.tell("a1", 1)
    assert stage.nodes["a1"].machine.awaited is None
    delivered = stage.delivered(stage.subscribe("a1", "a"))
    assert delivered[0][1] == "v0"
