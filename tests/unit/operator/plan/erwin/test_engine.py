"""SequencerSets and ShardGroups of engine erwin: rolled by view changes, scaled while the log goes
on, and what is shown of both.
"""

import pytest
from tests.unit.operator.belfast_log import (
    BAD,
    GROUP,
    LOG,
    NAMESPACE,
    VOLUME,
    BelfastHarness,
    environment,
    setting,
)

from anabranch.apps.pods.log_settings import (
    Configurations,
    LogEngine,
    SequencerSettings,
    ShardSettings,
    load,
)
from anabranch.core.bolt.protocol.commands import Description
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import JoinShard, LeaveShard
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.groups.report import Standing


@pytest.fixture
def harness() -> BelfastHarness:
    """Three sequencers and two shards of two copies, at rest."""
    made = BelfastHarness(erwin=True)
    made.settle()
    made.office.done.clear()
    return made


def test_a_log_comes_up_and_says_so(harness: BelfastHarness) -> None:
    assert harness.condition("Ready", LOG) == ("True", "Leading", "orders-sequencer-0 leads")
    assert harness.condition("Sealed", LOG)[:2] == ("False", "ViewStarted")
    assert harness.condition("Reconfiguring", LOG)[:2] == ("False", "Unchanged")
    status = harness.log.status
    assert (status.leader, status.view, status.members) == ("orders-sequencer-0", 1, 3)
    assert (status.term, status.window, status.mode) == (None, None, None)
    assert status.confirmed is not None
    assert status.confirmed == status.tail
    assert (status.backlog, status.lost_views) == (0, 0)
    assert status.endpoint is None, "programs open it by its name in the log service"
    assert harness.condition("Ready")[:2] == ("True", "Seated")
    assert harness.condition("Reconfiguring")[:2] == ("False", "Unchanged")
    assert "WindowOpen" not in {each.type for each in harness.group.status.conditions}
    assert [each.standing for each in harness.group.status.seats] == ["Seated", "Seated"]


def test_processes_take_what_their_pods_are_set_to(harness: BelfastHarness) -> None:
    sequencer = load(SequencerSettings, {}, environment(harness.pod("orders-sequencer-1")))
    assert sequencer.engine is LogEngine.ERWIN
    assert sequencer.configurations is Configurations.ETCD
    assert (sequencer.mode, sequencer.durability) == ("m", "fsync")
    assert sequencer.address in sequencer.members
    assert len(sequencer.members) == 3
    shard = load(ShardSettings, {}, environment(harness.pod("orders-1-0")))
    assert shard.engine is LogEngine.ERWIN
    assert (shard.shard, shard.sequencers) == ("orders-1", sequencer.members)
    assert shard.data == sequencer.data == "/var/lib/anabranch/erwin"


def test_mode_durability_and_loss_are_as_declared() -> None:
    storage = {"ephemeral": True}
    harness = BelfastHarness(
        erwin=True,
        mode="st",
        durability="memory",
        configurations="Journal",
        acceptLoss=True,
        storage=storage,
    )
    harness.settle()
    found = load(SequencerSettings, {}, environment(harness.pod("orders-sequencer-0")))
    assert (found.mode, found.durability) == ("st", "memory")
    assert found.configurations is Configurations.JOURNAL
    assert found.accept_loss


