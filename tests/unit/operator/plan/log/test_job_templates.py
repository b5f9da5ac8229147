"""What the template of a gate may ask for, and what it gets without asking."""

from typing import Any

import pytest

from anabranch_operator.plan.log.job_templates import (
    GateSettings,
    PodSecurity,
    objections,
    restrict,
)

RELEASE = "demo"
STRICT = GateSettings(enabled=True)
OPEN = GateSettings(
    enabled=True,
    service_accounts=("checks",),
    secrets=("listed",),
    volumes=("hostPath",),
    priority_classes=("low",),
    pod_security=PodSecurity.BASELINE,
)


def template(pod: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    """Of a Job whose one container and whose pods have this besides."""
    one = {"name": "check", "image": "x", **container}
    return {"spec": {"template": {"spec": {"containers": [one], **(pod or {})}}}}


def refused(asked: dict[str, Any], settings: GateSettings = STRICT) -> str:
    return "; ".join(objections(asked, settings, RELEASE))


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def variable(**source: Any) -> dict[str, Any]:
    return {"env": [{"name": "V", "valueFrom": source}]}


PODS: dict[str, Any] = {
    "serviceAccountName": "demo-operator",
    "serviceAccount": "demo-operator",
    "automountServiceAccountToken": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostIPC": True,
    "hostUsers": True,
    "nodeName": "node-0",
    "schedulerName": "other",
    "priorityClassName": "system-node-critical",
    "priority": 2_000_000_000,
    "runtimeClassName": "other",
    "hostname": "demo-metadata-0",
    "subdomain": "demo-metadata",
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["demo"]}],
    "resourceClaims": [{"name": "device"}],
    "ephemeralContainers": [{"name": "more", "image": "x"}],
    "imagePullSecrets": [{"name": "demo-s3"}],
    "aFieldOfALaterKubernetes": "on",
}


@pytest.mark.parametrize("field", PODS)
def test_a_pod_may_not_ask_for(field: str) -> None:
    assert field in refused(template({field: PODS[field]}))


SECURITY: dict[str, Any] = {
    "sysctls": [{"name": "kernel.msgmax", "value": "1"}],
    "seLinuxOptions": {"type": "spc_t"},
    "windowsOptions": {"hostProcess": True},
    "seccompProfile": {"type": "Unconfined"},
    "appArmorProfile": {"type": "Unconfined"},
    "runAsUser": 0,
    "runAsNonRoot": False,
}


@pytest.mark.parametrize("field", SECURITY)
def test_neither_pods_nor_containers_may_turn_protection_off(field: str) -> None:
    context = {"securityContext": {field: SECURITY[field]}}
    assert field in refused(template(context))
    assert field in refused(template(**context))


