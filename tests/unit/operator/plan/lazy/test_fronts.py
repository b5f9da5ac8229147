"""Bolt logs with lazy appends: their sequencers are made or named, told of, shown, and removed when
the front has ended.
"""

import pytest
from tests.unit.operator.belfast_log import LOG, NAMESPACE, VOLUME, environment
from tests.unit.operator.declared import declare as put
from tests.unit.operator.plan.lazy.conftest import LAZY, ORDERS, TEMPLATE, FrontHarness

from anabranch.apps.pods.log_settings import LogEngine, SequencerSettings, load
from anabranch.core.bolt.protocol import commands
from anabranch.core.bolt.protocol.commands import CreateLog, EngineSettings
from anabranch.core.quota import AppendShare, Quota
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import (
    Apply,
    ApplyStatus,
    CreateRoot,
    Delete,
    SetAppends,
    SetSettings,
)
from anabranch_operator.plan.engine.objects import Ref

CHART = {"ANABRANCH_SERVICE": "anabranchs://demo.demo.svc:7420?token_file=/token"}
"""What the chart's ConfigMap adds."""


def test_a_new_log_has_its_front_from_the_start(harness: FrontHarness) -> None:
    assert harness.said() == (
        "True",
        "Serving",
        "clients reach it at anabranchs://log-orders.demo.svc:7420",
    )
    front = harness.entry.front
    assert front is not None
    assert (front.sequencers, front.durability, front.cluster) == (3, "fsync", "demo.orders")
    assert front.addresses[0] == "orders-sequencer-0.orders-sequencers.demo.svc:7440"
    status = harness.orders.status
    assert (status.view, status.leader) == (1, "orders-sequencer-0")
    assert (status.backlog, status.durability, status.sequencers) == (0, "fsync", "orders")
    assert harness.said("Sealed")[:2] == ("False", "ViewStarted")
    assert harness.said("Reconfiguring")[:2] == ("False", "Unchanged")


def test_the_set_shows_what_its_leader_says(harness: FrontHarness) -> None:
    assert harness.condition("Ready", LOG) == ("True", "Leading", "orders-sequencer-0 leads")
    status = harness.log.status
    assert (status.members, status.view, status.durability) == (3, 1, "fsync")
    assert (status.log_id, status.ring_lasts_seconds, status.backlog) == (harness.entry.id, 90, 0)
    assert (status.endpoint, status.term, status.lost_views) == (None, None, 0)


def test_a_pod_is_set_to_its_log_and_shows_the_service_a_token(harness: FrontHarness) -> None:
    pod = harness.pod("orders-sequencer-1")
    found = load(SequencerSettings, {}, {**environment(pod), **CHART})
    assert (found.engine, found.log_id) == (LogEngine.LAZY, harness.entry.id)
    assert found.durability == "fsync"
    assert found.address in found.members
    assert found.data == f"/var/lib/anabranch/lazy-{harness.entry.id}"
    assert found.reached_file == f"{found.data}.reached", "of this log's journal alone"
    (volume,) = (each for each in pod.spec["volumes"] if each["name"] == "service")
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "anabranch"
    mounts = pod.spec["containers"][0]["volumeMounts"]
    where = {"name": "service", "mountPath": "/var/run/anabranch/service", "readOnly": True}
    assert where in mounts


def test_memory_needs_no_volumes_and_loss_is_accepted_when_it_is_declared(
    bare: FrontHarness,
) -> None:
    spec = {"storage": {"ephemeral": True}, "durability": "memory", "acceptLoss": True}
    bare.declare_orders(appends="Lazy", sequencers={"template": {**TEMPLATE, **spec}})
    bare.settle()
    pod = bare.pod("orders-sequencer-0")
    found = load(SequencerSettings, {}, {**environment(pod), **CHART})
    assert (found.durability, found.accept_loss) == ("memory", True)
    assert found.reached_file == "", "what isn't synced may be lost"
    assert bare.volumes() == []
    assert bare.entry.front is not None
    assert bare.entry.front.durability == "memory"


def test_the_sequencers_have_no_pods_before_the_log_has_its_front(bare: FrontHarness) -> None:
    bare.office.service_away = "it is upgraded"
    bare.declare_orders(**LAZY)
    bare.step()
    assert bare.names(names.SEQUENCER) == []
    assert bare.volumes() == []
    assert bare.condition("Ready", LOG)[:2] == ("False", "LogMissing")
    assert bare.said()[:2] == ("False", "ServiceAway")
    bare.office.service_away = None
    bare.settle()
    assert bare.said()[0] == "True"


def test_a_log_that_is_there_gets_a_front(bare: FrontHarness) -> None:
    bare.declare_orders()
    bare.settle()
    id = bare.entry.id
    assert (bare.said()[0], bare.entry.front) == ("True", None)
    bare.office.done.clear()
    bare.edit(ORDERS, **LAZY)
    bare.settle()
    asked = bare.done(SetAppends, CreateRoot)
    assert [type(each) for each in asked] == [SetAppends]
    assert bare.entry.id == id
    assert bare.said()[0] == "True"
    assert len(bare.names(names.SEQUENCER)) == 3


