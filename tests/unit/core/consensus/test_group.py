"""Whom a member has heard of lately, against a list of when it heard of whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.group import ConsensusConfig, ConsensusTiming, Group
from anabranch.core.consensus.letters import Entry, Vote
from anabranch.core.machine import Effect, Persist, Send
from anabranch.core.types import MS

MEMBERS = ("a", "b", "c", "d", "e")
TIMING = ConsensusTiming(heartbeat_ms=10, election_ms=100)


def group(*members: str) -> tuple[Group, Alarms, list[Effect]]:
    effects: list[Effect] = []
    alarms = Alarms(effects)
    alarms.now = 1_000 * MS
    config = ConsensusConfig(node="a", members=members or MEMBERS, no_op=b"", timing=TIMING)
    return Group(config, effects, alarms), alarms, effects


@given(st.lists(st.tuples(st.sampled_from(["wait", "away", *MEMBERS[1:]]), st.integers(0, 130))))
def test_who_wrote_within_an_elections_time_is_reachable(steps: list[tuple[str, int]]) -> None:
    """Time in which the member itself didn't run counts against nobody."""
    tried, alarms, _ = group()
    silent_ms: dict[str, int] = {}
    for what, ms in steps:
        match what:
            case "wait":
                alarms.now += ms * MS
                silent_ms = {each: silence + ms for each, silence in silent_ms.items()}
            case "away":
                alarms.now += ms * MS
                tried.was_away(ms * MS)
            case _:
                tried.heard(what)
                silent_ms[what] = 0
        near = {"a", *(each for each, silence in silent_ms.items() if silence < 100)}
        assert tried.reachable == tuple(each for each in MEMBERS if each in near)


@given(st.lists(st.tuples(st.sampled_from(["wait", "away", "letter"]), st.integers(0, 130))))
def test_a_member_is_led_while_its_leader_writes(steps: list[tuple[str, int]]) -> None:
    tried, alarms, _ = group()
    assert not tried.is_led
    silence_ms: int | None = None
    for what, ms in steps:
        if what == "letter":
            tried.leader, tried.led_at = "b", alarms.now
            silence_ms = 0
        else:
            alarms.now += ms * MS
            if what == "away":
                tried.was_away(ms * MS)
            elif silence_ms is not None:
                silence_ms += ms
        assert tried.is_led == (silence_ms is not None and silence_ms < 100)


def test_a_leader_is_led_by_itself_however_long() -> None:
    tried, alarms, _ = group()
    tried.leader = "a"
    alarms.now += 10_000 * MS
    assert tried.is_led


@pytest.mark.parametrize(("members", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_two_majorities_have_a_member_in_common(members: int, majority: int) -> None:
    tried, _, _ = group(*MEMBERS[:members])
    assert tried.majority == majority
    assert 2 * majority > members


@given(st.lists(st.integers(0, 8), max_size=8))
def test_the_owner_is_told_of_every_entry_once_and_in_order(commits: list[int]) -> None:
    tried, _, _ = group()
    told: list[tuple[int, bytes]] = []
    tried.on_commit = lambda index, content: told.append((index, content))
    for nth in range(8):
        tried.log.append(Entry(1, b"%d" % nth))
    for upto in commits:
        tried.commit(upto)
    assert tried.committed == max(commits, default=0)
    assert told == [(nth + 1, b"%d" % nth) for nth in range(tried.committed)]


def test_a_promise_is_sent_when_what_it_rests_on_is_durable() -> None:
    tried, _, effects = group()
    vote = Vote(3, granted=True, probing=False, fresh=True)
    tried.disk.cast(3, "b")
    tried.pledge("b", vote)
    tried.disk.settle()
    assert [type(each) for each in effects] == [Persist]
    tried.disk.persisted(1)
    assert effects[1:] == [Send("b", vote)]
    tried.pledge("c", vote)
    assert effects[2:] == [Send("c", vote)], "there is nothing to wait for"


@pytest.mark.parametrize(
    ("node", "members"), [("z", ("a", "b")), ("a", ("a", "a", "b"))], ids=["absent", "twice"]
)
def test_a_member_is_one_of_its_group_and_only_once(node: str, members: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        ConsensusConfig(node=node, members=members, no_op=b"")
