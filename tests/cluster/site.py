"""A release on the real node, and everything one does to it from outside."""

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import msgspec
from tests.charts.helm import CHART, CRDS, Helm, values_of
from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.kubernetes.binaries import program
from tests.kubernetes.image import images

from anabranch_operator.api import names

T = TypeVar("T")

RELEASE = "demo"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
WITHIN_S = 300.0
"""Against waiting for ever; what is done in time is done much sooner."""

_LOOK_S = 0.1
_ANABRANCH = "/apis/anabranch.dev/v1alpha1"
_HOMES = {
    "pods": "/api/v1",
    "services": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "secrets": "/api/v1",
    "configmaps": "/api/v1",
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "jobs": "/apis/batch/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "logs": _ANABRANCH,
    "forks": _ANABRANCH,
    "brokerpools": _ANABRANCH,
    "sequencersets": _ANABRANCH,
    "shardgroups": _ANABRANCH,
}
_ON_ONE_NODE = (
    *("--set", "gates.logs=true"),
    # Pods that take the places of those that a drain puts off: there is no other node for them.
    *("--set", "brokers.tolerations[0].key=node.kubernetes.io/unschedulable"),
    *("--set", "brokers.tolerations[0].operator=Exists"),
)

Document = dict[str, Any]


class Ended(msgspec.Struct, frozen=True):
    """A program that ran in a pod."""

    code: int
    said: str


def until(holds: Callable[[], T | None], what: str, within_s: float = WITHIN_S) -> T:
    """The first answer that is one: neither None nor False."""
    pause, ends = Event(), time.monotonic() + within_s
    while time.monotonic() < ends:
        found = holds()
        if found:
            return found
        pause.wait(_LOOK_S)
    raise AssertionError(f"gave up waiting: {what}")


