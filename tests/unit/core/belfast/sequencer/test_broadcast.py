"""Every replica gets every entry in the end, however many letters are lost on the way."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, ChangeView
from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.protocol.letters import Decided, Restored
from anabranch.core.belfast.sequencer.broadcast import ENTRIES_MAX, Feed
from anabranch.core.belfast.sequencer.counters import SequencerCounters
from anabranch.core.machine import Effect, Send

PRIMARIES = ("a1", "b1")
BACKUP = "a2"


@dataclass
class Entries:
    """The group's log, of which the oldest entries may be forgotten."""

    all: list[bytes] = field(default_factory=list[bytes])
    base: int = 0
    term: int = 1

    def entries(self, after: int, count_max: int) -> tuple[int, list[bytes]] | None:
        if after < self.base:
            return None
        return after + 1, self.all[after : after + count_max]


class Scene:
    """Two shards, whose primaries are told at once, and a backup that asks."""

    def __init__(self) -> None:
        self.log = Entries()
        self.ledger = Ledger()
        self.effects: list[Effect] = []
        self.counters = SequencerCounters()
        self.ledger.apply([Admit("a", ("a1", "a2"), 0), Admit("b", ("b1",), 0)])
        self.feed = Feed(self.log, self.ledger, 0, self.effects, self.counters)
        self.has: dict[str, int] = dict.fromkeys((*PRIMARIES, BACKUP), 0)
        """What each replica holds: entries up to here."""

    def commit(self, count: int) -> None:
        for _ in range(count):
            self.log.all.append(b"%d" % len(self.log.all))
            self.feed.committed(len(self.log.all), self.log.all[-1])
        self.feed.flush()

    def deliver(self, *, lost: bool = False) -> list[tuple[str, object]]:
        sent = [(each.to, each.message) for each in self.effects if isinstance(each, Send)]
        assert len(sent) == len(self.effects)
        self.effects.clear()
        for to, letter in () if lost else sent:
            self._take(to, letter)
        return sent

    def _take(self, to: str, letter: object) -> None:
        if isinstance(letter, Restored):
            self.has[to] = max(self.has[to], letter.index)
            return
        assert isinstance(letter, Decided)
        assert letter.entries == self.log.all[letter.first - 1 :][: len(letter.entries)]
        assert 0 < len(letter.entries) <= ENTRIES_MAX
        if letter.first <= self.has[to] + 1:
            self.has[to] = max(self.has[to], letter.first + len(letter.entries) - 1)

    def ask(self, node: str) -> None:
        self.feed.asked(node, self.has[node])


steps = st.lists(
    st.tuples(
        st.sampled_from(["commit"] * 4 + ["ask"] * 4 + ["lose", "linked", "forget"]),
        st.sampled_from((*PRIMARIES, BACKUP)),
        st.integers(1, 5),
    ),
    min_size=12,
    max_size=40,
)


@given(steps)
def test_whoever_goes_on_asking_has_everything_in_the_end(done: list[tuple[str, str, int]]) -> None:
    scene = Scene()
    for what, node, count in done:
        match what:
            case "commit":
                scene.commit(count)
                scene.deliver()
            case "lose":
                scene.commit(count)
                scene.deliver(lost=True)
            case "ask":
                scene.ask(node)
                scene.deliver()
            case "linked":
                scene.feed.linked(node)
            case _:
                scene.log.base = min(scene.log.base + count, len(scene.log.all))
    for _ in range(3):
        for node in scene.has:
            scene.ask(node)
            scene.deliver()
    assert set(scene.has.values()) == {len(scene.log.all)}


@given(st.lists(st.integers(1, 5), max_size=20))
def test_where_nothing_is_lost_nothing_is_sent_twice(commits: list[int]) -> None:
    scene = Scene()
    sent = dict.fromkeys(scene.has, 0)
    for count in commits:
        scene.commit(count)
        for to, letter in scene.deliver():
            assert isinstance(letter, Decided)
            sent[to] += len(letter.entries)
        for node in scene.has:
            scene.ask(node)
        for to, letter in scene.deliver():
            assert isinstance(letter, Decided)
            sent[to] += len(letter.entries)
    assert set(sent.values()) == {sum(commits)}


def test_primaries_are_told_in_the_step_that_commits_and_backups_when_they_ask() -> None:
    scene = Scene()
    scene.commit(2)
    assert sorted(to for to, _ in scene.deliver()) == ["a1", "b1"]
    scene.ask(BACKUP)
    ((to, letter),) = scene.deliver()
    assert (to, letter) == (BACKUP, Decided(1, 1, scene.log.all))


def test_a_letter_may_be_under_way_when_its_reader_says_what_it_has() -> None:
    """What it hasn't got by the second time is taken for lost."""
    scene = Scene()
    scene.ask("a1")
    scene.commit(1)
    scene.deliver(lost=True)
    scene.ask("a1")
    assert scene.deliver() == []
    scene.ask("a1")
    assert [to for to, _ in scene.deliver()] == ["a1"]
    assert scene.has["a1"] == 1


def test_what_is_under_way_is_not_sent_again_at_once() -> None:
    scene = Scene()
    scene.commit(3)
    scene.effects.clear()
    scene.ask(BACKUP)
    scene.ask(BACKUP)
    assert len(scene.deliver()) == 1


def test_who_asks_in_the_step_that_commits_gets_the_entry_once() -> None:
    """Before it goes to all primaries, it is none that anybody has missed."""
    scene = Scene()
    scene.ask("a1")
    scene.log.all.append(b"new")
    scene.feed.committed(1, b"new")
    scene.ask("a1")
    assert scene.deliver() == []
    scene.feed.flush()
    assert sorted(to for to, _ in scene.deliver()) == ["a1", "b1"]


def test_after_another_connection_a_reader_is_believed_at_once() -> None:
    scene = Scene()
    scene.ask("a1")
    scene.commit(1)
    scene.deliver(lost=True)
    scene.feed.linked("a1")
    scene.ask("a1")
    assert [to for to, _ in scene.deliver()] == ["a1"]


def test_who_needs_what_is_forgotten_gets_the_ledger_whole() -> None:
    scene = Scene()
    scene.commit(5)
    scene.deliver(lost=True)
    scene.log.base = 3
    scene.ask("b1")
    ((to, letter),) = scene.deliver()
    assert to == "b1"
    assert isinstance(letter, Restored)
    assert (letter.index, letter.image) == (5, scene.ledger.image())
    assert scene.counters.restored == 1


def test_many_entries_go_in_several_letters() -> None:
    scene = Scene()
    scene.commit(2 * ENTRIES_MAX + 1)
    scene.deliver(lost=True)
    for upto in (ENTRIES_MAX, 2 * ENTRIES_MAX, 2 * ENTRIES_MAX + 1):
        scene.ask(BACKUP)
        scene.deliver()
        assert scene.has[BACKUP] == upto


def test_a_shard_that_has_failed_asks_for_itself_and_a_new_primary_is_told() -> None:
    scene = Scene()
    scene.ledger.apply([ChangeView(view=1, failed=(1,), stand_in=0)])
    scene.ledger.apply([Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",))])
    scene.commit(1)
    assert [to for to, _ in scene.deliver()] == ["a2"]