CONTAINERS: dict[str, dict[str, Any]] = {
    "privileged": {"securityContext": {"privileged": True}},
    "procMount": {"securityContext": {"procMount": "Unmasked"}},
    "allowPrivilegeEscalation": {"securityContext": {"allowPrivilegeEscalation": True}},
    "NET_RAW": {"securityContext": {"capabilities": {"add": ["NET_RAW"]}}},
    "hostPort": {"ports": [{"containerPort": 80, "hostPort": 80}]},
    "hostIP": {"ports": [{"containerPort": 80, "hostIP": "127.0.0.1"}]},
    "volumeDevices": {"volumeDevices": [{"name": "v", "devicePath": "/dev/v"}]},
    "claims": {"resources": {"claims": [{"name": "device"}]}},
    "lifecycle": {"lifecycle": {"postStart": {"httpGet": {"host": "10.0.0.1", "port": 80}}}},
    "livenessProbe": {"livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}},
    "env[V]: the Secret s": variable(secretKeyRef={"name": "s", "key": "k"}),
    "env[V].fileKeyRef": variable(fileKeyRef={"path": "/x", "key": "k"}),
    "envFrom: the Secret s": {"envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}]},
}


@pytest.mark.parametrize("what", CONTAINERS)
def test_a_container_may_not_ask_for(what: str) -> None:
    assert what in refused(template(**CONTAINERS[what]))
    init = {"name": "first", "image": "x", **CONTAINERS[what]}
    assert what in refused(template({"initContainers": [init]}))


VOLUMES: dict[str, dict[str, Any]] = {
    "the Secret s": {"secret": {"secretName": "s"}},
    "serviceAccountToken": {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    "projected: the Secret s": {"projected": {"sources": [{"secret": {"name": "s"}}]}},
    "podCertificate": {"projected": {"sources": [{"podCertificate": {"signerName": "s"}}]}},
    "hostPath": {"hostPath": {"path": "/"}},
    "csi": {"csi": {"driver": "secrets-store.csi.k8s.io"}},
    "persistentVolumeClaim": {"persistentVolumeClaim": {"claimName": "data-orders-1-1"}},
    "ephemeral": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    "nfs": {"nfs": {"server": "10.0.0.1", "path": "/"}},
}


@pytest.mark.parametrize("what", VOLUMES)
def test_a_volume_may_not_be(what: str) -> None:
    assert what in refused(template(volume(**VOLUMES[what])))


def test_a_job_may_not_take_other_pods_for_its_own() -> None:
    for field, value in (("manualSelector", True), ("selector", {"matchLabels": {"a": "b"}})):
        asked = template()
        asked["spec"][field] = value
        assert f"spec.{field}" in refused(asked)


def test_labels_and_annotations_of_the_operator_may_not_be_borrowed() -> None:
    for name in ("anabranch.dev/role", "app.kubernetes.io/instance"):
        asked = template()
        asked["spec"]["template"]["metadata"] = {"labels": {name: "demo"}}
        assert name in refused(asked)
        assert name in refused({**template(), "metadata": {"annotations": {name: "demo"}}})


METADATA: dict[str, dict[str, Any]] = {
    "finalizers": {"finalizers": ["example.com/never"]},
    "ownerReferences": {"ownerReferences": [{"kind": "Pod", "name": "a", "uid": "b"}]},
    "managedFields": {"managedFields": [{}]},
    "labels: azure.workload.identity/use": {"labels": {"azure.workload.identity/use": "true"}},
    "annotations: sidecar.istio.io/inject": {"annotations": {"sidecar.istio.io/inject": "true"}},
    "annotations: k8s.v1.cni.cncf.io/networks": {
        "annotations": {"k8s.v1.cni.cncf.io/networks": ""}
    },
    "metadata has fields, and isn't a list": [],  # pyright: ignore[reportAssignmentType]
    "labels has fields, and isn't a single value": {"labels": "a=b"},
}


@pytest.mark.parametrize("what", METADATA)
def test_metadata_may_not_have(what: str) -> None:
    asked = template()
    asked["spec"]["template"]["metadata"] = METADATA[what]
    assert what in refused(asked)
    assert what in refused(asked, OPEN)
    assert what in refused({**template(), "metadata": METADATA[what]})


def test_metadata_may_describe() -> None:
    described = {
        "name": "ignored",
        "labels": {
            "team": "orders",
            "app.kubernetes.io/component": "check",
            "sidecar.istio.io/inject": "false",
        },
        "annotations": {
            "kubernetes.io/description": "totals match",
            "linkerd.io/inject": "disabled",
        },
        "creationTimestamp": None,
        "finalizers": None,
    }
    asked = {**template(), "metadata": described}
    asked["spec"]["template"]["metadata"] = described
    assert refused(asked) == ""


NODES: dict[str, dict[str, Any]] = {
    "tolerations: one without a key": {"tolerations": [{"operator": "Exists"}]},
    "tolerations: node-role.kubernetes.io/control-plane": {
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
    },
    "nodeSelector: node-role.kubernetes.io/control-plane": {
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""}
    },
}


@pytest.mark.parametrize("what", NODES)
def test_a_pod_may_not_go_to_the_control_plane(what: str) -> None:
    assert what in refused(template(NODES[what]), OPEN)


@pytest.mark.parametrize("field", ["seccompProfile", "appArmorProfile"])
def test_a_profile_on_a_node_needs_the_baseline(field: str) -> None:
    profile = {field: {"type": "Localhost", "localhostProfile": "open.json"}}
    for asked in (template({"securityContext": profile}), template(securityContext=profile)):
        assert f"{field}: Localhost isn't allowed" in refused(asked)
        assert refused(asked, OPEN) == ""


SHAPES: dict[str, dict[str, Any]] = {
    "initContainers is a list, and not null": {"initContainers": None},
    "containers is a list, and not null": {"containers": None},
    "containers: an entry has fields, and isn't null": {"containers": [None]},
    "containers is a list, and not a single value": {"containers": "none"},
    "volumes is a list, and not a single value": {"volumes": 1},
    "tolerations: an entry has fields": {"tolerations": [None]},
    "env is a list": {"containers": [{"name": "a", "env": {"a": "b"}}]},
    "env: an entry has fields": {"containers": [{"name": "a", "env": [None]}]},
    "env: a variable has no name": {"containers": [{"name": "a", "env": [{"value": "b"}]}]},
    "volumeMounts is a list": {"containers": [{"name": "a", "volumeMounts": 1}]},
}


@pytest.mark.parametrize("what", SHAPES)
def test_what_is_not_a_list_of_such_things_is_named(what: str) -> None:
    asked = template(SHAPES[what])
    assert what in refused(asked)
    restrict(asked["spec"]["template"]["spec"], STRICT, RELEASE)


def test_a_job_without_pods_spec_is_refused() -> None:
    assert "spec.template.spec" in refused({"spec": {"template": {"spec": None}}})


def test_a_null_undoes_no_default() -> None:
    container = {"allowPrivilegeEscalation": None, "capabilities": None, "runAsNonRoot": None}
    for seccomp in (None, {}, {"type": None}):
        asked = template(
            {
                "enableServiceLinks": None,
                "serviceAccountName": None,
                "securityContext": {"runAsNonRoot": None, "seccompProfile": seccomp},
            },
            securityContext={**container, "seccompProfile": seccomp},
        )
        assert refused(asked) == ""
        found = restrict(asked["spec"]["template"]["spec"], STRICT, RELEASE)
        default = {"type": "RuntimeDefault"}
        assert found["securityContext"] == {"runAsNonRoot": True, "seccompProfile": default}
        assert found["enableServiceLinks"] is False
        assert found["serviceAccountName"] == "demo-gate"
        (one,) = found["containers"]
        security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert one["securityContext"] == security


def test_what_is_harmless_is_allowed() -> None:
    sources = [{"configMap": {"name": "a"}}, {"downwardAPI": {"items": []}}]
    volumes = [
        {"name": "a", "configMap": {"name": "a"}},
        {"name": "b", "emptyDir": {}},
        {"name": "c", "projected": {"sources": sources}},
    ]
    pod = {
        "restartPolicy": "Never",
        "serviceAccountName": "demo-gate",
        "hostNetwork": False,
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "volumes": volumes,
        "securityContext": {"runAsUser": 1_000, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    asked = template(
        pod,
        command=["true"],
        env=[{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {}}}],
        envFrom=[{"configMapRef": {"name": "a"}}],
        ports=[{"containerPort": 80, "name": "http"}],
        resources={"limits": {"memory": "1Gi"}},
        securityContext={"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
    )
    asked["spec"] |= {"backoffLimit": 3, "activeDeadlineSeconds": 60, "parallelism": 2}
    assert refused(asked) == ""


def test_settings_allow_more_by_name() -> None:
    listed = {"name": "listed"}
    pod = {
        "serviceAccountName": "checks",
        "priorityClassName": "low",
        "imagePullSecrets": [listed],
        "volumes": [
            {"name": "a", "secret": {"secretName": "listed"}},
            {"name": "b", "projected": {"sources": [{"secret": listed}]}},
            {"name": "c", "hostPath": {"path": "/data"}},
        ],
    }
    asked = template(
        pod,
        env=[{"name": "V", "valueFrom": {"secretKeyRef": {**listed, "key": "k"}}}],
        envFrom=[{"secretRef": listed}],
        securityContext={"runAsUser": 0, "capabilities": {"add": ["CHOWN"]}},
    )
    assert refused(asked, OPEN) == ""
    assert len(objections(asked, STRICT, RELEASE)) == 10


TOKEN: dict[str, Any] = {"path": "token", "expirationSeconds": 3_600}
SPARK = GateSettings(enabled=True, service_accounts=("demo-spark",), api_accounts=("demo-spark",))


def bearing(account: str, **token: Any) -> dict[str, Any]:
    """A template whose pods run as this account and mount its token."""
    projected = {"sources": [{"serviceAccountToken": {**TOKEN, **token}}]}
    named = {"serviceAccountName": account} if account else {}
    return template({**named, **volume(projected=projected)})


def test_a_token_for_the_api_server_takes_an_account_that_may_have_one() -> None:
    assert refused(bearing("demo-spark"), SPARK) == ""
    ours = GateSettings(enabled=True, api_accounts=("demo-gate",))
    assert refused(bearing(""), ours) == "", "the account of templates that name none"
    for account in ("", "demo-gate"):
        assert "demo-gate isn't in gates.api_accounts" in refused(bearing(account), SPARK)
    both = GateSettings(enabled=True, service_accounts=("demo-spark", "other"), api_accounts=("x",))
    assert "demo-spark isn't in gates.api_accounts" in refused(bearing("demo-spark"), both)
    assert "isn't in gates.service_accounts" in refused(bearing("x"), both), "it may not be named"


def test_a_token_is_for_no_other_audience() -> None:
    assert "serviceAccountToken.audience" in refused(bearing("demo-spark", audience="vault"), SPARK)
    assert refused(bearing("demo-spark", audience=""), SPARK) == ""


@pytest.mark.parametrize("account", [{"a": "b"}, ["demo-spark"], 1])
def test_an_account_of_another_type_has_no_token(account: Any) -> None:
    assert "gates.api_accounts" in refused(bearing(account), SPARK)


def test_no_setting_allows_the_host() -> None:
    assert "hostNetwork" in refused(template({"hostNetwork": True}), OPEN)
    privileged = {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}
    found = refused(template(securityContext=privileged), OPEN)
    assert "privileged" in found
    assert "SYS_ADMIN" in found


@pytest.mark.parametrize(
    "odd",
    [
        {"serviceAccountName": {"a": "b"}},
        {"priorityClassName": ["a"]},
        {"securityContext": "none"},
        {"securityContext": {"seccompProfile": {"type": ["a"]}}},
        {"volumes": "none"},
        {"volumes": [1, {"name": "v", "secret": "s"}, {"name": "v", "projected": {"sources": 1}}]},
        {"containers": [{"name": "a", "env": 1, "envFrom": {"a": 1}, "ports": [1]}]},
        {"containers": [{"name": "a", "securityContext": {"capabilities": {"add": [{}]}}}]},
        {"imagePullSecrets": [{"name": {"a": 1}}]},
    ],
)
def test_what_has_the_wrong_type_is_survived(odd: dict[str, Any]) -> None:
    """The CRD keeps what it doesn't know, of whatever type."""
    asked = template(odd)
    objections(asked, STRICT, RELEASE)
    restrict(asked["spec"]["template"]["spec"], STRICT, RELEASE)


def test_a_pod_that_says_nothing_is_restricted() -> None:
    pod = template()["spec"]["template"]["spec"]
    found = restrict(pod, STRICT, RELEASE)
    assert found["serviceAccountName"] == "demo-gate"
    assert found["automountServiceAccountToken"] is False
    seccomp = {"type": "RuntimeDefault"}
    assert found["securityContext"] == {"runAsNonRoot": True, "seccompProfile": seccomp}
    (container,) = found["containers"]
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert container["securityContext"] == security


def test_a_baseline_pod_keeps_its_own_security_and_gets_no_token() -> None:
    pod = template(securityContext={"runAsUser": 0})["spec"]["template"]["spec"]
    found = restrict(pod, OPEN, RELEASE)
    assert found["containers"] == pod["containers"]
    assert found["automountServiceAccountToken"] is False
