"""What a driver of Spark may do with pods, on a real API server: make executors, and delete them.

It runs code of its users, and RBAC lets it create any pod.
"""

import copy
import json
from typing import Any

import pytest
import yaml
from tests.charts.helm import RELEASE, Helm, values_of
from tests.kubernetes.api_server import ApiServer, Refused
from tests.kubernetes.fixtures import needs
from tests.operator.installed import until

Document = dict[str, Any]

DRIVER, EXECUTOR = f"{RELEASE}-spark", f"{RELEASE}-spark-executor"
KINDS = ("ConfigMap", "Role", "RoleBinding", "ServiceAccount")
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
SECRET = {"secretName": "demo-s3"}
FROM_SECRET = {"name": "demo-s3", "key": "k"}


class Site:
    """A namespace with the chart's objects for Spark."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        # Without Pod Security's label: the policy holds by itself.
        self.namespace = server.namespace("spark")
        values = (*values_of("spark"), "--set", "spark.secrets={lake}")
        found = Helm().template(*values, namespace=self.namespace)
        ours = [
            each
            for each in found
            if f"{RELEASE}-spark" in each["metadata"]["name"] and each["kind"] in KINDS + POLICIES
        ]
        told = json.dumps({"apiVersion": "v1", "kind": "List", "items": ours})
        server.kubectl("--namespace", self.namespace, "apply", "-f", "-", given=told)
        self._told = next(each for each in ours if each["kind"] == "ConfigMap")["data"]
        self.driver = server.token(self.namespace, DRIVER)
        server.service_account(self.namespace, f"{RELEASE}-operator")
        until(self._in_force, "the policies are in force")

    def executor(self) -> Document:
        """As Spark makes it of the chart's template."""
        pod: Document = copy.deepcopy(yaml.safe_load(self._told["executor.yaml"]))
        pod["metadata"]["generateName"] = "orders-exec-"
        pod["metadata"]["labels"] |= {"spark-role": "executor", "spark-app-selector": "spark-1"}
        pod["spec"] |= {"serviceAccountName": EXECUTOR, "restartPolicy": "Never"}
        (container,) = pod["spec"]["containers"]
        container |= {"image": "anabranch/anabranch-spark:0.1.0", "args": ["executor"]}
        container["env"] = [
            *container["env"],
            {"name": "SPARK_EXECUTOR_ID", "value": "1"},
            {"name": "SPARK_USER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
        pod["spec"]["volumes"].append({"name": "spark-local-dir-1", "emptyDir": {}})
        return pod

    def make(self, pod: Document, token: str | None, *, dry: bool = True) -> str:
        """Its name."""
        path = f"{self.path('pods')}{'?dryRun=All' if dry else ''}"
        return self.server.ask("POST", path, pod, token=token)["metadata"]["name"]

    def refusal(self, pod: Document) -> str:
        with pytest.raises(Refused) as refused:
            self.make(pod, self.driver)
        assert refused.value.code == 403
        return str(refused.value)

    def path(self, plural: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{plural}"

    def _in_force(self) -> bool | None:
        pod = self.executor()
        pod["spec"]["serviceAccountName"] = "default"
        try:
            self.make(pod, self.driver)
        except Refused as refused:
            return "an executor runs as" in str(refused) or None
        return None


@pytest.fixture(scope="module")
def site(resources: ApiServer) -> Site:
    needs("helm")
    return Site(resources)


def test_it_makes_executors(site: Site) -> None:
    assert site.make(site.executor(), site.driver).startswith("orders-exec-")
    listed = site.executor()
    listed["spec"]["volumes"].append({"name": "keys", "secret": {"secretName": "lake"}})
    (container,) = listed["spec"]["containers"]
    container["envFrom"] = [{"secretRef": {"name": "lake"}}, {"configMapRef": {"name": "any"}}]
    assert site.make(listed, site.driver), "a Secret of spark.secrets"


def projected(**source: Any) -> Document:
    return {"volumes": [{"name": "v", "projected": {"sources": [source]}}]}


PODS: dict[str, tuple[Document, str]] = {
    "the operator's account": ({"serviceAccountName": f"{RELEASE}-operator"}, "runs as"),
    "a Secret": ({"volumes": [{"name": "v", "secret": SECRET}]}, "volumes"),
    "a Secret among others": (projected(secret={"name": "demo-s3"}), "volumes"),
    "its host's network": ({"hostNetwork": True}, "nothing of its host"),
    "its host's processes": ({"hostPID": True}, "nothing of its host"),
    "a folder of its host": ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "volumes"),
    "a volume of another": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-demo-s3-0"}}]},
        "volumes",
    ),
}


@pytest.mark.parametrize("what", PODS)
def test_it_makes_no_pod_with(site: Site, what: str) -> None:
    asked, says = PODS[what]
    pod = site.executor()
    added = asked.get("volumes", [])
    pod["spec"] |= asked | {"volumes": [*pod["spec"]["volumes"], *added]}
    assert says in site.refusal(pod)


CONTAINERS: dict[str, Document] = {
    "a variable": {"env": [{"name": "K", "valueFrom": {"secretKeyRef": FROM_SECRET}}]},
    "all variables": {"envFrom": [{"secretRef": {"name": "demo-s3"}}]},
}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("what", CONTAINERS)
def test_it_reads_no_secret_into(site: Site, what: str, kind: str) -> None:
    pod = site.executor()
    more = {**pod["spec"]["containers"][0], "name": "more", **CONTAINERS[what]}
    pod["spec"][kind] = [*pod["spec"].get(kind, []), more]
    assert "spark.secrets" in site.refusal(pod)


def test_it_makes_no_privileged_pod(site: Site) -> None:
    pod = site.executor()
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert "nothing of its host" in site.refusal(pod)


@pytest.mark.parametrize("label", ["app.kubernetes.io/instance", "anabranch.dev/role"])
def test_it_makes_no_pod_that_is_taken_for_the_releases(site: Site, label: str) -> None:
    pod = site.executor()
    pod["metadata"]["labels"][label] = RELEASE
    assert "no label" in site.refusal(pod)


def test_it_deletes_executors_and_nothing_else(site: Site) -> None:
    ask = site.server.ask
    other = site.executor()
    del other["metadata"]["labels"]["spark-role"]
    broker = site.make(other, None, dry=False)
    executor = site.make(site.executor(), site.driver, dry=False)
    with pytest.raises(Refused, match="deletes executors, and no other"):
        ask("DELETE", f"{site.path('pods')}/{broker}", token=site.driver)
    with pytest.raises(Refused, match="deletes executors, and no other"):
        ask("DELETE", site.path("pods"), token=site.driver)
    chosen = f"{site.path('pods')}?labelSelector=spark-app-selector=spark-1,spark-role=executor"
    ask("DELETE", chosen, token=site.driver)
    left = {each["metadata"]["name"] for each in ask("GET", site.path("pods"))["items"]}
    assert broker in left
    gone = {
        each["metadata"]["name"]
        for each in ask("GET", site.path("pods"))["items"]
        if "deletionTimestamp" in each["metadata"]
    }
    assert executor not in left or executor in gone
    assert broker not in gone


def test_it_deletes_no_volumes_of_others(site: Site) -> None:
    ask = site.server.ask
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = site.path("persistentvolumeclaims")
    for name, labels in (("data", {}), ("scratch", {"spark-app-selector": "spark-1"})):
        metadata = {"name": name, "labels": labels}
        body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        ask("POST", claims, {**body, "spec": spec})
    # A collection is deleted as the API server's cache knows it, which may be a moment behind.
    until(
        lambda: len(ask("GET", f"{claims}?resourceVersion=0")["items"]) == 2 or None,
        "both claims are in the cache",
    )
    with pytest.raises(Refused, match="deletes volumes of executors"):
        ask("DELETE", claims, token=site.driver)
    ask("DELETE", f"{claims}?labelSelector=spark-app-selector=spark-1", token=site.driver)
    found = {each["metadata"]["name"]: each["metadata"] for each in ask("GET", claims)["items"]}
    assert "deletionTimestamp" not in found["data"]


def test_others_make_what_pods_they_may(site: Site) -> None:
    pod = site.executor()
    pod["spec"]["serviceAccountName"] = "default"
    assert site.make(pod, None)
