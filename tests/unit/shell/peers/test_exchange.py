"""Letters between machines of one process."""

import asyncio
from typing import Any

from anabranch.core.machine import Effects, Event, Linked, Received, Send
from anabranch.shell.peers.exchange import Exchange
from anabranch.shell.runtime.driver import Host
from anabranch.shell.telemetry.log import Log


class Echo:
    """A machine that notes what it is given, and answers letters that ask for it."""

    def __init__(self) -> None:
        self.given: list[Event] = []

    def start(self, now: int) -> Effects:
        return ()

    def step(self, now: int, event: Event) -> Effects:
        self.given.append(event)
        if isinstance(event, Received) and event.message == "who?":
            return (Send(event.sender, "I"), Send("nobody", "lost"))
        return ()


async def _two() -> tuple[Exchange, dict[str, tuple[Host, Echo]]]:
    exchange, found = Exchange(), dict[str, tuple[Host, Echo]]()
    for node in ("a", "b"):
        host = Host("c", None, None, now=lambda: 0, log=Log(lambda: 0), network=exchange)
        machine: Any = Echo()
        host.start({node: machine})
        exchange.join(node, host)
        found[node] = host, machine
    return exchange, found


async def _turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


def test_machines_are_linked_and_letters_go_both_ways() -> None:
    async def run() -> None:
        exchange, found = await _two()
        exchange.send("a", "b", "who?")
        await _turns()
        assert found["a"][1].given == [Linked("b"), Received("b", "I")]
        assert found["b"][1].given == [Linked("a"), Received("a", "who?")]
        for host, _ in found.values():
            await host.stop()

    asyncio.run(run())


def test_letters_to_who_has_left_are_lost() -> None:
    async def run() -> None:
        exchange, found = await _two()
        await _turns()
        exchange.leave("b")
        exchange.send("a", "b", "who?")
        await _turns()
        assert found["b"][1].given == [Linked("a")]
        for host, _ in found.values():
            await host.stop()

    asyncio.run(run())
