"""The leader's drops: sent until they are answered, and bounded by what the others have dropped."""

import pytest
from tests.unit.core.sequencing.group import Group, id_of

from anabranch.core.limits import Limits
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Drop, Dropped
from anabranch.core.sequencing.protocol.messages import AppendMeta, Taken
from anabranch.core.sequencing.view import Ballot
from anabranch.core.types import MS


def group_of(*names: str, limits: Limits | None = None, data_on_shards: bool = False) -> Group:
    group = Group(*names, limits=limits or Limits(), data_on_shards=data_on_shards)
    group.run()
    group.change(Ballot(1, 1), *names)
    return group


def order_one(group: Group, sequence: int) -> None:
    group.append(1, id_of(sequence), *group.nodes, lowest=sequence)
    group.run()
    group["a"].order(group["a"].take())


def order_all(group: Group, count: int) -> None:
    """One by one; the drops are under way."""
    for sequence in range(count):
        group.append(1, id_of(sequence), *group.nodes)
    group.run()
    for _ in range(count):
        group["a"].order(group["a"].take(1))
        group["a"].write()


@pytest.mark.parametrize("held", [True, False])
def test_all_members_know_the_shard_that_a_request_is_ordered_with(held: bool) -> None:
    """A later view may begin with a member that was told of another shard, or of none. It would
    send a client there, though the row says where the data is, or that there is none.
    """
    group = group_of("a", "b", data_on_shards=True)
    request = AppendId(9, REQUEST_EPOCH, 0)
    group["a"].request(1, AppendMeta(1, 0, request, 1, 1, "x"))
    if held:
        group["b"].request(2, AppendMeta(1, 0, request, 1, 1, "y"))
    group.run()
    group["a"].order(group["a"].take())
    group.run()
    group.restart("b")
    group.change(Ballot(2, 1), "b", source="b", sealed=("b",))
    group["b"].request(3, AppendMeta(2, 0, request, 1, 1, "y"))
    group.run()
    assert group.answered([3]) == [Taken("x")]


def test_stable_is_what_the_slowest_member_has_on_its_disk() -> None:
    group = group_of("a", "b", "c")
    order_one(group, 0)
    group["a"].write()
    group.deliver_all(Drop)
    group["b"].write()
    group.deliver_all(Dropped)
    assert group["a"].replica.stable == 0
    group["c"].write()
    assert group["a"].replica.stable == 0
    group.deliver_all(Dropped)
    assert group["a"].replica.stable == 1


def test_drops_that_are_lost_are_sent_again_after_a_while() -> None:
    group = group_of("a", "b")
    order_all(group, 3)
    group.lose(Drop)
    group.wait(100)
    assert group.letters_of(Drop) == []
    group.wait(100)
    assert [drop.upto for drop in group.letters_of(Drop)] == [1], "one question is enough"
    group.run()
    assert group["a"].replica.stable == 3
    group.wait(100)
    group.wait(100)
    assert group.letters_of(Drop) == []


def test_a_new_connection_brings_all_drops_without_an_answer() -> None:
    group = group_of("a", "b")
    order_all(group, 2)
    group.letters = []
    group["a"].replica.linked("b")
    group["a"].settle()
    assert [drop.upto for drop in group.letters_of(Drop)] == [1, 2]


def test_a_member_without_the_drop_before_says_where_it_is() -> None:
    group = group_of("a", "b")
    order_all(group, 2)
    del group.letters[0]
    group.deliver_all(Drop)
    assert [each.upto for each in group.letters_of(Dropped)] == [0]
    assert len(group["b"].replica.ring) == 2


def test_the_leader_orders_no_more_while_another_member_lags_far_behind() -> None:
    group = group_of("a", "b", limits=Limits(ring_unstable_max=2))
    order_all(group, 2)
    group.append(1, id_of(2), "a", "b")
    group["a"].write()
    assert group["a"].take() == []
    group.run()
    assert group["a"].take() == [id_of(2)]


def test_a_restarted_leader_sends_what_its_snapshot_says_may_be_unknown() -> None:
    group = group_of("a", "b", limits=Limits(snapshot_bytes=1))
    order_one(group, 0)
    group["a"].write()
    assert group["a"].snapshot is not None
    assert group["a"].snapshot[0] == len(group["a"].entries)
    group.letters = []
    group.restart("a")
    group.run()
    assert group["b"].replica.ordered == 1
    assert group["a"].replica.stable == 1


def test_a_restarted_leader_asks_what_the_others_have_dropped() -> None:
    """All of it was stable before, so there is no drop to send."""
    group = group_of("a", "b", limits=Limits(snapshot_bytes=1))
    for sequence in range(2):
        order_one(group, sequence)
        group.run()
    group["a"].crash()
    group["a"].start(group.now)
    group["a"].write()
    group.lose(Drop)
    assert group["a"].replica.stable < 2
    group.wait(100)
    group.wait(100)
    group.run()
    assert group["a"].replica.stable == 2


def test_the_leader_decides_what_all_members_forget() -> None:
    group = group_of("a", "b")
    request = AppendId(9, REQUEST_EPOCH, 0)
    group.append(1, request, "a", "b")
    order_one(group, 0)
    group.run()
    group.now += (Limits().request_memory_ms + 1) * MS
    group.wait(0)
    known = [group[name].replica.knows(request) for name in "ab"]
    assert known == [True, True]
    group.append(1, id_of(1, producer=8), "a", "b")
    group.append(1, id_of(0, producer=8), "a", "b")
    group.run()
    group["a"].order(group["a"].take())
    group.run()
    assert [group[name].replica.knows(request) for name in "ab"] == [False, False]
    assert [group[name].replica.knows(id_of(0)) for name in "ab"] == [False, False]
    assert group["a"].replica.knows(id_of(0, producer=8))
