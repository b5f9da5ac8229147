"""What a broker hands on, and receipts that it redeems."""

from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.bolt.protocol import commands, messages, queries
from anabranch.core.bolt.protocol.commands import Done, EngineSettings, Promotion, Receipt
from anabranch.core.bolt.protocol.letters import Propose
from anabranch.core.bolt.protocol.marks import CompleteVersion
from anabranch.core.bolt.protocol.messages import Redeem
from anabranch.core.bolt.protocol.queries import ResolveReceipt, Settled
from anabranch.core.bolt.protocol.scans import BeginPlan, PlanScan
from anabranch.core.errors import ReceiptPending, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Gone, Send
from anabranch.core.types import Kind, LogId

ID = b"sixteen bytes id"
LOG = LogId(7)
FAR = EngineSettings(2, 3, 3, ("a:1", "b:2"), "there")
PENDING = Refused.of(ReceiptPending("orders", "orders--try"))

COMMANDS = [
    (messages.CreateLog("a", ID, "me", "why"), commands.CreateLog("a", "me", "why")),
    (messages.DeleteLog(LOG, ID, True), commands.DeleteLog(LOG, True)),
    (
        messages.Fork(LOG, Kind.SEVERED, ID, "f", past=3, by="me", why="why"),
        commands.ForkLog(LOG, Kind.SEVERED, "f", past=3, by="me", why="why"),
    ),
    (
        messages.Fork(LOG, Kind.CONTINUOUS, ID, promotable=True, ttl_ms=5),
        commands.ForkLog(LOG, Kind.CONTINUOUS, promotable=True, ttl_ms=5),
    ),
    (messages.Promote(LOG, ID), commands.Promote(LOG)),
    (messages.PromoteIf(LOG, ID, 4), commands.PromoteIf(LOG, 4)),
    (messages.Squash(LOG, ID, "me"), commands.Squash(LOG, "me")),
    (messages.Trim(LOG, 4, ID), commands.Trim(LOG, 4)),
    (messages.CommitCursor(LOG, "c", 5, ID), commands.CommitCursor(LOG, "c", 5)),
    (messages.DeleteCursor(LOG, "c", ID), commands.DeleteCursor(LOG, "c")),
    (messages.CreateLog("a", ID, owner="o"), commands.CreateLog("a", owner="o")),
    (
        messages.Fork(LOG, Kind.CONTINUOUS, ID, owner="o"),
        commands.ForkLog(LOG, Kind.CONTINUOUS, owner="o"),
    ),
    (messages.Adopt(LOG, "o", ID), commands.Adopt(LOG, "o")),
    (
        messages.CreateLog("a", ID, engine="belfast", settings=FAR),
        commands.CreateLog("a", engine="belfast", settings=FAR),
    ),
    (messages.SetSettings(LOG, FAR, ID), commands.SetSettings(LOG, FAR)),
    (
        messages.SetSettings(LOG, replace(FAR, embedded=True), ID),
        commands.SetSettings(LOG, FAR),
    ),
    (messages.DrainBroker("c", 4, ID), commands.DrainBroker("c", 4)),
    (messages.ForgetBroker("c", 4, ID), commands.ForgetBroker("c", 4)),
    (
        messages.Guarded("s", 3, messages.Squash(LOG, ID, "me")),
        commands.Guarded("s", 3, commands.Squash(LOG, "me")),
    ),
]

QUESTIONS = [
    (messages.Describe("orders"), queries.Describe("orders")),
    (messages.ListLogs("o", "orders", "p", 9), queries.ListLogs("o", "orders", "p", 9)),
    (messages.ListLogs(owner="o"), queries.ListLogs(owner="o")),
    (messages.ListLogs(engine="belfast"), queries.ListLogs(engine="belfast")),
    (messages.ReadCursors(LOG), queries.ReadCursors(LOG)),
    (messages.Compare(LOG, LogId(8)), queries.Compare(LOG, LogId(8))),
    (messages.PositionAt(LOG, 99), queries.PositionAt(LOG, 99)),
    (messages.Survey(), queries.Survey()),
]


