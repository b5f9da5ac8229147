"""What the doctor finds in what it has collected, and what it never keeps."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.doctor.archive import write
from anabranch.apps.doctor.cluster import Refused
from anabranch.apps.doctor.collection import Collected, collect, stripped
from anabranch.apps.doctor.findings import as_words, findings
from anabranch.apps.doctor.redaction import HIDDEN, Redaction
from anabranch.core.errors import Unavailable

NOW_S = 1_800_000_000.0
CANARY = "canary-5f1d"
PLURALS = ("logs", "forks", "brokerpools", "sequencersets", "shardgroups")
LABELS = {
    "app.kubernetes.io/name": "anabranch",
    "app.kubernetes.io/instance": "demo",
    "app.kubernetes.io/component": "broker",
}


def collected(**objects: list[dict[str, Any]]) -> Collected:
    definitions = [{"name": f"{each}.anabranch.dev"} for each in PLURALS]
    pods = {"pods": [pod({"ready": True})]}
    return Collected(
        namespace="logs", versions={"definitions": definitions}, objects=pods | objects
    )


def pod(status: dict[str, Any], *conditions: dict[str, str]) -> dict[str, Any]:
    told = {"name": "broker", **status}
    return {
        "metadata": {"name": "demo-0", "labels": LABELS},
        "spec": {"containers": [{"name": "broker"}]},
        "status": {"containerStatuses": [told], "conditions": list(conditions)},
    }


def words(found: Collected) -> str:
    return "\n".join(as_words(findings(found, NOW_S)))


def test_where_all_is_well_nothing_is_found() -> None:
    assert findings(collected(), NOW_S) == []


def test_definitions_that_are_missing_are_named() -> None:
    found = collected()
    found.versions["definitions"] = []
    assert "forks isn't known: install the chart anabranch-crds" in words(found)


def test_another_namespace_is_suspected() -> None:
    assert "is this the namespace of the release?" in words(collected(pods=[]))


def test_a_pod_that_no_node_takes() -> None:
    told = {"type": "PodScheduled", "status": "False", "message": "Insufficient memory"}
    assert "demo-0: no node takes it: Insufficient memory" in words(
        collected(pods=[pod({"ready": True}, told)])
    )


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("ImagePullBackOff", "can't fetch its image"),
        ("CrashLoopBackOff", "ends again and again"),
        ("CreateContainerConfigError", "a Secret or ConfigMap that it is told isn't there"),
    ],
)
def test_a_container_that_waits(reason: str, says: str) -> None:
    assert says in words(collected(pods=[pod({"state": {"waiting": {"reason": reason}}})]))


def test_a_volume_that_is_missing_is_named() -> None:
    waits = pod({"state": {"waiting": {"reason": "ContainerCreating"}}})
    why = 'secret "demo-peer-tls" not found'
    event = {"reason": "FailedMount", "message": why, "involvedObject": {"name": "demo-0"}}
    assert why in words(collected(pods=[waits], events=[event]))


def test_one_that_took_too_much_memory() -> None:
    killed = {"ready": True, "lastState": {"terminated": {"reason": "OOMKilled"}}}
    assert "more memory than its limit allows" in words(collected(pods=[pod(killed)]))


def test_one_that_runs_and_is_not_ready() -> None:
    assert "its readyz page says why" in words(
        collected(pods=[pod({"ready": False, "state": {"running": {}}})])
    )


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, "no operator acts"),
        (
            {
                "holderIdentity": "gone",
                "renewTime": "2026-01-01T00:00:00.000000Z",
                "leaseDurationSeconds": 15,
            },
            "gone doesn't renew it any more",
        ),
    ],
)
def test_an_operator_that_does_not_act(spec: dict[str, Any], says: str) -> None:
    lease = {"metadata": {"name": "demo-operator"}, "spec": spec}
    assert says in words(collected(leases=[lease]))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            'api_requests_total{code="403",kind="Pod",verb="create"} 3.0',
            "forbids it to create Pod: a Role or its binding is missing",
        ),
        ("canary_age_seconds 61.0", "61 s behind"),
        ("malformed 1.0", "the CRDs are of another version"),
        (
            f'certificate_expiry_seconds{{name="demo-peer-tls"}} {NOW_S + 86_400 * 3:.9e}',
            "the certificate demo-peer-tls ends in 3 days",
        ),
        ("service_reachable 0.0", "the log service doesn't answer it"),
    ],
)
def test_what_operators_count(line: str, says: str) -> None:
    found = collected()
    page = f"# HELP any words\nanabranch_operator_leader 1.0\nanabranch_operator_{line}\n"
    found.pages["demo-operator-x.metrics"] = page
    assert says in words(found)


def test_a_full_etcd_is_named() -> None:
    found = collected()
    found.pages["demo-metadata-0.metrics"] = "anabranch_etcd_full 1.0\n"
    assert "pod demo-metadata-0: etcd is full" in words(found)
    found.pages["demo-metadata-0.metrics"] = "anabranch_etcd_full 0.0\n"
    assert words(found) == ""


def test_a_standby_does_not_look_at_the_service() -> None:
    found = collected()
    page = "anabranch_operator_leader 0.0\nanabranch_operator_service_reachable 0.0\n"
    found.pages["demo-operator-x.metrics"] = page
    assert words(found) == ""


def test_conditions_that_are_not_good() -> None:
    def resource(kind: str, status: str, phase: str) -> dict[str, Any]:
        said = {"type": kind, "status": status, "reason": "Because", "message": "of this"}
        return {"metadata": {"name": "f"}, "status": {"phase": phase, "conditions": [said]}}

    bad = [resource("Ready", "False", "Creating"), resource("RolloutBlocked", "True", "Ready")]
    good = [resource("Ready", "False", "Promoted"), resource("RolloutBlocked", "False", "Ready")]
    said = words(collected(forks=[*bad, *good, {"metadata": {"name": "new"}}]))
    assert said.splitlines() == [
        "fork f: Ready is False, Because: of this",
        "fork f: RolloutBlocked is True, Because: of this",
        "fork new: no operator has looked at it",
    ]


def test_what_is_wrong_with_a_belfast_log() -> None:
    def resource(kind: str, status: str, message: str) -> dict[str, Any]:
        said = {"type": kind, "status": status, "reason": "Because", "message": message}
        return {"metadata": {"name": "ticks"}, "status": {"conditions": [said]}}

    bad = [resource("Ready", "False", "no sequencer leads")]
    degraded = [resource("Degraded", "True", "ticks-0 goes on without ticks-0-1")]
    joins = [resource("Joining", "True", "ticks-2 without a seat")]
    said = words(collected(sequencersets=bad, shardgroups=[*degraded, *joins]))
    assert said.splitlines() == [
        "sequencer set ticks: Ready is False, Because: no sequencer leads",
        "shard group ticks: Degraded is True, Because: ticks-0 goes on without ticks-0-1",
    ]


def test_pods_of_sequencers_and_shards_are_asked_and_judged() -> None:
    labels = {"anabranch.dev/role": "shard", "app.kubernetes.io/managed-by": "anabranch-operator"}
    crashing = pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}})
    crashing["metadata"] = {"name": "ticks-0-1", "labels": labels}
    asked: list[str] = []

    class Telling:
        def get(self, path: str) -> Any:
            asked.append(path)
            return {"items": [crashing] if path.endswith("/pods") else []}

        def text(self, path: str) -> str:
            return path

    found = collect(Telling(), "logs", "demo")
    assert "ticks-0-1: CrashLoopBackOff" in words(found)
    assert "/ticks-0-1:7451/proxy/readyz" in found.pages["ticks-0-1.readyz"]
    assert "ticks-0-1.log" in found.logs
    home = "/apis/anabranch.dev/v1alpha1/namespaces/logs"
    assert {f"{home}/sequencersets", f"{home}/shardgroups"} <= set(asked)


def test_environments_and_annotations_are_left_out() -> None:
    document = {
        "metadata": {"name": "job", "annotations": {"kept": CANARY}, "managedFields": [CANARY]},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "env": [
                                {"name": "PASSWORD", "value": CANARY},
                                {"name": "ANABRANCH_TOKEN", "value": CANARY},
                                {"name": "ANABRANCH_NAME", "value": "demo-0"},
                            ]
                        }
                    ]
                }
            }
        },
    }
    kept = str(stripped(document))
    assert CANARY not in kept
    assert "demo-0" in kept


class Planted:
    """An installation with secrets in every place where somebody may have left one."""

    def __init__(self) -> None:
        self.secrets = {
            place: f"canary-{number:04d}-{place}"
            for number, place in enumerate(
                ("env", "url", "flag", "assigned", "command", "annotation", "message", "template")
            )
        }
        self.pem = "-----BEGIN EC PRIVATE KEY-----\ncanary-pem\n-----END EC PRIVATE KEY-----"
        self.jwt = "eyJhbGciOiJSUzI1NiJ9.canaryjwtcanaryjwt.c2lnbmF0dXJl"

    def get(self, path: str) -> Any:
        if path == "/version":
            return {"gitVersion": "v1.34.4"}
        planted = self.secrets
        ours = pod({"ready": True, "name": "broker"})
        ours["metadata"] = {**ours["metadata"], "annotations": {"said": planted["annotation"]}}
        ours["spec"]["containers"][0] |= {
            "env": [
                {"name": "ANABRANCH_TOKEN", "value": planted["env"]},
                {"name": "ANABRANCH_SERVICE", "value": f"anabranch://{planted['url']}@a:1,b:2"},
                {"name": "ANABRANCH_LOG", "value": "kept-value"},
            ],
            "args": ["--token", planted["flag"], f"--secret-key={planted['assigned']}", "--port=1"],
        }
        if "/pods" in path:
            return {"items": [ours]}
        if "/jobs" in path:
            template = {"metadata": {"annotations": {"said": planted["template"]}}}
            container = {"command": ["sh", "-c", f"work {planted['command']}"]}
            spec = {"template": {**template, "spec": {"containers": [container]}}}
            return {"items": [{"metadata": {"name": "gate"}, "spec": spec}]}
        if "/events" in path:
            note = f"it said: password={planted['message']} and Bearer {self.jwt}"
            return {"items": [{"metadata": {"name": "e"}, "message": f"{note} {self.pem}"}]}
        return {"items": []}

    def text(self, path: str) -> str:
        if "metrics" in path:
            return "anabranch_up 1\n"
        echoed = " ".join(self.secrets[place] for place in ("env", "url", "flag", "assigned"))
        return f"started with {echoed}, and kept-value\n"


def test_planted_secrets_are_in_no_file_of_the_report(tmp_path: Path) -> None:
    planted = Planted()
    found = collect(planted, "logs", "demo")
    write(tmp_path / "report.tar.gz", found, findings(found, NOW_S), NOW_S)
    with tarfile.open(tmp_path / "report.tar.gz") as archive:
        files = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        whole = "\n".join(file.read().decode() for file in files.values() if file is not None)
    for place, secret in planted.secrets.items():
        assert secret not in whole, place
    assert "canary" not in whole
    for kept in ("kept-value", "anabranch_up 1", "--port=1", "@a:1,b:2", "demo-0"):
        assert kept in whole, kept


@pytest.mark.parametrize(
    "piece", ["-", "--a", "eyJ", "token", "token ", "://a@", "-----BEGIN ", "bearer ", "://"]
)
def test_a_long_line_is_cleaned_in_one_pass(piece: str) -> None:
    """With a search that begins anew at each character this would take hours."""
    cleaned = Redaction().clean(piece * 200_000)
    assert len(cleaned) <= len(piece * 200_000) + len(HIDDEN) * 200_000


@pytest.mark.parametrize(
    "text",
    [
        "secretName: demo-peer-tls",
        "ANABRANCH_TOKEN_FILE=/var/run/token",
        'secret "demo-peer-tls" not found',
        "append_bytes_total 17",
        "a key of 12 bytes",
        "https://host:443/path?from=3",
    ],
)
def test_what_only_sounds_secret_is_kept(text: str) -> None:
    assert Redaction().clean(text) == text


def test_what_can_not_be_read_is_noted_and_what_may_not_is_told() -> None:
    class Sparing:
        def get(self, path: str) -> Any:
            if path == "/version":
                return {"gitVersion": "v1.34.4"}
            if "/pods" in path:
                return {"items": [pod({"ready": True})]}
            raise Refused(f"403: you may not list {path}")

        def text(self, path: str) -> str:
            raise Unavailable("the pod", path)

    found = collect(Sparing(), "logs", "demo")
    assert found.of("pods")
    assert found.unread["/api/v1/namespaces/logs/pods/demo-0:7422/proxy/metrics"]
    said = words(found)
    assert "the doctor: may not read /apis/apps/v1/namespaces/logs/deployments" in said
    assert "proxy" not in said
