"""Metadata members are rolled one at a time, the leader last, and only while all are well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.quorum import NAMESPACE, OWNER, Quorum

from anabranch_operator.plan.engine.actions import Announce
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.metadata.members import BEHIND_MAX


def test_standbys_go_first_and_the_leader_last() -> None:
    quorum = Quorum()
    quorum.roll("two")
    quorum.settle()
    assert quorum.deleted() == ["demo-metadata-1", "demo-metadata-2", "demo-metadata-0"]
    assert quorum.revisions() == ["two"] * 3
    told = [each.reason for each in quorum.office.done if isinstance(each, Announce)]
    assert told == ["Rolling", "Rolled"]


def test_members_that_are_as_they_should_be_are_left_alone() -> None:
    quorum = Quorum()
    quorum.office.wait(3_600)
    assert not quorum.office.done


def test_nothing_else_than_a_stateful_set_that_waits_for_deletions_is_rolled() -> None:
    quorum = Quorum(strategy="RollingUpdate")
    quorum.roll("two")
    quorum.settle()
    assert not quorum.office.done


def test_a_status_that_speaks_of_an_older_spec_is_waited_for() -> None:
    quorum = Quorum()
    quorum.kube.edit(OWNER, paused=None)
    quorum.kube.report(OWNER, {"updateRevision": "two", "observedGeneration": 1})
    quorum.office.wait(60)
    assert not quorum.deleted()


def test_a_member_that_isnt_ready_stops_the_roll() -> None:
    quorum = Quorum()
    quorum.broken["demo-metadata-1"] = None
    quorum.roll("two")
    for _ in range(10):
        quorum.step()
    assert quorum.deleted() == ["demo-metadata-1"]
    quorum.broken.clear()
    quorum.settle()
    assert quorum.revisions() == ["two"] * 3


def test_a_member_that_is_far_behind_stops_the_roll() -> None:
    quorum = Quorum()
    quorum.behind = BEHIND_MAX + 1
    quorum.measure()
    quorum.roll("two")
    quorum.settle()
    assert not quorum.deleted()
    quorum.behind = 0
    quorum.settle()
    assert quorum.revisions() == ["two"] * 3


def test_a_group_without_a_leader_isnt_rolled() -> None:
    quorum = Quorum()
    quorum.leader = "nobody"
    quorum.measure()
    quorum.roll("two")
    assert not quorum.deleted()


def test_members_arent_rolled_while_the_log_service_is_away() -> None:
    quorum = Quorum()
    quorum.office.service_away = "it doesn't answer"
    quorum.office.wait(11)
    quorum.roll("two")
    quorum.settle()
    assert not quorum.deleted()
    quorum.office.service_away = None
    quorum.settle()
    assert quorum.revisions() == ["two"] * 3


def test_members_that_crash_are_mended_at_once_by_another_template() -> None:
    quorum = Quorum()
    quorum.crash(0)
    quorum.crash(2)
    quorum.office.service_away = "no leader"
    quorum.office.wait(11)
    quorum.roll("two")
    assert sorted(quorum.deleted()) == ["demo-metadata-0", "demo-metadata-2"]


def test_a_member_alone_is_replaced_all_the_same() -> None:
    quorum = Quorum(replicas=1)
    quorum.roll("two")
    quorum.settle()
    assert quorum.revisions() == ["two"]


def test_a_pause_is_heeded() -> None:
    quorum = Quorum()
    quorum.kube.annotate(OWNER, paused="true")
    quorum.roll("two")
    quorum.settle()
    assert not quorum.deleted()


def test_nobody_is_rolled_while_another_is_to_leave_its_node() -> None:
    quorum = Quorum()
    quorum.evict(quorum.pod(1))
    quorum.roll("two")
    quorum.step()
    assert not quorum.deleted()
    quorum.kube.delete(Ref("Pod", NAMESPACE, "demo-metadata-1"))
    quorum.settle()
    assert quorum.revisions() == ["two"] * 3


OPS = ("step", "step", "roll", "crash", "heal", "kill", "evict", "away", "back", "wait", "restart")


def do(quorum: Quorum, op: str, number: int) -> None:
    pods = quorum.pods()
    match op:
        case "roll":
            quorum.roll(f"revision-{number}")
        case "crash" if pods:
            quorum.crash(number % len(pods))
        case "heal":
            quorum.broken.clear()
        case "kill" if pods:
            quorum.kube.delete(pods[number % len(pods)].ref)
        case "evict" if pods:
            quorum.evict(pods[number % len(pods)])
        case "away" | "back":
            quorum.office.service_away = "no leader" if op == "away" else None
        case "wait":
            quorum.office.wait(number * 60)
        case "restart":
            quorum.office.restart()
        case _:
            quorum.step()
    quorum.office.settle()


@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 9)), max_size=25))
def test_whatever_happens_all_are_rolled_in_the_end(ops: list[tuple[str, int]]) -> None:
    quorum = Quorum()
    for op, number in ops:
        do(quorum, op, number)
    for op in ("back", "heal"):
        do(quorum, op, 0)
    quorum.roll("last")
    quorum.office.wait(180)
    quorum.settle()
    assert quorum.revisions() == ["last"] * 3


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_each_is_replaced_once(replicas: int) -> None:
    quorum = Quorum(replicas)
    quorum.roll("two")
    quorum.settle()
    assert len(quorum.deleted()) == replicas == len(set(quorum.deleted()))
