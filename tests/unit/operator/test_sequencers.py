"""SequencerSets: their pods, how they are rolled, what is told of them."""

from typing import Any

import pytest
from tests.unit.operator.quay import BAD, GROUP, LOG, NAMESPACE, Quay, environment, setting

from anabranch.apps.pods.belfast_settings import SequencerSettings, load
from anabranch.core.belfast.ledger.rules import Rules
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Announce, ApplyStatus, Create
from anabranch_operator.plan.engine.objects import Ref


@pytest.fixture
def quay() -> Quay:
    """Three sequencers and two shards, at rest."""
    made = Quay()
    made.settle()
    made.office.done.clear()
    return made


def pod(quay: Quay, name: str) -> dict[str, Any]:
    return quay.kube.documents[Ref("Pod", NAMESPACE, name)]


def test_a_group_is_there_leads_and_comes_to_rest(quay: Quay) -> None:
    found = [f"orders-sequencer-{each}" for each in range(3)]
    assert quay.names(names.SEQUENCER) == found
    status = quay.log.status
    assert (status.members, status.ready, status.updated, status.term) == (3, 3, 3, 1)
    assert status.leader == "orders-sequencer-0"
    assert (status.mode, status.view, status.seated) == ("Steady", 0, 2)
    assert [each.state for each in status.sequencers] == ["leading", "following", "following"]
    assert quay.condition("Ready", LOG)[:2] == ("True", "Leading")
    assert quay.condition("Progressing", LOG)[:2] == ("False", "UpToDate")
    quay.office.wait(60)  # numbers are shown now and then
    version = quay.kube.version
    quay.office.wait(7_200)
    assert quay.kube.version == version, "nothing moves, and nothing is written"


def test_each_knows_all_and_is_met_by_its_name(quay: Quay) -> None:
    seen = quay.pod("orders-sequencer-1")
    home = "orders-sequencers.demo.svc:7440"
    assert setting(seen, "ADDRESS") == f"orders-sequencer-1.{home}"
    assert setting(seen, "MEMBERS").split(",") == [
        f"orders-sequencer-{each}.{home}" for each in range(3)
    ]
    assert setting(seen, "CLUSTER") == "demo.orders"
    spec = pod(quay, "orders-sequencer-1")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("orders-sequencer-1", "orders-sequencers")
    assert spec["containers"][0]["command"] == ["anabranch", "sequencer"]
    (data,) = (each for each in spec["volumes"] if each["name"] == "data")
    assert data["persistentVolumeClaim"] == {"claimName": "data-orders-sequencer-1"}
    url = quay.log.status.endpoint or ""
    assert url.startswith("belfast://orders-sequencer-0.")
    assert url.endswith("/demo.orders")


def test_a_sequencer_understands_what_it_is_told() -> None:
    rules = {"tOrdMicroseconds": 5_000, "lagFix": False, "copiesMin": 2}
    quay = Quay(rules=rules, tlsSecret="demo-broker-tls")
    found = load(SequencerSettings, {}, environment(quay.pod("orders-sequencer-2")))
    assert found.address in found.members
    assert (found.node, found.cluster) == ("orders-sequencer-2", "demo.orders")
    assert len(found.members) == 3
    assert found.rules == Rules(t_ord_us=5_000, lag_fix=False, copies_min=2)
    assert found.tls.ca
    assert found.data.startswith("/var/lib/anabranch")


def test_rules_that_differ_are_told_and_certificates_shown() -> None:
    quay = Quay(rules={"tOrdMicroseconds": 5_000, "freeWill": True}, tlsSecret="demo-broker-tls")
    quay.settle()
    container = pod(quay, "orders-sequencer-0")["spec"]["containers"][0]
    told = {each["name"]: each["value"] for each in container["env"]}
    rules = {name: each for name, each in told.items() if name.startswith("ANABRANCH_RULES_")}
    assert rules == {"ANABRANCH_RULES_T_ORD_US": "5000", "ANABRANCH_RULES_FREE_WILL": "true"}
    assert told["ANABRANCH_TLS_CA"] == "/var/run/anabranch/tls/ca.crt"
    assert (quay.log.status.endpoint or "").startswith("belfasts://")


