"""Operators as processes, and the log service that they tend: one of this machine, in memory."""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.kubernetes.api_server import ApiServer, Rule
from tests.kubernetes.control_plane import TIED
from tests.operator.installed import until

from anabranch.apps.processes.servers import ServerProcess
from anabranch_operator.api.names import PLURALS
from anabranch_operator.handlers.process import Found

LEASE = "demo-operator"
SWIFT: dict[str, Any] = {
    "lease_s": 4,
    "renew_s": 2.5,
    "retry_s": 0.5,
    "look_ms": 500,
    "counters_s": 1,
    "trim_s": 2,
}
"""Settings of an operator that doesn't let a test wait."""
OURS = "anabranch.dev"
_VERBS = ("get", "list", "watch", "create", "patch", "delete")

RULES = (
    Rule(("get", "list", "watch", "patch"), (OURS,), (*PLURALS.values(),)),
    Rule(("delete",), (OURS,), ("forks",)),
    Rule(("create", "delete"), (OURS,), ("sequencersets", "shardgroups")),
    Rule(("patch",), (OURS,), tuple(f"{plural}/status" for plural in PLURALS.values())),
    Rule(("update",), (OURS,), tuple(f"{plural}/finalizers" for plural in PLURALS.values())),
    Rule(_VERBS, ("",), ("services", "pods", "configmaps", "persistentvolumeclaims")),
    Rule(_VERBS, ("discovery.k8s.io",), ("endpointslices",)),
    Rule(("create",), ("discovery.k8s.io",), ("endpointslices/restricted",)),
    Rule(_VERBS, ("batch",), ("jobs",)),
    Rule(_VERBS, ("policy",), ("poddisruptionbudgets",)),
    Rule(("get", "list", "watch"), ("apps",), ("statefulsets",)),
    Rule(("get",), ("",), ("pods/log", "namespaces")),
    Rule(("create", "patch"), ("events.k8s.io",), ("events",)),
    Rule(("get", "list", "watch", "create", "update"), ("coordination.k8s.io",), ("leases",)),
)
"""As the chart grants them in one namespace, but for Secrets."""
WATCHES_NODES = (Rule(("list", "watch"), ("",), ("nodes",)),)


class Operator:
    """One process; `settings` are those of its file."""

    def __init__(
        self,
        server: ApiServer,
        namespace: str,
        folder: Path,
        name: str,
        *,
        through: str = "",
        python: str = sys.executable,
        **settings: Any,
    ) -> None:
        """`through`: another address of the API server; `python`: of another environment."""
        self.user = f"system:serviceaccount:{namespace}:{name}"
        everywhere = RULES if settings.get("watch") == "cluster" else ()
        everywhere += WATCHES_NODES if settings.get("watch_nodes") else ()
        token = server.service_account(namespace, name, RULES, everywhere)
        config = server.write_config(f"{namespace}-{name}", through or server.url, {"token": token})
        self._announced = folder / f"{name}.json"
        told = {
            "release": "demo",
            "namespace": namespace,
            "name": name,
            "kubeconfig": str(config),
            "host": "127.0.0.1",
            "probe_port": 0,
            "webhook_port": -1,
            "gates_enabled": True,
            "gates_logs": True,
            "announce": str(self._announced),
            **settings,
        }
        environment = {f"ANABRANCH_OPERATOR_{k.upper()}": str(v) for k, v in told.items()}
        self.process = ServerProcess(
            name,
            [*TIED, python, "-m", "anabranch_operator"],
            folder,
            self._is_ready,
            environment,
        )

    def start(self) -> None:
        self._announced.unlink(missing_ok=True)
        self.process.start()

    def found(self) -> Found:
        return msgspec.json.decode(self._announced.read_bytes(), type=Found)

    def get(self, path: str) -> tuple[int, bytes]:
        url = f"http://{self.found().probes}{path}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read()

    def figure(self, name: str) -> float:
        """Of a metric, over all of its labels."""
        lines = self.get("/metrics")[1].decode().splitlines()
        found = [line.rpartition(" ")[2] for line in lines if line.startswith(name)]
        return sum(map(float, found))

    @property
    def leads(self) -> bool:
        return json.loads(self.get("/readyz")[1])["role"] == "leader"

    def exit_code(self) -> int:
        """Once it has ended."""
        return until(lambda: _ended(self.process.pid), f"{self.process.name} ends")

    def log(self) -> list[dict[str, Any]]:
        """Its whole lines: the last may still be being written."""
        text, _, _ = self.process.output.read_text(encoding="utf-8").rpartition("\n")
        return [json.loads(line) for line in text.splitlines()]

    def _is_ready(self) -> bool:
        try:
            return self._announced.exists() and self.get("/readyz")[0] == 200
        except OSError:
            return False


def _ended(pid: int) -> int | None:
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


@contextmanager
def running(*operators: Operator) -> Iterator[None]:
    """All of them, until the end of the block."""
    with ExitStack() as stack:
        for each in operators:
            stack.callback(each.process.kill)
            each.start()
        yield


@contextmanager
def log_service(folder: Path) -> Iterator[str]:
    """Its address."""
    announced = folder / "log" / "endpoint"
    environment = {
        "ANABRANCH_DATA": str(announced.parent),
        "ANABRANCH_PORT": "0",
        "ANABRANCH_HTTP_PORT": "-1",
    }
    process = ServerProcess(
        "log-service",
        [*TIED, sys.executable, "-m", "anabranch.apps.up"],
        folder,
        announced.exists,
        environment,
    )
    try:
        process.start()
        yield f"anabranch://{json.loads(announced.read_bytes())['frames']}"
    finally:
        process.kill()


def until_one_leads(*operators: Operator) -> Operator:
    def look() -> Operator | None:
        return next((each for each in operators if each.process.running and each.leads), None)

    return until(look, "one of them leads")
