"""Metadata members are rolled one at a time, the leader last, and only while all are well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.metadata_members import NAMESPACE, OWNER, MembersHarness

from anabranch_operator.plan.engine.actions import Announce
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.metadata.members import BEHIND_MAX


def test_standbys_go_first_and_the_leader_last() -> None:
    members = MembersHarness()
    members.roll("two")
    members.settle()
    assert members.deleted() == ["demo-metadata-1", "demo-metadata-2", "demo-metadata-0"]
    assert members.revisions() == ["two"] * 3
    told = [each.reason for each in members.office.done if isinstance(each, Announce)]
    assert told == ["Rolling", "Rolled"]


def test_members_that_are_as_they_should_be_are_left_alone() -> None:
    members = MembersHarness()
    members.office.wait(3_600)
    assert not members.office.done


def test_nothing_else_than_a_stateful_set_that_waits_for_deletions_is_rolled() -> None:
    members = MembersHarness(strategy="RollingUpdate")
    members.roll("two")
    members.settle()
    assert not members.office.done


def test_a_status_that_speaks_of_an_older_spec_is_waited_for() -> None:
    members = MembersHarness()
    members.kube.edit(OWNER, paused=None)
    members.kube.report(OWNER, {"updateRevision": "two", "observedGeneration": 1})
    members.office.wait(60)
    assert not members.deleted()


def test_a_member_that_isnt_ready_stops_the_roll() -> None:
    members = MembersHarness()
    members.broken["demo-metadata-1"] = None
    members.roll("two")
    for _ in range(10):
        members.step()
    assert members.deleted() == ["demo-metadata-1"]
    members.broken.clear()
    members.settle()
    assert members.revisions() == ["two"] * 3


def test_a_member_that_is_far_behind_stops_the_roll() -> None:
    members = MembersHarness()
    members.behind = BEHIND_MAX + 1
    members.measure()
    members.roll("two")
    members.settle()
    assert not members.deleted()
    members.behind = 0
    members.settle()
    assert members.revisions() == ["two"] * 3


def test_a_group_without_a_leader_isnt_rolled() -> None:
    members = MembersHarness()
    members.leader = "nobody"
    members.measure()
    members.roll("two")
    assert not members.deleted()


def test_members_arent_rolled_while_the_log_service_is_away() -> None:
    members = MembersHarness()
    members.office.service_away = "it doesn't answer"
    members.office.wait(11)
    members.roll("two")
    members.settle()
    assert not members.deleted()
    members.office.service_away = None
    members.settle()
    assert members.revisions() == ["two"] * 3


def test_members_that_crash_are_mended_at_once_by_another_template() -> None:
    members = MembersHarness()
    members.crash(0)
    members.crash(2)
    members.office.service_away = "no leader"
    members.office.wait(11)
    members.roll("two")
    assert sorted(members.deleted()) == ["demo-metadata-0", "demo-metadata-2"]


def test_a_member_alone_is_replaced_all_the_same() -> None:
    members = MembersHarness(replicas=1)
    members.roll("two")
    members.settle()
    assert members.revisions() == ["two"]


def test_a_pause_is_heeded() -> None:
    members = MembersHarness()
    members.kube.annotate(OWNER, paused="true")
    members.roll("two")
    members.settle()
    assert not members.deleted()


def test_nobody_is_rolled_while_another_is_to_leave_its_node() -> None:
    members = MembersHarness()
    members.evict(members.pod(1))
    members.roll("two")
    members.step()
    assert not members.deleted()
    members.kube.delete(Ref("Pod", NAMESPACE, "demo-metadata-1"))
    members.settle()
    assert members.revisions() == ["two"] * 3


OPS = ("step", "step", "roll", "crash", "heal", "kill", "evict", "away", "back", "wait", "restart")


def do(members: MembersHarness, op: str, number: int) -> None:
    pods = members.pods()
    match op:
        case "roll":
            members.roll(f"revision-{number}")
        case "crash" if pods:
            members.crash(number % len(pods))
        case "heal":
            members.broken.clear()
        case "kill" if pods:
            members.kube.delete(pods[number % len(pods)].ref)
        case "evict" if pods:
            members.evict(pods[number % len(pods)])
        case "away" | "back":
            members.office.service_away = "no leader" if op == "away" else None
        case "wait":
            members.office.wait(number * 60)
        case "restart":
            members.office.restart()
        case _:
            members.step()
    members.office.settle()


@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 9)), max_size=25))
def test_whatever_happens_all_are_rolled_in_the_end(ops: list[tuple[str, int]]) -> None:
    members = MembersHarness()
    for op, number in ops:
        do(members, op, number)
    for op in ("back", "heal"):
        do(members, op, 0)
    members.roll("last")
    members.office.wait(180)
    members.settle()
    assert members.revisions() == ["last"] * 3


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_each_is_replaced_once(replicas: int) -> None:
    members = MembersHarness(replicas)
    members.roll("two")
    members.settle()
    assert len(members.deleted()) == replicas == len(set(members.deleted()))
