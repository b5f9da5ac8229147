"""Evictions: brokers hand over first, members go one at a time, and no drain of a node hangs."""

import pytest
from tests.unit.operator.belfast_log import GROUP, LOG, BelfastHarness
from tests.unit.operator.broker_pool import PoolHarness
from tests.unit.operator.metadata_members import MembersHarness

from anabranch_operator.plan.engine.actions import Action, Create, Delete, DrainBroker
from anabranch_operator.plan.engine.events import Evict, Evicting
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.metadata.evictions import FORGOTTEN_MS, may_go
from anabranch_sim.kubernetes.sandbox import Sandbox

FORGOTTEN_S = FORGOTTEN_MS // 1_000


def test_a_broker_goes_when_another_has_taken_over_what_it_served(harness: PoolHarness) -> None:
    pod = harness.busiest()
    harness.evict(pod)
    assert not harness.office.evicted, "it serves a root, and nobody stands in for it yet"
    for _ in range(4):
        harness.step()
        harness.evict(pod)
    harness.settle()
    assert pod.uid in harness.office.evicted
    assert [type(each) for each in harness.done(Create, DrainBroker, Delete)] == [
        Create,
        DrainBroker,
        Delete,
    ]
    assert sum(seat.roots for seat in harness.office.service.brokers()) == 1
    assert pod.uid not in {each.uid for each in harness.pods()}


def test_brokers_of_two_nodes_go_one_after_the_other(harness: PoolHarness) -> None:
    pods = harness.pods()
    for _ in range(20):
        for pod in pods:
            harness.evict(pod)
        harness.step()
    assert not {pod.uid for pod in pods} & {each.uid for each in harness.pods()}
    assert harness.status.ready == 2
    harness.settle()
    assert len(harness.names()) == 2


def test_a_cordon_alone_moves_brokers_away(harness: PoolHarness) -> None:
    node = harness.busiest().spec["nodeName"]
    harness.cordon(node, on=True)
    harness.settle()
    assert node not in {pod.spec["nodeName"] for pod in harness.pods()}
    assert harness.status.ready == 2


def test_an_eviction_isnt_put_off_for_ever(harness: PoolHarness) -> None:
    for number in range(4):
        harness.cordon(f"node-{number}", on=True)
    harness.office.service_away = "it doesn't answer"
    harness.office.wait(11)
    pod = harness.busiest()
    limit_s = harness.office.operator.world.surroundings.eviction_ms // 1_000
    waited = 0
    while waited < limit_s:
        harness.evict(pod)
        assert not harness.office.evicted
        harness.office.wait(60)
        waited += 60
    harness.evict(pod)
    assert harness.office.evicted[-1] == pod.uid