@pytest.mark.parametrize(("message", "command"), COMMANDS)
def test_a_command_goes_on_under_the_clients_request_id(
    stage: Any, message: Any, command: Any
) -> None:
    stage.request(1, message)
    proposal: Propose = stage.proposed(type(command))
    assert (proposal.request, proposal.command) == (ID, command)
    outcome = Promotion("orders", 3, 4, [])
    stage.apply(proposal, outcome)
    stage.apply(proposal, Done())
    assert stage.replies == [(1, outcome)]


@pytest.mark.parametrize("settings", [None, EngineSettings(2, embedded=True)])
def test_a_log_of_another_engine_that_nobody_runs_is_refused(stage: Any, settings: Any) -> None:
    create = messages.CreateLog("a", ID, engine="belfast", settings=settings)
    stage.request(1, create)
    stage.request(2, messages.Guarded("s", 1, create))
    assert stage.codes() == [(1, "engine-not-served"), (2, "engine-not-served")]
    assert not stage.pending(commands.CreateLog)


@pytest.mark.parametrize(
    ("others", "asked", "kept"),
    [
        (OtherEngines.THIS_PROCESS, None, EngineSettings(embedded=True)),
        (OtherEngines.THIS_PROCESS, EngineSettings(2, 3), EngineSettings(2, 3, embedded=True)),
        (OtherEngines.THIS_PROCESS, replace(FAR, embedded=True), FAR),
        (OtherEngines.SUPERVISOR, EngineSettings(2, embedded=True), EngineSettings(2)),
        (OtherEngines.SUPERVISOR, None, EngineSettings(1, 2, 3)),
        (OtherEngines.SUPERVISOR, EngineSettings(4, 0, 1), EngineSettings(4, 2, 1)),
        (OtherEngines.SUPERVISOR, replace(FAR, replicas=0), replace(FAR, replicas=1)),
        (OtherEngines.THIS_PROCESS, EngineSettings(2, 0, 0), EngineSettings(2, embedded=True)),
        (OtherEngines.NOBODY, replace(FAR, sequencers=0), replace(FAR, sequencers=1)),
    ],
)
def test_a_log_is_embedded_where_its_broker_runs_it_and_has_replicas_where_they_help(
    stage_of: Any, others: OtherEngines, asked: EngineSettings | None, kept: EngineSettings
) -> None:
    stage = stage_of(others=others)
    stage.request(1, messages.CreateLog("a", ID, engine="belfast", settings=asked))
    proposal: Propose = stage.proposed(commands.CreateLog)
    assert proposal.command == commands.CreateLog("a", engine="belfast", settings=kept)


@pytest.mark.parametrize(("message", "query"), QUESTIONS)
def test_a_question_goes_on_and_its_answer_comes_back(stage: Any, message: Any, query: Any) -> None:
    stage.request(1, message)
    refused = Refused.of(UnknownLog("orders"))
    assert stage.answer(refused, type(query)) == query
    assert stage.replies == [(1, refused)]


@pytest.mark.parametrize("id", [b"", bytes(65)], ids=["none", "long"])
def test_a_request_id_that_cannot_be_one_is_refused(stage: Any, id: bytes) -> None:
    stage.request(1, messages.Promote(LOG, id))
    stage.request(2, messages.Guarded("s", 1, messages.Promote(LOG, id)))
    assert stage.codes() == [(1, "bad-request"), (2, "bad-request")]
    assert not stage.pending(commands.Promote)
    assert not stage.pending(commands.Guarded)


@pytest.mark.parametrize(
    "message",
    [
        CompleteVersion(LOG, "w", 1, [(part, 1) for part in range(200_000)], ID),
        messages.CreateLog("a", ID, "me", "why" * 200_000),
        PlanScan(LOG, ID, 9, by="me" * 300_000),
    ],
    ids=["parts", "why", "by"],
)
def test_a_command_that_is_too_large_is_never_journaled(stage: Any, message: Any) -> None:
    stage.request(1, message)
    assert stage.codes() == [(1, "bad-request")]
    for kind in (CompleteVersion, commands.CreateLog, BeginPlan):
        assert not stage.pending(kind)


