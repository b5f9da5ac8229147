"""A sequencer as a machine: it decides through its group's log, and says what is decided."""

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from anabranch.core.belfast.ledger.decisions import CutTo, OpenWindow, decode_entry
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol.letters import Alive, Decided, Leading, Report, Restored
from anabranch.core.belfast.protocol.messages import (
    Append,
    Directory,
    Done,
    Elsewhere,
    Inspect,
    Join,
    Leave,
    Locate,
    Status,
    Trim,
)
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.consensus.consensus import ConsensusTiming
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Drain,
    Effect,
    Gone,
    Linked,
    Persist,
    Persisted,
    Received,
    Reply,
    Request,
    Rest,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.types import MS

RULES = Rules(
    t_ord_us=1_000,
    window=10,
    ahead_rounds=3,
    silent_intervals=20,
    fail_intervals=50,
    adaptive=False,
)
TIMING = ConsensusTiming(heartbeat_ms=10, election_ms=100)


@dataclass
class Group:
    """Letters arrive at once, disks answer at once, unless they are told to hold."""

    size: int = 1
    rules: Rules = RULES
    fsync: bool = True
    now: int = 1_000_000_000_000
    held: set[str] = field(default_factory=set[str])
    """Members whose disks answer nothing."""
    letters: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """To shards."""
    replies: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    rested: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        names = [f"s{nth}" for nth in range(self.size)]
        self.members = {
            name: Sequencer(name, names, self.rules, Limits(), TIMING, fsync=self.fsync)
            for name in names
        }
        self._timers: dict[str, int] = {}
        self._durable: dict[str, int] = {}
        self._owed: dict[str, int] = {}
        self._events: list[tuple[str, Any]] = []
        for name, member in self.members.items():
            self._perform(name, member.start(self.now))
        self.run()

    def give(self, name: str, event: Any) -> None:
        self._events.append((name, event))
        self.run()

    def run(self) -> None:
        while self._events:
            name, event = self._events.pop(0)
            self._perform(name, self.members[name].step(self.now, event))

    def pass_time(self, ms: int) -> None:
        until = self.now + ms * MS
        while (at := min(self._timers.values(), default=until)) < until:
            self.now = max(self.now, at)
            for name in [name for name, due in self._timers.items() if due <= self.now]:
                del self._timers[name]
                self.give(name, TimerFired("alarms"))
        self.now = until

    def release(self, name: str) -> None:
        self.held.discard(name)
        self.give(name, Persisted(self._owed.pop(name)))

    @property
    def leader(self) -> str:
        while True:
            for name, member in self.members.items():
                if member.office is not None:
                    return name
            self.pass_time(50)

    def ask(self, token: int, message: Any, name: str = "") -> list[Any]:
        self.give(name or self.leader, Request(token, message))
        return self.replies.get(token, [])

    def hear(self, sender: str, letter: Any) -> None:
        self.give(self.leader, Received(sender, letter))

    def _perform(self, name: str, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message) if to in self.members:
                    self._events.append((to, Received(name, message)))
                case Send(to, message):
                    self.letters.append((to, message))
                case Reply(to, message):
                    self.replies.setdefault(to, []).append(message)
                case Persist(entries):
                    self._durable[name] = self._durable.get(name, 0) + len(entries)
                    if name in self.held:
                        self._owed[name] = self._durable[name]
                    else:
                        self._events.append((name, Persisted(self._durable[name])))
                case SaveSnapshot(index):
                    self._events.append((name, SnapshotSaved(index)))
                case SetTimer(_, at):
                    self._timers[name] = at
                case Rest():
                    self.rested.append(name)
                case _:
                    raise AssertionError(effect)


def alive(shard: str, applied: int = 0, *, copies: int = 1) -> Alive:
    return Alive(shard, tuple(f"{shard}{copy}" for copy in range(copies)), 0, 0, applied)


def seat(group: Group, *shards: str) -> None:
    assert group.leader
    for shard in shards:
        group.hear(f"{shard}0", alive(shard))


