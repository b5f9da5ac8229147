"""What anybody may write, and anybody may tell the log service, ends no operator."""

from typing import Any

import pytest
from tests.unit.operator.declared import (
    NAMESPACE,
    ORDERS,
    WHAT_IF,
    conditions,
    declare,
    fork,
    log,
    office,
)

from anabranch.core.bolt.protocol import codec, messages
from anabranch.core.bolt.protocol.commands import CreateLog, Description
from anabranch_operator.api import names
from anabranch_operator.api.common import SPAN_MS_MAX, instant, milliseconds
from anabranch_operator.plan.engine.actions import MakeFork
from anabranch_operator.plan.engine.dependencies import ref_of
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.status import stamp
from anabranch_sim.kubernetes.sandbox import Sandbox

OTHER = Ref(names.LOG, NAMESPACE, "other")


@pytest.fixture
def tended() -> Sandbox:
    made = office()
    log(made)
    return made


@pytest.mark.parametrize(
    "time", ["2026-01-01t00:00:00z", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00+01:00"]
)
def test_times_are_read_however_the_api_server_lets_them_be_written(time: str) -> None:
    assert abs(instant(time) - instant("2026-01-01T00:00:00Z")) <= 3_600_000


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99"])
def test_a_time_that_is_none_is_told_and_nothing_else_stands_still(
    tended: Sandbox, time: str
) -> None:
    declare(tended, WHAT_IF, parent={"name": "orders"}, type="Severed", at={"time": time})
    log(tended, OTHER)
    assert conditions(tended.operator.world.logs[OTHER])["Ready"] == ("True", "Serving")
    told = tended.kube.documents[WHAT_IF]["status"]["conditions"]
    assert [(each["type"], each["reason"]) for each in told] == [("Ready", "Invalid")]


@pytest.mark.parametrize("span", ["999999999999d", "999999999999d999999999999d", "9999999d"])
def test_a_time_to_live_longer_than_any_is_still_a_time(tended: Sandbox, span: str) -> None:
    assert milliseconds(span) == SPAN_MS_MAX
    fork(tended, ttl=span)
    (made,) = [each for each in tended.done if isinstance(each, MakeFork)][:1]
    asked: dict[str, Any] = {"ttl_ms": made.ttl_ms, "name": made.name}
    codec.encode_request(1, messages.Fork(made.parent, made.kind, b"", **asked))


def test_what_ends_after_the_last_year_is_said_to_end_with_it() -> None:
    assert stamp(1 << 62) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("owner", ["k8s/", "k8s/demo/Log/orders", "k8s/demo/Log/orders/1/2"])
def test_an_owner_that_looks_like_a_resource_is_nobodys(tended: Sandbox, owner: str) -> None:
    assert ref_of(owner) is None
    made = tended.service.command(CreateLog("strange", owner=owner))
    assert isinstance(made, Description)
    tended.wait(10)
    assert conditions(tended.operator.world.logs[ORDERS])["Ready"] == ("True", "Serving")