def test_shards_over_black_boxes_have_one_each_and_are_told_how_it_is_reached() -> None:
    box = {"url": "kafka://h:9093/clicks", "accessSecret": "kafka"}
    harness = BelfastHarness(erwin=True, shards={"copies": 1, "blackBox": box})
    harness.settle()
    assert harness.group.status.seated == 2
    for number in range(2):
        pod = harness.pod(f"orders-{number}-0")
        found = load(ShardSettings, {}, environment(pod))
        assert found.black_box == f"kafka://h:9093/clicks-{number}"
        assert found.reached_file == "", "its note is in the data directory, beside the box's name"
        folder, _, file = found.kafka_file.rpartition("/")
        assert file == "kafka.toml"
        (volume,) = (each for each in pod.spec["volumes"] if each["name"] == "kafka")
        assert volume["secret"] == {"secretName": "kafka"}
        mounts = pod.spec["containers"][0]["volumeMounts"]
        assert {"name": "kafka", "mountPath": folder, "readOnly": True} in mounts
    before = harness.erwin.number
    harness.edit(GROUP, blackBox={**box, "accessSecret": "renewed"})
    harness.settle()
    assert sorted(harness.ended()) == ["orders-0-0", "orders-1-0"], "pods mount another Secret"
    assert harness.erwin.number == before, "appends go on in the same view"


def test_shards_over_black_boxes_are_not_made_for_a_log_of_mode_st() -> None:
    box = {"url": "kafka://h:9093/clicks"}
    harness = BelfastHarness(erwin=True, mode="st", shards={"copies": 1, "blackBox": box})
    for _ in range(10):
        harness.step()
    assert harness.names() == []
    status, reason, message = harness.condition("Ready")
    assert (status, reason) == ("False", "Invalid")
    assert "appends would wait for a blackBox" in message


def test_sequencers_are_rolled_by_view_changes_and_the_leader_last(
    harness: BelfastHarness,
) -> None:
    before = harness.erwin.number
    harness.edit(LOG, image="better")
    harness.settle()
    assert harness.ended() == ["orders-sequencer-1", "orders-sequencer-2", "orders-sequencer-0"]
    assert harness.log.status.updated == 3
    assert harness.erwin.number >= before + 6, "each left a view, and came back in another"


def test_nothing_is_rolled_while_the_view_goes_on_without_a_member(
    harness: BelfastHarness,
) -> None:
    harness.frozen[harness.pod("orders-sequencer-2").uid] = None
    harness.crash("orders-sequencer-2")
    harness.step()
    harness.step()
    harness.edit(LOG, image="better")
    for _ in range(20):
        harness.step()
    gone = harness.ended()
    assert set(gone) <= {"orders-sequencer-2"}, "the one that fails is replaced, and no other"


def test_a_bad_spec_breaks_one_sequencer_and_is_corrected(harness: BelfastHarness) -> None:
    harness.edit(LOG, image=BAD)
    for _ in range(30):
        harness.step()
    assert harness.ended() == ["orders-sequencer-1"]
    assert harness.erwin.leader == setting(harness.pod("orders-sequencer-0"), "ADDRESS")
    assert harness.condition("Degraded", LOG)[:2] == ("True", "PodsFailing")
    harness.edit(LOG, image="good")
    harness.settle()
    assert harness.condition("Degraded", LOG)[0] == "False"


def test_a_sealed_view_is_shown(harness: BelfastHarness) -> None:
    harness.vanish("orders-sequencer-1")
    harness.run()
    harness.office.wait(11)
    assert harness.condition("Sealed", LOG) == (
        "True",
        "ViewSealed",
        "appends wait until view 2 has begun",
    )
    assert harness.condition("Reconfiguring", LOG)[:2] == ("True", "ViewChanging")
    harness.settle()
    assert harness.condition("Sealed", LOG)[0] == "False"


def test_shards_are_added_while_the_log_goes_on(harness: BelfastHarness) -> None:
    view = harness.erwin.number
    harness.edit(GROUP, shards=4)
    harness.settle()
    assert harness.standing("orders-3") is Standing.SEATED
    assert harness.group.status.seated == 4
    assert harness.erwin.number == view, "appends go on in the same view"