def test_a_version_may_have_as_many_parts_as_a_log_remembers(stage: Any) -> None:
    parts = [((1 << 31) - 1 - part, (1 << 31) - 1) for part in range(Limits().writer_parts_max)]
    stage.request(1, CompleteVersion(LOG, "w" * 200, 1, parts, ID))
    assert stage.proposed(CompleteVersion).command.parts == parts


def test_a_broker_that_somebody_drains_goes_on_serving(stage: Any) -> None:
    """It isn't told; clients are, when they ask who serves a log, and nobody is refused."""
    stage.request(1, messages.DrainBroker("b", 1, ID))
    stage.apply(stage.proposed(commands.DrainBroker), Done())
    assert stage.replies == [(1, Done())]
    stage.append(2)
    stage.turn()
    stage.put()
    stage.apply(stage.proposed(commands.CommitObject), commands.Committed([5]))
    assert stage.replies[-1] == (2, messages.Appended(5))


def test_a_message_that_is_not_for_a_broker_is_refused(stage: Any) -> None:
    stage.request(1, messages.Hello(1, "me"))
    assert stage.codes() == [(1, "bad-request")]


def test_a_lost_command_is_repeated_as_it_was(stage: Any) -> None:
    stage.request(1, messages.Promote(LOG, ID))
    stage.wait(3_000)
    first, again = stage.pending(commands.Promote)
    assert first == again


def test_a_receipt_that_is_settled_is_redeemed(stage: Any) -> None:
    receipt = Receipt(LOG, 1, 10)
    stage.request(1, Redeem(receipt))
    assert stage.answer(Settled("orders", 12), ResolveReceipt).receipt == receipt
    assert stage.replies == [(1, Settled("orders", 12))]


def test_a_pending_receipt_is_refused_if_nobody_waits(stage: Any) -> None:
    stage.request(1, Redeem(Receipt(LOG, 1, 10)))
    stage.answer(PENDING, ResolveReceipt)
    assert stage.replies == [(1, PENDING)]


def test_a_waiting_receipt_is_asked_about_when_a_decision_may_have_come(stage: Any) -> None:
    stage.request(1, Redeem(Receipt(LOG, 1, 10), 900))
    stage.answer(PENDING, ResolveReceipt)
    stage.moved(20, 5)
    stage.moved(21, 5)
    assert not stage.pending(ResolveReceipt), "a longer tail decides nothing"
    stage.moved(24, 13, generation=2)
    stage.answer(PENDING, ResolveReceipt)
    stage.moved(25, 13, generation=2)
    assert not stage.pending(ResolveReceipt), "an answer that is no news isn't asked for again"
    stage.moved(25, 25, generation=2)
    stage.answer(Settled("orders", 12), ResolveReceipt)
    assert stage.replies == [(1, Settled("orders", 12))]


def test_a_receipt_of_a_log_that_is_gone_is_asked_about_every_so_often(stage: Any) -> None:
    stage.request(1, Redeem(Receipt(LOG, 1, 10), 2_500))
    stage.answer(PENDING, ResolveReceipt)
    stage.moved(0, ended=Refused("promoted", "it was promoted", {}))
    for _ in range(2):
        assert not stage.pending(ResolveReceipt)
        stage.wait(1_000)
        stage.answer(PENDING, ResolveReceipt)
    assert not stage.replies
    stage.wait(500)
    assert stage.replies == [(1, PENDING)]


def test_nobody_is_told_who_has_left(stage: Any) -> None:
    stage.request(1, messages.Promote(LOG, ID))
    stage.request(2, Redeem(Receipt(LOG, 1, 10), 900))
    stage.tell(Gone((1, 2)))
    stage.apply(stage.proposed(commands.Promote), Done())
    stage.answer(PENDING, ResolveReceipt)
    stage.wait(5_000)
    assert not stage.replies
    assert stage.broker.gauges().waits == 0


def test_an_answer_to_an_earlier_life_is_nobodys() -> None:
    """It may be held on its way for as long as it takes to die and come back."""
    tokens: dict[bytes, set[int]] = {}
    for life in (b"one life", b"another"):
        broker = Broker("b", "cluster", Limits(), life=life)
        sent = [effect.message for effect in broker.start(1) if isinstance(effect, Send)]
        tokens[life] = {message.token for message in sent}
    assert tokens[b"one life"].isdisjoint(tokens[b"another"])