def rounds(group: Group, shard: int, name: str, window: int, done: int) -> None:
    """Twenty places more were filled before its primary's log begins."""
    count = 100 * window + 10 * done
    report = Report(shard, 1, 0, window, done, count + 20, count - 4, 0, 0, 0, noops=4)
    group.hear(f"{name}0", report)


def following(group: Group, node: str) -> Ledger:
    """The ledger of a shard that was told what this node was told."""
    ledger, applied = Ledger(), 0
    for to, letter in group.letters:
        if to == node and isinstance(letter, Decided):
            for index, entry in enumerate(letter.entries, letter.first):
                if index == applied + 1:
                    ledger.apply(decode_entry(entry))
                    applied = index
        elif to == node and isinstance(letter, Restored):
            ledger, applied = Ledger(letter.image), letter.index
    return ledger


def test_a_primary_is_told_the_rules_and_everything_that_is_decided() -> None:
    group = Group()
    seat(group, "a")
    rounds(group, 0, "a", 0, 3)
    assert ("a0", Leading(group.members["s0"].consensus.term, RULES)) in group.letters
    group.hear("a0", alive("a"))
    assert following(group, "a0").image() == group.members["s0"].ledger.image()
    assert following(group, "a0").confirmed == 30


def test_nobody_is_told_of_a_cut_before_a_majority_holds_it() -> None:
    group = Group(size=3)
    seat(group, "a")
    group.held = set(group.members) - {group.leader}
    before = len(group.letters)
    rounds(group, 0, "a", 0, 3)
    assert not [each for _, each in group.letters[before:] if isinstance(each, Decided)]
    group.release(next(iter(sorted(group.held))))
    told = [each for _, each in group.letters[before:] if isinstance(each, Decided)]
    assert [decode_entry(entry) for each in told for entry in each.entries] == [
        [CutTo(window=0, cut=3)]
    ]


def test_cuts_wait_while_several_entries_are_on_their_way_and_become_one() -> None:
    group = Group()
    seat(group, "a")
    group.held = {"s0"}
    for done in range(1, 10):
        rounds(group, 0, "a", 0, done)
    last = group.members["s0"].consensus.last
    assert last - group.members["s0"].applied <= 4
    group.release("s0")
    assert group.members["s0"].ledger.cut == 9


def test_what_a_shard_missed_is_sent_again_when_it_says_how_far_it_is() -> None:
    group = Group()
    seat(group, "a")
    for done in range(1, 8):
        rounds(group, 0, "a", 0, done)
    group.letters.clear()
    group.hear("a0", alive("a"))
    assert not group.letters[1:], "what was sent since it spoke last may be on its way"
    group.hear("a0", alive("a"))
    assert following(group, "a0").cut == 7


def test_where_a_link_was_broken_a_shard_is_believed_at_once() -> None:
    group = Group()
    seat(group, "a")
    rounds(group, 0, "a", 0, 7)
    group.letters.clear()
    group.give("s0", Linked("a0"))
    group.hear("a0", alive("a"))
    assert following(group, "a0").cut == 7
    group.letters.clear()
    group.hear("a0", alive("a", group.members["s0"].applied))
    assert not [each for _, each in group.letters if isinstance(each, Decided)]


def test_a_request_is_answered_when_it_is_decided_and_not_before() -> None:
    group = Group()
    seat(group, "a", "b")
    group.held = {"s0"}
    assert group.ask(7, Leave("b")) == []
    group.release("s0")
    assert group.replies[7] == [Done()]
    assert group.members["s0"].ledger.members[1].standing in {Standing.LEAVING, Standing.LEFT}
    assert group.ask(8, Leave("b")) == [Done()]


def test_only_what_is_confirmed_can_be_trimmed() -> None:
    group = Group()
    seat(group, "a")
    rounds(group, 0, "a", 0, 3)
    refused = group.ask(1, Trim(31))[0]
    assert isinstance(refused, Refused)
    assert refused.code == "trim-too-far"
    assert group.ask(2, Trim(30)) == [Done()]
    assert group.members["s0"].ledger.trimmed == 30
    assert group.ask(3, Trim(10)) == [Done()]
    assert group.members["s0"].ledger.trimmed == 30


