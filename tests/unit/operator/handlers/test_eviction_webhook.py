"""Who is believed when the webhook is told that a pod is evicted."""

import asyncio
import json
from typing import Any, cast

import pytest
from aiohttp import web
from tests.unit.operator.broker_pool import PoolHarness

from anabranch_operator.handlers.eviction_webhook import Evictions
from anabranch_operator.plan.engine.actions import Create, Delete, DrainBroker
from anabranch_operator.plan.engine.events import Deposed
from anabranch_operator.plan.engine.objects import Observed, Ref


class Request:
    """As much of an HTTP request as the webhook reads."""

    def __init__(self, pod: Observed, *, dry: bool = False) -> None:
        asked = {"uid": "1", "name": pod.ref.name, "namespace": pod.ref.namespace, "dryRun": dry}
        self._body = json.dumps({"request": asked}).encode()

    async def read(self) -> bytes:
        return self._body


class Webhook:
    """Before the operator of a pool."""

    def __init__(self, harness: PoolHarness, *, authenticated: bool = False) -> None:
        self.harness = harness
        office = harness.office
        self._evictions = Evictions(
            office.operator, office.tell, lambda: office.now, authenticated=authenticated
        )

    def ask(self, pod: Observed, *, dry: bool = False) -> str | None:
        """Why the pod may not go yet."""
        answer = self.answer(pod, dry=dry)
        told: dict[str, Any] = json.loads(cast("bytes", answer.body))["response"]
        return None if told["allowed"] else told["status"]["message"]

    def answer(self, pod: Observed, *, dry: bool = False) -> web.Response:
        request = cast("web.Request", Request(pod, dry=dry))
        return asyncio.run(self._evictions.serve(request))

    @property
    def believed(self) -> bool:
        return bool(self.harness.office.operator.world.evicting)


@pytest.fixture
def harness() -> PoolHarness:
    made = PoolHarness()
    made.settle()
    return made


def test_a_stranger_moves_nothing(harness: PoolHarness) -> None:
    """Any pod that reaches the port can ask; nobody drains a broker by that."""
    webhook, pod = Webhook(harness), harness.busiest()
    before = harness.names()
    harness.office.done.clear()
    for _ in range(5):
        for each in harness.pods():
            webhook.ask(each)
        harness.step()
    assert "cordon the node" in str(webhook.ask(pod))
    assert not webhook.believed
    assert harness.names() == before
    assert harness.done(Create, DrainBroker, Delete) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"unschedulable": True},
        {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
        {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
    ],
)
def test_a_node_that_is_seen_to_be_emptied_is_believed(
    harness: PoolHarness, spec: dict[str, Any]
) -> None:
    webhook, pod = Webhook(harness), harness.busiest()
    harness.kube.edit(Ref("Node", "", pod.spec["nodeName"]), **spec)
    harness.office.settle()
    assert "hands over" in str(webhook.ask(pod))
    assert webhook.believed


def test_other_taints_say_nothing(harness: PoolHarness) -> None:
    webhook, pod = Webhook(harness), harness.busiest()
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    harness.kube.edit(Ref("Node", "", pod.spec["nodeName"]), taints=[taint])
    harness.office.settle()
    assert "cordon the node" in str(webhook.ask(pod))
    assert not webhook.believed


def test_a_caller_with_a_certificate_is_believed(harness: PoolHarness) -> None:
    webhook = Webhook(harness, authenticated=True)
    assert "hands over" in str(webhook.ask(harness.busiest()))
    assert webhook.believed


def test_nothing_is_handed_over_for_a_question(harness: PoolHarness) -> None:
    webhook = Webhook(harness, authenticated=True)
    assert "hands over" in str(webhook.ask(harness.busiest(), dry=True))
    assert not webhook.believed


def test_a_pod_isnt_held_for_ever_though_nobody_sees_why_it_is_evicted(
    harness: PoolHarness,
) -> None:
    """Who evicts without a cordon gets the pod after the deadline; it then drains by itself."""
    webhook, pod = Webhook(harness), harness.busiest()
    assert webhook.ask(pod) is not None
    harness.office.wait(harness.office.operator.world.surroundings.eviction_ms // 1_000 + 1)
    assert webhook.ask(pod) is None
    assert not webhook.believed


def test_who_asked_an_operator_that_doesnt_lead_dials_anew(harness: PoolHarness) -> None:
    """Over a connection that the API server keeps, a drain would never reach the one that leads."""
    webhook, pod = Webhook(harness, authenticated=True), harness.busiest()
    assert webhook.answer(pod).keep_alive is not False
    harness.office.tell(Deposed())
    assert "ask again" in str(webhook.ask(pod))
    assert webhook.answer(pod).keep_alive is False
