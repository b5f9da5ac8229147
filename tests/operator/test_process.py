"""The operator as a process, against a real API server and a log service."""

from pathlib import Path
from typing import Any

from tests.kubernetes.api_server import ApiServer
from tests.operator.installed import until
from tests.operator.running import Operator, log_service, running, until_one_leads

QUIET_S = 8.0


def fork(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "anabranch.dev/v1alpha1",
        "kind": "Fork",
        "metadata": {"name": name},
        "spec": {"parent": {"name": "orders"}},
    }


LOG = {"apiVersion": "anabranch.dev/v1alpha1", "kind": "Log", "metadata": {"name": "orders"}}


def path(namespace: str, plural: str, name: str = "") -> str:
    return f"/apis/anabranch.dev/v1alpha1/namespaces/{namespace}/{plural}" + f"/{name}" * bool(name)


def mirrored(server: ApiServer, where: str) -> dict[str, Any] | None:
    """The resource, once it shows its log; there is no pod here that could serve it."""
    found = server.ask("GET", where)
    return found if "logId" in found.get("status", {}) else None


def test_what_is_declared_comes_to_be_and_kopf_leaves_no_trace(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with log_service(tmp_path) as service:
        operator = Operator(resources, namespace, tmp_path, "operator", service=service)
        with running(operator):
            until_one_leads(operator)
            resources.ask("POST", path(namespace, "logs"), LOG)
            resources.ask("POST", path(namespace, "forks"), fork("what-if"))
            for where in (("logs", "orders"), ("forks", "what-if")):
                found = until(
                    lambda where=where: mirrored(resources, path(namespace, *where)), f"{where}"
                )
                assert "kopf" not in str(found["metadata"])
                assert not found["metadata"].get("annotations")