class Site:
    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.namespace = api.namespace("logs", RESTRICTED)
        self._helm = Helm()
        self._values: list[str] = [*values_of("kind"), *_ON_ONE_NODE]

    def install(self) -> None:
        where = ("--namespace", "kube-system", "--kubeconfig", str(self.api.kubeconfig))
        self._helm.run("upgrade", "--install", "anabranch-crds", str(CRDS), *where)
        self.helm("install", RELEASE, str(CHART), *self._values)

    def upgrade(self, *values: str) -> None:
        """With these values beside those of before."""
        for value in values:
            self._values += ("--set", value)
        self.helm("upgrade", RELEASE, str(CHART), *self._values)

    def helm(self, *arguments: str) -> str:
        where = ("--namespace", self.namespace, "--kubeconfig", str(self.api.kubeconfig))
        return self._helm.run(*arguments, *where)

    def kubectl(self, *arguments: str, given: str = "") -> str:
        return self.api.kubectl("--namespace", self.namespace, *arguments, given=given)

    def drain(self, node: str, selector: str) -> str:
        """As people do it; it ends when the pods are gone."""
        command = [program("kubectl"), f"--kubeconfig={self.api.kubeconfig}", "drain", node]
        flags = [f"--pod-selector={selector}", "--delete-emptydir-data", "--ignore-daemonsets"]
        done = subprocess.run(
            [*command, *flags, f"--timeout={WITHIN_S:.0f}s"],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S * 2,
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout + done.stderr

    def get(self, plural: str, name: str) -> Document:
        return self.api.ask("GET", f"{self._path(plural)}/{name}")

    def all(self, plural: str, **labels: str) -> list[Document]:
        chosen = ",".join(f"{key}={value}" for key, value in labels.items())
        return self.api.ask("GET", f"{self._path(plural)}?labelSelector={chosen}")["items"]

    def patch(self, plural: str, name: str, **spec: object) -> None:
        content = "application/merge-patch+json"
        body = {"spec": spec}
        self.api.ask("PATCH", f"{self._path(plural)}/{name}", body, content=content)

    def apply(self, *manifests: Document) -> None:
        told = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self.kubectl("apply", "-f", "-", given=json.dumps(told))

    def delete(self, plural: str, name: str) -> None:
        self.api.ask("DELETE", f"{self._path(plural)}/{name}")

    def parts(self, component: str) -> list[Document]:
        """Pods of the release that aren't on their way out."""
        found = self.all("pods", **{"app.kubernetes.io/component": component})
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def uids(self, *components: str) -> dict[str, str]:
        pods = [pod for each in components for pod in self.parts(each)]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    def until_is(self, plural: str, name: str, kind: str, *, status: str = "True") -> Document:
        """Until a condition is so, of the spec as it is now; the resource then."""

        def look() -> Document | None:
            found = self.get(plural, name)
            said = condition(found, kind)
            current = said.get("observedGeneration") == found["metadata"]["generation"]
            return found if current and said["status"] == status else None

        return until(look, f"{plural} {name} is {kind}={status}")

    def until_green(self) -> None:
        """All that the release asks for is there and serves."""

        def look() -> bool:
            wholes = [*self.all("deployments"), *self.all("statefulsets")]
            if not all(map(_is_whole, wholes)):
                return False
            pool = self.get("brokerpools", RELEASE)
            status = pool.get("status", {})
            settled = condition(pool, "Progressing").get("status") == "False"
            ready = condition(pool, "Ready").get("status") == "True"
            current = status.get("observedGeneration") == pool["metadata"]["generation"]
            known = {_metadata(each)["name"] for each in self.parts("broker")}
            told = {each["pod"] for each in status.get("brokers", ())}
            every = status.get("updated") == status.get("desired")
            return current and ready and settled and every and known == told

        until(look, "the release is green")

    def leader_of_members(self) -> str:
        """The pod of the metadata's leader, as it says itself."""
        return until(self._leading_member, "a member leads")

    def holder(self) -> str:
        """The operator that acts: its pod, and its life."""
        return self.get("leases", f"{RELEASE}-operator")["spec"].get("holderIdentity", "")

    def run(self, script: str, *, to: str = RELEASE, account: str = "client") -> Ended:
        """A shell's words in a pod, with the account's token; it is gone when this returns."""
        name = f"run-{time.time_ns():x}"
        self.apply(self.program(name, ["sh", "-ec", script], to, account))

        def look() -> Ended | None:
            found = self.get("pods", name)
            if found["status"].get("phase") not in ("Succeeded", "Failed"):
                return None
            (status,) = found["status"]["containerStatuses"]
            code = status["state"]["terminated"]["exitCode"]
            return Ended(code, self.kubectl("logs", name))

        ended = until(look, f"{name} ends")
        self.delete("pods", name)
        return ended

    def program(self, name: str, command: Sequence[str], to: str, account: str) -> Document:
        """A pod with a token for the log service, and the authority that it is known by."""
        url = f"anabranchs://{to}.{self.namespace}.svc:7420"
        folder = names.RUN_DIR
        query = f"token_file={folder}/token&ca={folder}/ca.crt"
        token = {"serviceAccountToken": {"audience": "anabranch", "path": "token"}}
        container: Document = {
            "name": "program",
            "image": next(each.reference for each in images()),
            "command": list(command),
            "env": [{"name": "ANABRANCH_URL", "value": f"{url}?{query}"}],
            "volumeMounts": [{"name": "service", "mountPath": folder}],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
        }
        sources = [token, {"configMap": {"name": f"{RELEASE}-ca"}}]
        spec: Document = {
            "restartPolicy": "Never",
            "serviceAccountName": account,
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "service", "projected": {"sources": sources}}],
        }
        metadata = {"name": name}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def until_gone(self, plural: str, name: str) -> None:
        def look() -> bool:
            try:
                self.get(plural, name)
            except Refused as refused:
                if refused.code == 404:
                    return True
                raise
            return False

        until(look, f"{plural} {name} is gone")

    def hasten_certificates(self) -> None:
        """Let the operator look every few seconds what has become of them, and not wait long for
        kubelets, which are quick here.
        """
        found = self.get("configmaps", f"{RELEASE}-operator")
        text: str = found["data"]["operator.toml"]
        if "look_s" in text:
            return
        told = text.replace("[certificates]\n", "[certificates]\nlook_s = 5\npropagation_s = 30\n")
        data = json.dumps({"data": {"operator.toml": told}})
        self.kubectl("patch", f"configmap/{RELEASE}-operator", "--type=merge", "-p", data)
        before = self.uids("operator")
        self.kubectl("delete", "pod", "--wait=true", *before)
        self.until_green()

    def account(self, name: str, *verbs: str, resources: Sequence[str] = ("logs", "forks")) -> None:
        """A service account with these verbs on all logs and forks here."""
        rules = [Rule(verbs, ("anabranch.dev",), resources)] if verbs else []
        self.api.service_account(self.namespace, name, rules)

    def _leading_member(self) -> str | None:
        for pod in self.parts("metadata"):
            address = pod["status"].get("podIP")
            if address and _role(address) == "leader":
                return _metadata(pod)["name"]
        return None

    def _path(self, plural: str) -> str:
        return f"{_HOMES[plural]}/namespaces/{self.namespace}/{plural}"


def condition(found: Document, kind: str) -> Document:
    said = found.get("status", {}).get("conditions", ())
    return next((each for each in said if each["type"] == kind), {})


def kill(pod: Document) -> None:
    """What runs in it ends at once, as when a machine's memory is short."""
    killed = list(_processes(pod["metadata"]["uid"]))
    assert killed, f"{_metadata(pod)['name']} runs nothing"
    for pid in killed:
        os.kill(pid, signal.SIGKILL)


def _processes(uid: str) -> Iterator[int]:
    """Those of a pod, but for what keeps its addresses."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            groups = (folder / "cgroup").read_text(encoding="utf-8")
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if uid in groups and b"anabranch" in words:
            yield int(folder.name)


def _role(address: str) -> str:
    connection = http.client.HTTPConnection(address, 7431, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return json.loads(connection.getresponse().read()).get("role", "")
    except OSError:
        return ""
    finally:
        connection.close()


def _metadata(document: Document) -> Document:
    return document["metadata"]


def _is_whole(found: Document) -> bool:
    wanted, status = found["spec"]["replicas"], found.get("status", {})
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    counts = [status.get(f"{each}eplicas", 0) for each in ("r", "readyR", "updatedR")]
    return seen and all(count == wanted for count in counts)
