"""Scan plans at a broker: what is asked once, which slices are signed (decision 75)."""

from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.protocol.commands import LogQuota
from anabranch.core.bolt.protocol.letters import Applied, QueryAnswer
from anabranch.core.bolt.protocol.queries import FoundPlan, PlanPage, Slice
from anabranch.core.bolt.protocol.scans import (
    SIGNED_SLICES_MAX,
    BeginPlan,
    EndPlan,
    FindPlan,
    Plan,
    PlanId,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SealedSlice,
    SignScan,
)
from anabranch.core.errors import NotFetchable, PlanEnded
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Gone,
    RangesSigned,
    Received,
    Reply,
    Request,
    Send,
    SignFailed,
    SignRanges,
)
from anabranch.core.quota import Quota
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId

LOG = LogId(7)
SECRET = b"sixteen secrets!"
A, B = object_id(1, 1), object_id(1, 2)
PLAN = Plan(PlanId(5), LOG, "orders", 0, 9, 0, 9, 100, 900, "me")


class Stage:
    """A broker, what it asks of the metadata, and what it has signed."""

    def __init__(self, life: bytes = b"a life") -> None:
        self.broker = Broker("b", "cluster", Limits(), life=life)
        self.token = 0
        self.replies: list[Any] = []
        self.asked: list[Any] = []
        self.signs: list[SignRanges] = []
        self.take(self.broker.start(1))
        self.asked.clear()

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send(_, message):
                    self.asked.append(message)
                case Reply(_, message):
                    self.replies.append(message)
                case SignRanges():
                    self.signs.append(effect)
                case _:
                    pass

    def request(self, message: object) -> None:
        self.token += 1
        self.take(self.broker.step(2, Request(self.token, message)))

    def told(self, answer: Any) -> Any:
        """The question, which gets this answer."""
        question = self.asked.pop()
        kind = Applied if hasattr(question, "command") else QueryAnswer
        self.take(self.broker.step(2, Received("metadata", kind(question.token, answer))))
        return question

    def page(self, *slices: Slice) -> PlanPage:
        self.request(ReadPlan(LOG, PLAN.id, 0, 10))
        self.told(PlanPage([*slices], 9, secret=SECRET))
        return self.replies.pop()

    def sign(self, *slices: SealedSlice, found: Any = None) -> None:
        self.request(SignScan(LOG, PLAN.id, [*slices]))
        self.told(FoundPlan(PLAN, SECRET) if found is None else found)


def piece(object: int, offset: int, length: int) -> Slice:
    return Slice(0, 1, object, offset, length, 0, LOG, 0)  # type: ignore[arg-type]


def sealed(page: PlanPage) -> list[SealedSlice]:
    seals = [page.seals[at : at + 8] for at in range(0, len(page.seals), 8)]
    return [
        SealedSlice(each.object, each.offset, each.length, int.from_bytes(seal))
        for each, seal in zip(page.slices, seals, strict=True)
    ]


def test_a_scan_is_planned_once_under_an_id_that_nobody_can_guess() -> None:
    commands: list[BeginPlan] = []
    for life in (b"one", b"one", b"other"):
        stage = Stage(life)
        for _ in range(2):
            stage.request(PlanScan(LOG, b"a request of 16!", 1_000, 2, 5, True, "me"))
            proposal = stage.told(PLAN)
            assert proposal.request == b"a request of 16!"
            commands.append(proposal.command)
            assert stage.replies.pop() == PLAN
    first = commands[0]
    assert (first.log, first.lease_ms, first.start, first.end) == (LOG, 1_000, 2, 5)
    assert (first.speculative, first.by, len(first.secret)) == (True, "me", 16)
    assert len({each.plan for each in commands}) == len({each.secret for each in commands}) == 4
    assert all(0 < each.plan < 1 << 63 for each in commands)


def test_a_request_without_an_id_is_refused() -> None:
    stage = Stage()
    stage.request(PlanScan(LOG, b"", 1_000))
    assert stage.replies.pop().code == "bad-request"
    assert not stage.asked


