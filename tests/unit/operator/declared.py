"""Logs and forks as somebody applies them, and an office that tends them."""

from collections.abc import Mapping
from typing import Any

from anabranch.core.bolt.protocol.commands import Description, RegisterBroker
from anabranch.core.errors.refused import Refused
from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.engine.world import Fork, Log, Surroundings
from anabranch_operator.plan.log.forks import plan_fork
from anabranch_operator.plan.log.logs import plan_log
from anabranch_operator.plan.log.orphans import plan_orphan
from anabranch_sim.kubernetes.sandbox import Sandbox

PLANNERS = {names.LOG: plan_log, names.FORK: plan_fork, names.ORPHAN: plan_orphan}
NAMESPACE = "demo"
ORDERS = Ref(names.LOG, NAMESPACE, "orders")
WHAT_IF = Ref(names.FORK, NAMESPACE, "what-if")


def office(
    surroundings: Surroundings | None = None, planners: Mapping[str, Planner] = PLANNERS
) -> Sandbox:
    """An operator beside a broker in a pod that serves whatever there is."""
    made = Sandbox(planners, surroundings)
    pod = Ref("Pod", NAMESPACE, "demo-0")
    labels = {names.ROLE: names.BROKER, names.POOL_LABEL: "demo"}
    declare(made, pod, labels=labels)
    ready = [{"type": "Ready", "status": "True"}]
    made.kube.report(pod, {"phase": "Running", "podIP": "10.0.0.7", "conditions": ready})
    found = made.kube.get(pod)
    assert found is not None
    made.service.command(RegisterBroker(f"demo-0.{found.uid}", "demo-0:7420"))
    made.settle()
    return made


def declare(
    office: Sandbox, ref: Ref, *, labels: dict[str, str] | None = None, **spec: Any
) -> None:
    meta = {"name": ref.name, "namespace": ref.namespace, "labels": labels or {}}
    office.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})


def fork(office: Sandbox, ref: Ref = WHAT_IF, **spec: Any) -> Fork:
    """Applied, and tended."""
    declare(office, ref, **({"parent": {"name": "orders"}} | spec))
    office.settle()
    return office.operator.world.forks[ref]


def log(office: Sandbox, ref: Ref = ORDERS, **spec: Any) -> Log:
    declare(office, ref, **spec)
    office.settle()
    return office.operator.world.logs[ref]


def conditions(resource: Fork | Log) -> dict[str, tuple[str, str]]:
    """Status and reason of each."""
    return {each.type: (each.status, each.reason) for each in resource.status.conditions}


def current(made: Sandbox, ref: Ref = WHAT_IF) -> Fork:
    """A Fork as the operator has it now."""
    return made.operator.world.forks[ref]


def in_service(made: Sandbox, name: str = "orders--what-if") -> Description | Refused:
    """A log as the log service has it now."""
    return made.service.describe(name)
