"""SequencerSets: their pods, how they are rolled, what is told of them."""

from typing import Any

import pytest
from tests.unit.operator.belfast_log import (
    BAD,
    GROUP,
    LOG,
    NAMESPACE,
    BelfastHarness,
    environment,
    setting,
)

from anabranch.apps.pods.log_settings import SequencerSettings, load
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.shell.authority.settings import AuthSettings
from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Announce, ApplyStatus, Create
from anabranch_operator.plan.engine.objects import Ref


def pod(harness: BelfastHarness, name: str) -> dict[str, Any]:
    return harness.kube.documents[Ref("Pod", NAMESPACE, name)]


def test_a_group_is_there_leads_and_comes_to_rest(harness: BelfastHarness) -> None:
    found = [f"orders-sequencer-{each}" for each in range(3)]
    assert harness.names(names.SEQUENCER) == found
    status = harness.log.status
    assert (status.members, status.ready, status.updated, status.term) == (3, 3, 3, 1)
    assert status.leader == "orders-sequencer-0"
    assert (status.mode, status.view, status.seated) == ("Steady", 0, 2)
    assert [each.state for each in status.sequencers] == ["leading", "following", "following"]
    assert harness.condition("Ready", LOG)[:2] == ("True", "Leading")
    assert harness.condition("Progressing", LOG)[:2] == ("False", "UpToDate")
    harness.office.wait(60)  # numbers are shown now and then
    version = harness.kube.version
    harness.office.wait(7_200)
    assert harness.kube.version == version, "nothing moves, and nothing is written"


@pytest.mark.parametrize("account", [None, "demo-belfast"])
def test_pods_get_a_token_for_the_api_server_with_an_account_and_none_without(
    account: str | None,
) -> None:
    more: dict[str, Any] = {"serviceAccountName": account} if account else {}
    harness = BelfastHarness(shards=more, **more)
    harness.settle()
    for name in ("orders-sequencer-0", "orders-0-0"):
        spec = pod(harness, name)["spec"]
        assert spec.get("serviceAccountName") == account
        assert not spec["automountServiceAccountToken"]
        (container,) = spec["containers"]
        paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        assert paths.get("api") == (AuthSettings().folder if account else None)


