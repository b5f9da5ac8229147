"""A line against a model that remembers who asked what on which connection."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.client.session.stage import ENGINES, Caller, Stage

from anabranch.client.session.delivery import Delivery
from anabranch.client.session.effects import Dial, HangUp, Transmit
from anabranch.core.errors import BadFrame, Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.wire.session import Cancel


class Lines(RuleBasedStateMachine):
    """One line and its server, which answers, says nothing, repeats itself and goes away."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(ENGINES["bolt"], back_off_ms=10, silence_ms=10_000_000)
        self.stage.wanted = True
        self.dialing = self.connected = False
        self.waiting: dict[int, Caller] = {}
        """Asked before the welcome."""
        self.sent: dict[int, Caller] = {}
        """Asked on this connection, and not given up."""
        self.stale: list[int] = []
        """Numbers of requests that were given up, or of connections before."""
        self.got: dict[int, list[Any]] = {}
        self.lost: dict[int, list[bool]] = {}
        self.callers: list[Caller] = []

    def effects(self) -> list[Any]:
        found = self.stage.effects()
        for each in found:
            if isinstance(each, Dial):
                assert not self.dialing
                assert not self.connected
                self.dialing = True
            elif isinstance(each, Transmit):
                assert self.connected
            elif isinstance(each, HangUp):
                self.dialing = self.connected = False
        return found

    def break_off(self) -> None:
        for sent, each in ((True, self.sent), (False, self.waiting)):
            for caller in each.values():
                self.lost.setdefault(id(caller), []).append(sent)
        self.stale += [*self.sent, *self.waiting]
        self.sent, self.waiting = {}, {}
        self.dialing = self.connected = False

    @rule()
    def ask(self) -> None:
        caller, number = self.stage.ask()
        self.callers.append(caller)
        assert number not in self.sent
        assert number not in self.waiting
        assert number > 0
        (self.sent if self.stage.line.up else self.waiting)[number] = caller
        self.effects()

    @precondition(lambda self: self.dialing)
    @rule(well=st.booleans())
    def dialed(self, well: bool) -> None:
        self.dialing, self.connected = False, well
        if not well:
            self.break_off()
            self.stage.line.broken("nobody listens")
            self.effects()
            return
        self.stage.connect()
        sent = [each.request for each in self.effects() if isinstance(each, Transmit)]
        assert sent[1:] == list(self.waiting), "hello first, then what waited, in order"
        self.sent, self.waiting = self.waiting, {}

    @precondition(lambda self: self.sent or self.stale)
    @rule(data=st.data(), which=st.integers(0, 2))
    def answer(self, data: st.DataObject, which: int) -> None:
        numbers = [*self.sent, *self.stale, 4_000_000_000]
        number = data.draw(st.sampled_from(numbers))
        said = (
            self.stage.engine.answer,
            Refused.of(Overloaded("it", 1, "it_max")),
            BadFrame("it can't be read"),
        )[which]
        if not self.connected:
            return
        caller = self.sent.get(number)
        if caller is not None:
            self.got.setdefault(id(caller), []).append(said)
        self.stage.hear(number, said)
        self.effects()

    @precondition(lambda self: self.sent or self.waiting)
    @rule(data=st.data(), tell=st.booleans())
    def give_up(self, data: st.DataObject, tell: bool) -> None:
        number = data.draw(st.sampled_from([*self.sent, *self.waiting]))
        was_sent = self.sent.pop(number, None) is not None
        self.stale.append(number)
        if tell:
            self.waiting.pop(number, None)
            self.stage.line.cancel(number)
            told = [each.message for each in self.effects() if isinstance(each, Transmit)]
            assert told == [Cancel(number)] * was_sent
        elif was_sent:
            self.stage.line.unheard(number)
        else:
            self.waiting.pop(number)
            self.stage.line.cancel(number)

    @precondition(lambda self: self.connected)
    @rule()
    def cut(self) -> None:
        self.break_off()
        self.stage.line.broken("it broke")
        self.effects()

    @precondition(lambda self: not self.stage.line.up and not self.connected)
    @rule()
    def wait(self) -> None:
        self.stage.advance(20)
        self.effects()

    @invariant()
    def everybody_got_what_was_theirs(self) -> None:
        for caller in self.callers:
            assert caller.got == self.got.get(id(caller), [])
            assert caller.losses == self.lost.get(id(caller), [])
        assert self.stage.line.up == self.connected


Lines.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestLines = Lines.TestCase


class Deliveries(RuleBasedStateMachine):
    """A promise over three lines, sent again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = [Stage(ENGINES["belfast"]) for _ in range(3)]
        self.answers: list[Any] = []
        self.losses: list[bool] = []
        self.delivery: Delivery[Any, Any] = Delivery(self)
        self.open: dict[int, int] = {}
        """By stage, the request that is waited for."""
        self.expected: list[Any] = []
        self.expected_losses: list[bool] = []
        self.sent: set[int] = set()
        for stage in self.stages:
            self.connect(stage)

    def answered(self, message: Any) -> None:
        self.answers.append(message)

    def lost(self, *, sent: bool) -> None:
        self.losses.append(sent)

    @staticmethod
    def connect(stage: Stage) -> None:
        stage.line.dial()
        stage.connect()
        stage.effects()

    @precondition(lambda self: not self.open)
    @rule(chosen=st.sets(st.integers(0, 2), min_size=1))
    def send(self, chosen: set[int]) -> None:
        self.delivery.send(
            self.stages[0].engine.question, *(self.stages[n].line for n in sorted(chosen))
        )
        for number in chosen:
            sent = [e.request for e in self.stages[number].effects() if isinstance(e, Transmit)]
            self.open[number] = sent[0] if sent else -1
            if sent:
                self.sent.add(number)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), refused=st.booleans())
    def answer(self, data: st.DataObject, refused: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        stage, request = self.stages[number], self.open[number]
        if request < 0:
            return
        said = Refused.of(Overloaded("it", 1, "it_max")) if refused else stage.engine.answer
        del self.open[number]
        if refused or not self.open:
            self.expected.append(said)
            self.open.clear()
        stage.hear(request, said)
        if not self.open:
            for each in self.stages:
                each.hear(request, said)  # too late, or for nobody
        self.done()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        stage = self.stages[number]
        sent = self.open[number] >= 0 or len(self.open) > 1
        self.open.clear()
        self.expected_losses.append(sent)
        stage.line.broken("it broke")
        self.connect(stage)
        self.done()

    @precondition(lambda self: self.open)
    @rule()
    def stop(self) -> None:
        self.delivery.stop()
        self.open.clear()
        self.done()

    def done(self) -> None:
        if not self.open:
            self.sent.clear()

    @invariant()
    def a_promise_is_answered_or_lost_once(self) -> None:
        assert self.answers == self.expected
        assert self.losses == self.expected_losses
        assert self.delivery.under_way == bool(self.open)


Deliveries.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestDeliveries = Deliveries.TestCase