def test_what_etcd_wants_is_mounted_where_settings_look_for_it() -> None:
    quay = Quay(etcdTlsSecret="demo-peer-tls")
    quay.settle()
    spec = pod(quay, "orders-sequencer-0")["spec"]
    (volume,) = (each for each in spec["volumes"] if each["name"] == "etcd")
    assert volume["secret"] == {"secretName": "demo-peer-tls"}
    (mount,) = (
        each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]
    )
    assert (mount["mountPath"], mount["readOnly"]) == ("/var/run/anabranch/etcd", True)


def test_followers_are_rolled_first_and_the_leader_last(quay: Quay) -> None:
    quay.vanish("orders-sequencer-0")
    quay.settle()
    assert quay.log.status.leader == "orders-sequencer-1"
    quay.ended()
    quay.edit(LOG, image="newer")
    quay.settle()
    assert quay.ended() == ["orders-sequencer-0", "orders-sequencer-2", "orders-sequencer-1"]
    assert quay.log.status.updated == 3
    assert quay.log.status.term == 3


def test_what_says_nothing_about_pods_rolls_none(quay: Quay) -> None:
    quay.edit(LOG, rollout={"policy": "OnDelete"})
    quay.settle()
    assert quay.ended() == []
    quay.edit(LOG, image="newer")
    quay.settle()
    assert quay.ended() == []
    assert "stay so by policy OnDelete" in quay.condition("RolloutBlocked", LOG)[2]


def test_what_is_said_of_volumes_alone_rolls_none(quay: Quay) -> None:
    storage = {"volumeClaim": {"size": "2Gi"}, "onDelete": "Delete"}
    for of in (LOG, GROUP):
        quay.edit(of, storage=storage)
    quay.settle()
    assert quay.ended() == []
    assert (quay.log.status.updated, quay.group.status.updated) == (3, 4)
    for each in quay.kube.of_kind("PersistentVolumeClaim"):
        assert each.spec["resources"]["requests"]["storage"] == "2Gi"
        assert each.owners
    for of in (LOG, GROUP):
        quay.edit(of, storage={**storage, "group": 7})
    quay.settle()
    assert len(quay.ended()) == 7, "whose the files are is a pod's affair"


def test_a_bad_spec_breaks_one_and_is_corrected(quay: Quay) -> None:
    quay.edit(LOG, image=BAD)
    quay.settle()
    assert quay.ended() == ["orders-sequencer-1"]
    assert quay.condition("RolloutBlocked", LOG)[:2] == ("True", "PodsFailing")
    assert quay.condition("Degraded", LOG)[:2] == ("True", "PodsFailing")
    assert quay.condition("Ready", LOG)[0] == "True", "two of three go on"
    quay.edit(LOG, image="newer")
    quay.settle()
    assert quay.log.status.updated == 3
    assert quay.condition("Degraded", LOG)[0] == "False"


def test_nothing_is_rolled_while_nobody_leads(quay: Quay) -> None:
    for each in (1, 2):
        quay.frozen[quay.pod(f"orders-sequencer-{each}").uid] = None
        quay.crash(f"orders-sequencer-{each}")
    quay.step()
    assert quay.condition("Ready", LOG)[:2] == ("False", "SequencersAway")
    quay.edit(LOG, rules={"window": 50})
    quay.step()
    assert "orders-sequencer-0" not in quay.ended()


def test_seats_are_not_forgotten_while_nobody_tells_of_them(quay: Quay) -> None:
    """Whether a resource may be deleted goes by them."""
    for each in (0, 1, 2):
        quay.frozen[quay.pod(f"orders-sequencer-{each}").uid] = None
        quay.crash(f"orders-sequencer-{each}")
    quay.step()
    for of in (LOG, GROUP):
        assert quay.condition("Ready", of)[:2] == ("False", "SequencersAway")
    assert (quay.log.status.seated, quay.group.status.seated) == (2, 2)
    quay.office.restart()
    quay.office.wait(60)
    assert (quay.log.status.seated, quay.group.status.seated) == (2, 2)
    quay.kube.delete(LOG)
    quay.office.wait(60)
    assert quay.condition("Ready")[:2] == ("False", "SequencersMissing")
    assert quay.group.status.seated == 0


