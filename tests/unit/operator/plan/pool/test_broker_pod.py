"""What a broker's pod is made of, and what makes it outdated."""

from typing import Any

from tests.unit.operator.broker_pool import NAMESPACE, PoolHarness

from anabranch_operator.api.pool import PoolSpec
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.pool.broker_pod import template
from anabranch_operator.plan.pool.health import START_UP_MS

START_UP_S = START_UP_MS // 1_000


def spec_of(harness: PoolHarness, name: str = "demo-0") -> dict[str, Any]:
    return harness.kube.documents[Ref("Pod", NAMESPACE, name)]["spec"]


def test_a_broker_is_named_after_its_life_and_met_by_its_pods_name(harness: PoolHarness) -> None:
    spec = spec_of(harness)
    env = {each["name"]: each for each in spec["containers"][0]["env"]}
    assert env["ANABRANCH_NAME"]["value"] == "$(POD_NAME).$(POD_UID)"
    assert env["POD_UID"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"
    assert env["ANABRANCH_ADVERTISE"]["value"] == "$(POD_NAME).demo-brokers.demo.svc:7420"
    assert (spec["hostname"], spec["subdomain"]) == ("demo-0", "demo-brokers")
    grace = spec["terminationGracePeriodSeconds"] * 1_000
    assert int(env["ANABRANCH_DRAIN_MS"]["value"]) < grace


def test_certificates_accounts_settings_and_a_cache_come_as_the_spec_says() -> None:
    harness = PoolHarness(
        tlsSecret="demo-broker-tls",
        peerTlsSecret="demo-peer-tls",
        serviceAccountName="demo-broker",
        config={"configMap": "demo-settings", "secrets": ["demo-s3"]},
        diskCache={"size": "10Gi"},
        topology={"hosts": "Required", "zones": False},
        podLabels={"team": "a"},
        podAnnotations={"checksum/settings": "1"},
    )
    document = harness.kube.documents[Ref("Pod", NAMESPACE, "demo-0")]
    spec, container = document["spec"], document["spec"]["containers"][0]
    values = {each["name"]: each.get("value") for each in container["env"]}
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert values["ANABRANCH_PEER_TLS_CA"] == "/var/run/anabranch/peer/ca.crt"
    assert values["ANABRANCH_TLS_CERT"] == "/var/run/anabranch/tls/tls.crt"
    assert values["ANABRANCH_DISK_CACHE"] in mounts
    assert int(values["ANABRANCH_DISK_CACHE_BYTES"] or 0) < 10 * 1024**3
    assert {each["name"] for each in spec["volumes"]} == set(mounts.values())
    assert spec["serviceAccountName"] == "demo-broker"
    assert spec["automountServiceAccountToken"] is False
    assert [next(iter(each.values()))["name"] for each in container["envFrom"]] == [
        "demo-settings",
        "demo-s3",
    ]
    assert "requiredDuringSchedulingIgnoredDuringExecution" in spec["affinity"]["podAntiAffinity"]
    assert "topologySpreadConstraints" not in spec
    assert document["metadata"]["labels"]["team"] == "a"
    assert document["metadata"]["annotations"] == {"checksum/settings": "1"}


def test_pods_pass_pod_securitys_restricted_profile(harness: PoolHarness) -> None:
    spec = spec_of(harness)
    container = spec["containers"][0]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    allowed = {"emptyDir", "secret", "projected", "configMap"}
    assert all(set(each) & allowed for each in spec["volumes"])


def test_a_template_is_what_people_declare_of_pods_and_nothing_else() -> None:
    plain = PoolSpec(image="a")
    assert template(plain) == template(PoolSpec(image="a", min=3, max=9, spare=0, replicas=4))
    assert template(plain) == template(PoolSpec(image="a", drain_seconds=60))
    changed = [
        PoolSpec(image="b"),
        PoolSpec(image="a", drain_seconds=61),
        PoolSpec(image="a", pod_annotations={"checksum/settings": "2"}),
        PoolSpec(image="a", resources={"requests": {"cpu": "1"}}),
    ]
    assert len({template(each) for each in (plain, *changed)}) == 1 + len(changed)
