"""What the operator's own log says of a reconciliation, and what is counted of it."""

import asyncio
import io
import json

from anabranch.core.types import Nanoseconds
from anabranch.shell.telemetry.log import Log, LogFormat
from anabranch_operator.handlers.driver import Driver
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.engine.actions import Action, Apply, Plan
from anabranch_operator.plan.engine.events import (
    FORBIDDEN,
    Elected,
    Listed,
    Outcome,
    Refusal,
    Seen,
    Unseen,
    Visit,
    Visited,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.engine.world import Surroundings

AT: Nanoseconds = 1_800_000_000_000_000_000
ORDERS = Ref("Log", "demo", "orders")
WANTED = Apply(ref=Ref("Service", "demo", "log-orders"), manifest={})


async def refuse(_: Action) -> Outcome:
    return Refusal(FORBIDDEN, "no right to patch services")


async def look() -> Unseen:
    return Unseen("nobody answers")


async def visit(asked: Visit) -> Visited:
    return Visited(asked.ref, asked.uid, why="nobody answers")


def told(planner: Planner) -> tuple[list[dict[str, object]], str]:
    """The lines and the figures of one reconciliation."""
    lines = io.StringIO()

    async def run() -> str:
        around = Surroundings(namespace="demo", release="demo")
        machine = Operator(around, {"Log": planner}, ["Log"])
        metrics = Metrics(machine, lambda: AT, lambda: 0.0)
        log = Log(lambda: AT, LogFormat.JSON, lines)
        driver = Driver(
            machine,
            lambda: AT,
            log,
            metrics,
            perform=refuse,
            look=look,
            visit=visit,
            evict=lambda uid: None,
        )
        driver.give(Listed("Log"))
        driver.give(Seen(Observed(ref=ORDERS, uid="u", version=7, generation=3)))
        driver.give(Elected(1))
        for _ in ("look", "what is wanted"):
            await driver.drain(60)
        driver.stop()
        return metrics.page().decode()

    page = asyncio.run(run())
    return [json.loads(line) for line in lines.getvalue().splitlines()], page


def test_what_was_refused_is_told_with_whose_and_which_reconciliation() -> None:
    (line,), page = told(lambda *_: Plan((WANTED,)))
    assert line["reconcile"] == 1
    assert (line["kind"], line["object"], line["generation"]) == ("Log", "demo/orders", 3)
    assert line["step"] == "Apply: no right to patch services"
    assert 'reconcile_total{kind="Log",result="failed"} 1.0' in page


def test_what_cant_be_planned_counts_as_failed() -> None:
    def planner(*_: object) -> Plan:
        raise ValueError("a shape that nobody thought of")

    (line,), page = told(planner)
    assert (line["reconcile"], line["result"]) == (1, "failed")
    assert "a shape that nobody thought of" in str(line["step"])
    assert 'reconcile_total{kind="Log",result="failed"} 1.0' in page
