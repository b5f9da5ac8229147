"""Whatever becomes of brokers, a client before a pool: nothing lost, doubled or out of order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.bolt.pool_world import PoolWorld, appended, taken

from anabranch.client.bolt.producer import Pledge
from anabranch.core.bolt.protocol.messages import Append, Appended, Describe, Trim
from anabranch.core.types import LogId

ONE, TWO = LogId(1), LogId(2)


class Chaos:
    """Deaths, drains, moves, silence, losses and copies that wander, as a list of numbers says."""

    def __init__(self, window: int, given: int) -> None:
        self.world = PoolWorld(
            3, given=given, batches_in_flight_max=window, silence_ms=2_000, route_ms=2_000
        )
        self.added: list[tuple[int, bytes, Pledge]] = []
        self.subscriptions = {log: self.world.subscribe(log) for log in (1, 2)}
        self.seen: dict[int, int] = {1: 0, 2: 0}
        self.asked: list[bytes] = []
        for log in (ONE, TWO):
            self.world.ask(Describe(log))

    def do(self, what: int, pick: int) -> None:
        world = self.world
        lines = list(world.cables)
        line = lines[pick % len(lines)]
        cable = world.cables[line]
        address = list(world.brokers)[pick % len(world.brokers)]
        log = LogId(1 + pick % 2)
        match what:
            case 0 | 1 | 2:
                value = b"%d" % len(self.added)
                timeout_ms = (300, 5_000, 60_000)[pick % 3]
                pledge = world.append(value, log=log, timeout_ms=timeout_ms)[0]
                self.added.append((log, value, pledge))
            case 3:
                once = b"%d" % len(self.asked)
                self.asked.append(once)
                world.ask(Trim(log, 0, once))
            case 4 | 5 if cable.dialing:
                world.dialed(line)
            case 6 | 7 | 8 if cable.requests:
                world.serve(line)
            case 9 | 10 | 11 if cable.replies:
                world.deliver(line)
            case 12:
                world.kill(address)
            case 13:
                world.brokers[address].alive = True
            case 14:
                world.brokers[address].draining = not world.brokers[address].draining
            case 15:
                world.brokers[address].silent = not world.brokers[address].silent
            case 16:
                world.placed[log] = address
            case 17:
                world.cut(line)
            case 18 if world.wandering:
                world.wandering.rotate(-(pick % len(world.wandering)))
                late = world.wandering.popleft()
                world.logs[late.log].append(late.batch)
            case 19:
                world.advance((1, 30, 300, 3_000)[pick % 4])
            case 20 if cable.subscribed:
                requests = list(cable.subscribed)
                world.push(line, requests[pick % len(requests)])
            case _:
                world.run(10)
        self.check()

    def check(self) -> None:
        for log in (1, 2):
            values = self.world.logs[LogId(log)].values
            assert len(set(values)) == len(values), "nothing is there twice"
            events = taken(self.world, self.subscriptions[log])
            assert events == list(range(self.seen[log], self.seen[log] + len(events)))
            self.seen[log] += len(events)
            last = -1
            for of, value, pledge in self.added:
                if of != log or pledge.outcome is None:
                    continue
                if isinstance(pledge.outcome, Appended):
                    place = values.index(value)
                    assert place > last, "in the order in which they were added"
                    last = place
                elif not pledge.in_doubt:
                    assert value not in values
        assert len(set(self.world.done)) == len(self.world.done)

    def finish(self) -> None:
        world = self.world
        world.heal()
        for _ in range(100):
            world.run(1_000)
            if all(pledge.outcome for _, _, pledge in self.added):
                break
        self.check()
        assert all(pledge.outcome for _, _, pledge in self.added)
        assert world.session.pending_bytes == 0
        last = [world.append(b"last", log=log)[0] for log in (1, 2)]
        world.run(10_000)
        assert all(map(appended, last))
        self.check()
        assert self.seen == {log: len(world.logs[LogId(log)].values) for log in (1, 2)}
        for log, address in world.placed.items():
            world.ask(Describe(log))
            world.run(5_000)
            before = world.served(address, Append)
            world.append(b"home", log=log)
            world.run(100)
            assert world.served(address, Append) == before + 1, "each is home again"


@settings(max_examples=200, deadline=None)
@given(
    window=st.integers(1, 4),
    given_brokers=st.integers(1, 3),
    steps=st.lists(st.tuples(st.integers(0, 22), st.integers(0, 11)), min_size=20, max_size=120),
)
def test_whoever_dies_nothing_is_lost_doubled_or_out_of_order(
    window: int, given_brokers: int, steps: list[tuple[int, int]]
) -> None:
    chaos = Chaos(window, given_brokers)
    for what, pick in steps:
        chaos.do(what, pick)
    chaos.finish()
