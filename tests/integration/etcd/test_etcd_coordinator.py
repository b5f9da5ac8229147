"""Duty 7 of a driver on a real etcd: who is elected knows everything, and nobody else writes.

Members are played by `core.bolt.group.Member` elsewhere; here each only keeps what it was told.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from tests.etcd_groups import WAIT_S, Group, Heard, client_of

from anabranch.apps.processes.servers import EtcdServer
from anabranch.apps.processes.toxiproxy import Toxiproxy
from anabranch.core.errors import AnabranchError, EntryCorrupt
from anabranch.core.errors import Deposed as DeposedError
from anabranch.core.machine import Deposed, Elected, Event, Followed, LeaseHeld, Restored
from anabranch.shell.etcd.api.client import EtcdClient, prefix_end
from anabranch.shell.etcd.group.coordinator import EtcdCoordinator
from anabranch.shell.etcd.group.election import Candidate
from anabranch.shell.etcd.group.journal import EtcdJournal
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.runtime.clock import Clock

now = Clock().now


@dataclass
class State:
    """All that a replica is: the entries, or an image in the place of the first of them."""

    index: int = 0
    entries: list[bytes] = field(default_factory=list[bytes])

    def take(self, first: int, entries: Sequence[bytes]) -> None:
        """Some may come again; none may be left out."""
        for index, entry in enumerate(entries, first):
            assert index <= self.index + 1, (index, self.index)
            if index == self.index + 1:
                self.index = index
                self.entries.append(entry)


class Player:
    """A member: its coordinator and journal, and what it has come to know by them."""

    def __init__(
        self,
        group: Group,
        name: str,
        *,
        ttl_s: int,
        client: EtcdClient,
        check_s: float,
        turns: "Heard[tuple[int, Player]] | None",
    ) -> None:
        self._turns = turns
        self.heard = Heard[Event]()
        self.failed = Heard[AnabranchError]()
        self.state = State()
        self.known_when_elected: list[State] = []
        self.journal = EtcdJournal(client, group.cluster, group.blobs, group.log, kept_entries=2)
        self._lock = threading.Lock()
        self.coordinator = EtcdCoordinator(
            client,
            self.journal,
            Candidate(name, ttl_s),
            group.log,
            post=self._post,
            failed=self.failed,
            now=now,
            check_s=check_s,
        )
        self.coordinator.follow(0)
        self.coordinator.campaign()

    def append(self, *entries: bytes) -> int:
        last = self.journal.append(entries)
        with self._lock:
            self.state.take(last + 1 - len(entries), entries)
        return last

    def wait_elected(self, times: int = 1) -> Elected:
        def enough(told: list[Event]) -> bool:
            return sum(isinstance(event, Elected) for event in told) >= times

        told = self.heard.wait(enough)
        return [event for event in told if isinstance(event, Elected)][times - 1]

    def wait_index(self, index: int) -> list[bytes]:
        self.heard.wait(lambda _: self.state.index >= index)
        return self.state.entries

    def _post(self, event: Event) -> None:
        with self._lock:
            match event:
                case Followed(first, entries):
                    self.state.take(first, entries)
                case Restored(index, image):
                    if index > self.state.index:
                        self.state = State(index, [image])
                case Elected():
                    known = State(self.state.index, self.state.entries.copy())
                    self.known_when_elected.append(known)
                case _:
                    pass
        self.heard(event)
        if self._turns is not None and isinstance(event, Elected):
            self._turns((event.term, self))


Play = Callable[..., Player]


@pytest.fixture
def play(group: Group) -> Iterator[Play]:
    players: list[Player] = []

    def play(
        name: str,
        *,
        ttl_s: int = 60,
        client: EtcdClient = group.client,
        check_s: float = WAIT_S,
        turns: Heard[tuple[int, Player]] | None = None,
    ) -> Player:
        player = Player(group, name, ttl_s=ttl_s, client=client, check_s=check_s, turns=turns)
        players.append(player)
        return players[-1]

    yield play
    for player in players:
        player.coordinator.close()


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, last + 1)]


def test_the_leader_appends_and_the_standbys_follow(play: Play) -> None:
    leader = play("leader")
    leader.wait_elected()
    standbys = [play("a"), play("b")]
    for n in range(1, 30):
        assert leader.append(b"%d" % n) == n
    for standby in standbys:
        assert standby.wait_index(29) == numbers(1, 29)
        with pytest.raises(DeposedError):
            standby.journal.append([b"usurped"])
    assert not any(isinstance(event, Followed) for event in leader.heard.all)


def test_who_is_elected_knows_everything_and_goes_on_behind_it(play: Play) -> None:
    leader = play("leader")
    terms = [leader.wait_elected().term]
    last = 0
    for life in range(1, 5):
        for _ in range(20):
            last = leader.append(b"%d" % (last + 1))
        heir = play(f"heir-{life}")
        leader.coordinator.resign()
        terms.append(heir.wait_elected().term)
        assert heir.known_when_elected[-1].entries == numbers(1, last)
        with pytest.raises(DeposedError):
            leader.journal.append([b"late"])
        leader = heir
    assert terms == sorted(set(terms))


def test_a_member_that_was_never_told_anything_takes_over_from_the_snapshot(play: Play) -> None:
    leader = play("leader")
    leader.wait_elected()
    for n in range(1, 21):
        leader.append(b"%d" % n)
    leader.journal.save_snapshot(18, b"state at 18")
    leader.coordinator.resign()
    heir = play("heir")
    heir.wait_elected()
    assert heir.known_when_elected[0] == State(20, [b"state at 18", b"19", b"20"])
    assert heir.append(b"21") == 21


def test_a_zombie_writes_nothing_is_told_so_and_follows_its_successor(
    play: Play, toxiproxy: Toxiproxy, etcd: EtcdServer
) -> None:
    """Cut off beyond its lease with an append under way; then the link is there again."""
    link = toxiproxy.link("zombie", etcd.address)
    client = client_of([link.address], deadline_ms=1_000)
    zombie = play("zombie", ttl_s=2, client=client, check_s=0.1)
    zombie.wait_elected()
    assert zombie.append(b"1") == 1
    link.cut()
    with ThreadPoolExecutor(1) as journal_thread:
        under_way = journal_thread.submit(zombie.journal.append, [b"zombie"])
        heir = play("heir")
        term = heir.wait_elected().term
        assert heir.append(b"2") == 2
        zombie.heard.wait(lambda told: any(isinstance(event, Deposed) for event in told))
        link.mend()
        with pytest.raises(DeposedError):
            under_way.result(WAIT_S)
    assert zombie.wait_index(2) == [b"1", b"2"]
    heir.coordinator.resign()
    zombie.heard.wait(
        lambda told: any(isinstance(event, Elected) and event.term > term for event in told)
    )
    assert zombie.known_when_elected[-1].entries == [b"1", b"2"]
    zombie.coordinator.close()
    client.close()
    link.remove()


def test_a_leader_whose_key_is_gone_is_deposed_and_stands_again(group: Group, play: Play) -> None:
    leader = play("leader")
    first = leader.wait_elected()
    leader.append(b"1")
    candidates = Keys(group.cluster).candidates
    group.client.delete(candidates, prefix_end(candidates))
    with suppress(DeposedError):
        leader.append(b"2")
    again = leader.wait_elected(2)
    assert again.term > first.term
    told = leader.heard.all
    assert any(isinstance(event, Deposed) for event in told[: told.index(again)])
    entries = leader.known_when_elected[1].entries
    assert entries == numbers(1, len(entries))
    assert leader.journal.read_after(0).entries == entries


def test_the_lease_is_told_only_between_election_and_deposition(play: Play) -> None:
    leader = play("leader", ttl_s=2)
    told = leader.heard.wait(lambda told: sum(isinstance(event, LeaseHeld) for event in told) >= 2)
    leads = False
    for event in told:
        match event:
            case LeaseHeld():
                assert leads
            case Elected():
                leads = True
            case Deposed():
                leads = False
            case _:
                pass


def test_who_finds_the_journal_damaged_doesnt_lead(group: Group, play: Play) -> None:
    leader = play("leader")
    leader.wait_elected()
    leader.append(b"1")
    group.client.put(Keys(group.cluster).group(2), b"nonsense")
    standby = play("standby")
    (error,) = standby.failed.wait(bool)
    assert isinstance(error, EntryCorrupt)
    leader.coordinator.resign()
    whole = play("another")
    assert whole.failed.wait(bool)
    assert not any(isinstance(event, Elected) for event in [*standby.heard.all, *whole.heard.all])


def test_members_that_come_and_go_journal_one_history(group: Group, play: Play) -> None:
    """Each in its turn appends and resigns; what it was told and what it did agree with all."""
    turns = Heard[tuple[int, Player]]()
    members = [play(name, turns=turns) for name in ("a", "b", "c")]
    last = 0
    for turn in range(1, 13):
        _, leader = turns.wait(lambda told, turn=turn: len(told) >= turn)[-1]
        assert leader.state.entries == numbers(1, last)
        for _ in range(5):
            last = leader.append(b"%d" % (last + 1))
        leader.coordinator.resign()
        leader.coordinator.campaign()
    for member in members:
        assert member.state.entries == numbers(1, member.state.index)
    assert group.sole().read_after(0).entries == numbers(1, last)
    terms = [term for term, _ in turns.all]
    assert terms == sorted(set(terms))
