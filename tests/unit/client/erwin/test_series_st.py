"""Appends in mode st: their data goes to a shard, and their ids to the members."""

from tests.unit.client.erwin.world import World, acknowledged, ready

from anabranch.client.session.effects import Written
from anabranch.core.errors import DeadlineExceeded, OutcomeUnknown, RequestForgotten
from anabranch.core.erwin.protocol.messages import Data
from anabranch.core.producers import request_identity
from anabranch.core.sequencing.protocol.messages import AppendMeta


def test_erwin_st_an_append_waits_for_all_replicas_of_its_shard() -> None:
    world = ready("st")
    pledge = world.append(b"x")
    chosen = pledge.shard
    world.flow(but=f"{chosen}1")
    assert pledge.outcome is None
    world.flow()
    assert acknowledged(pledge)


def test_erwin_st_nodes_are_asked_with_pauses_while_a_sequencer_is_away() -> None:
    """Also if a shard has another epoch by then than the one in which an append was sent."""
    world = ready("st")
    pledge = world.append(b"x")
    world.nodes["q0"].refusing = True
    world.snap("q0")
    world.enter_epoch(pledge.shard, 2)
    for name in world.nodes:
        world.learn(name)
    before = world.asked["Locate"]
    world.session.whereabouts.ask_another()
    world.give(Written())
    world.flow()
    assert world.asked["Locate"] <= before + 3, "no answer but the first leads to a question"
    world.settle(4)
    assert acknowledged(pledge)


def test_erwin_st_a_request_goes_to_the_shard_that_it_is_known_with() -> None:
    world = World(2, ("a",), "st")
    request_id = next(id for id in "abcdef" if request_identity("erwin", id) % 2)
    world.nodes["a0"].refusing = True
    first = world.request(request_id, b"x")
    world.flow()
    world.pass_ms(10_000)
    assert isinstance(first.outcome, DeadlineExceeded)
    world.add_shard("b")
    for name in world.nodes:
        world.nodes[name].refusing = False
        world.learn(name)
    world.session.whereabouts.ask_another()
    world.give(Written())
    world.flow()
    again = world.request(request_id, b"x")
    assert again.shard == "b"
    world.settle(4, noop=False)
    assert acknowledged(again)
    assert world.values() == [b"x"]


def test_erwin_st_data_that_came_too_late_is_appended_under_another_id() -> None:
    world = ready("st")
    pledge = world.append(b"x")
    before = pledge.id
    for name in ("q0", "q1"):
        world.arrive(name, 9)
    world.order(1)
    assert world.values() == [b"first"]
    world.settle(3)
    assert acknowledged(pledge)
    assert pledge.id != before
    assert world.values() == [b"first", b"x"]


def test_erwin_st_a_request_whose_data_came_too_late_is_appended_once_whoever_repeats_it() -> None:
    world = ready("st")
    pledge = world.request("r", b"x")
    before = pledge.id
    for name in ("q0", "q1"):
        world.arrive(name, 9)
    world.order(1)
    assert world.values() == [b"first"]
    world.settle(3)
    assert acknowledged(pledge)
    assert pledge.id != before
    again = world.request("r", b"x")
    world.settle(3)
    assert again.outcome == pledge.outcome
    assert world.values() == [b"first", b"x"]


def test_erwin_st_two_appends_under_one_id_are_one_though_their_data_came_too_late() -> None:
    world = ready("st")
    pledges = [world.request("r", b"x"), world.request("r", b"x")]
    for name in ("q0", "q1"):
        world.arrive(name, 9)
    world.order(1)
    world.settle(3)
    assert acknowledged(pledges[0])
    assert pledges[0].outcome == pledges[1].outcome
    assert world.values() == [b"first", b"x"]


def test_erwin_st_other_records_under_a_request_id_are_told_apart() -> None:
    world = ready("st")
    digests: list[bytes] = []
    for values in ([b"x"], [b"x"], [b"y"]):
        world.request("r", *values)
        sent = [message for _, message in world.nodes["q0"].inbox]
        digests += [message.digest for message in sent if isinstance(message, AppendMeta)]
        world.settle(2)
    assert digests[0] == digests[1] != digests[2]
    assert all(digests)


def test_erwin_st_an_append_to_a_shard_that_was_closed_goes_to_another() -> None:
    world = ready("st")
    pledge = world.append(b"x")
    before, chosen = pledge.id, pledge.shard
    world.close_shard(chosen)
    world.settle(3)
    assert acknowledged(pledge)
    assert pledge.id != before
    assert world.rows[-1].shard != chosen
    assert world.values() == [b"first", b"x"]


def test_erwin_st_a_request_to_a_shard_that_was_closed_goes_to_another_under_its_id() -> None:
    world = ready("st")
    pledge = world.request("r", b"x")
    before, chosen = pledge.id, pledge.shard
    world.close_shard(chosen)
    world.settle(3)
    assert acknowledged(pledge)
    assert pledge.id == before
    assert world.values() == [b"first", b"x"]


def test_erwin_st_a_request_that_is_known_at_a_removed_shard_alone_has_a_definite_answer() -> None:
    world = ready("st")
    first = world.request("r", b"x")
    chosen = first.shard
    world.settle(3)
    assert acknowledged(first)
    world.remove_shard(chosen)
    again = world.request("r", b"x")
    world.settle(3)
    assert isinstance(again.outcome, RequestForgotten)
    assert f"shard {chosen}, which was removed" in again.outcome.message
    other = world.append(b"y")
    world.settle(3)
    assert acknowledged(other), "it holds up nothing"


def test_erwin_st_an_append_whose_shard_is_removed_has_an_unknown_outcome() -> None:
    world = ready("st")
    stuck = world.append(b"x")
    for name in ("q0", "q1"):
        world.snap(name)
    world.remove_shard(stuck.shard)
    world.pass_ms(100)
    world.settle(3)
    assert isinstance(stuck.outcome, OutcomeUnknown)
    assert "was removed" in stuck.outcome.message


def test_erwin_st_what_waits_for_a_closed_shard_holds_nothing_up() -> None:
    """It may be ordered, so it has to wait; appends to other shards are acknowledged."""
    world = ready("st")
    stuck = world.append(b"x")
    for name in ("q0", "q1"):
        world.snap(name)
    world.close_shard(stuck.shard)
    for name in world.nodes:
        world.learn(name)
    world.pass_ms(100)
    world.flow()
    assert stuck.doubts
    other = world.append(b"y")
    slow = "a1" if stuck.shard == "b" else "b1"
    for _ in range(20):
        world.flow(but=slow)
        world.pass_ms(100)
        assert other.attempt.under_way
    world.flow()
    assert acknowledged(other)
    assert stuck.outcome is None


def test_erwin_st_data_that_is_sent_again_names_the_lowest_sequence_that_it_named_first() -> None:
    """What was acknowledged since may be ordered later, and must keep its data."""
    world = World(2, ("a",), "st")
    first = world.append(b"first")
    world.settle(2)
    world.append(b"x")
    world.session.appender.release(first)
    world.snap("a0")
    world.flow(but="a0")
    world.pass_ms(50)
    world.arrive("a0", 1)
    world.hear("a0", 1)
    sent = [message for _, message in world.nodes["a0"].inbox if isinstance(message, Data)]
    assert [message.lowest for message in sent] == [0]
