"""Which rights a request needs: every request has an answer, and none a wrong one."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.unit.described import described

from anabranch.core.bolt.protocol import compactors, messages, scans
from anabranch.core.bolt.protocol.commands import EngineSettings, Receipt
from anabranch.core.bolt.protocol.fronts import FrontEpoch, OpenFront
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.bolt.protocol.rights import needs, subject_of
from anabranch.core.rights.claims import (
    FORKS,
    LOGS,
    POOLS,
    Subject,
    Verb,
    declared,
    subject_named,
)
from anabranch.core.types import Kind, LogId
from anabranch.core.wire.session import Cancel

A, B = LogId(1), LogId(2)
ONCE = b"r"
JOB = compactors.CompactorId(3)
PLAN = scans.PlanId(7)
OWNER = "k8s/shop/Fork/what-if/6f9619ff"
ODD = "k8s/shop/Fork/what-if/6f9619ff/more"
"""Listed among the owners of the namespace shop, and no resource's."""
ELSEWHERE = EngineSettings(addresses=("far:7440",))
BOXED = EngineSettings(black_box="kafka://inside:9092/clicks")
OWNED = Subject(FORKS, "what-if", "shop")


def wanted(message: ClientMessage) -> list[tuple[Any, str]]:
    """Each claim's subject, and its first verb."""
    return [(claim.about, claim.verbs[0].value) for claim in needs(message)]


@pytest.mark.parametrize(
    ("message", "claims"),
    [
        (messages.Append(A, b""), [(A, "append")]),
        (messages.Read(A, 0, 1, 1), [(A, "read")]),
        (messages.Subscribe(A, 0), [(A, "read")]),
        (messages.PositionAt(A, 0), [(A, "read")]),
        (messages.ReadCursors(A), [(A, "read")]),
        (messages.CommitCursor(A, "c", 0, ONCE), [(A, "read")]),
        (messages.DeleteCursor(A, "c", ONCE), [(A, "update")]),
        (messages.Compare(A, B), [(A, "read"), (B, "read")]),
        (messages.Redeem(Receipt(A, 0, 0)), [(A, "append")]),
        (messages.Describe("orders"), [("orders", "get")]),
        (messages.ListLogs(), [(Subject(LOGS), "list")]),
        (messages.ListLogs(owner="k8s/shop/"), [(Subject(LOGS, "", "shop"), "list")]),
        (messages.ListLogs(owner="k8s/sh"), [(Subject(LOGS), "list")]),
        (messages.CreateLog("orders", ONCE), [(Subject(LOGS, "orders"), "create")]),
        (messages.CreateLog("orders", ONCE, owner=OWNER), [(OWNED, "create")]),
        (messages.CreateLog("orders", ONCE, owner=ODD), [(Subject(POOLS), "update")]),
        (
            messages.CreateLog("far", ONCE, engine="belfast", settings=ELSEWHERE),
            [(Subject(LOGS, "far"), "create"), (Subject(POOLS), "update")],
        ),
        (
            messages.CreateLog("boxed", ONCE, engine="erwin", settings=BOXED),
            [(Subject(LOGS, "boxed"), "create"), (Subject(POOLS), "update")],
        ),
        (
            messages.CreateLog("far", ONCE, owner=ODD, engine="belfast", settings=ELSEWHERE),
            [(Subject(POOLS), "update")],
        ),
        (
            messages.CreateLog("near", ONCE, engine="belfast", settings=EngineSettings(2)),
            [(Subject(LOGS, "near"), "create")],
        ),
        (
            messages.SetSettings(A, ELSEWHERE, ONCE),
            [(A, "update"), (Subject(POOLS), "update")],
        ),
        (messages.DeleteLog(A, ONCE), [(A, "delete")]),
        (messages.Squash(A, ONCE), [(A, "delete")]),
        (messages.Fork(A, Kind.SEVERED, ONCE), [(A, "fork")]),
        (messages.Fork(A, Kind.SEVERED, ONCE, owner=OWNER), [(A, "fork"), (OWNED, "create")]),
        (
            messages.Fork(A, Kind.SEVERED, ONCE, owner=ODD),
            [(A, "fork"), (Subject(POOLS), "update")],
        ),
        (messages.Promote(A, ONCE), [(A, "promote")]),
        (messages.PromoteIf(A, ONCE, 3), [(A, "promote")]),
        (messages.Trim(A, 1, ONCE), [(A, "trim")]),
        (messages.Adopt(A, OWNER, ONCE), [(A, "update"), (OWNED, "create")]),
        (messages.Adopt(A, ODD, ONCE), [(A, "update"), (Subject(POOLS), "update")]),
        (messages.Adopt(A, "", ONCE), [(A, "update")]),
        (messages.DrainBroker("b", 1, ONCE), [(Subject(POOLS), "update")]),
        (messages.ForgetBroker("b", 1, ONCE), [(Subject(POOLS), "update")]),
        (
            messages.Guarded("s", 1, messages.Squash(A, ONCE)),
            [(Subject(POOLS), "update"), (A, "delete")],
        ),
        (messages.Order(OpenFront(A, FrontEpoch(1, 0))), [(A, "order")]),
        (scans.PlanScan(A, ONCE, 1), [(A, "read")]),
        (scans.RenewPlan(A, PLAN, 1), [(A, "read")]),
        (scans.EndPlan(A, PLAN), [(A, "read")]),
        (scans.ReadPlan(A, PLAN, 0, 1), [(A, "read")]),
        (scans.SignScan(A, PLAN, []), [(A, "read")]),
        (compactors.RegisterCompactor("job", 1, ONCE), [(Subject(POOLS), "update")]),
        (compactors.RenewCompactor(JOB, 1), [(Subject(POOLS), "update")]),
        (compactors.EndCompactor(JOB), [(Subject(POOLS), "update")]),
        (compactors.ListCompactors(), [(Subject(POOLS), "update")]),
        (compactors.SignCopies(JOB, []), [(Subject(POOLS), "update")]),
        (compactors.TakeCopies(JOB, A, PLAN, 0), [(Subject(POOLS), "update"), (A, "read")]),
        (
            compactors.AdoptCopy(JOB, A, 1, 1, [], []),
            [(Subject(POOLS), "update"), (A, "read")],
        ),
        (scans.ListPlans(), [(Subject(POOLS), "update")]),
        (scans.EraseGarbage(ONCE), [(Subject(POOLS), "update")]),
        (messages.Survey(), []),
        (messages.ListBrokers(), []),
        (messages.Ping(), []),
        (Cancel(1), []),
    ],
    ids=repr,
)
def test_a_request_needs(message: ClientMessage, claims: list[tuple[Any, str]]) -> None:
    assert wanted(message) == claims


