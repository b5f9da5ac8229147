"""An operator with the rights and the settings that the chart gives it, and no other."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.charts.helm import ROOT, Helm, values_of
from tests.kubernetes.api_server import ApiServer, Refused
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.fixtures import needs
from tests.operator import running as processes
from tests.operator.installed import install, until
from tests.operator.running import Operator, log_service, running, until_one_leads

from anabranch_operator.api.names import PLURALS

OURS = "/apis/anabranch.dev/v1alpha1"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEAVES = ("peer", "broker", "gateway", "operator", "etcd", "s3")
WHOLE = "cluster"


@pytest.fixture(scope="session")
def helm() -> Helm:
    needs("helm")
    return Helm()


def test_in_its_namespace_the_charts_rights_are_enough(
    resources: ApiServer, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = resources.namespace("chart")
    _installed(resources, helm, namespace)
    _tends(resources, namespace, namespace, tmp_path, monkeypatch)


def test_in_the_cluster_the_charts_rights_are_enough(
    own_api_server: ControlPlane, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs are declared in another namespace than the operator's."""
    server = own_api_server.api
    for plural in PLURALS.values():
        install(server, yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text()))
    namespace = server.namespace("chart")
    _installed(server, helm, namespace, "--set", f"operator.watch={WHOLE}")
    _tends(server, namespace, server.namespace("team"), tmp_path, monkeypatch)


def _installed(server: ApiServer, helm: Helm, namespace: str, *told: str) -> None:
    """As `helm install` would, but for the pod of `helm test`."""
    found = helm.template(*values_of("kind"), *told, namespace=namespace)
    items = [each for each in found if each["kind"] != "Pod"]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    server.kubectl("apply", "--server-side", "--namespace", namespace, "-f", "-", given=given)


def _tends(
    server: ApiServer,
    namespace: str,
    home: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything that needs no broker: there is no kubelet here."""
    monkeypatch.setattr(processes, "RULES", ())
    settings = _get(server, f"/api/v1/namespaces/{namespace}/configmaps/demo-operator")
    config = folder / "operator.toml"
    config.write_text(settings["data"]["operator.toml"])
    since = server.mark()
    with log_service(folder) as service:
        told = {"service": service, "config": str(config)}
        operator = Operator(server, namespace, folder, "demo-operator", **told)
        with running(operator):
            until_one_leads(operator)
            _declare_and_delete(server, home)
            until(lambda: _all_made(server, namespace), "certificates and pods are made")
    refused = [
        f"{each.verb} {each.group}/{each.resource} {each.name}"
        for each in server.requests(since, operator.user)
        if each.code == 403
    ]
    assert refused == []


def _declare_and_delete(server: ApiServer, home: str) -> None:
    log: dict[str, Any] = {"apiVersion": "anabranch.dev/v1alpha1", "kind": "Log"}
    log |= {"metadata": {"name": "orders"}}
    fork = {**log, "kind": "Fork", "metadata": {"name": "what-if"}}
    fork["spec"] = {"parent": {"name": "orders"}}
    logs, forks = (f"{OURS}/namespaces/{home}/{plural}" for plural in ("logs", "forks"))
    server.ask("POST", logs, log)
    server.ask("POST", forks, fork)
    for where in (f"{logs}/orders", f"{forks}/what-if"):
        until(lambda where=where: _made(server, where), f"{where} has a log")
    for kind in ("/api/v1/namespaces/{}/services", DISCOVERY):
        until(lambda kind=kind: _get(server, kind.format(home) + "/log-orders"), kind)
    for where in (f"{forks}/what-if", f"{logs}/orders"):
        server.ask("DELETE", where)
        until(lambda where=where: None if _get(server, where) else True, f"{where} is gone")


DISCOVERY = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def _all_made(server: ApiServer, namespace: str) -> bool | None:
    core = f"/api/v1/namespaces/{namespace}"
    wanted = [f"{core}/secrets/demo-ca", f"{core}/configmaps/demo-ca"]
    wanted += [f"{core}/secrets/demo-{leaf}-tls" for leaf in LEAVES]
    wanted += [f"{core}/services/demo-brokers"]
    wanted += [f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/demo-brokers"]
    if not all(_get(server, each) for each in wanted):
        return None
    (hook,) = server.ask("GET", f"{HOOKS}/{namespace}-demo-eviction")["webhooks"]
    pods = server.ask("GET", f"{core}/pods?labelSelector=anabranch.dev/role%3Dbroker")["items"]
    pool = server.ask("GET", f"{OURS}/namespaces/{namespace}/brokerpools/demo")
    told = pool.get("status", {}).get("replicas", 0)
    return True if hook["clientConfig"].get("caBundle") and len(pods) == told >= 2 else None


def _made(server: ApiServer, where: str) -> bool | None:
    found = _get(server, where)
    return True if found.get("status", {}).get("logId") else None


def _get(server: ApiServer, where: str) -> Any:
    try:
        return server.ask("GET", where)
    except Refused as refused:
        if refused.code != 404:
            raise
        return None
