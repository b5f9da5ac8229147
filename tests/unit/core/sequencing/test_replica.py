"""A group of sequencing replicas: appends, order, view changes and restarts, one by one."""

from dataclasses import replace

import pytest
from tests.unit.core.sequencing.group import LIMITS, Group, codes, id_of

from anabranch.core.alarms import Alarms
from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Drop, Dropped, Seal, Sealed, Start
from anabranch.core.sequencing.protocol.messages import (
    AppendMeta,
    AskTail,
    FindPosition,
    Found,
    Tail,
    Taken,
)
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.view import Ballot


@pytest.fixture(params=[True, False], ids=["fsync", "memory"])
def group(request: pytest.FixtureRequest) -> Group:
    fsync: bool = request.param
    group = Group("a", "b", "c", fsync=fsync)
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    return group


def test_an_append_is_ordered_by_the_leader_and_then_leaves_all_rings(group: Group) -> None:
    tokens = group.append(1, id_of(0), "a", "b")
    group.run()
    assert group.answered(tokens) == [Taken(), Taken()]
    assert group["a"].told == group["b"].told == [group["a"].replica.view]
    leader = group["a"].replica
    assert leader.leads
    assert not group["b"].replica.leads
    assert group["a"].take() == [id_of(0)]
    assert group["a"].take() == []
    assert len(group["b"].replica.ring) == 1
    group["a"].order([id_of(0)])
    group.run()
    assert [len(group[name].replica.ring) for name in "ab"] == [0, 0]
    assert [group[name].replica.ordered for name in "ab"] == [1, 1]
    assert group["a"].stable == leader.stable == 1


def test_a_view_change_carries_the_ring_over_and_ends_the_view_before(group: Group) -> None:
    for sequence in range(3):
        group.append(1, id_of(sequence), "a", "b")
    group.run()
    group["a"].order(group["a"].take()[:1])
    group.run()
    view = group.change(Ballot(2, 1), "b", "c", source="b", sealed=("b",))
    assert view.base == 1
    assert group["b"].told[-2:] == [None, view]
    assert group["c"].replica.ordered == 1
    assert group["b"].take() == [id_of(1), id_of(2)]
    tokens = group.append(2, id_of(2), "b", "c") + group.append(2, id_of(0), "b", "c")
    group.run()
    assert group.answered(tokens) == [Taken()] * 4
    assert len(group["c"].replica.ring) == 2


def test_a_sealed_member_takes_nothing_of_its_view(group: Group) -> None:
    group.append(1, id_of(0), "a", "b")
    group.run()
    group.to_all(Seal(Ballot(2, 1), 1), "b")
    group.run()
    assert isinstance(group.heard(Sealed)[0], Sealed)
    tokens = group.append(1, id_of(1), "b")
    group["b"].request(99, AskTail(1))
    group["a"].order(group["a"].take())
    group.run()
    assert codes(group.answered([*tokens, 99])) == ["stale-view"] * 2
    assert group["b"].replica.ordered == 0
    assert group["a"].stable == 0


def test_a_position_is_told_when_it_is_stable(group: Group) -> None:
    group["a"].request(50, FindPosition(id_of(0)))
    group.append(1, id_of(0), "a", "b")
    group["a"].request(51, FindPosition(id_of(0)))
    group.run()
    group["a"].order(group["a"].take())
    group.lose(Drop)
    group["a"].request(52, FindPosition(id_of(0)))
    assert group.answered([50, 51, 52]) == []
    group.wait(100)
    group.wait(100)
    group.wait(100)
    group.run()
    group["a"].request(53, FindPosition(id_of(0)))
    assert group.answered([50, 51, 52, 53]) == [Found(0)] * 4


def test_the_tail_counts_what_is_ordered_and_what_isnt(group: Group) -> None:
    group.append(1, id_of(0), "a", "b", values=3)
    group.append(1, id_of(3), "a", "b", values=2)
    group.run()
    group["a"].take()
    group["a"].order([id_of(0)], counts=3)
    group["a"].request(50, AskTail(1))
    assert group.answered([50]) == [Tail(3, 5)]


