"""A client before a pool of brokers: each log at its broker, and no broker that mustn't die."""

from typing import Any

from msgspec.structs import replace
from tests.unit.client.bolt.pool_world import (
    WELCOME,
    ModelBroker,
    PoolWorld,
    appended,
    description,
    taken,
)

from anabranch.client.session.effects import Ended
from anabranch.core.bolt.protocol.messages import (
    Append,
    Confirmed,
    Delivered,
    Describe,
    Failed,
    Hello,
    ListBrokers,
    Ping,
    Subscribe,
    Survey,
    Trim,
)
from anabranch.core.errors import Unauthorized, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel

ONE, TWO = LogId(1), LogId(2)


def opened(world: PoolWorld, *logs: LogId) -> PoolWorld:
    """Every log described, as a program does to get its handle."""
    for log in logs or (ONE, TWO):
        world.ask(Describe(log))
    world.run()
    return world


def test_each_log_goes_to_the_broker_it_is_placed_on() -> None:
    world = opened(PoolWorld())
    world.append(b"a", log=1)
    world.append(b"b", log=2)
    world.run()
    # The first record may have gone through whoever was there, while its broker was being dialed.
    assert all(map(appended, world.settled))
    before = {name: world.served(name, Append) for name in world.brokers}
    for _ in range(5):
        world.append(b"c", log=1)
        world.append(b"d", log=2)
        world.run()
    assert world.served("b0:1", Append) == before["b0:1"] + 5
    assert world.served("b2:1", Append) == before["b2:1"] + 5
    assert world.served("b1:1", Append) == before["b1:1"]


def test_other_brokers_are_learned_from_the_pool() -> None:
    world = opened(PoolWorld(given=1))
    world.append(b"a")
    world.run()
    assert world.served("b0:1", ListBrokers) == 1
    world.kill("b0:1")
    pledge = world.append(b"b")[0]
    world.run()
    assert appended(pledge)


def test_one_process_that_is_all_is_asked_nothing_more() -> None:
    world = PoolWorld(1)
    world.placed = {ONE: "", TWO: ""}
    opened(world)
    world.append(b"a")
    subscription = world.subscribe()
    world.run(100_000)
    world.append(b"b")
    world.run()
    assert taken(world, subscription) == [0, 1]
    asked = [type(each) for each in world.brokers["b0:1"].served]
    assert asked.count(Describe) == 2
    assert ListBrokers not in asked


def test_a_broker_that_takes_anothers_place_is_soon_known() -> None:
    world = opened(PoolWorld(2))
    subscription = world.subscribe()
    world.run()
    world.kill("b0:1")
    world.run(1_000)
    world.brokers["b9:1"] = ModelBroker("b9:1")
    del world.brokers["b0:1"]
    world.placed[ONE] = "b9:1"
    world.append(b"a")
    world.run(3_000)
    world.append(b"b")
    world.run(3_000)
    world.kill("b1:1")
    pledge = world.append(b"c", log=2)[0]
    world.run()
    assert appended(pledge)
    assert taken(world, subscription) == [0, 1]


def test_what_a_dying_broker_left_unanswered_goes_on_elsewhere_at_once() -> None:
    world = opened(PoolWorld())
    world.append(b"a")
    world.run()
    line = world.line_to("b0:1")
    pledges = [world.append(value)[0] for value in (b"b", b"c", b"d")]
    call = world.ask(Trim(ONE, 0, b"once"))
    for _ in range(2):
        world.serve(line)
    world.kill("b0:1")
    line = next(line for line, cable in world.cables.items() if cable.dialing or cable.connected)
    if world.cables[line].dialing:
        world.dialed(line)
        world.serve(line)
        world.deliver(line)
    sent = [each for _, each in world.cables[line].requests]
    assert sum(isinstance(each, Append) for each in sent) == 3
    assert sum(isinstance(each, Trim) for each in sent) == 1
    assert Describe(ONE) in sent
    world.run()
    assert all(map(appended, pledges))
    assert call.answer is not None
    assert world.logs[ONE].values == [b"a", b"b", b"c", b"d"]
    for late in world.wandering:
        world.logs[ONE].append(late.batch)
    assert world.logs[ONE].values == [b"a", b"b", b"c", b"d"]


def test_it_returns_to_the_placed_broker_when_that_is_back() -> None:
    world = opened(PoolWorld())
    world.append(b"a")
    world.run()
    subscription = world.subscribe()
    world.run()
    world.kill("b0:1")
    world.append(b"b")
    world.run(1_000)
    world.brokers["b0:1"].alive = True
    world.run(5_000)
    before = world.served("b0:1", Append)
    world.append(b"c")
    world.run()
    assert world.served("b0:1", Append) == before + 1
    assert taken(world, subscription) == [0, 1, 2]


