"""What sequencers of a lazy front say of their controllers, where these have processes of their own
(decision 74).
"""

from typing import Any

from msgspec.structs import replace
from tests.unit.core.bolt.front.world import SECOND, World

from anabranch.core.bolt.front.config import (
    REPORT_MS,
    FrontControllerConfig,
    FrontSequencerConfig,
)
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.letters import FrontControl, FrontLeads
from anabranch.core.bolt.front.questions import LOG, AskLog, LogAnswered
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.bolt.protocol.fronts import FrontConfiguration, LeadFront, ReadFront
from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effects, Received, Reply, Request, Send, TimerFired
from anabranch.core.sequencing.protocol.letters import Present, Seal
from anabranch.core.sequencing.protocol.messages import LogSurvey, Survey
from anabranch.core.sequencing.view import Ballot
from anabranch.core.types import MS, LogId, Nanoseconds

NODES = ("a", "b")
LEADS = FrontConfiguration(version=1, term=1, sequencers=NODES)


class Controlling:
    """One controller with a process of its own, to which the log says what a test has it say."""

    def __init__(self) -> None:
        config = FrontControllerConfig(node="c", log=LogId(7), sequencers=NODES, controllers=("c",))
        self.its = FrontController(config, Limits())
        self.now: Nanoseconds = SECOND
        self.said: list[tuple[str, FrontControl]] = []
        self.answer: object = LEADS
        self._take(self.its.start(self.now))

    def wait(self, ms: int) -> None:
        for _ in range(ms):
            self.now += MS
            self._take(self.its.step(self.now, TimerFired("")))

    def _take(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(to, FrontControl() as letter):
                    self.said.append((to, letter))
                case Send(_, AskLog(request, message)):
                    assert isinstance(message, LeadFront | ReadFront)
                    answered = Received(LOG, LogAnswered(request, self.answer))
                    self._take(self.its.step(self.now, answered))
                case _:
                    pass


def surveyed(letters: list[FrontControl], now: Nanoseconds) -> LogSurvey:
    """By a sequencer that was told this."""
    config = FrontSequencerConfig(node="a", log=LogId(7), controllers=("c", "d"))
    machine = FrontSequencer(config, Limits())
    machine.recover(None)
    machine.start(SECOND)
    machine.step(SECOND, Received("c", LEADS))
    for letter in letters:
        machine.step(SECOND, Received("c", letter))
    effects: Any = machine.step(now, Request(1, Survey()))
    (answer,) = (each.message for each in effects if isinstance(each, Reply))
    assert isinstance(answer, LogSurvey)
    return answer


def control(term: int, **said: Any) -> FrontControl:
    plain: dict[str, Any] = {"obstacle": "", "changing": "", "silent": (), "leaving": ()}
    return FrontControl(node=f"term-{term}", term=term, **{**plain, **said})


def test_a_controller_says_what_it_does_at_once_and_then_again() -> None:
    controlling = Controlling()
    controlling.wait(REPORT_MS // 2)
    assert [to for to, _ in controlling.said] == list(NODES)
    first = controlling.said[0][1]
    assert (first.node, first.term, first.silent) == ("c", 1, ())
    assert first.obstacle == "the sequencers have yet to come"
    controlling.wait(2 * REPORT_MS)
    assert len(controlling.said) > len(NODES)


def test_a_controller_whose_log_answers_nothing_says_so() -> None:
    controlling = Controlling()
    controlling.wait(REPORT_MS)
    controlling.answer = Refused.of(Unavailable("the log", "no broker answers"))
    controlling.wait(3 * REPORT_MS)
    assert "no broker answers" in controlling.said[-1][1].obstacle


def test_controllers_of_one_process_with_their_sequencers_say_nothing() -> None:
    world = World(seed=1, fsync=True)
    world.run(5 * SECOND)
    machine = world.nodes["s0"].machine
    assert isinstance(machine, FrontSequencer)
    effects: Any = machine.step(world.now, Request(1, Survey()))
    (answer,) = (each.message for each in effects if isinstance(each, Reply))
    assert (answer.controller, answer.age_ms) == ("", -1)
    assert len(answer.members) == 2


def test_a_sequencer_says_what_it_was_told_and_when() -> None:
    told = control(3, changing="sealing", silent=("b",))
    found = surveyed([told], SECOND + 70 * MS)
    assert (found.node, found.controller, found.age_ms) == ("a", "term-3", 70)
    assert (found.changing, found.silent, found.leaving) == ("sealing", ("b",), ())
    assert (found.version, found.term, found.sequencers) == (1, 1, NODES)
    assert (found.view, found.durability, found.shards) == (0, "fsync", ())


def test_what_a_deposed_controller_says_late_counts_for_nothing() -> None:
    found = surveyed([control(3), control(2, changing="sealing")], SECOND)
    assert (found.controller, found.changing) == ("term-3", "")


def test_only_controllers_say_what_the_front_is_and_what_they_do() -> None:
    config = FrontSequencerConfig(node="a", log=LogId(7), controllers=("c", "d"))
    machine = FrontSequencer(config, Limits())
    machine.start(SECOND)
    machine.step(SECOND, Received("b", FrontConfiguration(version=9, ending=True)))
    machine.step(SECOND, Received("e/controller", FrontConfiguration(version=9, ending=True)))
    machine.step(SECOND, Received("b", Seal(Ballot(2, 1), 1)))
    assert machine.configuration is None
    assert machine.counters.nonsense == 3
    machine.step(SECOND, Received("c", LEADS))
    machine.step(SECOND, Received("b/controller", replace(LEADS, version=2)))
    assert machine.configuration == replace(LEADS, version=2)


def test_a_front_controller_is_deposed_by_another_and_by_nobody_else() -> None:
    controlling = Controlling()
    controlling.wait(Limits().present_ms)
    machine = controlling.its
    assert machine.plan is not None
    present = Present(node="a", life=1, view=0, started=False, ordered=0)
    for sender, letter in (("x", FrontLeads(1 << 60)), ("a", FrontLeads(9)), ("b", present)):
        machine.step(controlling.now, Received(sender, letter))
    assert machine.counters.nonsense == 3
    assert machine.plan is not None
    machine.step(controlling.now, Received("a/controller", FrontLeads(9)))
    assert machine.plan is None
