"""What tests of lazy fronts share."""

from typing import Any

import pytest
from tests.unit.operator.belfast_log import LOG, NAMESPACE, VOLUME, BelfastHarness
from tests.unit.operator.declared import declare as put

from anabranch.core.bolt.protocol.commands import Description, RegisterBroker
from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Log

ORDERS = Ref(names.LOG, NAMESPACE, "orders")
TEMPLATE: dict[str, Any] = {"image": "good", "storage": VOLUME}
LAZY: dict[str, Any] = {"appends": "Lazy", "sequencers": {"template": TEMPLATE}}


class FrontHarness(BelfastHarness):
    """A Log, the sequencers of its lazy front, and a broker that serves the log."""

    def __init__(self) -> None:
        super().__init__(front=True)
        pod = Ref("Pod", NAMESPACE, "demo-0")
        put(self.office, pod, labels={names.ROLE: names.BROKER, names.POOL_LABEL: "demo"})
        ready = [{"type": "Ready", "status": "True"}]
        self.kube.report(pod, {"phase": "Running", "podIP": "10.0.0.7", "conditions": ready})
        uid = self.pod("demo-0").uid
        self.frozen[uid] = None
        self.office.service.command(RegisterBroker(f"demo-0.{uid}", "demo-0:7420"))
        self.office.settle()

    def declare_orders(self, **spec: Any) -> None:
        put(self.office, ORDERS, **spec)
        self.office.settle()

    @property
    def orders(self) -> Log:
        return self.office.operator.world.logs[ORDERS]

    @property
    def entry(self) -> Description:
        found = self.office.service.describe("orders")
        assert isinstance(found, Description)
        return found

    def said(self, name: str = "Ready") -> tuple[str, str, str]:
        """Of the Log."""
        found = next(each for each in self.orders.status.conditions if each.type == name)
        return found.status, found.reason, found.message

    def label_set(self, log_id: str) -> None:
        """Somebody changes whose appends the set takes."""
        meta = {"name": LOG.name, "namespace": NAMESPACE, "labels": {names.LOG_ID: log_id}}
        self.kube.apply(LOG, {"kind": LOG.kind, "metadata": meta, "spec": {}})
        self.office.settle()

    def has_set(self) -> bool:
        return self.kube.get(Ref(names.SEQUENCERS, NAMESPACE, "orders")) is not None


@pytest.fixture
def bare() -> FrontHarness:
    return FrontHarness()


@pytest.fixture
def harness(bare: FrontHarness) -> FrontHarness:
    """A log with lazy appends and three sequencers, at rest."""
    bare.declare_orders(**LAZY)
    bare.settle()
    bare.office.done.clear()
    return bare
