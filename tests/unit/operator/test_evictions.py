"""Evictions: brokers hand over first, members go one at a time, and no drain of a node hangs."""

import pytest
from tests.unit.operator.harbour import Harbour
from tests.unit.operator.quay import GROUP, LOG, Quay
from tests.unit.operator.quorum import Quorum

from anabranch_operator.plan.engine.actions import Action, Create, Delete, DrainBroker
from anabranch_operator.plan.engine.events import Evict, Evicting
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.metadata.evictions import FORGOTTEN_MS, may_go
from anabranch_sim.kubernetes.calm import Office

FORGOTTEN_S = FORGOTTEN_MS // 1_000


def test_a_broker_goes_when_another_has_taken_over_what_it_served(harbour: Harbour) -> None:
    pod = harbour.busiest()
    harbour.evict(pod)
    assert not harbour.office.evicted, "it serves a root, and nobody stands in for it yet"
    for _ in range(4):
        harbour.step()
        harbour.evict(pod)
    harbour.settle()
    assert pod.uid in harbour.office.evicted
    assert [type(each) for each in harbour.done(Create, DrainBroker, Delete)] == [
        Create,
        DrainBroker,
        Delete,
    ]
    assert sum(seat.roots for seat in harbour.office.service.brokers()) == 1
    assert pod.uid not in {each.uid for each in harbour.pods()}


def test_brokers_of_two_nodes_go_one_after_the_other(harbour: Harbour) -> None:
    pods = harbour.pods()
    for _ in range(20):
        for pod in pods:
            harbour.evict(pod)
        harbour.step()
    assert not {pod.uid for pod in pods} & {each.uid for each in harbour.pods()}
    assert harbour.status.ready == 2
    harbour.settle()
    assert len(harbour.names()) == 2


def test_a_cordon_alone_moves_brokers_away(harbour: Harbour) -> None:
    node = harbour.busiest().spec["nodeName"]
    harbour.cordon(node, on=True)
    harbour.settle()
    assert node not in {pod.spec["nodeName"] for pod in harbour.pods()}
    assert harbour.status.ready == 2


def test_an_eviction_isnt_put_off_for_ever(harbour: Harbour) -> None:
    for number in range(4):
        harbour.cordon(f"node-{number}", on=True)
    harbour.office.service_away = "it doesn't answer"
    harbour.office.wait(11)
    pod = harbour.busiest()
    limit_s = harbour.office.operator.world.surroundings.eviction_ms // 1_000
    waited = 0
    while waited < limit_s:
        harbour.evict(pod)
        assert not harbour.office.evicted
        harbour.office.wait(60)
        waited += 60
    harbour.evict(pod)
    assert harbour.office.evicted[-1] == pod.uid


def test_brokers_whose_time_is_up_go_one_at_a_time(harbour: Harbour) -> None:
    """Whoever asks for all of a pool's brokers doesn't get all of them at once."""
    harbour.busiest()
    for number in range(4):
        harbour.cordon(f"node-{number}", on=True)
    harbour.office.service_away = "it doesn't answer"
    pods = harbour.pods()
    for _ in range(harbour.office.operator.world.surroundings.eviction_ms // 60_000 + 1):
        for pod in pods:
            harbour.evict(pod)
        harbour.office.wait(60)
    assert len(pods) > 1
    assert len([pod for pod in harbour.pods() if pod.deleting]) <= 1
    for _ in range(20):
        for pod in harbour.pods():
            harbour.evict(pod)
        harbour.step()
        assert len([pod for pod in harbour.pods() if pod.deleting]) <= 1
    assert not {pod.uid for pod in pods} & {pod.uid for pod in harbour.pods()}


def test_an_eviction_that_nobody_repeats_is_forgotten(harbour: Harbour) -> None:
    for number in range(4):
        harbour.cordon(f"node-{number}", on=True)
    harbour.settle()
    for number in range(4):
        harbour.cordon(f"node-{number}", on=False)
    harbour.settle()
    world = harbour.office.operator.world
    pod = harbour.pods()[0]
    harbour.office.service_away = "it doesn't answer"
    harbour.office.wait(11)
    harbour.evict(pod)
    assert pod.uid in world.evicting
    harbour.office.wait(FORGOTTEN_S)
    assert not world.evicting
    harbour.office.service_away = None
    harbour.settle()
    assert pod.uid in {each.uid for each in harbour.pods()}


def test_pods_that_serve_nothing_go_at_once(harbour: Harbour) -> None:
    pod = harbour.pods()[0]
    harbour.frozen[pod.uid] = None
    harbour.crash(pod)
    harbour.evict(pod)
    assert harbour.office.evicted == [pod.uid]


def test_pods_of_others_go_at_once(harbour: Harbour) -> None:
    harbour.office.tell(Evicting("somebody-elses"))
    assert harbour.office.evicted == ["somebody-elses"]


def test_brokers_of_a_paused_pool_go_without_help(harbour: Harbour) -> None:
    harbour.kube.annotate(harbour.pool.ref, paused="true")
    harbour.settle()
    pod = harbour.busiest()
    harbour.evict(pod)
    assert harbour.office.evicted == [pod.uid]


def test_an_operator_that_doesnt_know_yet_says_nothing(harbour: Harbour) -> None:
    pod = harbour.pods()[0]
    harbour.office.restart()
    effects = harbour.office.operator.step(harbour.office.now, Evicting(pod.uid))
    assert Evict(pod.uid) not in effects


def test_members_go_one_at_a_time() -> None:
    quorum = Quorum()
    first, second = quorum.pod(0), quorum.pod(1)
    quorum.evict(first)
    quorum.evict(second)
    assert quorum.office.evicted == [first.uid]
    quorum.kube.delete(first.ref)
    quorum.office.settle()
    quorum.evict(second)
    assert quorum.office.evicted == [first.uid], "the first isn't back yet"
    quorum.settle()
    quorum.evict(second)
    assert quorum.office.evicted[-1] == second.uid


def meanwhile(office: Office, ended: str, asked: Observed) -> None:
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
    quay = Quay()
    quay.settle()
    meanwhile(quay.office, ended, quay.pod(asked))
    quay.ended()
    quay.edit(of, image="newer")
    assert quay.ended() == [ended]
    assert quay.office.evicted == []


def test_no_other_member_is_let_go_while_the_end_of_one_is_on_its_way() -> None:
    quorum = Quorum()
    meanwhile(quorum.office, "demo-metadata-1", quorum.pod(0))
    quorum.roll("two")
    assert quorum.deleted() == ["demo-metadata-1"]
    assert quorum.office.evicted == []


def test_a_member_is_kept_while_another_isnt_ready() -> None:
    quorum = Quorum()
    quorum.crash(2)
    quorum.evict(quorum.pod(0))
    assert not quorum.office.evicted
    quorum.broken.clear()
    quorum.settle()
    assert quorum.office.evicted == [quorum.pod(0).uid]


def test_a_member_alone_has_nobody_to_wait_for() -> None:
    quorum = Quorum(replicas=1)
    quorum.evict(quorum.pod(0))
    assert quorum.office.evicted == [quorum.pod(0).uid]


def test_what_is_gone_may_go(harbour: Harbour) -> None:
    assert may_go(harbour.office.operator.world, "gone", harbour.office.now)
