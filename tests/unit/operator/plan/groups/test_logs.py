"""Logs of engine belfast: their parts are made or named, registered, shown, deleted in order."""

from typing import Any

import msgspec
import pytest
from tests.unit.operator.belfast_log import (
    GROUP,
    LOG,
    NAMESPACE,
    VOLUME,
    BelfastHarness,
    setting,
)

from anabranch.core.bolt.protocol.commands import CreateLog, Description, SetQuota
from anabranch.core.errors.refused import Refused
from anabranch.core.quota import AppendShare, Quota
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Apply, CreateRoot, DeleteRoot, SetSettings
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import Log

ORDERS = Ref(names.LOG, NAMESPACE, "orders")
TEMPLATE: dict[str, Any] = {"image": "good", "storage": VOLUME}
MADE: dict[str, Any] = {
    "engine": "belfast",
    "sequencers": {"template": {**TEMPLATE, "members": 3}},
    "shards": {"count": 2, "template": TEMPLATE},
}
NAMED: dict[str, Any] = {
    "engine": "belfast",
    "sequencers": {"name": "orders"},
    "shards": {"names": ["orders"]},
}


def declare(harness: BelfastHarness, ref: Ref = ORDERS, **spec: Any) -> None:
    meta = {"name": ref.name, "namespace": ref.namespace}
    harness.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})
    harness.office.settle()


def log(harness: BelfastHarness, ref: Ref = ORDERS) -> Log:
    return harness.office.operator.world.logs[ref]


def ready(harness: BelfastHarness, ref: Ref = ORDERS) -> tuple[str, str, str]:
    found = next(each for each in log(harness, ref).status.conditions if each.type == "Ready")
    return found.status, found.reason, found.message


def entry(harness: BelfastHarness, name: str = "orders") -> Description:
    found = harness.office.service.describe(name)
    assert isinstance(found, Description)
    return found


@pytest.fixture
def made() -> BelfastHarness:
    """A log whose parts were made from templates, at rest."""
    harness = BelfastHarness(empty=True)
    declare(harness, **MADE)
    harness.settle()
    harness.office.done.clear()
    return harness


def test_both_parts_are_made_from_their_templates(made: BelfastHarness) -> None:
    assert len(made.names(names.SEQUENCER)) == 3
    assert made.names() == ["orders-0-0", "orders-0-1", "orders-1-0", "orders-1-1"]
    assert made.group.spec.sequencers == "orders"
    assert made.log.object.labels[names.MADE_FOR] == "orders"


def test_the_log_is_ready_when_its_parts_are_and_shows_them(made: BelfastHarness) -> None:
    assert ready(made)[:2] == ("True", "Serving")
    status = log(made).status
    assert (status.phase, status.sequencers, status.shards, status.shards_ready) == (
        "Ready",
        "orders",
        2,
        2,
    )
    assert status.endpoint == made.log.status.endpoint
    assert status.broker is None


def test_clients_find_the_sequencers_by_the_logs_name(made: BelfastHarness) -> None:
    found = entry(made)
    assert found.engine == "belfast"
    assert found.settings is not None
    assert found.settings.cluster == "demo.orders"
    assert found.settings.addresses[0] == "orders-sequencer-0.orders-sequencers.demo.svc:7440"
    assert (found.settings.shards, found.settings.replicas, found.settings.sequencers) == (2, 2, 3)


def test_what_is_as_it_should_be_costs_no_write(made: BelfastHarness) -> None:
    made.office.wait(60)
    writes = made.kube.writes
    made.office.done.clear()
    made.office.wait(1_200)
    assert made.kube.writes == writes
    assert made.done(CreateRoot, SetSettings, Apply) == []


def test_before_its_parts_are_ready_the_log_says_which_one_isnt() -> None:
    harness = BelfastHarness(empty=True)
    declare(harness, **MADE)
    status, reason, message = ready(harness)
    assert (status, reason) == ("False", "SequencersAway")
    assert message.startswith("SequencerSet orders: ")
    assert log(harness).status.phase == "Pending"


def test_a_changed_template_changes_the_part(made: BelfastHarness) -> None:
    template = {**TEMPLATE, "image": "newer"}
    made.edit(ORDERS, shards={"count": 3, "template": template})
    made.settle()
    assert made.group.spec.shards == 3
    assert {pod.spec["containers"][0]["image"] for pod in made.pods(names.SHARD)} == {"newer"}
    settings = entry(made).settings
    assert settings is not None
    assert settings.shards == 3


def test_a_part_that_somebody_changed_is_changed_back(made: BelfastHarness) -> None:
    made.edit(GROUP, shards=5)
    made.settle()
    assert made.group.spec.shards == 2