def test_brokers_whose_time_is_up_go_one_at_a_time(harness: PoolHarness) -> None:
    """Whoever asks for all of a pool's brokers doesn't get all of them at once."""
    harness.busiest()
    for number in range(4):
        harness.cordon(f"node-{number}", on=True)
    harness.office.service_away = "it doesn't answer"
    pods = harness.pods()
    for _ in range(harness.office.operator.world.surroundings.eviction_ms // 60_000 + 1):
        for pod in pods:
            harness.evict(pod)
        harness.office.wait(60)
    assert len(pods) > 1
    assert len([pod for pod in harness.pods() if pod.deleting]) <= 1
    for _ in range(20):
        for pod in harness.pods():
            harness.evict(pod)
        harness.step()
        assert len([pod for pod in harness.pods() if pod.deleting]) <= 1
    assert not {pod.uid for pod in pods} & {pod.uid for pod in harness.pods()}


def test_an_eviction_that_nobody_repeats_is_forgotten(harness: PoolHarness) -> None:
    for number in range(4):
        harness.cordon(f"node-{number}", on=True)
    harness.settle()
    for number in range(4):
        harness.cordon(f"node-{number}", on=False)
    harness.settle()
    world = harness.office.operator.world
    pod = harness.pods()[0]
    harness.office.service_away = "it doesn't answer"
    harness.office.wait(11)
    harness.evict(pod)
    assert pod.uid in world.evicting
    harness.office.wait(FORGOTTEN_S)
    assert not world.evicting
    harness.office.service_away = None
    harness.settle()
    assert pod.uid in {each.uid for each in harness.pods()}


def test_pods_that_serve_nothing_go_at_once(harness: PoolHarness) -> None:
    pod = harness.pods()[0]
    harness.frozen[pod.uid] = None
    harness.crash(pod)
    harness.evict(pod)
    assert harness.office.evicted == [pod.uid]


def test_pods_of_others_go_at_once(harness: PoolHarness) -> None:
    harness.office.tell(Evicting("somebody-elses"))
    assert harness.office.evicted == ["somebody-elses"]


def test_brokers_of_a_paused_pool_go_without_help(harness: PoolHarness) -> None:
    harness.kube.annotate(harness.pool.ref, paused="true")
    harness.settle()
    pod = harness.busiest()
    harness.evict(pod)
    assert harness.office.evicted == [pod.uid]


def test_an_operator_that_doesnt_know_yet_says_nothing(harness: PoolHarness) -> None:
    pod = harness.pods()[0]
    harness.office.restart()
    effects = harness.office.operator.step(harness.office.now, Evicting(pod.uid))
    assert Evict(pod.uid) not in effects


def test_members_go_one_at_a_time() -> None:
    members = MembersHarness()
    first, second = members.pod(0), members.pod(1)
    members.evict(first)
    members.evict(second)
    assert members.office.evicted == [first.uid]
    members.kube.delete(first.ref)
    members.office.settle()
    members.evict(second)
    assert members.office.evicted == [first.uid], "the first isn't back yet"
    members.settle()
    members.evict(second)
    assert members.office.evicted[-1] == second.uid


def meanwhile(office: Sandbox, ended: str, asked: Observed) -> None:
    """Somebody asks for a pod while the deletion of that one is on its way."""
    judge = office.crash
    assert judge is not None

    def crash(action: Action) -> bool:
        if isinstance(action, Delete) and action.ref.name == ended:
            office.hear(Evicting(asked.uid))
        return judge(action)

    office.crash = crash


@pytest.mark.parametrize(
    ("of", "ended", "asked"),
    [
        (GROUP, "orders-0-1", "orders-0-0"),
        (LOG, "orders-sequencer-1", "orders-sequencer-0"),
    ],
)
def test_no_other_is_let_go_while_the_end_of_one_is_on_its_way(
    of: Ref, ended: str, asked: str
) -> None:
    harness = BelfastHarness()
    harness.settle()
    meanwhile(harness.office, ended, harness.pod(asked))
    harness.ended()
    harness.edit(of, image="newer")
    assert harness.ended() == [ended]
    assert harness.office.evicted == []


def test_no_other_member_is_let_go_while_the_end_of_one_is_on_its_way() -> None:
    members = MembersHarness()
    meanwhile(members.office, "demo-metadata-1", members.pod(0))
    members.roll("two")
    assert members.deleted() == ["demo-metadata-1"]
    assert members.office.evicted == []


def test_a_member_is_kept_while_another_isnt_ready() -> None:
    members = MembersHarness()
    members.crash(2)
    members.evict(members.pod(0))
    assert not members.office.evicted
    members.broken.clear()
    members.settle()
    assert members.office.evicted == [members.pod(0).uid]


def test_a_member_alone_has_nobody_to_wait_for() -> None:
    members = MembersHarness(replicas=1)
    members.evict(members.pod(0))
    assert members.office.evicted == [members.pod(0).uid]


def test_what_is_gone_may_go(harness: PoolHarness) -> None:
    assert may_go(harness.office.operator.world, "gone", harness.office.now)
