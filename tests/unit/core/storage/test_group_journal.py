"""A journal writes one group at a time, repeats what failed, and says in order what is stored."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.alarms import Alarms
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Effect, EntriesRead, Persist, ReadEntries, ReadFailed
from anabranch.core.replication.entries import Item, JournalEntry, Note, encode
from anabranch.core.storage.group_journal import GROUP_BYTES_MAX, RETRY_MS, GroupJournal
from anabranch.core.types import MS


class Stage:
    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.alarms = Alarms(self.effects)
        self.stored: list[tuple[int, JournalEntry]] = []
        self.journal = GroupJournal(self.effects, self.alarms, encode, self._on_stored)

    def put(self, *notes: bytes) -> None:
        for note in notes:
            self.journal.put(Note(note))
        self.journal.settle()

    def groups(self) -> list[int]:
        """The sizes of the groups that were given to the disk since the last look."""
        found = [len(each.entries) for each in self.effects if isinstance(each, Persist)]
        self.effects.clear()
        return found

    def persisted(self, last: int) -> None:
        self.journal.persisted(last)
        self.journal.settle()

    def wait(self, ms: int) -> None:
        self.alarms.now += ms * MS
        self.alarms.ring()
        self.journal.settle()

    def _on_stored(self, index: int, entry: JournalEntry) -> None:
        self.stored.append((index, entry))


def test_what_comes_while_a_group_is_in_flight_goes_together_in_the_next() -> None:
    stage = Stage()
    stage.put(b"a")
    stage.put(b"b")
    stage.put(b"c")
    assert stage.groups() == [1]
    stage.persisted(1)
    assert stage.groups() == [2]
    stage.persisted(3)
    assert stage.stored == [(1, Note(b"a")), (2, Note(b"b")), (3, Note(b"c"))]
    assert stage.journal.unstored_bytes == 0
    assert stage.journal.last == 3


def test_an_action_waits_for_what_was_put_before_it_and_for_nothing_else() -> None:
    stage, done = Stage(), list[str]()
    stage.journal.when_stored(lambda: done.append("at once"))
    stage.put(b"a")
    stage.journal.when_stored(lambda: done.append("after a"))
    stage.put(b"b")
    stage.journal.when_stored(lambda: done.append("after b"))
    assert done == ["at once"]
    stage.persisted(1)
    assert done == ["at once", "after a"]
    stage.persisted(2)
    assert done == ["at once", "after a", "after b"]


def test_a_group_that_failed_is_written_again_and_nothing_before_it() -> None:
    stage, done = Stage(), list[str]()
    stage.put(b"a")
    stage.journal.when_stored(lambda: done.append("a"))
    stage.groups()
    stage.journal.persist_failed(StorageFull("disk"))
    stage.put(b"b")
    assert stage.groups() == [], "it pauses first"
    assert "no space" in (stage.journal.obstacle or "")
    stage.wait(RETRY_MS)
    assert stage.groups() == [1]
    stage.persisted(1)
    assert stage.journal.obstacle is None
    assert done == ["a"]
    assert stage.groups() == [1]


def test_a_look_writes_an_empty_group_and_again_until_nothing_is_in_the_way() -> None:
    stage = Stage()
    stage.journal.look()
    stage.put()
    assert stage.groups() == [0]
    stage.journal.persist_failed(StorageFailed("box", "it was trimmed"))
    assert "trimmed" in (stage.journal.obstacle or "")
    stage.wait(RETRY_MS)
    assert stage.groups() == [0]
    stage.persisted(0)
    assert stage.journal.obstacle is None
    assert stage.groups() == []


def test_what_is_written_anyway_is_look_enough() -> None:
    stage = Stage()
    stage.journal.look()
    stage.put(b"a")
    assert stage.groups() == [1]
    stage.persisted(1)
    assert stage.groups() == []


def test_groups_are_bounded_by_bytes() -> None:
    stage = Stage()
    large = bytes(GROUP_BYTES_MAX // 2)
    stage.put(large, large, large, large)
    assert stage.groups() == [2]
    assert stage.journal.unstored_bytes > 4 * len(large)


def test_a_failed_read_yields_nothing_after_a_pause() -> None:
    stage, found = Stage(), list[list[bytes]]()
    stage.journal.read(1, 3, lambda entries: found.append(list(entries)))
    stage.journal.read(3, 4, lambda entries: found.append(list(entries)))
    first, second = [each for each in stage.effects if isinstance(each, ReadEntries)]
    stage.journal.entries_read(ReadFailed(first.token, StorageFailed("disk", "read")))
    assert stage.journal.unreadable is not None
    assert found == []
    stage.wait(RETRY_MS)
    assert found == [[]]
    stage.journal.entries_read(EntriesRead(second.token, [b"x"]))
    assert found == [[], [b"x"]]
    assert stage.journal.unreadable is None


def test_the_write_in_flight_counts_as_a_delay() -> None:
    stage = Stage()
    stage.put(b"a")
    stage.alarms.now += 30 * MS
    assert stage.journal.delay == 30 * MS
    stage.persisted(1)
    assert stage.journal.delay == 30 * MS


class Papers(Stage):
    """A journal, and a list of everything that was put into it."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[JournalEntry] = []
        self.flying = 0
        self.done: list[tuple[int, int]] = []
        """Actions that ran: how much was put before each, and stored when it ran."""

    def settle(self) -> None:
        self.journal.settle()
        for effect in self.effects:
            if isinstance(effect, Persist):
                assert self.flying == 0, "one group is in flight"
                self.flying = len(effect.entries)
                first = len(self.stored)
                expected = self.all[first : first + self.flying]
                assert list(effect.entries) == [encode(each) for each in expected]
        self.effects.clear()

    def add(self, nth: int) -> None:
        entry = Item(nth, 1, b"x" * (nth % 5))
        self.all.append(entry)
        self.journal.put(entry)

    def watch(self) -> None:
        before = len(self.all)
        self.journal.when_stored(lambda: self.done.append((before, len(self.stored))))


steps = st.lists(
    st.sampled_from(["put"] * 4 + ["watch", "settle", "settle", "write", "write", "fail", "wait"]),
    min_size=15,
    max_size=60,
)


@given(steps)
def test_entries_are_stored_in_order_and_actions_run_when_theirs_are(done: list[str]) -> None:
    papers = Papers()
    watched = 0
    for what in done:
        match what:
            case "put":
                papers.add(len(papers.all))
            case "watch":
                papers.watch()
                watched += 1
            case "write" if papers.flying:
                count, papers.flying = papers.flying, 0
                papers.journal.persisted(len(papers.stored) + count)
            case "fail" if papers.flying:
                papers.flying = 0
                papers.journal.persist_failed(StorageFull("disk"))
                assert papers.journal.obstacle is not None
            case "wait":
                papers.alarms.now += RETRY_MS * MS
                papers.alarms.ring()
            case _:
                papers.settle()
        assert papers.stored == list(enumerate(papers.all[: len(papers.stored)], 1))
        unstored = papers.all[len(papers.stored) :]
        assert papers.journal.unstored_bytes == sum(len(encode(each)) for each in unstored)
        assert papers.journal.last == len(papers.stored)
    assert all(before <= when for before, when in papers.done)
    assert papers.done == sorted(papers.done)
    while len(papers.stored) < len(papers.all):
        papers.alarms.now += RETRY_MS * MS
        papers.alarms.ring()
        papers.settle()
        count, papers.flying = papers.flying, 0
        papers.journal.persisted(len(papers.stored) + count)
    assert len(papers.done) == watched