def test_each_knows_all_and_is_met_by_its_name(harness: BelfastHarness) -> None:
    seen = harness.pod("orders-sequencer-1")
    home = "orders-sequencers.demo.svc:7440"
    assert setting(seen, "ADDRESS") == f"orders-sequencer-1.{home}"
    assert setting(seen, "MEMBERS").split(",") == [
        f"orders-sequencer-{each}.{home}" for each in range(3)
    ]
    assert setting(seen, "CLUSTER") == "demo.orders"
    spec = pod(harness, "orders-sequencer-1")["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("orders-sequencer-1", "orders-sequencers")
    assert spec["containers"][0]["command"] == ["anabranch", "sequencer"]
    (data,) = (each for each in spec["volumes"] if each["name"] == "data")
    assert data["persistentVolumeClaim"] == {"claimName": "data-orders-sequencer-1"}
    url = harness.log.status.endpoint or ""
    assert url.startswith("belfast://orders-sequencer-0.")
    assert url.endswith("/demo.orders")


def test_a_sequencer_understands_what_it_is_told() -> None:
    rules = {"tOrdMicroseconds": 5_000, "lagFix": False, "copiesMin": 2}
    harness = BelfastHarness(rules=rules, tlsSecret="demo-broker-tls")
    found = load(SequencerSettings, {}, environment(harness.pod("orders-sequencer-2")))
    assert found.address in found.members
    assert (found.node, found.cluster) == ("orders-sequencer-2", "demo.orders")
    assert len(found.members) == 3
    assert found.rules == Rules(t_ord_us=5_000, lag_fix=False, copies_min=2)
    assert found.tls.ca
    assert found.data.startswith("/var/lib/anabranch")


def test_rules_that_differ_are_told_and_certificates_shown() -> None:
    harness = BelfastHarness(
        rules={"tOrdMicroseconds": 5_000, "freeWill": True}, tlsSecret="demo-broker-tls"
    )
    harness.settle()
    container = pod(harness, "orders-sequencer-0")["spec"]["containers"][0]
    told = {each["name"]: each["value"] for each in container["env"]}
    rules = {name: each for name, each in told.items() if name.startswith("ANABRANCH_RULES_")}
    assert rules == {"ANABRANCH_RULES_T_ORD_US": "5000", "ANABRANCH_RULES_FREE_WILL": "true"}
    assert told["ANABRANCH_TLS_CA"] == "/var/run/anabranch/tls/ca.crt"
    assert (harness.log.status.endpoint or "").startswith("belfasts://")


def test_what_etcd_wants_is_mounted_where_settings_look_for_it() -> None:
    harness = BelfastHarness(etcdTlsSecret="demo-peer-tls")
    harness.settle()
    spec = pod(harness, "orders-sequencer-0")["spec"]
    (volume,) = (each for each in spec["volumes"] if each["name"] == "etcd")
    assert volume["secret"] == {"secretName": "demo-peer-tls"}
    (mount,) = (
        each for each in spec["containers"][0]["volumeMounts"] if each["name"] == volume["name"]
    )
    assert (mount["mountPath"], mount["readOnly"]) == ("/var/run/anabranch/etcd", True)


def test_followers_are_rolled_first_and_the_leader_last(harness: BelfastHarness) -> None:
    harness.vanish("orders-sequencer-0")
    harness.settle()
    assert harness.log.status.leader == "orders-sequencer-1"
    harness.ended()
    harness.edit(LOG, image="newer")
    harness.settle()
    assert harness.ended() == ["orders-sequencer-0", "orders-sequencer-2", "orders-sequencer-1"]
    assert harness.log.status.updated == 3
    assert harness.log.status.term == 3


def test_what_says_nothing_about_pods_rolls_none(harness: BelfastHarness) -> None:
    harness.edit(LOG, rollout={"policy": "OnDelete"})
    harness.settle()
    assert harness.ended() == []
    harness.edit(LOG, image="newer")
    harness.settle()
    assert harness.ended() == []
    assert "policy OnDelete leaves them" in harness.condition("RolloutBlocked", LOG)[2]


def test_what_is_said_of_volumes_alone_rolls_none(harness: BelfastHarness) -> None:
    storage = {"volumeClaim": {"size": "2Gi"}, "onDelete": "Delete"}
    for of in (LOG, GROUP):
        harness.edit(of, storage=storage)
    harness.settle()
    assert harness.ended() == []
    assert (harness.log.status.updated, harness.group.status.updated) == (3, 4)
    for each in harness.kube.of_kind("PersistentVolumeClaim"):
        assert each.spec["resources"]["requests"]["storage"] == "2Gi"
        assert each.owners
    for of in (LOG, GROUP):
        harness.edit(of, storage={**storage, "group": 7})
    harness.settle()
    assert len(harness.ended()) == 7, "whose the files are is a pod's affair"


def test_a_bad_spec_breaks_one_and_is_corrected(harness: BelfastHarness) -> None:
    harness.edit(LOG, image=BAD)
    harness.settle()
    assert harness.ended() == ["orders-sequencer-1"]
    assert harness.condition("RolloutBlocked", LOG)[:2] == ("True", "PodsFailing")
    assert harness.condition("Degraded", LOG)[:2] == ("True", "PodsFailing")
    assert harness.condition("Ready", LOG)[0] == "True", "two of three go on"
    harness.edit(LOG, image="newer")
    harness.settle()
    assert harness.log.status.updated == 3
    assert harness.condition("Degraded", LOG)[0] == "False"


def test_nothing_is_rolled_while_nobody_leads(harness: BelfastHarness) -> None:
    for each in (1, 2):
        harness.frozen[harness.pod(f"orders-sequencer-{each}").uid] = None
        harness.crash(f"orders-sequencer-{each}")
    harness.step()
    assert harness.condition("Ready", LOG)[:2] == ("False", "SequencersAway")
    harness.edit(LOG, rules={"window": 50})
    harness.step()
    assert "orders-sequencer-0" not in harness.ended()


def test_seats_are_not_forgotten_while_nobody_tells_of_them(harness: BelfastHarness) -> None:
    """Whether a resource may be deleted goes by them."""
    for each in (0, 1, 2):
        harness.frozen[harness.pod(f"orders-sequencer-{each}").uid] = None
        harness.crash(f"orders-sequencer-{each}")
    harness.step()
    for of in (LOG, GROUP):
        assert harness.condition("Ready", of)[:2] == ("False", "SequencersAway")
    assert (harness.log.status.seated, harness.group.status.seated) == (2, 2)
    harness.office.restart()
    harness.office.wait(60)
    assert (harness.log.status.seated, harness.group.status.seated) == (2, 2)
    harness.kube.delete(LOG)
    harness.office.wait(60)
    assert harness.condition("Ready")[:2] == ("False", "SequencersMissing")
    assert harness.group.status.seated == 0


def test_who_has_just_begun_to_lead_writes_nothing_before_the_log_has_answered(
    harness: BelfastHarness,
) -> None:
    harness.office.wait(60)  # numbers are shown now and then
    harness.office.done.clear()
    version = harness.kube.version
    harness.office.restart()
    harness.office.wait(60)
    assert harness.done(Announce, ApplyStatus) == []
    assert harness.kube.version == version


def test_a_pod_that_vanished_is_made_anew_with_its_volume(harness: BelfastHarness) -> None:
    before = harness.volumes()
    harness.vanish("orders-sequencer-2")
    made = [each.ref.name for each in harness.done(Create)]
    assert made == ["orders-sequencer-2"]
    harness.settle()
    assert harness.volumes() == before
    assert harness.log.status.members == 3


def test_one_may_be_evicted_when_all_others_are_there(harness: BelfastHarness) -> None:
    assert harness.evict("orders-sequencer-1")
    assert not harness.evict("orders-sequencer-2"), "another is about to go"
    harness.vanish("orders-sequencer-1")
    assert not harness.evict("orders-sequencer-2"), "another is missing"
    harness.settle()
    assert harness.evict("orders-sequencer-2")


def test_sequencers_of_a_deleted_set_are_not_evicted_at_once(harness: BelfastHarness) -> None:
    harness.kube.collects = False
    harness.kube.delete(LOG)
    harness.declare_log()
    assert not harness.evict("orders-sequencer-1"), "no sequencer is the new set's"
    assert not harness.evict("orders-sequencer-2")
    harness.kube.collect()
    harness.settle()
    assert harness.evict("orders-sequencer-1")


def test_volumes_outlive_the_resource_unless_it_says_not(harness: BelfastHarness) -> None:
    claim = harness.kube.get(Ref("PersistentVolumeClaim", NAMESPACE, "data-orders-sequencer-0"))
    assert claim is not None
    assert claim.owners == ()
    storage = {"volumeClaim": {"size": "2Gi"}, "onDelete": "Delete"}
    harness.edit(LOG, storage=storage)
    claim = harness.kube.get(claim.ref)
    assert claim is not None
    assert claim.owners == (harness.log.object.uid,)
    assert claim.spec["resources"] == {"requests": {"storage": "2Gi"}}


@pytest.mark.parametrize(
    ("size", "kept"), [("1024Gi", "1Ti"), ("1.5Ti", "1536Gi"), ("0.5Gi", "512Mi"), ("1000M", "1G")]
)
def test_a_volumes_size_may_be_said_in_any_words(size: str, kept: str) -> None:
    storage = {"volumeClaim": {"size": size}}
    harness = BelfastHarness(storage=storage, shards={"storage": storage})
    harness.settle()
    for name, of in (("orders-sequencer-0", LOG), ("orders-0-0", GROUP)):
        claim = harness.kube.get(Ref("PersistentVolumeClaim", NAMESPACE, f"data-{name}"))
        assert claim is not None
        assert claim.spec["resources"]["requests"]["storage"] == kept
        assert harness.condition("Ready", of)[0] == "True"


def test_a_volume_that_somebody_has_had_grow_stays_so(harness: BelfastHarness) -> None:
    ref = Ref("PersistentVolumeClaim", NAMESPACE, "data-orders-0-0")
    harness.kube.edit(ref, resources={"requests": {"storage": "3Gi"}})
    harness.settle()
    assert harness.condition("Ready")[0] == "True"
    harness.edit(GROUP, storage={"volumeClaim": {"size": "2Gi"}})
    harness.settle()
    assert harness.condition("Ready")[0] == "True"
    sizes = {
        each.ref.name: each.spec["resources"]["requests"]["storage"]
        for each in harness.kube.of_kind("PersistentVolumeClaim")
        if "sequencer" not in each.ref.name
    }
    assert sizes == {
        "data-orders-0-0": "3Gi",
        "data-orders-0-1": "2Gi",
        "data-orders-1-0": "2Gi",
        "data-orders-1-1": "2Gi",
    }


def test_a_set_that_is_paused_is_left_alone(harness: BelfastHarness) -> None:
    harness.kube.annotate(LOG, paused="true")
    harness.edit(LOG, image="newer")
    harness.vanish("orders-sequencer-0")
    harness.step()
    assert harness.names(names.SEQUENCER) == ["orders-sequencer-1", "orders-sequencer-2"]
    assert harness.condition("Paused", LOG)[0] == "True"
