"""One leads at a time, knows until when, and hands over at once; who leads no more finds out."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.etcd_groups import WAIT_S, Group, Heard, client_of

from anabranch.apps.processes.servers import EtcdServer
from anabranch.apps.processes.toxiproxy import Toxiproxy
from anabranch.core.types import Nanoseconds
from anabranch.shell.etcd.api.client import EtcdClient, prefix_end
from anabranch.shell.etcd.api.space import Relief
from anabranch.shell.etcd.group.election import Candidate, Election
from anabranch.shell.etcd.group.journal import Fence
from anabranch.shell.etcd.group.layout import Keys
from anabranch.shell.runtime.clock import Clock

now = Clock().now


@dataclass(frozen=True)
class News:
    what: str
    fence: Fence | None = None
    until: Nanoseconds = 0


class Stander:
    """A candidate, and what it was told."""

    def __init__(self, group: Group, client: EtcdClient, name: str, ttl_s: int) -> None:
        self.heard = Heard[News]()
        self.election = Election(
            client,
            Keys(group.cluster),
            Candidate(name, ttl_s),
            self,
            group.log,
            now=now,
            relief=Relief(client, group.log),
        )
        self.election.campaign()

    def won(self, fence: Fence, until: Nanoseconds) -> None:
        self.heard(News("won", fence, until))

    def held(self, until: Nanoseconds) -> None:
        self.heard(News("held", None, until))

    def over(self, fence: Fence) -> None:
        self.heard(News("over", fence))

    def wait(self, what: str, times: int = 1) -> list[News]:
        told = self.heard.wait(lambda told: sum(each.what == what for each in told) >= times)
        return [each for each in told if each.what == what]

    def lead(self) -> Fence:
        fence = self.wait("won")[-1].fence
        assert fence is not None
        return fence


Stand = Callable[..., Stander]


@pytest.fixture
def stand(group: Group) -> Iterator[Stand]:
    """A candidate with patience: a machine that is busy with other things deposes nobody."""
    standing: list[Stander] = []

    def stand(name: str, ttl_s: int = 60, client: EtcdClient = group.client) -> Stander:
        standing.append(Stander(group, client, name, ttl_s))
        return standing[-1]

    yield stand
    for each in standing:
        each.election.stop()


def candidates(group: Group) -> list[bytes]:
    prefix = Keys(group.cluster).candidates
    return [kv.value for kv in group.client.range(prefix, prefix_end(prefix)).kvs]


def lead_of(group: Group, fence: Fence) -> bool:
    kv = group.client.get(fence.key)
    return kv is not None and kv.create_revision == fence.revision


def test_one_leads_and_the_next_follows_when_it_resigns(group: Group, stand: Stand) -> None:
    first = stand("first")
    fence = first.lead()
    second = stand("second")
    third = stand("third")
    await_candidates(group, 3)
    assert lead_of(group, fence)
    assert second.heard.all == third.heard.all == []
    first.election.resign()
    heirs = [second, third]
    following = wait_any(heirs)
    assert following.lead().term > fence.term
    assert not lead_of(group, fence)
    following.election.resign()
    heirs.remove(following)
    assert heirs[0].lead().term > following.lead().term
    assert "over" not in {news.what for each in (first, *heirs) for news in each.heard.all}


def test_who_resigned_may_stand_again_and_is_elected_with_a_later_term(stand: Stand) -> None:
    only = stand("only")
    fence = only.lead()
    only.election.resign()
    only.election.campaign()
    again = only.wait("won", 2)[1].fence
    assert again is not None
    assert again.term > fence.term


def test_the_lead_is_held_until_later_and_later(stand: Stand) -> None:
    asked_at = now()
    leader = stand("leader", ttl_s=2)
    leader.wait("held", 3)
    untils = [news.until for news in leader.heard.all if news.what != "over"]
    assert untils == sorted(untils)
    assert untils[0] >= asked_at
    # Not a nanosecond past what etcd promises, counted from before it was asked.
    assert untils[-1] < now() + 2_000_000_000


def test_a_key_that_somebody_removed_is_a_lead_that_is_over(group: Group, stand: Stand) -> None:
    leader = stand("leader")
    fence = leader.lead()
    group.client.delete(fence.key)
    assert leader.wait("over")[0].fence == fence
    again = leader.wait("won", 2)[1].fence
    assert again is not None
    assert again.term > fence.term


def test_a_lease_that_somebody_revoked_is_a_lead_that_is_over(group: Group, stand: Stand) -> None:
    leader = stand("leader")
    fence = leader.lead()
    waiting = stand("waiting")
    await_candidates(group, 2)
    group.client.revoke(int(fence.key.rpartition(b"/")[2], 16))
    assert waiting.lead().term > fence.term
    assert leader.wait("over")[0].fence == fence


def test_a_leader_that_is_cut_off_is_deposed_by_its_own_clock(
    group: Group, stand: Stand, toxiproxy: Toxiproxy, etcd: EtcdServer
) -> None:
    link = toxiproxy.link("leader", etcd.address)
    client = client_of([link.address], deadline_ms=1_000)
    leader = stand("leader", 2, client)
    fence = leader.lead()
    link.cut()
    leader.heard.wait(lambda told: News("over", fence) in told)
    until = max(news.until for news in leader.heard.all)
    assert now() >= until
    heir = stand("heir")
    assert heir.lead().term > fence.term
    assert now() > until
    assert not lead_of(group, fence)
    link.mend()
    heir.election.resign()
    again = leader.heard.wait(lambda told: told[-1].what != "over")[-1]
    assert again.until > until
    leader.election.stop()
    client.close()
    link.remove()


def test_a_candidate_that_finds_no_etcd_stands_when_there_is_one(
    stand: Stand, toxiproxy: Toxiproxy, etcd: EtcdServer
) -> None:
    link = toxiproxy.link("candidate", etcd.address)
    client = client_of([link.address], deadline_ms=1_000)
    link.cut()
    candidate = stand("candidate", client=client)
    assert candidate.heard.all == []
    link.mend()
    candidate.lead()
    candidate.election.stop()
    client.close()
    link.remove()


def await_candidates(group: Group, count: int) -> None:
    def all_there() -> bool:
        return len(candidates(group)) == count

    eventually(all_there)


def wait_any(standers: list[Stander], what: str = "won") -> Stander:
    found: list[Stander] = []

    def any_told() -> bool:
        found[:] = [each for each in standers if what in {news.what for news in each.heard.all}]
        return bool(found)

    eventually(any_told)
    return found[0]


def eventually(holds: Callable[[], bool]) -> None:
    """Against hanging only."""
    give_up = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.01)