def test_it_follows_a_log_that_is_placed_anew() -> None:
    world = opened(PoolWorld())
    subscription = world.subscribe()
    world.append(b"a")
    world.run()
    world.kill("b0:1")
    world.placed[ONE] = "b1:1"
    world.run(3_000)
    before = world.served("b1:1", Append)
    world.append(b"b")
    world.run()
    assert world.served("b1:1", Append) == before + 1
    assert taken(world, subscription) == [0, 1]
    world.advance(60_000)
    dials = len(world.cables)
    world.run(10_000)
    assert not any(each.dialing for each in world.cables.values())
    assert len(world.cables) == dials


def test_a_log_in_use_is_looked_up_every_so_often_and_an_unused_one_never() -> None:
    world = opened(PoolWorld(route_ms=10_000))
    before = sum(world.served(name, Describe) for name in world.brokers)
    world.run(60_000)
    assert sum(world.served(name, Describe) for name in world.brokers) == before
    for _ in range(30):
        world.append(b"x")
        world.run(1_000)
    found = sum(world.served(name, Describe) for name in world.brokers) - before
    assert 3 <= found <= 4


def test_a_log_moved_in_peace_is_followed_without_sending_anything_twice() -> None:
    world = opened(PoolWorld(route_ms=1_000, batches_in_flight_max=4))
    world.append(b"first")
    world.run()
    world.placed[ONE] = "b1:1"
    sent = 0
    for number in range(300):
        world.append(b"%d" % number)
        sent += 1
        world.run(10)
    batches = sum(world.served(name, Append) for name in world.brokers)
    assert world.served("b1:1", Append) > 100
    assert len(world.logs[ONE].values) == sent + 1
    assert batches <= sent + 1
    assert all(map(appended, world.settled))


def test_a_draining_broker_is_left_for_another() -> None:
    world = opened(PoolWorld())
    subscription = world.subscribe()
    world.append(b"a")
    world.run()
    world.brokers["b0:1"].draining = True
    world.placed[ONE] = "b1:1"
    pledges = [world.append(value)[0] for value in (b"b", b"c")]
    world.run(50)
    assert all(map(appended, pledges))
    assert world.logs[ONE].values == [b"a", b"b", b"c"]
    assert taken(world, subscription) == [0, 1, 2]
    before = world.served("b1:1", Append)
    world.append(b"d")
    world.run(50)
    assert world.served("b1:1", Append) == before + 1


def test_the_only_broker_is_waited_for_while_it_drains() -> None:
    world = PoolWorld(1)
    opened(world, ONE)
    world.placed = {ONE: "b0:1", TWO: "b0:1"}
    world.brokers["b0:1"].draining = True
    pledge = world.append(b"a")[0]
    world.run(5_000)
    assert pledge.outcome is None
    world.brokers["b0:1"].draining = False
    world.run(5_000)
    assert appended(pledge)


def test_a_broker_that_waits_for_others_is_not_taken_for_silent() -> None:
    world = opened(PoolWorld(silence_ms=1_000))
    line = world.line_to("b0:1")
    call = world.ask(Trim(ONE, 0, b"slow"))
    slow = world.cables[line].requests.popleft()
    world.run(20_000)
    assert world.served("b0:1", Ping) > 3
    assert world.cables[line].connected
    world.cables[line].requests.append(slow)
    world.run()
    assert call.answer is not None


def test_a_silent_broker_is_left_after_a_while() -> None:
    world = opened(PoolWorld(silence_ms=1_000))
    world.append(b"a")
    world.run()
    world.brokers["b0:1"].silent = True
    pledge = world.append(b"b")[0]
    world.run(4_000)
    assert appended(pledge)
    assert world.logs[ONE].values == [b"a", b"b"]


def test_an_address_that_never_answers_doesnt_keep_the_next_from_being_dialed() -> None:
    world = PoolWorld(3, hedge_ms=200)
    call = world.ask(Survey())
    assert len(world.cables) == 1
    world.advance(199)
    assert len(world.cables) == 1
    world.advance(1)
    assert len(world.cables) == 2
    line = max(world.cables)
    world.dialed(line)
    world.serve(line)
    world.deliver(line)
    world.serve(line)
    world.deliver(line)
    assert call.answer is not None
    world.advance(2_000)
    assert len(world.cables) == 2