def test_a_part_that_somebody_deleted_is_made_again(made: BelfastHarness) -> None:
    made.kube.delete(GROUP)
    made.office.settle()
    made.settle()
    assert ready(made)[:2] == ("True", "Serving")


def test_named_parts_are_shown_and_left_as_they_are() -> None:
    harness = BelfastHarness()
    harness.settle()
    before = harness.log.object.labels, harness.group.object.labels
    declare(harness, **NAMED, deletionPolicy="Delete")
    harness.settle()
    assert ready(harness)[:2] == ("True", "Serving")
    assert (harness.log.object.labels, harness.group.object.labels) == before
    assert harness.log.object.owners == harness.group.object.owners == ()
    harness.kube.delete(ORDERS)
    harness.settle()
    assert isinstance(harness.office.service.describe("orders"), Refused)
    assert {LOG, GROUP} <= harness.kube.documents.keys()


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {**NAMED, "sequencers": {"name": "nobody"}},
            "SequencersMissing",
            "SequencerSet nobody isn't in this namespace: make it",
        ),
        (
            {**NAMED, "shards": {"names": ["orders", "nobody"]}},
            "ShardsMissing",
            "ShardGroup nobody isn't in this namespace: make it",
        ),
        ({"engine": "belfast"}, "Invalid", "engine belfast needs spec.sequencers and spec.shards"),
        ({"engine": "erwin"}, "Invalid", "engine erwin needs spec.sequencers and spec.shards"),
        (MADE, "NameTaken", "SequencerSet orders is there already"),
    ],
    ids=["no-set", "no-group", "nothing", "erwin", "not-ours"],
)
def test_a_log_that_cant_be_served_says_why(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    harness = BelfastHarness()
    harness.settle()
    declare(harness, **spec)
    harness.settle()
    assert ready(harness)[:2] == ("False", reason)
    assert ready(harness)[2].startswith(message)


def test_a_group_of_another_log_isnt_taken_for_this_ones() -> None:
    harness = BelfastHarness()
    declare(harness, Ref(names.SEQUENCERS, NAMESPACE, "other"), **TEMPLATE)
    declare(harness, **{**NAMED, "sequencers": {"name": "other"}})
    harness.office.settle()
    assert ready(harness)[1:] == (
        "Invalid",
        "ShardGroup orders belongs to SequencerSet orders, not to other: name other groups",
    )


def test_a_log_in_another_namespace_is_told_where_it_can_be_served() -> None:
    harness = BelfastHarness(empty=True)
    other = Ref(names.LOG, "team", "orders")
    declare(harness, other, **MADE)
    assert ready(harness, other)[:2] == ("False", "EngineNotAvailable")
    assert "namespace demo" in ready(harness, other)[2]
    assert LOG not in harness.kube.documents


def test_a_log_without_shards_isnt_ready(made: BelfastHarness) -> None:
    made.edit(
        ORDERS, shards={"count": 0, "template": {**TEMPLATE, "leaving": {"waitFor": "Nothing"}}}
    )
    made.settle()
    assert ready(made)[:2] == ("False", "ShardsMissing")
    assert log(made).status.phase == "Ready"


def test_shards_go_first_then_sequencers_and_the_entry_last() -> None:
    harness = BelfastHarness(empty=True)
    declare(harness, **MADE, deletionPolicy="Delete")
    harness.settle()
    group, uid = harness.group.object, log(harness).object.uid
    assert group.owners == (uid,)
    assert set(harness.log.object.owners) == {uid, group.uid}
    harness.office.done.clear()
    harness.kube.collects = False
    harness.kube.delete(ORDERS)
    harness.office.wait(60)
    assert harness.done(DeleteRoot) == [], "its parts are still there"
    harness.kube.collect()
    assert GROUP not in harness.kube.documents
    assert LOG in harness.kube.documents, "the shards had to go before"
    harness.kube.collect()
    assert LOG not in harness.kube.documents
    harness.office.wait(60)
    assert isinstance(harness.office.service.describe("orders"), Refused)


def test_a_log_that_is_retained_leaves_everything_where_it_is(made: BelfastHarness) -> None:
    made.kube.delete(ORDERS)
    made.settle()
    assert {LOG, GROUP} <= made.kube.documents.keys()
    assert entry(made).owner == ""
    pods = made.names()
    declare(made, **MADE, adopt=True)
    made.settle()
    assert ready(made)[:2] == ("True", "Serving")
    assert made.names() == pods


def test_a_log_that_is_to_end_with_its_resource_comes_to_own_its_parts(
    made: BelfastHarness,
) -> None:
    assert made.group.object.owners == ()
    made.edit(ORDERS, deletionPolicy="Delete")
    made.settle()
    assert made.group.object.owners == (log(made).object.uid,)


@pytest.mark.parametrize("engine", ["bolt", "belfast"])
def test_a_log_of_another_engine_isnt_adopted(engine: str) -> None:
    harness = BelfastHarness()
    harness.settle()
    if engine == "belfast":
        harness.office.service.command(CreateLog("orders"))
        declare(harness, **NAMED, adopt=True)
    else:
        declare(harness, **NAMED)
        harness.settle()
        harness.kube.delete(ORDERS)
        harness.settle()
        declare(harness, adopt=True)
    harness.settle()
    assert ready(harness)[:2] == ("False", "NameTaken")


def share(harness: BelfastHarness, role: str = names.SHARD) -> AppendShare:
    """What the pods find in the file that they were given."""
    (pod, *_) = harness.pods(role)
    mounts = {each["mountPath"]: each["name"] for each in containers(pod)["volumeMounts"]}
    folder, _, file = setting(pod, "LOG_QUOTA_FILE").rpartition("/")
    volume = next(each for each in pod.spec["volumes"] if each["name"] == mounts[folder])
    source = volume["configMap"]
    found = harness.kube.get(Ref("ConfigMap", NAMESPACE, source["name"]))
    if found is None:
        assert source["optional"], "a pod without its ConfigMap starts all the same"
        return AppendShare()
    return msgspec.json.decode(found.body["data"][file], type=AppendShare)


def containers(pod: Observed) -> Any:
    (container,) = pod.spec["containers"]
    return container


def test_each_shard_is_told_its_share_of_the_logs_quota(made: BelfastHarness) -> None:
    assert share(made) == AppendShare(), "without a quota nothing is made"
    made.edit(ORDERS, quota={"appendBytesPerSecond": 3_000, "appendRecordsPerSecond": 100})
    made.office.settle()
    quota = entry(made).quota
    assert quota is not None
    assert (quota.append_bytes_per_s, quota.append_records_per_s) == (3_000, 100)
    told = AppendShare(
        log="orders", append_bytes_per_s=1_500, append_records_per_s=50, burst_ms=1_000
    )
    assert share(made) == told
    made.edit(ORDERS, shards={"count": 3, "template": TEMPLATE})
    made.settle()
    assert share(made).append_bytes_per_s == 1_000
    made.edit(ORDERS, quota={})
    made.office.settle()
    assert entry(made).quota is None
    assert share(made).append_bytes_per_s is None


def test_each_sequencer_of_an_erwin_log_is_told_its_whole_quota() -> None:
    harness = BelfastHarness(empty=True, erwin=True)
    quota = {"appendBytesPerSecond": 3_000, "appendRecordsPerSecond": 100}
    declare(harness, **{**MADE, "engine": "erwin"}, quota=quota)
    harness.settle()
    found = share(harness, names.SEQUENCER)
    assert (found.append_bytes_per_s, found.append_records_per_s) == (3_000, 100)


def test_a_quota_that_a_client_set_reaches_the_shards_too(made: BelfastHarness) -> None:
    service = made.office.service
    service.command(SetQuota(entry(made).id, Quota(append_records_per_s=8)))
    made.office.wait(60)
    assert share(made).append_records_per_s == 4
    ref = Ref("ConfigMap", NAMESPACE, "orders-quota")
    found = made.kube.get(ref)
    assert found is not None
    meta = {"name": ref.name, "namespace": ref.namespace, "labels": dict(found.labels)}
    made.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "data": {"quota.json": "{}"}})
    made.office.settle()
    assert share(made).append_records_per_s == 4, "what somebody changed is changed back"


def test_a_quota_goes_with_the_sequencers_that_it_was_made_for(made: BelfastHarness) -> None:
    made.edit(ORDERS, quota={"appendRecordsPerSecond": 100})
    made.office.settle()
    found = made.kube.get(Ref("ConfigMap", NAMESPACE, "orders-quota"))
    assert found is not None
    assert found.owners == (made.log.object.uid,)
    assert found.labels[names.MANAGED_BY] == names.FIELD_MANAGER


def test_of_two_logs_that_name_the_same_sequencers_the_first_by_name_counts(
    made: BelfastHarness,
) -> None:
    made.edit(ORDERS, quota={"appendRecordsPerSecond": 100})
    declare(made, Ref(names.LOG, NAMESPACE, "second"), **NAMED, quota={"appendRecordsPerSecond": 6})
    made.office.wait(60)
    writes = made.kube.writes
    made.office.wait(600)
    assert made.kube.writes == writes, "they don't overwrite one another for ever"
    assert share(made).append_records_per_s == 50
    assert entry(made, "second").quota == Quota(append_records_per_s=6), "it is kept, at least"
