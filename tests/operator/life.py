"""What an operator does for people, from the first declaration to the last farewell, where nobody
runs pods: what a kubelet and controllers would say of them is said here.
"""

from collections.abc import Callable
from typing import Any

from tests.kubernetes.api_server import ApiServer, Refused
from tests.operator.installed import until
from tests.operator.running import Operator

from anabranch_operator.api import names

MERGE = "application/merge-patch+json"
Document = dict[str, Any]

_TWO = {"containers": [{"name": "one", "image": "none"}, {"name": "two", "image": "none"}]}
"""Whose log is meant must be said."""
GATED: Document = {
    "policy": "Gate",
    "gate": {"onFailure": "Hold", "jobTemplate": {"spec": {"template": {"spec": _TWO}}}},
}


class Home:
    """A namespace with an operator, by what people write and see there."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace

    def path(self, plural: str, name: str = "", group: str = names.API_VERSION) -> str:
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + f"/{name}" * bool(name)

    def declare(self, kind: str, name: str, **spec: Any) -> None:
        meta = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
        self.server.ask("POST", self.path(names.PLURALS[kind]), {**meta, "spec": spec})

    def log(self, name: str, **spec: Any) -> None:
        self.declare(names.LOG, name, **spec)

    def fork(self, name: str, of: str, kind: str = names.LOG, **spec: Any) -> None:
        self.declare(names.FORK, name, parent={"kind": kind, "name": of}, **spec)

    def change(self, plural: str, name: str, change: Document) -> None:
        self.server.ask("PATCH", self.path(plural, name), change, content=MERGE)

    def find(self, plural: str, name: str, group: str = names.API_VERSION) -> Any:
        """None if it isn't there."""
        try:
            return self.server.ask("GET", self.path(plural, name, group))
        except Refused as refused:
            if refused.code != 404:
                raise
            return None

    def condition(self, plural: str, name: str, kind: str) -> Document:
        """Empty before it is said."""
        found = self.find(plural, name) or {}
        said: list[Document] = found.get("status", {}).get("conditions", [])
        return next((each for each in said if each["type"] == kind), {})

    def mirrors(self, plural: str, name: str) -> None:
        """There is a log, and a way to it, though nobody may be at its end."""

        def look() -> bool | None:
            found = self.find(plural, name) or {}
            service = f"{plural.removesuffix('s')}-{name}"
            met = self.find("services", service, "v1")
            slice_ = self.find("endpointslices", service, "discovery.k8s.io/v1")
            return ("logId" in found.get("status", {}) and bool(met and slice_)) or None

        until(look, f"{plural} {name} is made")

    def says(self, plural: str, name: str, kind: str, reason: str) -> Document:
        def look() -> Document | None:
            found = self.condition(plural, name, kind)
            return found if found.get("reason") == reason else None

        return until(look, f"{plural} {name} says {kind} {reason}")

    def gone(self, plural: str, name: str, group: str = names.API_VERSION) -> None:
        def look() -> bool | None:
            return True if self.find(plural, name, group) is None else None

        until(look, f"{plural} {name} is gone")

    def leave(self, plural: str, name: str) -> None:
        self.server.ask("DELETE", self.path(plural, name))
        self.gone(plural, name)

    def fail_gate(self, fork: str) -> None:
        """As kubelet and controller would, when the Job's only pod has failed."""
        jobs = self.path("jobs", group="batch/v1")
        label = f"?labelSelector={names.FORK_LABEL}%3D{fork}"

        def begun() -> Document | None:
            found: list[Document] = self.server.ask("GET", jobs + label)["items"]
            return found[0] if found else None

        job = until(begun, f"the gate of {fork} is begun")
        self._fail_pod(job)
        at = job["metadata"]["creationTimestamp"]
        ended = ("FailureTarget", "Failed")
        status = {
            "startTime": at,
            "failed": 1,
            "conditions": [
                {"type": each, "status": "True", "lastTransitionTime": at, "reason": "Tried"}
                for each in ended
            ],
        }
        path = self.path("jobs", job["metadata"]["name"], "batch/v1")
        self.server.ask("PATCH", f"{path}/status", {"status": status}, content=MERGE)

    def _fail_pod(self, job: Document) -> None:
        meta, template = job["metadata"], job["spec"]["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
        owner |= {"name": meta["name"], "uid": meta["uid"]}
        told = {**template["metadata"], "name": meta["name"], "ownerReferences": [owner]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": told, "spec": template["spec"]}
        self.server.ask("POST", self.path("pods", group="v1"), body)
        path = self.path("pods", meta["name"], "v1")
        ended = {"terminated": {"exitCode": 1}}
        container = {"name": "two", "state": ended, "ready": False, "restartCount": 0}
        container |= {"image": "none", "imageID": ""}
        status = {"phase": "Failed", "containerStatuses": [container]}
        self.server.ask("PATCH", f"{path}/status", {"status": status}, content=MERGE)


def live(home: Home, operator: Operator, append: Callable[[str], None]) -> None:
    """Logs and forks; `append`: some records to a log."""
    home.log("orders", retention={"records": 1}, quota={"readBytesPerSecond": 1_000_000})
    home.log("old", retention={"age": "1s"})
    home.log("brief", deletionPolicy="Delete")
    for name in ("orders", "old", "brief"):
        home.mirrors("logs", name)
    append("old")
    home.fork("what-if", "orders")
    home.fork("deeper", "what-if", names.FORK, deletionPolicy="Retain")
    home.fork("judged", "brief", promotable=True, state="Promoted", promotion=GATED)
    for name in ("what-if", "deeper", "judged"):
        home.mirrors("forks", name)
    home.fork("decided", "orders", promotable=True)
    home.mirrors("forks", "decided")
    home.change("forks", "decided", {"spec": {"state": "Promoted", "ttlAfterFinished": "1s"}})
    home.gone("forks", "decided")
    home.gone("services", "fork-decided", "v1")
    home.fail_gate("judged")
    home.says("forks", "judged", "GatePassed", "GateFailed")
    append("orders")
    until_done(operator, "Trim", "TrimOlder")
    for plural, name in (
        ("forks", "deeper"),
        ("forks", "what-if"),
        ("forks", "judged"),
        ("logs", "orders"),
        ("logs", "old"),
        ("logs", "brief"),
    ):
        home.leave(plural, name)


def until_done(operator: Operator, *steps: str) -> None:
    """By its own account."""

    def look() -> bool | None:
        done = {each.get("step") for each in operator.log() if each["event"] == "done"}
        return done.issuperset(steps) or None

    until(look, f"it has done {', '.join(steps)}")