def test_no_request_is_without_an_answer() -> None:
    from anabranch.core.bolt.protocol.rights import _NEEDS

    assert set(get_args(ClientMessage)) == set(_NEEDS)


def test_the_page_says_what_every_request_needs(root: Path) -> None:
    page = (root / "docs" / "reference" / "rights.md").read_text()
    requests = page.partition("| request | verb | on |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in requests.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(named) == sorted(kind.__struct_config__.tag for kind in get_args(ClientMessage))


@pytest.mark.parametrize("verb", ["get", "read", "append", "fork", "promote", "trim", "delete"])
def test_whoever_may_do_anything_with_a_log_may_look_it_up(verb: str) -> None:
    (claim,) = needs(messages.Describe(A))
    assert Verb(verb) in claim.verbs


@pytest.mark.parametrize(
    ("owner", "subject"),
    [
        (OWNER, OWNED),
        ("k8s/shop/Log/orders/1", Subject(LOGS, "orders", "shop")),
        ("", None),
        ("somebody", None),
        ("k8s/shop/Fork/what-if", None),
        ("k8s/shop/Secret/what-if/1", None),
        ("k8s//Fork/what-if/1", None),
        ("k8s/shop/Fork//1", None),
        ("k8s/shop/Fork/a/b/1", None),
    ],
)
def test_an_owner_names_the_resource_that_declares_a_log(
    owner: str, subject: Subject | None
) -> None:
    assert declared(owner) == subject


def test_a_log_has_its_rights_where_it_is_declared_else_under_its_own_name() -> None:
    assert subject_of(described(A, "orders", owner=OWNER)) == OWNED
    assert subject_of(described(A, "orders")) == Subject(LOGS, "orders")
    fork = described(A, "orders--try", kind=Kind.CONTINUOUS)
    assert subject_of(fork) == Subject(FORKS, "orders--try")
    assert subject_named("orders") == Subject(LOGS, "orders")
    assert subject_named("orders@try") == Subject(FORKS, "orders@try")
