"""What the simulated etcd and its clients promise to a member: duty 7 of a driver, and no more."""

from collections.abc import Callable

import pytest

from anabranch.core.errors import Deposed as DeposedError
from anabranch.core.errors import StorageFull
from anabranch.core.machine import (
    Deposed,
    Elected,
    Event,
    Followed,
    LeaseHeld,
    Persisted,
    PersistFailed,
    Restored,
    SaveSnapshot,
    SnapshotSaved,
)
from anabranch.core.types import MS
from anabranch_sim.world.clocks import SlewedClock
from anabranch_sim.world.coordinator import SimCoordinator
from anabranch_sim.world.etcd import ETCD, SimEtcd
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network, NetworkFaults

LEASE = SECOND


class Member:
    """One that only listens; a stopped one hears everything later."""

    def __init__(self, etcd: SimEtcd, name: str) -> None:
        self.heard: list[Event] = []
        self.stopped = False
        self._missed: list[Callable[[], None]] = []
        self._world = etcd.world
        self.coordinator = SimCoordinator(
            etcd, name, lambda: etcd.world.now, self._act, self.heard.append
        )

    def _act(self, action: Callable[[], None]) -> None:
        if self.stopped:
            self._missed.append(action)
        else:
            action()

    def go_on(self) -> None:
        self.stopped = False
        missed, self._missed = self._missed, []
        for action in missed:
            action()

    def told(self, kind: type) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kind)]

    @property
    def entries(self) -> dict[int, bytes]:
        """By index, each the same however often it came."""
        found: dict[int, bytes] = {}
        for event in self.heard:
            if isinstance(event, Followed):
                for index, entry in enumerate(event.entries, event.first):
                    assert found.setdefault(index, entry) == entry
        return found


class Stage:
    def __init__(self, seed: int = 1, kept: int = 0, **faults: float) -> None:
        self.world = World(seed)
        chosen = NetworkFaults(**faults)  # pyright: ignore[reportArgumentType]
        self.network = Network(self.world, chosen)
        self.etcd = SimEtcd(self.world, self.network, LEASE, kept)

    def member(self, name: str, after: int = 0) -> Member:
        member = Member(self.etcd, name)
        member.coordinator.follow(after)
        member.coordinator.campaign()
        return member

    def run(self, seconds: float = 1) -> None:
        self.world.run(self.world.now + int(seconds * SECOND))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_the_first_leads_and_the_next_when_it_resigns(stage: Stage) -> None:
    a = stage.member("a")
    stage.run()
    b = stage.member("b")
    stage.run(5)
    assert len(a.told(Elected)) == 1
    assert not b.heard
    held = a.told(LeaseHeld)[-1]
    assert isinstance(held, LeaseHeld)
    assert stage.world.now < held.until <= stage.world.now + LEASE
    a.coordinator.resign()
    stage.run(0.6)
    assert len(b.told(Elected)) == 1


def test_a_leader_is_followed_late_and_twice_and_without_a_gap() -> None:
    again = 0
    for seed in range(20):
        stage = Stage(seed, delay=2 * MS, tail=0.1)
        a, b = stage.member("a"), stage.member("b")
        stage.run(3)
        leader, follower = (a, b) if a.told(Elected) else (b, a)
        entries = [b"%d" % n for n in range(30)]
        for last, entry in enumerate(entries, 1):
            leader.coordinator.append([entry])
            for _ in range(300):
                if len(leader.told(Persisted)) < last:
                    stage.run(0.02)
        stage.run(3)
        assert list(follower.entries.values()) == entries
        firsts = [event.first for event in follower.heard if isinstance(event, Followed)]
        again += firsts != sorted(set(firsts))
    assert again


def test_whoever_is_elected_was_given_every_entry_before(stage: Stage) -> None:
    a = stage.member("a")
    stage.run()
    for n in range(50):
        a.coordinator.append([b"%d" % n])
    a.stopped = True
    stage.network.cut("b", ETCD)
    b = stage.member("b")
    stage.run(3)
    assert not b.heard
    stage.network.mend()
    stage.run(3)
    elected = b.heard.index(b.told(Elected)[0])
    given = [event for event in b.heard[:elected] if isinstance(event, Followed)]
    assert sum(len(event.entries) for event in given) >= 50


