"""The controller of a lazy front: decides who is a member of its sequencing layer (LazyLog, 4.5;
decision 62).

Its decisions are kept by the log, as part of the log's state: nobody is told before the log has
committed them, and a controller of an earlier term decides nothing any more. A view ends only after
the log is closed to its batches.
"""

from functools import partial
from typing import Any

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.bolt.front.config import LOOK_MS, REPORT_MS, FrontControllerConfig
from anabranch.core.bolt.front.counters import FrontControllerCounters
from anabranch.core.bolt.front.letters import FrontControl, FrontLeads
from anabranch.core.bolt.front.plan import FrontPlan
from anabranch.core.bolt.front.questions import Answer, LogAnswered, Questions
from anabranch.core.bolt.front.succession import Succession
from anabranch.core.bolt.protocol.fronts import (
    ConfigureFront,
    FrontConfiguration,
    FrontEpoch,
    FrontOpened,
    LeadFront,
    OpenFront,
    ReadFront,
)
from anabranch.core.errors import Deposed, StaleView
from anabranch.core.errors.refused import Refused
from anabranch.core.lateness import Delays
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Drain,
    Effect,
    Effects,
    Event,
    Linked,
    Received,
    Rest,
    Send,
    TimerFired,
)
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.controller.names import is_controller
from anabranch.core.sequencing.controller.stragglers import Stragglers
from anabranch.core.sequencing.controller.views import Views
from anabranch.core.sequencing.protocol.letters import Prepared, Present, Sealed
from anabranch.core.sequencing.view import Ballot
from anabranch.core.types import MS, Nanoseconds, Position


class WholeLog:
    """Where a front's ordered records are: the log says its end when it is closed to a view."""

    ready = True

    def hold(self, now: Nanoseconds) -> Position | None:
        assert now >= 0
        return 0