def test_a_shard_is_closed_and_its_pods_and_volumes_stay_until_it_is_trimmed(
    harness: BelfastHarness,
) -> None:
    harness.edit(GROUP, shards=1)
    harness.settle()
    assert [each.shard for each in harness.done(LeaveShard)] == ["orders-1"]
    assert harness.standing("orders-1") is Standing.LEAVING
    assert harness.condition("Leaving")[:2] == ("True", "AwaitingTrim")
    assert "orders-1-0" in harness.names()
    harness.erwin.trim()
    harness.settle()
    assert harness.standing("orders-1") is Standing.LEFT
    assert harness.names() == ["orders-0-0", "orders-0-1"]
    assert [each for each in harness.volumes() if "orders-1" in each] == []
    assert harness.condition("Leaving")[0] == "False"


def test_a_shard_that_is_wanted_again_is_opened(harness: BelfastHarness) -> None:
    """While it is only closed, and after it was removed with its volumes."""
    for trims in (False, True):
        harness.edit(GROUP, shards=1)
        harness.settle()
        if trims:
            harness.erwin.trim()
            harness.settle()
        harness.done(JoinShard)
        harness.edit(GROUP, shards=2)
        harness.settle()
        assert [each.shard for each in harness.done(JoinShard)][:1] == ["orders-1"]
        assert harness.standing("orders-1") is Standing.SEATED
        assert harness.condition("Ready")[0] == "True"


def test_the_last_shard_stays(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=0)
    harness.settle()
    assert [each.shard for each in harness.done(LeaveShard)] == ["orders-1"]
    status, reason, message = harness.condition("Leaving")
    assert (status, reason) == ("True", "LastShard")
    assert "orders-0 stays" in message
    assert harness.standing("orders-0") is Standing.SEATED


def test_replicas_are_rolled_backups_first(harness: BelfastHarness) -> None:
    harness.edit(GROUP, image="better")
    harness.settle()
    assert harness.ended() == ["orders-0-1", "orders-0-0", "orders-1-1", "orders-1-0"]
    assert harness.group.status.updated == 4


def test_a_group_of_another_engine_than_its_set_is_refused() -> None:
    harness = BelfastHarness(erwin=True, shards={"engine": "belfast"})
    for _ in range(5):
        harness.step()
    status, reason, message = harness.condition("Ready")
    assert (status, reason) == ("False", "Invalid")
    assert "engine erwin" in message
    assert harness.pods(names.SHARD) == []


def test_without_a_shard_no_view_begins() -> None:
    harness = BelfastHarness(erwin=True, empty=True)
    harness.declare_log()
    for _ in range(5):
        harness.step()
    assert harness.condition("Ready", LOG)[:2] == ("False", "NoView")
    assert harness.log.ref.namespace == NAMESPACE


def test_a_log_makes_its_parts_and_is_opened_by_its_name() -> None:
    harness = BelfastHarness(erwin=True, empty=True)
    pods = {"image": "good", "storage": VOLUME}
    spec = {
        "engine": "erwin",
        "logName": "trail",
        "sequencers": {"template": {**pods, "mode": "st", "members": 2}},
        "shards": {"template": pods, "count": 2},
    }
    ref = Ref(names.LOG, NAMESPACE, "orders")
    meta = {"name": ref.name, "namespace": ref.namespace}
    harness.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})
    harness.office.settle()
    harness.settle()
    assert harness.names(names.SEQUENCER) == ["orders-sequencer-0", "orders-sequencer-1"]
    log = harness.office.operator.world.logs[ref]
    said = {each.type: each for each in log.status.conditions}
    assert (said["Ready"].status, said["Ready"].reason) == ("True", "Serving")
    assert said["Ready"].message == "clients reach it at trail in the log service"
    assert (said["Sealed"].status, said["Reconfiguring"].status) == ("False", "False")
    status = log.status
    assert (status.leader, status.view, status.backlog) == ("orders-sequencer-0", 1, 0)
    assert status.endpoint is None
    assert status.tail == status.settled
    found = harness.office.service.describe("trail")
    assert isinstance(found, Description)
    assert found.engine == "erwin"
    assert found.settings is not None
    assert (found.settings.mode, found.settings.durability) == ("st", "fsync")
    assert found.settings.cluster == "demo.orders"
    assert len(found.settings.addresses) == 2
