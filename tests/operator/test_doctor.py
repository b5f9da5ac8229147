"""`anabranch doctor` against a real API server: what it takes along, and what it never does."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.kubernetes.api_server import ApiServer, Rule

CANARY = "canary-9a7c3e"
EVERYTHING = Rule(("get", "list"), ("*",), ("*",))


def doctor(kubeconfig: Path, namespace: str, file: Path) -> subprocess.CompletedProcess[str]:
    where = ["--kubeconfig", str(kubeconfig), "--namespace", namespace, "--file", str(file)]
    command = [sys.executable, "-m", "anabranch.cli.main", "doctor", *where, "--output", "json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def declare(server: ApiServer, namespace: str) -> None:
    """A Secret, a ConfigMap and a pod that hold what isn't anybody's business; a log."""
    home = f"/api/v1/namespaces/{namespace}"
    secret = {"metadata": {"name": "s3"}, "stringData": {"ANABRANCH_S3_SECRET_KEY": CANARY}}
    server.ask("POST", f"{home}/secrets", secret)
    server.ask("POST", f"{home}/configmaps", {"metadata": {"name": "own"}, "data": {"key": CANARY}})
    labels = {"app.kubernetes.io/name": "anabranch", "app.kubernetes.io/component": "broker"}
    metadata = {"name": "demo-0", "labels": labels, "annotations": {"said": CANARY}}
    variables = [
        {"name": "ANABRANCH_S3_SECRET_KEY", "value": CANARY},
        {"name": "OTHER", "value": CANARY},
    ]
    container = {"name": "broker", "image": "anabranch/anabranch", "env": variables}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    server.ask("POST", f"{home}/pods", {"metadata": metadata, "spec": spec})
    log = {"apiVersion": "anabranch.dev/v1alpha1", "kind": "Log", "metadata": {"name": "orders"}}
    server.ask("POST", f"/apis/anabranch.dev/v1alpha1/namespaces/{namespace}/logs", log)


def test_a_report_has_what_helps_and_no_secret(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    declare(resources, namespace)
    token = resources.service_account(namespace, "doctor", [EVERYTHING], [EVERYTHING])
    since = resources.mark()
    done = doctor(resources.config_of(token), namespace, tmp_path / "report.tar.gz")
    assert done.returncode == 1, done.stderr
    found = {each["about"]: each["says"] for each in json.loads(done.stdout)["findings"]}
    assert found == {"log orders": "no operator has looked at it"}
    with tarfile.open(tmp_path / "report.tar.gz") as archive:
        files = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        held = {name: file.read() for name, file in files.items() if file is not None}
    assert all(CANARY.encode() not in content for content in held.values())
    (log,) = json.loads(held["report/objects/logs.json"])
    assert log["metadata"]["name"] == "orders"
    assert b"demo-0" in held["report/objects/pods.json"]
    asked = resources.requests(since, f"system:serviceaccount:{namespace}:doctor")
    assert {each.resource for each in asked}.isdisjoint({"secrets", "configmaps"})
    assert not any(each.writes for each in asked)


def test_who_may_not_look_is_told_at_what(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    token = resources.service_account(namespace, "stranger")
    done = doctor(resources.config_of(token), namespace, tmp_path / "report.tar.gz")
    assert done.returncode == 1, done.stderr
    says = [each["says"] for each in json.loads(done.stdout)["findings"]]
    assert any("may not read" in each and "brokerpools" in each for each in says)


def test_an_api_server_that_is_away_is_said(tmp_path: Path, resources: ApiServer) -> None:
    config = resources.write_config("away", "https://127.0.0.1:1", {"token": "none"})
    done = doctor(config, "logs", tmp_path / "report.tar.gz")
    assert done.returncode == 4
    assert "the API server" in done.stderr
    assert "Traceback" not in done.stderr