def test_what_is_as_it_should_be_costs_no_write(harness: FrontHarness) -> None:
    harness.office.wait(60)
    harness.office.done.clear()
    harness.office.wait(1_200)
    assert harness.done(SetAppends, SetSettings, Apply, ApplyStatus, Delete) == []


def test_back_to_direct_appends_the_front_ends_before_its_set_goes(harness: FrontHarness) -> None:
    harness.edit(ORDERS, appends="Direct", sequencers=None)
    assert [each.front for each in harness.done(SetAppends)] == [None]
    assert harness.entry.front_ends
    assert harness.said()[:2] == ("False", "FrontEnding")
    assert harness.has_set()
    harness.settle()
    assert harness.entry.front is None
    assert not harness.has_set()
    assert harness.said()[0] == "True"
    status = harness.orders.status
    assert (status.view, status.leader, status.backlog) == (None, None, None)
    assert (status.durability, status.sequencers) == (None, None)
    assert "Sealed" not in {each.type for each in harness.orders.status.conditions}


def test_a_front_that_cant_end_yet_keeps_its_sequencers(harness: FrontHarness) -> None:
    """Its pods are looked after as before, though the Log doesn't name them any more."""
    harness.front.held_up = "the object store is away"
    harness.edit(ORDERS, appends="Direct", sequencers=None)
    harness.vanish("orders-sequencer-1")
    for _ in range(10):
        harness.step()
    assert len(harness.names(names.SEQUENCER)) == 3
    assert len(harness.done(SetAppends)) == 1, "it is asked once"
    assert harness.said()[:2] == ("False", "FrontEnding")
    harness.front.held_up = ""
    harness.settle()
    assert not harness.has_set()


def test_a_log_whose_front_has_ended_cant_have_another(harness: FrontHarness) -> None:
    harness.edit(ORDERS, appends="Direct", sequencers=None)
    harness.settle()
    harness.edit(ORDERS, **LAZY)
    for _ in range(5):
        harness.step()
    status, reason, message = harness.said()
    assert (status, reason) == ("False", "Refused")
    assert "it had a lazy front that ended" in message
    assert harness.names(names.SEQUENCER) == []


def test_a_front_that_ends_by_somebody_elses_hand_is_told_of(harness: FrontHarness) -> None:
    """A client asked for direct appends, and the Log declares lazy ones still."""
    harness.office.service.command(commands.SetAppends(harness.entry.id, None))
    harness.office.restart()
    harness.settle()
    status, reason, message = harness.said()
    assert (status, reason) == ("False", "Refused")
    assert "has ended" in message or "had a lazy front that ended" in message
    assert harness.names(names.SEQUENCER) == []


def test_a_set_of_somebody_else_is_used_and_stays(bare: FrontHarness) -> None:
    set_ = {"engine": "lazy", "image": "good", "storage": VOLUME, "members": 2}
    put(bare.office, LOG, **set_)
    bare.office.settle()
    bare.step()
    assert bare.condition("Ready", LOG)[:2] == ("False", "LogMissing")
    bare.declare_orders(appends="Lazy", sequencers={"name": "orders"})
    bare.settle()
    assert bare.said()[0] == "True"
    assert len(bare.names(names.SEQUENCER)) == 2
    assert names.MADE_FOR not in bare.log.object.labels
    bare.edit(ORDERS, appends="Direct", sequencers=None)
    bare.settle()
    assert bare.entry.front is None
    assert bare.has_set()


def test_a_set_that_isnt_there_or_is_anothers_is_told_of(bare: FrontHarness) -> None:
    bare.declare_orders(appends="Lazy", sequencers={"name": "orders"})
    bare.step()
    assert bare.said()[:2] == ("False", "SequencersMissing")
    put(bare.office, LOG, image="good", storage=VOLUME)
    bare.office.settle()
    bare.step()
    status, reason, message = bare.said()
    assert (status, reason) == ("False", "Invalid")
    assert "engine belfast" in message
    assert "engine lazy" in message


def test_a_set_that_took_another_logs_appends_is_not_used(harness: FrontHarness) -> None:
    """It may hold what that log has yet to commit."""
    harness.kube.end(ORDERS)
    harness.office.settle()
    harness.settle()
    assert harness.has_set(), "the log was kept, and its appends with it"
    harness.declare_orders(**LAZY, logName="others")
    harness.step()
    harness.step()
    status, reason, message = harness.said()
    assert (status, reason) == ("False", "NameTaken")
    assert "another log" in message


@pytest.mark.parametrize("label", ["777", ""])
def test_a_label_that_somebody_changed_is_set_right(harness: FrontHarness, label: str) -> None:
    """Another label would have the next pod come up as a sequencer of another log."""
    harness.label_set(label)
    harness.settle()
    assert harness.said()[:2] == ("True", "Serving")
    assert harness.log.object.labels[names.LOG_ID] == str(harness.entry.id)
    harness.vanish("orders-sequencer-1")
    harness.settle()
    found = load(SequencerSettings, {}, {**environment(harness.pod("orders-sequencer-1")), **CHART})
    assert found.log_id == harness.entry.id