def test_speculation_is_failed_and_delivered_anew_elsewhere() -> None:
    world = opened(PoolWorld())
    world.append(b"a", b"b", b"c")
    world.run()
    subscription = world.subscribe()
    line = world.line_to("b0:1")
    world.serve(line)
    request = next(iter(world.cables[line].subscribed))
    world.push(line, request)
    _, told = world.cables[line].replies.popleft()
    assert isinstance(told, Delivered)
    world.cables[line].replies.append((request, Delivered(told.runs, told.batches, True)))
    world.cables[line].replies.append((request, Confirmed(1)))
    world.deliver(line)
    world.deliver(line)
    assert taken(world, subscription) == [0, 1, 2, Confirmed(1)]
    world.kill("b0:1")
    world.run()
    assert taken(world, subscription) == [Failed(1), 1, 2]
    asked = [
        each.start
        for broker in world.brokers.values()
        for each in broker.served
        if isinstance(each, Subscribe)
    ]
    assert asked == [0, 1]


def test_a_subscription_that_moves_in_peace_is_cancelled_where_it_was() -> None:
    world = opened(PoolWorld(route_ms=1_000))
    subscription = world.subscribe()
    world.append(b"a")
    world.run()
    assert taken(world, subscription) == [0]
    world.placed[ONE] = "b1:1"
    world.run(1_000)
    world.append(b"b")
    world.run(1_000)
    assert taken(world, subscription) == [1]
    assert world.served("b0:1", Cancel) == 1
    assert world.served("b1:1", Subscribe) == 1


def test_without_any_broker_the_deadline_names_them_all() -> None:
    world = PoolWorld(2)
    for broker in world.brokers.values():
        broker.alive = False
    call = world.ask(Survey(), timeout_ms=1_000)
    pledge = world.append(b"a", timeout_ms=1_000)[0]
    world.run(1_000)
    for error in (call.error, pledge.outcome):
        assert isinstance(error, Unavailable)
        assert "b0:1 is dead" in error.message
        assert "b1:1 is dead" in error.message


def greeted_with(world: PoolWorld, answer: Any) -> None:
    """The broker of log 1 is lost, comes back, and says this."""
    world.append(b"a", log=1)
    world.append(b"b", log=2)
    world.run()
    line = world.line_to("b0:1")
    world.cut(line)
    world.append(b"c", log=1)
    while not world.cables[line].dialing:
        world.advance(10)
    world.dialed(line)
    request, hello = world.cables[line].requests.popleft()
    assert isinstance(hello, Hello)
    world.cables[line].replies.append((request, answer))
    world.deliver(line)
    assert not world.cables[line].connected


def test_one_broker_that_wont_have_us_matters_only_if_there_is_no_other() -> None:
    world = opened(PoolWorld(2))
    greeted_with(world, Refused.of(Unauthorized()))
    world.run()
    assert all(map(appended, world.settled))
    world.kill("b1:1")
    line = next(line for line, cable in world.cables.items() if cable.dialing)
    world.dialed(line)
    request, _ = world.cables[line].requests.popleft()
    call = world.ask(Survey())
    world.cables[line].replies.append((request, Refused.of(Unauthorized())))
    world.deliver(line)
    assert isinstance(call.error, Unauthorized)


def test_a_broker_of_another_cluster_is_not_taken_for_ours() -> None:
    world = opened(PoolWorld(2))
    greeted_with(world, replace(WELCOME, cluster="another"))
    before = world.served("b0:1", Append)
    world.run(5)
    assert world.served("b0:1", Append) == before
    assert all(map(appended, world.settled))


def test_an_ended_session_leaves_every_broker() -> None:
    world = opened(PoolWorld())
    world.append(b"a", log=1)
    world.append(b"b", log=2)
    world.run()
    call = world.ask(Survey())
    world.step(Ended())
    assert isinstance(call.error, Unavailable)
    assert not any(cable.connected or cable.dialing for cable in world.cables.values())


def test_a_route_is_learned_from_whatever_describes_a_log() -> None:
    world = PoolWorld()
    world.run()
    world.session.learn(description(ONE, "b2:1"))
    world.append(b"a")
    world.run()
    world.append(b"b")
    world.run()
    assert world.served("b2:1", Append) >= 1
    assert world.served("b1:1", Append) == 0


def test_clients_begin_at_different_brokers() -> None:
    begun = {
        next(iter(PoolWorld(3, seed=seed).cables.values())).broker.address for seed in range(30)
    }
    assert len(begun) == 3
