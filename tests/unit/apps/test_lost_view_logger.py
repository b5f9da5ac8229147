"""Views that were lost are written into the log of the process, each once."""

import io
from dataclasses import dataclass, field

from anabranch.apps.lost_view_logger import LostViewLogger
from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.machine import Drain, Effects, Event
from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Nanoseconds
from anabranch.shell.telemetry.log import Log

MEMBER = Member("/1/sequencer-0", 1)


@dataclass
class Config:
    node: str = "/1/controller-0"


@dataclass
class Controller:
    """Each step it has the next of these configurations, and keeps the last."""

    coming: list[FrontConfiguration]
    config: Config = field(default_factory=Config)
    configuration: FrontConfiguration = field(default_factory=FrontConfiguration)

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        if self.coming:
            self.configuration = self.coming.pop(0)
        return ()


def configuration(view: int, *lost: int) -> FrontConfiguration:
    found = View(ballot=Ballot(view, 1, 1), members=(MEMBER,), leader=MEMBER.node)
    return FrontConfiguration(view=found, lost_views=tuple((each, 0) for each in lost))


def said(*coming: FrontConfiguration, leads: bool = True) -> list[str]:
    """The last configuration comes twice, as it does at every step without a decision."""
    stream = io.StringIO()
    machine = LostViewLogger(
        Controller([*coming, coming[-1]]), lambda: leads, Log(lambda: 0, stream=stream)
    )
    machine.start(0)
    for _ in range(len(coming) + 1):
        machine.step(0, Drain())
    return stream.getvalue().splitlines()


def test_a_view_is_named_once_when_it_is_noted_as_lost() -> None:
    (line,) = said(configuration(1), configuration(1, 1), configuration(1, 1), configuration(2, 1))
    assert "a view was lost" in line
    assert "view=1" in line
    assert "/1/controller-0" in line


def test_each_lost_view_is_named() -> None:
    lines = said(configuration(1, 1), configuration(2, 1), configuration(2, 1, 2))
    assert ["view=1" in line for line in lines] == [True, False]
    assert ["view=2" in line for line in lines] == [False, True]


def test_views_that_were_lost_before_the_process_started_are_not_named_again() -> None:
    assert said(configuration(3, 1, 2)) == []


def test_only_the_controller_that_leads_writes() -> None:
    assert said(configuration(1, 1), leads=False) == []