def test_a_stopped_leader_comes_back_as_a_zombie_and_writes_nothing(stage: Stage) -> None:
    a = stage.member("a")
    stage.run()
    a.stopped = True
    b = stage.member("b")
    stage.run(3)
    assert len(b.told(Elected)) == 1
    a.go_on()
    a.coordinator.append([b"a ghost"])
    stage.run()
    failed = a.told(PersistFailed)[0]
    assert isinstance(failed, PersistFailed)
    assert isinstance(failed.error, DeposedError)
    assert a.told(Deposed)
    assert stage.etcd.entries == []


def test_no_other_is_elected_before_a_lease_that_was_told_is_over() -> None:
    for seed in range(30):
        stage = Stage(seed, delay=5 * MS, tail=0.1, loss=0.2)
        a = stage.member("a")
        stage.run(3)
        b = stage.member("b")
        stage.run(2)
        stage.network.cut("a", ETCD)
        for _ in range(1_100):
            if stage.etcd.leader == "a":
                stage.run(0.001)
        told = [event for event in a.heard if isinstance(event, Elected | LeaseHeld)]
        assert max(event.until for event in told) <= stage.world.now
        stage.run(5)
        assert b.told(Elected)


def test_an_append_whose_answer_is_lost_is_asked_about_until_it_is_known() -> None:
    lost = 0
    for seed in range(20):
        stage = Stage(seed, loss=0.9)
        stage.network.faults, rough = NetworkFaults(), stage.network.faults
        a = stage.member("a")
        stage.run()
        stage.network.faults = rough
        a.coordinator.append([b"one"])
        stage.run(0.3)
        lost += len(stage.etcd.entries) == 1 and not a.told(Persisted)
        stage.network.faults = NetworkFaults()
        stage.run(5)
        if a.told(Persisted):
            assert a.told(Persisted) == [Persisted(1)]
            assert stage.etcd.entries == [b"one"]
        else:
            assert len(a.told(PersistFailed)) == 1
            assert stage.etcd.entries == []
    assert lost


def test_while_it_is_away_nobody_is_answered_and_leases_are_good_when_it_is_back() -> None:
    for seed in range(10):
        stage = Stage(seed)
        a, b = stage.member("a"), stage.member("b")
        stage.run(3)
        stage.etcd.go_down(10 * SECOND)
        leader, other = (a, b) if a.told(Elected) else (b, a)
        heard = len(leader.heard)
        leader.coordinator.append([b"one"])
        stage.run(9)
        assert leader.heard[heard:] in ([], [Deposed()])
        assert not other.heard
        stage.run(5)
        assert bool(leader.told(Persisted)) == (stage.etcd.entries == [b"one"])
        assert len(leader.told(Persisted) + leader.told(PersistFailed)) == 1


def test_full_it_takes_nothing_and_says_so(stage: Stage) -> None:
    a = stage.member("a")
    stage.run()
    stage.etcd.full = True
    a.coordinator.append([b"one"])
    stage.run()
    failed = a.told(PersistFailed)[0]
    assert isinstance(failed, PersistFailed)
    assert isinstance(failed.error, StorageFull)
    stage.etcd.heal()
    a.coordinator.append([b"two"])
    stage.run()
    assert stage.etcd.entries == [b"two"]


def test_who_is_too_far_behind_is_given_a_snapshot_and_what_follows(stage: Stage) -> None:
    a = stage.member("a")
    stage.run()
    for n in range(1, 11):
        a.coordinator.append([b"%d" % n])
        stage.run(0.1)
    a.coordinator.save(SaveSnapshot(8, b"the state after 8"))
    stage.run()
    assert a.told(SnapshotSaved) == [SnapshotSaved(8)]
    b = stage.member("b", after=2)
    stage.run()
    assert b.heard[0] == Restored(8, b"the state after 8")
    assert b.entries == {9: b"9", 10: b"10"}


def test_a_clock_follows_a_step_slowly_and_never_goes_back() -> None:
    clock = SlewedClock()
    clock.begin(0)
    clock.step(0, -SECOND)
    errors = [clock.error(now * SECOND) for now in range(0, 300, 10)]
    assert errors[0] == 0
    assert errors[1] == -10 * SECOND * 5 // 1_000
    assert errors[-1] == -SECOND
    clock.step(300 * SECOND, SECOND)
    assert clock.error(300 * SECOND) == -SECOND
    clock.begin(301 * SECOND)
    assert clock.error(301 * SECOND) == SECOND
