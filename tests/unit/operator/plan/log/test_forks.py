"""Forks: each step of their lives, and that each is taken once."""

import pytest
from tests.unit.operator.declared import (
    NAMESPACE,
    ORDERS,
    WHAT_IF,
    conditions,
    current,
    fork,
    in_service,
    log,
    office,
)

from anabranch.core.bolt.protocol.commands import (
    CreateLog,
    DeleteLog,
    Description,
    Expire,
    ForkLog,
    Squash,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Kind
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkPhase
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.events import Measured, Vitals
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.polls import targets
from anabranch_sim.kubernetes.sandbox import Sandbox


@pytest.fixture
def tended() -> Sandbox:
    made = office()
    log(made)
    return made


def test_a_fork_is_made_reached_and_told_about(tended: Sandbox) -> None:
    made = fork(tended)
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == names.ending(made.owner)
    assert made.status.phase is ForkPhase.READY
    assert made.status.log_id == found.id
    assert (made.status.parent, made.status.fork_point, made.status.tail) == ("orders", 0, 0)
    assert (made.status.broker, made.status.made_by) == ("demo-0", "operator")
    assert made.status.endpoint == "anabranchs://fork-what-if.demo.svc:7420"
    assert conditions(made)["Ready"] == ("True", "Serving")
    assert made.status.observed_generation == 1
    slice_ = tended.kube.documents[Ref("EndpointSlice", NAMESPACE, "fork-what-if")]
    assert slice_["endpoints"][0]["addresses"] == ["10.0.0.7"]
    assert Ref("Service", NAMESPACE, "fork-what-if") in tended.kube.documents


def test_a_label_says_who_made_it_and_stays(tended: Sandbox) -> None:
    assert fork(tended, promotable=True).object.labels[names.MADE_BY] == "operator"
    tended.kube.edit(WHAT_IF, state="Promoted")
    tended.settle()
    made = current(tended)
    assert made.object.labels[names.MADE_BY] == "operator"


def test_what_is_as_it_should_be_costs_no_write(tended: Sandbox) -> None:
    fork(tended)
    tended.wait(60)
    writes, version = tended.kube.writes, tended.kube.version
    tended.wait(3_600)
    assert (tended.kube.writes, tended.kube.version) == (writes, version)


def test_a_fork_of_what_isnt_there_waits_for_it() -> None:
    tended = office()
    made = fork(tended)
    assert conditions(made)["Ready"] == ("False", "ParentMissing")
    log(tended)
    assert conditions(current(tended))["Ready"] == ("True", "Serving")


def test_a_parent_that_is_no_more_isnt_taken_for_the_fork(tended: Sandbox) -> None:
    parent = tended.service.describe("orders")
    assert isinstance(parent, Description)
    tended.service.command(DeleteLog(parent.id))
    made = fork(tended)
    assert made.status.phase is ForkPhase.PENDING
    assert conditions(made)["Ready"] == ("False", "Refused")
    tended.wait(10)
    assert conditions(current(tended))["Ready"] == ("False", "ParentNotReady")


def test_a_parent_of_the_same_name_that_is_no_more_isnt_taken_for_the_fork(
    tended: Sandbox,
) -> None:
    """A name says nothing: all forks of a tree have the root's name before their own."""
    fork(tended)
    parent_log = in_service(tended)
    assert isinstance(parent_log, Description)
    tended.service.command(Squash(parent_log.id))
    child = Ref(names.FORK, NAMESPACE, "again")
    parent = {"kind": "Fork", "name": "what-if"}
    made = fork(tended, child, parent=parent, forkName="what-if")
    assert made.status.phase is ForkPhase.PENDING
    tended.wait(10)
    assert conditions(current(tended, child))["Ready"] == ("False", "ParentNotReady")
    tended.kube.delete(WHAT_IF)
    tended.settle()
    fork(tended, forkName="another")
    assert current(tended, child).status.log_name == "orders--what-if"
    assert conditions(current(tended, child))["Ready"] == ("True", "Serving")


def test_a_fork_of_a_fork_follows_its_parent(tended: Sandbox) -> None:
    child = Ref(names.FORK, NAMESPACE, "deeper")
    fork(tended, child, parent={"kind": "Fork", "name": "what-if"})
    assert conditions(current(tended, child))["Ready"] == ("False", "ParentMissing")
    fork(tended)
    assert current(tended, child).status.log_name == "orders--deeper"
    assert current(tended, child).status.parent == "orders--what-if"


def test_the_slice_follows_the_broker_that_serves(tended: Sandbox) -> None:
    fork(tended)
    pod = Ref("Pod", NAMESPACE, "demo-0")
    tended.kube.report(pod, {"phase": "Running", "podIP": "10.0.0.7", "conditions": []})
    tended.settle()
    assert conditions(current(tended))["Ready"] == ("False", "NotServed")
    slice_ = tended.kube.documents[Ref("EndpointSlice", NAMESPACE, "fork-what-if")]
    assert slice_["endpoints"] == []


def test_while_etcd_is_full_neither_logs_nor_forks_are_ready(tended: Sandbox) -> None:
    fork(tended)
    meta = {"name": "demo-metadata-0", "namespace": NAMESPACE, "labels": {names.ROLE: "metadata"}}
    member = Ref("Pod", NAMESPACE, "demo-metadata-0")
    tended.kube.apply(member, {"kind": "Pod", "metadata": meta, "spec": {}})
    tended.kube.report(member, {"podIP": "10.0.0.9"})
    tended.settle()
    [target] = targets(tended.operator.world)
    for full, said in ((True, ("False", "EtcdFull")), (False, ("True", "Serving"))):
        tended.tell(Measured({target.uid: Vitals(etcd_full=full)}))
        assert conditions(current(tended))["Ready"] == said
        assert conditions(tended.operator.world.logs[ORDERS])["Ready"] == said


def test_a_promotion_is_asked_for_and_told(tended: Sandbox) -> None:
    fork(tended, promotable=True)
    tended.kube.edit(WHAT_IF, state="Promoted")
    tended.settle()
    made = current(tended)
    assert made.status.phase is ForkPhase.PROMOTED
    assert conditions(made)["Ready"] == ("False", "Promoted")
    assert Ref("Service", NAMESPACE, "fork-what-if") not in tended.kube.documents
    found = in_service(tended)
    assert isinstance(found, Refused)
    assert found.code == "promoted"


def test_what_has_ended_is_told_for_as_long_as_the_resource_is_there(tended: Sandbox) -> None:
    fork(tended, ttl="10s")
    tended.service.now += 11_000
    found = in_service(tended)
    assert isinstance(found, Description)
    tended.service.command(Expire([found.id]))
    tended.wait(10)
    assert current(tended).status.phase is ForkPhase.EXPIRED
    tended.restart()
    tended.wait(600)
    assert current(tended).status.phase is ForkPhase.EXPIRED
    assert isinstance(in_service(tended), Refused)


def test_a_finished_resource_goes_when_it_was_told_to(tended: Sandbox) -> None:
    fork(tended, promotable=True, state="Promoted", ttlAfterFinished="1m")
    assert current(tended).status.phase is ForkPhase.PROMOTED
    tended.wait(59)
    assert WHAT_IF in tended.kube.documents
    tended.wait(3)
    assert WHAT_IF not in tended.kube.documents


def test_a_fork_made_through_the_api_is_taken_over_only_if_asked(tended: Sandbox) -> None:
    parent = tended.service.describe("orders")
    assert isinstance(parent, Description)
    tended.service.command(ForkLog(parent.id, Kind.CONTINUOUS, "what-if"))
    assert conditions(fork(tended))["Ready"] == ("False", "NameTaken")
    tended.kube.edit(WHAT_IF, adopt=True)
    tended.wait(5)
    made = current(tended)
    assert conditions(made)["Ready"] == ("True", "Serving")
    assert made.status.made_by == made.object.labels[names.MADE_BY] == "api"


def test_what_is_taken_over_is_what_was_declared(tended: Sandbox) -> None:
    parent = tended.service.describe("orders")
    assert isinstance(parent, Description)
    tended.service.command(ForkLog(parent.id, Kind.SEVERED, "what-if"))
    made = fork(tended, adopt=True)
    assert conditions(made)["Ready"] == ("False", "NameTaken")
    assert "severed fork of orders" in made.status.conditions[0].message
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


def test_what_nobody_declares_is_taken_over_in_the_installations_namespace_alone() -> None:
    tended = office()
    tended.service.command(CreateLog("spare"))
    theirs = Ref(names.LOG, "elsewhere", "spare")
    assert conditions(log(tended, theirs, adopt=True))["Ready"] == ("False", "NameTaken")
    ours = Ref(names.LOG, NAMESPACE, "spare")
    assert conditions(log(tended, ours, adopt=True))["Ready"] == ("True", "Serving")


def test_a_paused_fork_is_left_alone(tended: Sandbox) -> None:
    fork(tended, promotable=True)
    tended.kube.annotate(WHAT_IF, paused="true")
    tended.kube.edit(WHAT_IF, state="Promoted")
    tended.settle()
    made = current(tended)
    assert conditions(made)["Paused"] == ("True", "Paused")
    assert conditions(made)["Ready"] == ("True", "Serving")
    assert isinstance(in_service(tended), Description)
    tended.kube.annotate(WHAT_IF, paused="false")
    tended.settle()
    assert current(tended).status.phase is ForkPhase.PROMOTED


def test_what_is_made_for_a_fork_is_the_forks_and_goes_with_it(tended: Sandbox) -> None:
    made = fork(tended)
    owner = {"apiVersion": names.API_VERSION, "kind": "Fork", "name": "what-if"}
    owner |= {"uid": made.object.uid, "controller": True, "blockOwnerDeletion": True}
    for kind in ("Service", "EndpointSlice"):
        child = tended.kube.documents[Ref(kind, NAMESPACE, "fork-what-if")]
        assert child["metadata"]["ownerReferences"] == [owner]


def test_events_of_a_whole_life_are_few(tended: Sandbox) -> None:
    fork(tended, promotable=True, promotion={"policy": "Approval"})
    tended.service_away = "for a while"
    tended.wait(60)
    tended.service_away = None
    tended.kube.edit(WHAT_IF, state="Promoted")
    tended.wait(600)
    tended.kube.edit(WHAT_IF, approved=True)
    tended.wait(600)
    assert current(tended).status.phase is ForkPhase.PROMOTED
    told = [each for each in tended.done if isinstance(each, actions.Announce)]
    ours = [each.reason for each in told if each.ref == WHAT_IF]
    assert len(ours) == len(set(ours)) <= 12
    assert set(ours) == {"Serving", "AwaitingApproval", "Promoted"}


def test_a_quota_is_kept_in_step(tended: Sandbox) -> None:
    fork(tended, quota={"appendBytesPerSecond": 1_000})
    tended.kube.edit(WHAT_IF, quota={"appendBytesPerSecond": 2_000})
    tended.settle()
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.quota is not None
    assert found.quota.append_bytes_per_s == 2_000
    tended.kube.edit(WHAT_IF, quota={})
    tended.settle()
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.quota is None or found.quota.limits_nothing


def test_numbers_that_move_are_shown_now_and_then(tended: Sandbox) -> None:
    for number in range(40):
        fork(tended, Ref(names.FORK, NAMESPACE, f"f{number}"))
    statuses = tended.kube.writes
    for _ in range(30):
        for log_ in tended.service.state.replica.forest.logs.values():
            tended.service.state.replica.forest.tails.add(log_.place, 1)
        tended.wait(2)
    assert tended.kube.writes - statuses <= 60 * 10
    assert tended.kube.writes - statuses >= 41


def test_many_forks_that_move_are_planned_when_they_may_be_shown(tended: Sandbox) -> None:
    forks = 200
    for number in range(forks):
        fork(tended, Ref(names.FORK, NAMESPACE, f"f{number}"))
    tended.wait(60)
    writes, plans = tended.kube.writes, tended.operator.counters.plans
    for _ in range(60):
        for log_ in tended.service.state.replica.forest.logs.values():
            tended.service.state.replica.forest.tails.add(log_.place, 1)
        tended.wait(2)
    written = tended.kube.writes - writes
    assert 3 * forks < written <= 120 * 10
    # The log's own status is looked at by all of its forks.
    assert tended.operator.counters.plans - plans < 6 * written + 10 * forks


def test_a_resource_that_cant_be_understood_is_told_so(tended: Sandbox) -> None:
    made = {"name": "odd", "namespace": NAMESPACE}
    odd = Ref(names.FORK, NAMESPACE, "odd")
    tended.kube.apply(odd, {"kind": "Fork", "metadata": made, "spec": {"parent": 7}})
    tended.settle()
    told = tended.kube.documents[odd]["status"]["conditions"][0]
    assert told["reason"] == "Invalid"
    writes = tended.kube.writes
    tended.wait(3_600)
    assert tended.kube.writes == writes


STEPS = (actions.Mark, actions.MakeFork, actions.Apply, actions.ApplyStatus)


@pytest.mark.parametrize("first", STEPS)
@pytest.mark.parametrize("second", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_an_operator_that_ends_twice_makes_one_fork(
    first: type[Action], second: type[Action], after: bool
) -> None:
    tended = office()
    log(tended)
    due = [first, second]

    def crash(action: Action) -> bool:
        if not due or not isinstance(action, due[0]):
            return False
        due.pop(0)
        if after:
            perform = tended._outcome
            perform(action)
        return True

    tended.crash = crash
    made = fork(tended)
    tended.wait(1)
    assert conditions(current(tended))["Ready"] == ("True", "Serving")
    forks = [each for each in tended.service.owned() if each.kind is not Kind.ROOT]
    assert [names.plain(each.owner) for each in forks] == [made.owner]
    asked = [each for each in tended.done if isinstance(each, actions.MakeFork)]
    assert len(asked) <= 3