def test_what_isnt_there_cant_leave_and_what_is_for_shards_is_refused() -> None:
    group = Group()
    asked = (Leave("x"), Join("x"), Append(b""))
    codes = [group.ask(token, each)[0].code for token, each in enumerate(asked)]
    assert codes == ["unknown-shard", "unknown-shard", "bad-request"]


def test_any_member_says_where_shards_are_and_only_the_leader_how_they_do() -> None:
    group = Group(size=3)
    seat(group, "a")
    rounds(group, 0, "a", 0, 3)
    group.pass_time(30)
    for nth, name in enumerate(group.members):
        found = group.ask(nth, Locate(), name)[0]
        assert isinstance(found, Directory)
        assert found.leader == group.leader
        assert found.shards[0].primary == "a0"
        other = group.ask(10 + nth, Inspect(), name)[0]
        assert (
            isinstance(other, Status) if name == group.leader else other == Elsewhere(group.leader)
        )
    status = group.ask(20, Inspect())[0]
    assert (status.confirmed, status.cut, status.cuts_made) == (30, 3, 3)
    shard = status.shards[0]
    assert (shard.rounds, shard.records, shard.noops) == (3, 26, 4)


def test_a_status_calls_durable_on_disks_only_what_is() -> None:
    assert not Group(fsync=False).ask(1, Inspect())[0].fsync
    group = Group(size=3)
    seat(group, "a", "b")
    assert group.ask(1, Inspect())[0].fsync
    for name in group.members:
        group.give(name, Received("b0", replace(alive("b"), fsync=False)))
    assert not group.ask(2, Inspect())[0].fsync
    group.give(group.leader, Drain())
    group.pass_time(1000)
    assert not group.ask(3, Inspect())[0].fsync, "the next leader knows it as well"
    group.hear("b0", alive("b"))
    assert group.ask(4, Inspect())[0].fsync


def test_a_client_that_has_gone_is_told_nothing() -> None:
    group = Group()
    seat(group, "a")
    group.held = {"s0"}
    group.ask(7, Trim(0))
    group.ask(8, Leave("a"))
    group.give("s0", Gone((8,)))
    group.release("s0")
    assert 8 not in group.replies


def test_a_leader_that_ends_hands_over_and_the_next_goes_on_from_the_same_ledger() -> None:
    group = Group(size=3)
    seat(group, "a")
    rounds(group, 0, "a", 0, 3)
    first = group.leader
    group.give(first, Drain())
    group.pass_time(1000)
    assert group.rested == [first]
    second = group.leader
    assert second != first
    rounds(group, 0, "a", 0, 5)
    ledger = group.members[second].ledger
    assert (ledger.cut, ledger.confirmed) == (5, 50)
    windows = [
        decision
        for entry in _entries(group.members[second])
        for decision in entry
        if isinstance(decision, OpenWindow)
    ]
    assert [each.number for each in windows] == list(range(len(windows)))


def _entries(member: Sequencer) -> list[list[Any]]:
    found = member.consensus.entries(0, 10_000)
    assert found is not None
    return [decode_entry(entry) for entry in found[1]]


def test_a_single_member_ends_when_it_is_told_to() -> None:
    group = Group()
    group.give(group.leader, Drain())
    assert group.rested == ["s0"]


def test_many_who_inspect_at_once_get_one_status_and_nothing_that_is_out_of_date() -> None:
    group = Group()
    seat(group, "a")
    (first,), (second,) = group.ask(1, Inspect()), group.ask(2, Inspect())
    assert second is first
    rounds(group, 0, "a", 0, 3)
    (third,) = group.ask(3, Inspect())
    assert (first.cut, third.cut) == (0, 3)
    group.pass_time(1_000)
    (later,) = group.ask(4, Inspect())
    assert (third.shards[0].silent, later.shards[0].silent) == ((), ("a0",))


def test_everybody_who_locates_gets_one_directory_until_something_is_decided() -> None:
    group = Group()
    seat(group, "a")
    (first,) = group.ask(1, Locate())
    group.pass_time(1)
    assert group.ask(2, Locate()) == [first]
    assert group.ask(2, Locate())[-1] is first
    seat(group, "b")
    (later,) = group.ask(3, Locate())
    assert [each.name for each in later.shards] == ["a", "b"]
