"""How a member takes appends: when it answers, what it refuses, and what waits for room."""

from msgspec.structs import replace
from tests.unit.core.sequencing.group import Group, batch_of, codes, id_of

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.limits import Limits
from anabranch.core.producers import REQUEST_EPOCH
from anabranch.core.records.record import Record, encode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Drop, Present, Seal
from anabranch.core.sequencing.protocol.messages import Append, AppendMeta, Locate, Taken
from anabranch.core.sequencing.state.ring import ENTRY_BYTES
from anabranch.core.sequencing.view import Ballot

SIZE = ENTRY_BYTES + len(batch_of(id_of(0)))
SMALL = Limits(
    batch_bytes_max=SIZE,
    ring_bytes_max=2 * SIZE,
    ring_waiting_bytes_max=2 * SIZE,
)


def group_of(*, limits: Limits | None = None, data_on_shards: bool = False) -> Group:
    group = Group("a", "b", limits=limits or Limits(), data_on_shards=data_on_shards)
    group.run()
    group.change(Ballot(1, 1), "a", "b")
    return group


def test_an_append_is_acknowledged_when_it_is_on_the_disk_and_repetitions_with_it() -> None:
    group = group_of()
    tokens = group.append(1, id_of(0), "a") + group.append(1, id_of(0), "a")
    assert group.answered(tokens) == []
    group["a"].write()
    assert group.answered(tokens) == [Taken(), Taken()]
    assert group.answered(group.append(1, id_of(0), "a")) == [Taken()]
    assert len(group["a"].replica.ring) == 1


def test_an_append_that_comes_after_its_drop_is_acknowledged_when_that_is_on_the_disk() -> None:
    """Until then a member that is restarted holds neither, and the next view may begin with it."""
    group = group_of()
    group.append(1, id_of(0), "a")
    group.run()
    group["a"].order(group["a"].take())
    group["a"].write()
    group.deliver_all(Drop)
    (lost,) = group.append(1, id_of(0), "b")
    group.restart("b")
    assert group.answered([lost]) == []
    group.wait(100)
    group.wait(100)
    group["a"].link("b")
    group.deliver_all(Drop)
    (late,) = group.append(1, id_of(0), "b")
    assert group.answered([late]) == []
    group["b"].write()
    assert group["b"].replica.ordered == 1
    assert group.answered([lost, late]) == [Taken()]


def test_an_append_of_another_view_is_refused() -> None:
    group = group_of()
    group.change(Ballot(2, 1), "a", "b", source="a", sealed=("a", "b"))
    tokens = group.append(1, id_of(0), "a") + group.append(3, id_of(0), "a")
    assert codes(group.answered(tokens)) == ["stale-view", "unavailable"]


def test_an_append_without_a_producer_or_with_a_lowest_beyond_it_is_refused() -> None:
    group = group_of()
    group["a"].request(50, Append(1, 0, encode([Record(b"x")], now=0)))
    group["a"].request(51, Append(1, 2, batch_of(id_of(1))))
    group["a"].request(52, Append(1, 0, b"no batch"))
    group["a"].request(53, AppendMeta(1, 0, id_of(0), 1, 1, "x"))
    codes_found = codes(group.answered([50, 51, 52, 53]))
    assert codes_found == ["bad-request", "bad-request", "corrupt-batch", "bad-request"]
    assert not group["a"].request(54, Locate())


def test_ids_alone_are_taken_where_shards_have_the_data() -> None:
    group = group_of(data_on_shards=True)
    group["a"].request(50, AppendMeta(1, 0, id_of(0), 3, 100, "x"))
    group["a"].request(51, AppendMeta(1, 0, id_of(3), 3, 1 << 30, "x"))
    group["a"].request(52, Append(1, 0, batch_of(id_of(3))))
    group.run()
    assert group.answered([50]) == [Taken("x")]
    assert codes(group.answered([51, 52])) == ["bad-request", "bad-request"]
    assert group["a"].replica.tail == 3


def test_what_finds_the_ring_full_waits_in_order_and_is_not_lost() -> None:
    group = group_of(limits=SMALL)
    tokens = [token for n in range(4) for token in group.append(1, id_of(n), "a", "b")]
    group.run()
    assert group.answered(tokens) == [Taken()] * 4, "two on each"
    assert group["a"].replica.waiting_bytes == 2 * SIZE
    assert codes(group.answered(group.append(1, id_of(4), "a"))) == ["overloaded"]
    assert group.answered(group.append(1, id_of(1), "a")) == [Taken()], "it is known"
    group["a"].order(group["a"].take(1))
    group.run()
    assert group.answered(tokens) == [Taken()] * 6
    group["a"].order(group["a"].take())
    group.run()
    assert group.answered(tokens) == [Taken()] * 8
    assert group["a"].replica.waiting_bytes == 0
    assert group["a"].take() == [id_of(3)]