def test_a_log_that_was_kept_is_taken_over_with_its_front(harness: FrontHarness) -> None:
    harness.kube.end(ORDERS)
    harness.office.settle()
    harness.settle()
    assert harness.entry.owner == ""
    uids = {pod.uid for pod in harness.pods(names.SEQUENCER)}
    harness.declare_orders(**LAZY, adopt=True)
    harness.settle()
    assert harness.said()[0] == "True"
    assert {pod.uid for pod in harness.pods(names.SEQUENCER)} == uids


def test_a_front_of_other_settings_is_told_of(bare: FrontHarness) -> None:
    bare.declare_orders()
    front = EngineSettings(sequencers=2, durability="fsync", addresses=("a:1", "b:2"))
    bare.office.service.command(commands.SetAppends(bare.entry.id, front))
    bare.edit(ORDERS, **LAZY)
    for _ in range(5):
        bare.step()
    status, reason, message = bare.said()
    assert (status, reason) == ("False", "Invalid")
    assert "has 2 sequencers of durability fsync" in message


def test_addresses_follow_the_set(bare: FrontHarness) -> None:
    bare.declare_orders()
    front = EngineSettings(sequencers=3, durability="fsync", addresses=("a:1", "b:2", "c:3"))
    bare.office.service.command(commands.SetAppends(bare.entry.id, front))
    bare.office.done.clear()
    bare.edit(ORDERS, **LAZY)
    bare.settle()
    assert len(bare.done(SetSettings)) == 1
    assert bare.entry.front is not None
    assert bare.entry.front.cluster == "demo.orders"
    assert bare.said()[0] == "True"


def test_a_front_that_no_resource_told_of_is_left_alone(bare: FrontHarness) -> None:
    """Its sequencers are run by somebody, and a log can't have a second front."""
    bare.declare_orders()
    front = EngineSettings(sequencers=1, durability="fsync", addresses=("a:1",), cluster="own")
    bare.office.service.command(commands.SetAppends(bare.entry.id, front))
    bare.office.done.clear()
    bare.settle()
    assert bare.done(SetAppends) == []
    assert bare.said()[0] == "True"
    assert not bare.entry.front_ends


def test_with_the_log_go_its_set_and_its_entry(bare: FrontHarness) -> None:
    bare.declare_orders(**LAZY, deletionPolicy="Delete")
    bare.settle()
    (owner,) = bare.log.object.owners
    assert owner == bare.orders.object.uid
    bare.kube.end(ORDERS)
    bare.office.settle()
    bare.settle()
    assert not bare.has_set()
    assert bare.names(names.SEQUENCER) == []
    assert bare.office.service.owned() == ()


def test_another_log_begins_anew_on_the_volumes_of_one_that_was_deleted(
    bare: FrontHarness,
) -> None:
    """They stay, and what is on them isn't the new log's."""
    bare.declare_orders(**LAZY, deletionPolicy="Delete")
    bare.settle()
    first, volumes = bare.entry.id, bare.volumes()
    bare.kube.end(ORDERS)
    bare.office.settle()
    bare.settle()
    assert bare.volumes() == volumes
    bare.declare_orders(**LAZY, deletionPolicy="Delete")
    bare.settle()
    assert bare.said()[0] == "True"
    assert bare.entry.id != first
    settings = [
        load(SequencerSettings, {}, {**environment(each), **CHART})
        for each in bare.pods(names.SEQUENCER)
    ]
    assert {each.data for each in settings} == {f"/var/lib/anabranch/lazy-{bare.entry.id}"}
    assert {each.reached_file for each in settings} == {f"{settings[0].data}.reached"}


def test_the_quota_is_every_sequencers(harness: FrontHarness) -> None:
    harness.edit(ORDERS, quota={"appendRecordsPerSecond": 7})
    harness.settle()
    assert harness.entry.quota == Quota(append_records_per_s=7)
    found = harness.kube.get(Ref("ConfigMap", NAMESPACE, "orders-quota"))
    assert found is not None
    share = AppendShare.of("orders", Quota(append_records_per_s=7), 1)
    assert (
        f'"append_records_per_s":{share.append_records_per_s}' in found.body["data"]["quota.json"]
    )


def test_elsewhere_there_are_no_lazy_appends(bare: FrontHarness) -> None:
    ref = Ref(names.LOG, "team", "orders")
    put(bare.office, ref, **LAZY)
    bare.office.settle()
    (ready,) = (
        each
        for each in bare.office.operator.world.logs[ref].status.conditions
        if each.type == "Ready"
    )
    assert (ready.status, ready.reason) == ("False", "EngineNotAvailable")
    assert "namespace demo alone" in ready.message


def test_a_log_of_that_name_which_is_there_isnt_taken(bare: FrontHarness) -> None:
    bare.office.service.command(CreateLog("orders"))
    bare.declare_orders(**LAZY)
    bare.step()
    assert bare.said()[:2] == ("False", "NameTaken")
    assert bare.names(names.SEQUENCER) == []