@pytest.mark.parametrize("message", [RenewPlan(LOG, PLAN.id, 5), EndPlan(LOG, PLAN.id)])
def test_what_may_be_repeated_is_handed_on_as_it_is(message: Any) -> None:
    stage = Stage()
    stage.request(message)
    proposal = stage.told(Refused.of(PlanEnded("5", "orders", "why")))
    assert (proposal.request, proposal.command) == (b"", message)
    assert stage.replies.pop().code == "plan-ended"


def test_no_client_sees_the_secret_and_slices_of_pages_are_signed_joined() -> None:
    stage = Stage()
    page = stage.page(piece(A, 0, 10), piece(A, 10, 5), piece(A, 20, 5), piece(B, 25, 5))
    assert page.secret == b""
    stage.sign(*sealed(page))
    (signs,) = stage.signs
    assert signs.ranges == [(A, 0, 15), (A, 20, 5), (B, 25, 5)], "in a gap lies another log"
    assert signs.valid_ms == Limits().signed_url_ms
    stage.take(stage.broker.step(3, RangesSigned(signs.token, ["x", "y", "z"])))
    reply = stage.replies.pop()
    assert [(each.object, each.offset, each.length, each.url) for each in reply.ranges] == [
        (A, 0, 15, "x"),
        (A, 20, 5, "y"),
        (B, 25, 5, "z"),
    ]
    assert (stage.broker.counters.signed, stage.broker.counters.signed_bytes) == (3, 25)


@pytest.mark.parametrize(
    "change",
    [
        {"object": B},
        {"offset": 0},
        {"length": 11},
        {"seal": 1},
        {"seal": -1},
        {"seal": 1 << 64},
        {"length": -1},
        {"object": 1 << 64},
    ],
)
def test_nothing_is_signed_that_no_page_of_the_plan_named(change: dict[str, int]) -> None:
    stage = Stage()
    good, other = sealed(stage.page(piece(A, 0, 5), piece(A, 5, 10)))
    stage.sign(good, replace(other, **change))
    assert stage.replies.pop().code == "not-sealed"
    stage.sign(other, found=FoundPlan(PLAN, b"another plan's !"))
    assert stage.replies.pop().code == "not-sealed"
    assert not stage.signs


def test_a_plan_that_has_ended_or_a_store_that_nobody_reaches_signs_nothing() -> None:
    stage = Stage()
    (one,) = sealed(stage.page(piece(A, 0, 5)))
    stage.sign(one, found=Refused.of(PlanEnded("5", "orders", "why")))
    assert stage.replies.pop().code == "plan-ended"
    stage.request(SignScan(LOG, PLAN.id, [one] * (SIGNED_SLICES_MAX + 1)))
    assert stage.replies.pop().code == "bad-request"
    stage.sign(one)
    failed = SignFailed(stage.signs.pop().token, NotFetchable("it keeps them in memory"))
    stage.take(stage.broker.step(3, failed))
    assert stage.replies.pop().code == "not-fetchable"
    stage.sign(one)
    stage.take(stage.broker.step(3, Gone([stage.token])))
    stage.take(stage.broker.step(3, RangesSigned(stage.signs.pop().token, ["x"])))
    assert not stage.replies, "nobody waits for it any more"


def test_what_is_signed_counts_as_read() -> None:
    stage = Stage()
    (one,) = sealed(stage.page(piece(A, 0, 5_000)))
    quota = LogQuota(LOG, "orders", Quota(read_bytes_per_s=1_000, burst_ms=1_000))
    found = FoundPlan(PLAN, SECRET, [quota])
    stage.sign(one, found=found)
    stage.sign(one, found=found)
    assert len(stage.signs) == 1
    assert stage.replies.pop().code == "quota-exceeded"


def test_the_question_behind_signing_is_about_the_plan_alone() -> None:
    stage = Stage()
    (one,) = sealed(stage.page(piece(A, 0, 5)))
    stage.request(SignScan(LOG, PLAN.id, [one]))
    assert stage.asked.pop().query == FindPlan(LOG, PLAN.id)
