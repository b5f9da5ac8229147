"""Whichever replica a client asks, it is served, or led to whoever serves it, or told why not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.belfast.shard.shard_stage import LEADER, Stage, batch

from anabranch.core.belfast.ledger.decisions import Admit, Arrange, ChangeView, Release
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import (
    Append,
    Elsewhere,
    Hello,
    Inspect,
    Join,
    Leave,
    Subscribe,
    Trim,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits

SHARDS = {"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1",)}
NODES = [node for nodes in SHARDS.values() for node in nodes]
HOPS_MAX = 2


def seated() -> Stage:
    stage = Stage(SHARDS)
    stage.admit(2, 2, 2)
    return stage


def alive(stage: Stage) -> list[int]:
    return [each.id for each in stage.ledger.members.values() if each.standing is Standing.SEATED]


def perform(stage: Stage, what: str, shard: int) -> None:
    """One decision of the sequencers, if it is one that they could make."""
    member = stage.ledger.members[shard]
    nodes = SHARDS[member.name]
    match what:
        case "arrange" if member.standing is Standing.SEATED:
            primary = nodes[member.epoch % len(nodes)]
            epoch = member.epoch + 1
            stage.decide(Arrange(shard=shard, epoch=epoch, primary=primary, replicas=nodes))
        case "fail" if member.standing is Standing.SEATED and len(alive(stage)) > 1:
            stand_in = min(each for each in alive(stage) if each != shard)
            view = stage.ledger.view + 1
            stage.decide(ChangeView(view=view, failed=(shard,), stand_in=stand_in))
        case "back" if member.standing is Standing.FAILED:
            stage.decide(Admit(member.name, nodes, 2))
        case _:
            pass
    stage.sleep(1)


def led_to(stage: Stage, node: str, message: Append | Subscribe) -> str | None:
    """Where a client ends that asks this node and follows whom it is sent to; None: nowhere."""
    for _ in range(HOPS_MAX + 1):
        token = stage.ask(node, message)
        answers = stage.answers.get(token, [])
        if not answers or not isinstance(answers[0], Elsewhere):
            return None if answers and isinstance(answers[0], Refused) else node
        if not answers[0].node:
            return None
        node = answers[0].node
    raise AssertionError(f"sent on and on, to {node} at last")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["arrange", "arrange", "fail", "back"]), st.integers(0, 2)),
        min_size=4,
        max_size=10,
    )
)
def test_a_client_is_led_to_who_serves_the_shard(steps: list[tuple[str, int]]) -> None:
    stage = seated()
    for what, shard in steps:
        perform(stage, what, shard)
    ledger = stage.ledger
    for member in ledger.members.values():
        failed = member.standing is Standing.FAILED
        server = ledger.members[member.stand_in] if failed else member
        for node in NODES:
            subscribe = Subscribe(member.name, ledger.confirmed)
            assert led_to(stage, node, subscribe) == server.primary
        for node in SHARDS[member.name]:
            ends = led_to(stage, node, Append(batch("v")))
            assert ends == (None if failed else member.primary)


@pytest.mark.parametrize(
    "message", [Trim(0), Leave("a"), Join("a"), Inspect()], ids=lambda each: type(each).__name__
)
def test_what_only_the_leader_knows_is_asked_of_the_leader(message: object) -> None:
    stage = seated()
    for node in NODES:
        assert stage.answer(stage.ask(node, message)) == Elsewhere(LEADER)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Hello(1, "cluster", "client"), "bad-request"),
        ("nothing that is known", "bad-request"),
        (Trim(-1), "bad-request"),
        (Subscribe("", 0), "bad-request"),
        (Subscribe("nobody", 0), "unknown-shard"),
        (Append(b"no batch"), "corrupt-batch"),
        (Append(batch("v")[:-1]), "corrupt-batch"),
    ],
    ids=["hello", "unknown", "position", "name", "shard", "bytes", "cut"],
)
def test_what_cannot_be_is_refused_and_changes_nothing(message: object, code: str) -> None:
    stage = seated()
    machine = stage.nodes["a1"].machine
    refused = stage.answer(stage.ask("a1", message))
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert (machine.replica.log.last, machine.counters.refused) == (0, 1)


def test_a_batch_beyond_the_limits_is_refused() -> None:
    stage = Stage(SHARDS, limits=Limits(batch_records_max=2))
    stage.admit(2, 2, 2)
    refused = stage.answer(stage.append("a1", "v0", "v1", "v2"))
    assert isinstance(refused, Refused)
    assert stage.waits(stage.append("a1", "v0", "v1"))


def test_a_shard_that_leaves_takes_what_its_windows_have_room_for() -> None:
    """Ten rounds of two, and no window after that."""
    stage = seated()
    stage.decide(Release(0))
    assert stage.waits(stage.append("a1", *(f"v{nth}" for nth in range(15))))
    late = stage.answer(stage.append("a1", *(f"w{nth}" for nth in range(6))))
    assert isinstance(late, Refused)
    assert late.code == "shard-left"
    assert stage.waits(stage.append("a1", *(f"x{nth}" for nth in range(5))))


def test_a_batch_that_a_shard_took_before_it_left_is_answered_again() -> None:
    stage = seated()
    first = stage.append("a1", "v0", "v1", producer=7)
    stage.decide(Release(0))
    for node in ("b1", "c1"):
        stage.append(node, *(f"{node}-{nth}" for nth in range(20)))
    stage.sleep(20)
    stage.cut(0, 10)
    assert stage.ledger.members[0].standing is Standing.LEFT
    again = stage.append("a1", "v0", "v1", producer=7)
    assert stage.positions(again) == stage.positions(first)


def test_whoever_stops_takes_no_more_appends_and_serves_subscribers_on() -> None:
    stage = seated()
    waiting = stage.append("a1", "v0")
    stage.drain("a1")
    refused = stage.answer(stage.append("a1", "v1"))
    assert isinstance(refused, Refused)
    assert refused.code == "shard-away"
    assert stage.waits(waiting)
    reader = stage.subscribe("a1", "a")
    assert [value for _, value, _ in stage.delivered(reader)] == ["v0"]