def test_of_what_waits_nothing_is_taken_for_a_client_that_has_left_nor_in_an_ended_view() -> None:
    group = group_of(limits=SMALL)
    for n in range(2):
        group.append(1, id_of(n), "b")
    group.run()
    (gone,) = group.append(1, id_of(2), "b")
    (waiting,) = group.append(1, id_of(3), "b")
    group.wait(100)
    group.run()
    said = [each for each in group.heard(Present) if isinstance(each, Present) and each.node == "b"]
    assert (said[-1].tail, said[-1].waiting) == (2, 2), "they may name a shard that is closed now"
    group["b"].replica.gone(gone)
    group.to_all(Seal(Ballot(2, 1), 1), "b")
    assert group.answered([gone]) == []
    assert codes(group.answered([waiting])) == ["stale-view"]
    assert group["b"].replica.waiting_bytes == 0
    group.wait(100)
    group.run()
    said = [each for each in group.heard(Present) if isinstance(each, Present) and each.node == "b"]
    assert said[-1].waiting == 0


def test_appends_are_refused_while_the_journal_cannot_be_written() -> None:
    group = group_of()
    tokens = group.append(1, id_of(0), "a")
    group["a"].fail()
    assert codes(group.answered(group.append(1, id_of(1), "a"))) == ["unavailable"]
    group.wait(100)
    group.run()
    assert group.answered(tokens) == [Taken()]
    assert group["a"].replica.obstacle is None


def test_an_append_of_an_ended_view_that_is_stored_later_acknowledges_no_repetition() -> None:
    """It may be missing in the ring that the next view begins with."""
    group = group_of()
    view = group.prepared(Ballot(2, 1), "a", "b", source="b", sealed=("b",))
    (before,) = group.append(1, id_of(0), "a")
    group.start(view, "a")
    (after,) = group.append(2, id_of(0), "a")
    assert codes(group.answered([before])) == ["outcome-unknown"], "no refusal: a ring may have it"
    group["a"].write()
    assert group.answered([after]) == []
    group["a"].write()
    assert group.answered([after]) == [Taken()]


def test_under_a_request_id_other_records_are_refused() -> None:
    group = group_of()
    request = AppendId(9, REQUEST_EPOCH, 0)
    first = group.append(1, request, "a") + group.append(1, request, "a")
    other = group.append(1, request, "a", size=2)
    group.run()
    assert group.answered(first) == [Taken(), Taken()]
    assert codes(group.answered(other)) == ["request-reused"]
    group.restart("a")
    assert codes(group.answered(group.append(1, request, "a", size=2))) == ["request-reused"]


def test_under_a_request_id_other_records_are_refused_whose_data_a_shard_has() -> None:
    group = group_of(data_on_shards=True)
    request = AppendId(9, REQUEST_EPOCH, 0)
    group["a"].request(60, AppendMeta(1, 0, request, 1, 9, "x", digest=b"12345678"))
    group["a"].request(61, AppendMeta(1, 0, request, 1, 9, "x", digest=b"12345679"))
    group["a"].request(62, AppendMeta(1, 0, request, 1, 9, "x"))
    group.run()
    assert group.answered([60, 62]) == [Taken("x"), Taken("x")]
    assert codes(group.answered([61])) == ["request-reused"]
    group.restart("a")
    group["a"].request(63, AppendMeta(1, 0, request, 1, 9, "x", digest=b"12345679"))
    assert codes(group.answered([63])) == ["request-reused"]


def test_one_client_leaves_room_for_the_appends_of_others_that_wait_for_the_ring() -> None:
    group = group_of(limits=replace(SMALL, ring_waiting_bytes_max=4 * SIZE))
    group.append(1, id_of(0), "a")
    group.append(1, id_of(1), "a")
    bad, good = (seat_number(0, seat) << REQUEST_BITS for seat in (1, 2))
    asked = [bad | request for request in range(4)]
    for n, token in enumerate(asked):
        group["a"].request(token, Append(1, 0, batch_of(id_of(2 + n))))
    group.run()
    assert codes(group.answered(asked)) == ["overloaded"] * 2
    group["a"].request(good, Append(1, 0, batch_of(id_of(0, producer=8))))
    assert not group.answered([good])
    assert group["a"].replica.waiting_bytes == 3 * SIZE
