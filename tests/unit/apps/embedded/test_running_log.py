"""A log that runs in the process: how it stops."""

import asyncio
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from anabranch.apps.embedded.engine import EmbeddedEngine, LogContext, Node, Surroundings
from anabranch.apps.embedded.folders import LogFolder
from anabranch.apps.embedded.running_log import Starter
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.limits import Limits
from anabranch.core.machine import Drain, Effects, Event, Received, Rest, Send
from anabranch.core.types import LogId, Nanoseconds
from anabranch.ports import RecordJournal
from anabranch.shell.telemetry.log import Log

KEEPER, HOLDER = "/1/keeper", "/1/holder"


@dataclass
class Keeper:
    kept: list[str] = field(default_factory=list[str])

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Received(sender, letter):
                self.kept.append(letter)
                return (Send(sender, "it is kept"),)
            case _:
                return ()


class Holder:
    """It has something in memory that the keeper writes down."""

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Drain():
                return (Send(KEEPER, "a record"),)
            case Received():
                return (Rest(),)
            case _:
                return ()


class Engine:
    """Only what a starter asks of one."""

    copies = False
    asks_its_log = False

    def __init__(self, *, drains: bool) -> None:
        self.keeper = Keeper()
        self._drains = drains

    def nodes(self, context: LogContext) -> Iterator[Node]:
        for name, machine in ((KEEPER, self.keeper), (HOLDER, Holder())):
            yield Node(name, _recovered(machine), None, drains=self._drains and name == HOLDER)


def _recovered(machine: Any) -> Any:
    def recover(journal: RecordJournal) -> NodeMachine:
        journal.recover_into(lambda snapshot: None, lambda index, entry: None)
        return NodeMachine("fake", machine, lambda: "", lambda: None, None, lambda: None)

    return recover


def _kept_at_the_end(*, drains: bool) -> list[str]:
    """What the keeper has when a log was stopped in order."""
    engine = Engine(drains=drains)

    async def scene() -> None:
        around = Surroundings(
            cluster="test",
            release="0",
            limits=Limits(),
            now=lambda: 0,
            log=Log(lambda: 0, stream=io.StringIO()),
            server=cast(Any, None),
            authority=cast(Any, None),
            folders=None,
            bolt=cast(Any, None),
        )
        starter = Starter(around, lambda folder, reason: None)
        folder = LogFolder(LogId(1), 0, "audit", "erwin")
        running = await starter.start(
            cast(EmbeddedEngine, engine), folder, EngineSettings(), quota=None
        )
        await running.stop()

    asyncio.run(scene())
    return engine.keeper.kept


def test_a_node_that_holds_records_in_memory_only_hands_them_on_before_its_log_stops() -> None:
    assert _kept_at_the_end(drains=True) == ["a record"]


def test_a_node_with_a_journal_stops_as_it_is() -> None:
    assert _kept_at_the_end(drains=False) == []