class FrontController:
    """A machine."""

    def __init__(self, config: FrontControllerConfig, limits: Limits) -> None:
        self.config = config
        self.counters = FrontControllerCounters()
        self.plan: FrontPlan | None = None
        """While it has a term."""
        self.views: Views | None = None
        self.ended: Refused | None = None
        """What the log says to everything from now on: it is gone."""
        self._limits = limits
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self._questions = Questions(self._effects, self._alarms)
        self._contacts = Contacts[Present](limits, Delays())
        self._stragglers = Stragglers(limits)
        self._succession = Succession(
            config.node, config.controllers, limits, self._alarms, self._send, self._lead
        )
        self._looks_at: Alarm | None = None
        self._ran_at: Nanoseconds = 0
        self._reported: FrontControl | None = None
        self._report_at: Nanoseconds = 0
        """When to say it again."""

    @property
    def configuration(self) -> FrontConfiguration:
        """The last that the log has committed, as far as is known here."""
        return self.plan.configuration if self.plan is not None else FrontConfiguration()

    @property
    def obstacle(self) -> str | None:
        """Why nothing is decided, or what can't be; None: all is well."""
        if self.ended is not None:
            return self.ended.message
        if self.plan is None or self.views is None:
            if len(self.config.controllers) > 1 and not len(self._questions):
                return None  # another controller leads, or this one is about to
            return self._questions.obstacle or "it has asked the log for a term"
        view = self.plan.configuration.view
        if view is None:
            return self._questions.obstacle or "the sequencers have yet to come"
        if self.views.lost_all(view):
            return f"all members of view {view.number} have lost what they held"
        return None

    def silent(self) -> tuple[str, ...]:
        return self.views.silent(self._alarms.now) if self.views is not None else ()

    # A machine.

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self._succession.start()
        self._tick()
        return self._settled()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        if self._alarms.overdue:
            self._was_away(self._alarms.overdue, now)
        match event:
            case Received(sender, letter):
                self._received(sender, letter)
            case TimerFired():
                self._alarms.ring()
            case Drain():
                self._succession.leave()
                self._effects.append(Rest())
            case Linked():
                """Nodes say what they are again and again."""
            case _:
                raise AssertionError(event)
        return self._settled()

    def _settled(self) -> Effects:
        if self.views is not None and self.plan is not None and self.ended is None:
            self.views.watch(self._alarms.now)
            configuration = self.plan.take()
            if configuration is not None:
                command = ConfigureFront(self.config.log, configuration)
                self._questions.ask(command, self._configured)
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def _tick(self) -> None:
        """Silence is seen by looking."""
        self._alarms.after(max(1, self._limits.present_ms // 2), self._tick)
        if self.config.controllers and self.views is not None:
            self._report(self.views)

    def _report(self, views: Views) -> None:
        """What changed is said at once, and all of it again before anybody takes it for old."""
        assert self.plan is not None, "it has a term as long as it leads"
        now = self._alarms.now
        report = FrontControl(
            node=self.config.node,
            term=self.plan.term,
            # Without the log no view change could be completed.
            obstacle=self.obstacle or self._questions.obstacle,
            changing="" if views.phase is None else views.phase.name.lower(),
            silent=views.silent(now),
            leaving=views.leaving(now),
        )
        if report == self._reported and now < self._report_at:
            return
        self._reported, self._report_at = report, now + REPORT_MS * MS
        for node in self.plan.configuration.sequencers:
            self._send(node, report)

    def _was_away(self, late: Nanoseconds, now: Nanoseconds) -> None:
        """The timer is late: this controller did not run, and others may have spoken meanwhile."""
        missed = now - max(now - late, self._ran_at)
        assert missed >= 0, "time never goes back"
        self._ran_at = now
        self._contacts.was_away(missed, now)
        self._succession.was_away(missed)
        self._stragglers.begin()

    def _received(self, sender: str, letter: Any) -> None:
        if not self._takes(sender, letter):
            self.counters.nonsense += 1
            return
        match letter:
            case Present():
                self._present(letter)
            case Sealed() | Prepared():
                if self.views is not None:
                    self.views.received(letter)
            case FrontLeads():
                if self._succession.heard(letter):
                    self._step_down()
            case LogAnswered():
                self._questions.answered(letter)
            case _:
                """It is for sequencers, and came to the wrong node."""

    def _takes(self, sender: str, letter: Any) -> bool:
        """Nobody speaks for another node."""
        match letter:
            case Present() | Sealed() | Prepared():
                return letter.node == sender and self._is_sequencer(sender)
            case FrontLeads():
                known, added = self.config.controllers, self.configuration.sequencers
                return is_controller(sender, controllers=known, sequencers=added)
            case _:
                return True

    def _is_sequencer(self, node: str) -> bool:
        """By what this controller was started with, or by what was decided last."""
        known = self.configuration
        members = known.view.nodes if known.view is not None else ()
        return node in self.config.sequencers or node in known.sequencers or node in members

    def _present(self, letter: Present) -> None:
        now = self._alarms.now
        new = self._contacts.heard(
            letter.node,
            letter,
            life=letter.life,
            sent=letter.at,
            now=now,
            leaves=letter.leaving,
        )
        if self.views is None or self.plan is None or not new:
            return
        known = self.plan.configuration
        if letter.version < known.version and letter.node in known.sequencers:
            self._send(letter.node, known)
        self.views.present(letter, now)

    def _send(self, to: str, letter: object) -> None:
        self._effects.append(Send(to, letter))

    # The log.

    def _lead(self) -> None:
        """Get a term: from then on no other controller decides anything."""
        if self.ended is not None:
            return
        self._step_down()
        self._questions.ask(LeadFront(self.config.log, self.config.sequencers), self._led)

    def _led(self, answer: Answer) -> None:
        if not isinstance(answer, FrontConfiguration):
            self._refused(answer)
            return
        now = self._alarms.now
        self.counters.leads += 1
        self._contacts.begin(now)
        self.plan = FrontPlan(answer, self._limits, self.counters)
        self.views = Views(
            self.plan,
            self._contacts,
            WholeLog(),
            self._stragglers,
            now=now,
            accept_loss=self.config.accept_loss,
            send=self._send,
            settle=self._settle,
        )
        self._succession.leads(answer.term)
        self._tell(answer)
        self._look()

    def _look(self) -> None:
        """Somebody may have asked the log that its front ends."""
        if self.plan is not None:
            self._questions.ask(ReadFront(self.config.log), self._seen)

    def _seen(self, answer: Answer) -> None:
        if not isinstance(answer, FrontConfiguration):
            self._refused(answer)
            return
        assert self.plan is not None, "what was asked is forgotten when it steps down"
        if answer.term > self.plan.term:
            # Also when its own question for a term was done twice, and it heard of the first.
            self._step_down()
            self._succession.deposed()
            return
        self._looks_at = self._alarms.after(LOOK_MS, self._look)
        if answer.ending and not self.plan.busy and self.plan.adopt(answer):
            self._tell(answer)

    def _step_down(self) -> None:
        """Nothing is decided from here on, and nobody waits for the log's answers."""
        self.plan = self.views = None
        self._questions.forget()
        if self._looks_at is not None:
            self._looks_at.cancel()

    def _configured(self, answer: Answer) -> None:
        if not isinstance(answer, FrontConfiguration):
            self._refused(answer)
            return
        assert self.plan is not None
        assert self.views is not None
        self.plan.journaled(answer)
        self._tell(answer)
        self.views.journaled(self._alarms.now)

    def _settle(self, ballot: Ballot) -> None:
        """Close the log to the views before this ballot's, and learn which ids it holds."""
        assert ballot.view > 1, "nothing comes before the first view"
        command = OpenFront(self.config.log, FrontEpoch(ballot.view, 0))
        self._questions.ask(command, partial(self._opened, ballot))

    def _opened(self, ballot: Ballot, answer: Answer) -> None:
        if not isinstance(answer, FrontOpened):
            self._refused(answer)
        elif self.views is not None:
            self.views.settled(ballot, answer.ids, answer.records)

    def _tell(self, configuration: FrontConfiguration) -> None:
        assert configuration.version > 0, "configurations are numbered from 1"
        for node in configuration.sequencers:
            self._send(node, configuration)

    def _refused(self, answer: Answer) -> None:
        assert isinstance(answer, Refused), "an answer of the kind that was asked for, or a refusal"
        if answer.code in (Deposed.code, StaleView.code):
            # Another controller began, or this one's own question came twice.
            self._step_down()
            self._succession.deposed()
        else:
            self.ended = answer