def test_who_has_just_begun_to_lead_writes_nothing_before_the_log_has_answered(quay: Quay) -> None:
    quay.office.wait(60)  # numbers are shown now and then
    quay.office.done.clear()
    version = quay.kube.version
    quay.office.restart()
    quay.office.wait(60)
    assert quay.done(Announce, ApplyStatus) == []
    assert quay.kube.version == version


def test_a_pod_that_vanished_is_made_anew_with_its_volume(quay: Quay) -> None:
    before = quay.volumes()
    quay.vanish("orders-sequencer-2")
    made = [each.ref.name for each in quay.done(Create)]
    assert made == ["orders-sequencer-2"]
    quay.settle()
    assert quay.volumes() == before
    assert quay.log.status.members == 3


def test_one_may_be_evicted_when_all_others_are_there(quay: Quay) -> None:
    assert quay.evict("orders-sequencer-1")
    assert not quay.evict("orders-sequencer-2"), "another is about to go"
    quay.vanish("orders-sequencer-1")
    assert not quay.evict("orders-sequencer-2"), "another is missing"
    quay.settle()
    assert quay.evict("orders-sequencer-2")


def test_sequencers_of_a_deleted_set_are_not_evicted_at_once(quay: Quay) -> None:
    quay.kube.collects = False
    quay.kube.delete(LOG)
    quay.declare_log()
    assert not quay.evict("orders-sequencer-1"), "no sequencer is the new set's"
    assert not quay.evict("orders-sequencer-2")
    quay.kube.collect()
    quay.settle()
    assert quay.evict("orders-sequencer-1")


def test_volumes_outlive_the_resource_unless_it_says_not(quay: Quay) -> None:
    claim = quay.kube.get(Ref("PersistentVolumeClaim", NAMESPACE, "data-orders-sequencer-0"))
    assert claim is not None
    assert claim.owners == ()
    storage = {"volumeClaim": {"size": "2Gi"}, "onDelete": "Delete"}
    quay.edit(LOG, storage=storage)
    claim = quay.kube.get(claim.ref)
    assert claim is not None
    assert claim.owners == (quay.log.object.uid,)
    assert claim.spec["resources"] == {"requests": {"storage": "2Gi"}}


@pytest.mark.parametrize(
    ("size", "kept"), [("1024Gi", "1Ti"), ("1.5Ti", "1536Gi"), ("0.5Gi", "512Mi"), ("1000M", "1G")]
)
def test_a_volumes_size_may_be_said_in_any_words(size: str, kept: str) -> None:
    storage = {"volumeClaim": {"size": size}}
    quay = Quay(storage=storage, shards={"storage": storage})
    quay.settle()
    for name, of in (("orders-sequencer-0", LOG), ("orders-0-0", GROUP)):
        claim = quay.kube.get(Ref("PersistentVolumeClaim", NAMESPACE, f"data-{name}"))
        assert claim is not None
        assert claim.spec["resources"]["requests"]["storage"] == kept
        assert quay.condition("Ready", of)[0] == "True"


def test_a_volume_that_somebody_has_had_grow_stays_so(quay: Quay) -> None:
    ref = Ref("PersistentVolumeClaim", NAMESPACE, "data-orders-0-0")
    quay.kube.edit(ref, resources={"requests": {"storage": "3Gi"}})
    quay.settle()
    assert quay.condition("Ready")[0] == "True"
    quay.edit(GROUP, storage={"volumeClaim": {"size": "2Gi"}})
    quay.settle()
    assert quay.condition("Ready")[0] == "True"
    sizes = {
        each.ref.name: each.spec["resources"]["requests"]["storage"]
        for each in quay.kube.of_kind("PersistentVolumeClaim")
        if "sequencer" not in each.ref.name
    }
    assert sizes == {
        "data-orders-0-0": "3Gi",
        "data-orders-0-1": "2Gi",
        "data-orders-1-0": "2Gi",
        "data-orders-1-1": "2Gi",
    }


def test_a_set_that_is_paused_is_left_alone(quay: Quay) -> None:
    quay.kube.annotate(LOG, paused="true")
    quay.edit(LOG, image="newer")
    quay.vanish("orders-sequencer-0")
    quay.step()
    assert quay.names(names.SEQUENCER) == ["orders-sequencer-1", "orders-sequencer-2"]
    assert quay.condition("Paused", LOG)[0] == "True"