def test_a_restarted_leader_begins_again_where_its_journal_ends() -> None:
    group = Group("a", "b")
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    for sequence in range(3):
        group.append(1, id_of(sequence), "a", "b")
    group.run()
    group["a"].order(group["a"].take(1))
    group["a"].write()
    group["a"].order(group["a"].take(1))
    group.letters = []
    group.restart("a")
    group.run()
    leader = group["a"].replica
    assert leader.begun == 2
    assert group["a"].told == [leader.view]
    assert leader.ordered == 1
    assert group["b"].replica.ordered == 1, "the drop that was lost is sent again"
    assert leader.stable == 1
    assert group["a"].take() == [id_of(1), id_of(2)]


def test_drops_wait_for_the_leaders_own_journal() -> None:
    group = Group("a", "b")
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    group.append(1, id_of(0), "a", "b")
    group.run()
    group["a"].order(group["a"].take())
    assert group.letters_of(Drop) == []
    group["a"].write()
    assert [drop.ids for drop in group.letters_of(Drop)] == [[id_of(0)]]


def test_what_was_ordered_in_an_earlier_view_is_told_to_no_later_leader() -> None:
    group = Group("a", "b", "c")
    group.run()
    group.change(Ballot(1, 1), "a", "b", "c")
    for sequence in range(2):
        group.append(1, id_of(sequence), "a", "b", "c")
    group.run()
    group["a"].order(group["a"].take())
    group["a"].write()
    group.letters = [each for each in group.letters if each[1].to == "c"]
    group.deliver_all(Drop)
    group["c"].write()
    group.letters = []
    assert group["c"].replica.ordered == 2
    view = group.prepared(Ballot(2, 1), "b", "c", source="b", sealed=("b",))
    group.to_all(Start(view), "b", "c")
    group["b"].write()
    group.deliver_all(Drop)
    assert not group.letters_of(Dropped)
    group["c"].write()
    assert [letter.upto for letter in group.letters_of(Dropped)] == [0]


def test_a_request_that_is_repeated_with_another_shard_is_told_of_the_first() -> None:
    group = Group("a", "b", data_on_shards=True)
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    request = AppendId(9, REQUEST_EPOCH, 0)
    for token, shard in enumerate(["x", "y"], 50):
        group["a"].request(token, AppendMeta(1, 0, request, 1, 10, shard))
    group.run()
    group["a"].order(group["a"].take())
    group.run()
    group["a"].request(52, AppendMeta(1, 0, request, 1, 10, "z"))
    assert group.answered([50, 51, 52]) == [Taken("x")] * 3


def test_a_start_of_an_earlier_view_that_is_stored_later_starts_nothing() -> None:
    group = Group("a", "b")
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    view = group.prepared(Ballot(2, 1), "a", "b", source="b", sealed=("b",))
    group["a"].crash()
    group["a"].start(group.now)
    group.start(view, "a")
    group["a"].write()
    assert not group["a"].replica.leads
    group["a"].write()
    assert group["a"].replica.leads
    assert group["a"].told == [view]


def test_a_member_in_memory_does_not_go_on_with_the_life_of_a_journal() -> None:
    group = Group("a", limits=Limits(snapshot_bytes=1))
    group.run()
    group.change(Ballot(1, 1), "a")
    disk = group["a"]
    assert disk.snapshot is not None
    config = replace(disk.config, fsync=False)
    effects: list[Effect] = []
    member = SequencingReplica(config, LIMITS, effects, Alarms(effects))
    with pytest.raises(BadRequest, match="start it with fsync"):
        member.recover(disk.snapshot[1])
    with pytest.raises(BadRequest, match="start it with fsync"):
        member.replayed(1, disk.entries[0])


def test_a_member_does_not_go_on_with_the_journal_of_another() -> None:
    group = Group("a", "b", "c")
    group.run()
    group.now += 1_000
    group.restart("c")
    group["b"].crash()
    group["b"].wipe()
    group["b"].start(group.now)
    group.run()
    group.change(Ballot(1, 1), "a", "b")

    def recovered(name: str, disk: str) -> SequencingReplica:
        effects: list[Effect] = []
        replica = SequencingReplica(group[name].config, LIMITS, effects, Alarms(effects))
        for index, entry in enumerate(group[disk].entries, 1):
            replica.replayed(index, entry)
        return replica

    recovered("a", "a").check_life()
    recovered("c", "b").check_life()
    for name, disk in (("a", "b"), ("b", "a")):
        with pytest.raises(BadRequest, match="another member of view 1"):
            recovered(name, disk).check_life()
