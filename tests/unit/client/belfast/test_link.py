"""A Belfast client's connections to nodes, over real sockets."""

from collections.abc import Sequence

from msgspec.structs import replace
from tests.unit.shell.nodes import Node, run, until

from anabranch.client.belfast.link import Link
from anabranch.client.session.endpoint import belfast_endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Directory,
    Done,
    Locate,
    Shard,
    Trim,
)
from anabranch.core.machine import Effect, Event, Replies, Reply, Request, Requests
from anabranch.core.records.record import Record

IDLE = Settings(idle_ms=300, silence_ms=100, directory_ms=20)
DIRECTORY = Directory(1, 0, "", (), 0, 0)


class Nodes:
    """A sequencer that leads and a shard: both know where everything is."""

    def __init__(self, *, shards: int) -> None:
        self.leader = Node()
        self.shards = [Node() for _ in range(shards)]
        for each in (self.leader, *self.shards):
            each.puppet.rule = self._answer

    def _answer(self, event: Event) -> Sequence[Effect]:
        match event:
            case Request(token, Locate()):
                shards = tuple(
                    Shard(f"shard-{n}", Standing.SEATED, 1, node.address, (node.address,))
                    for n, node in enumerate(self.shards)
                )
                found = replace(DIRECTORY, leader=self.leader.address, shards=shards)
                return [Reply(token, found)]
            case Request(token, Trim()):
                return [Reply(token, Done())]
            case Requests(tokens, messages):
                assert all(isinstance(each, Append) for each in messages)
                return [Replies(tokens, [Appended((Run(0, 1),)) for _ in messages])]
            case _:
                return []

    @property
    def connections(self) -> list[int]:
        return [each.server.gauges.connections for each in (self.leader, *self.shards)]

    def link(self, settings: Settings) -> Link:
        made = Link(belfast_endpoint(f"belfast://{self.leader.address}/c"), settings)
        made.start()
        return made


async def append(link: Link, shard: str) -> None:
    pledge = link.session.appender.add(Record(b"x"), 10_000, shard, retry_unknown=False)
    link.written()
    await link.settled(pledge)
    assert isinstance(pledge.outcome, Appended)


def test_connections_to_nodes_that_a_program_is_done_with_are_closed() -> None:
    async def scene() -> None:
        nodes = Nodes(shards=3)
        async with (
            nodes.leader.alive(),
            nodes.shards[0].alive(),
            nodes.shards[1].alive(),
            nodes.shards[2].alive(),
        ):
            link = nodes.link(IDLE)
            for n in range(3):
                await append(link, f"shard-{n}")
            assert all(connections == 1 for connections in nodes.connections[1:])
            await until(lambda: sum(nodes.connections) == 0)
            await append(link, "shard-1")
            assert nodes.connections[2] == 1, "it is opened again for the next append"
            assert await link.ask(Trim(0), Done, "trim", 10) == Done()
            await until(lambda: sum(nodes.connections) == 0)
            link.close()

    run(scene())


def test_a_connection_in_use_outlives_the_idle_time() -> None:
    async def scene() -> None:
        nodes = Nodes(shards=1)
        async with nodes.leader.alive(), nodes.shards[0].alive():
            link = nodes.link(IDLE)
            accepted = nodes.shards[0].server.counters
            begun = link.now_ms()
            while link.now_ms() - begun < 3 * IDLE.idle_ms:
                await append(link, "shard-0")
            assert accepted.accepted == 1
            link.close()

    run(scene())
