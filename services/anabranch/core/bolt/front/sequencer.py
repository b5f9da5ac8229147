"""A sequencer of a lazy front: a sequencing replica that has its ring committed while it leads
(LazyLog, 4; decision 62).
"""

from collections.abc import Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.front.committing import Committing
from anabranch.core.bolt.front.config import FrontSequencerConfig
from anabranch.core.bolt.front.counters import FrontCounters
from anabranch.core.bolt.front.letters import FrontControl
from anabranch.core.bolt.front.pace import Pace
from anabranch.core.bolt.front.questions import LogAnswered, Questions
from anabranch.core.bolt.front.status import directory, status, survey
from anabranch.core.bolt.protocol.fronts import FrontConfiguration, FrontEpoch
from anabranch.core.errors import AnabranchError, BadRequest, OutcomeUnknown, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Effects,
    Event,
    Reply,
    Rest,
    Token,
)
from anabranch.core.sequencing.controller.draining import Draining
from anabranch.core.sequencing.protocol.messages import (
    Append,
    Elsewhere,
    FindPosition,
    Inspect,
    Locate,
    Survey,
)
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.view import View
from anabranch.core.serving_machine import ServingMachine
from anabranch.core.types import Nanoseconds, Position


class FrontSequencer(ServingMachine):
    """A machine."""

    def __init__(self, config: FrontSequencerConfig, limits: Limits) -> None:
        self.config = config
        self.counters = FrontCounters()
        self.configuration: FrontConfiguration | None = None
        """The latest that is known here."""
        self.committing: Committing | None = None
        """While this node orders."""
        self._control: tuple[Nanoseconds, FrontControl] | None = None
        """What a controller has said last, and when."""
        self._limits = limits
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self.replica = SequencingReplica(config.replica, limits, self._effects, self._alarms)
        self.pace = Pace(self._alarms)
        self._questions = Questions(self._effects, self._alarms)
        self._draining = Draining(
            self.replica,
            self._effects,
            self._alarms,
            limits,
            view=lambda: self.view,
            ordered=lambda: self.committing is None or self.committing.idle,
            hands_over=config.hands_over,
        )
        self._stirred = False
        """Something has happened that may let the ordering go on."""
        self.replica.on_started = self._started
        self.replica.on_ended = self._stop
        self.replica.on_stable = self._on_stable

    # What it knows, for whoever shows it.

    @property
    def view(self) -> View | None:
        """The latest that is known here, by the configuration or by the replica."""
        configured = self.configuration.view if self.configuration else None
        started = self.replica.view
        if configured is None or (started is not None and started.number > configured.number):
            return started
        return configured

    @property
    def obstacle(self) -> str | None:
        """Why it can't do its part; None if it can."""
        if self.replica.obstacle is not None:
            return self.replica.obstacle
        if self.configuration is None:
            return "no controller has told it the configuration yet"
        if self.committing is not None and self.committing.ended is not None:
            return self.committing.ended.message
        return None

    @property
    def held_up(self) -> str:
        """Why the log commits nothing at present; empty if it does, or this node doesn't lead."""
        return self._questions.obstacle if self.committing is not None else ""

    @property
    def _ends(self) -> bool:
        """No append is taken any more: the log's appends become direct."""
        return self.configuration is not None and self.configuration.ending

    @property
    def ring_lasts_ms(self) -> int:
        """How long the ring has room at the present rate of appends if none is committed; -1: there
        are none.
        """
        return self.pace.lasts_ms(self.ring_bytes_free)

    @property
    def ring_bytes_free(self) -> int:
        return max(0, self._limits.ring_bytes_max - self.replica.ring.bytes)

    # A machine.

    def recover(self, snapshot: bytes | None) -> None:
        self.replica.recover(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        self.replica.replayed(index, entry)

    def start(self, now: Nanoseconds) -> Effects:
        assert self.committing is None, "a sequencer starts once"
        self._alarms.now = now
        self.pace.start()
        self.replica.start()
        return self._settled()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        self._take(event)
        return self._settled()

    def _settled(self) -> Effects:
        """What the replica learns of its journal may let the ordering go on, and the other way
        round.
        """
        self._stirred = True
        while self._stirred:
            self._stirred = False
            if self.committing is not None:
                self.committing.settle()
            self.replica.settle()
            if self.committing is not None and self._ends:
                self.committing.end()
        self._draining.settle()
        return self._taken()

    def _persisted(self, last: int) -> None:
        self.replica.persisted(last)

    def _persist_failed(self, error: AnabranchError) -> None:
        self.replica.persist_failed(error)

    def _gone(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self.replica.gone(token)

    def _linked(self, node: str) -> None:
        assert node != self.config.node, "no node dials itself"
        self.replica.linked(node)

    def _drain(self) -> None:
        if self.config.hands_over or not self.config.fsync:
            self._draining.begin()
        else:  # what is in the ring is in journals
            self._effects.append(Rest())

    def _received(self, sender: str, letter: Any) -> None:
        match letter:
            case FrontConfiguration() | FrontControl() if not self.replica.is_controller(sender):
                self.counters.nonsense += 1
            case FrontConfiguration():
                if self.configuration is None or letter.version > self.configuration.version:
                    self.configuration = letter
                    self.replica.configured(letter.version, letter.sequencers)
            case FrontControl():
                if self._control is None or letter.term >= self._control[1].term:
                    self._control = self._alarms.now, letter
            case LogAnswered():
                self._questions.answered(letter)
                if self.committing is not None and self.committing.ended is not None:
                    self.replica.ask_again()
            case _:
                self.counters.nonsense += not self.replica.received(sender, letter)

    def _started(self, view: View) -> None:
        self._stop()
        self._stirred = True
        if not self.replica.leads:
            return
        assert self.replica.begun > 0, "a leader journals that it begins"
        self.counters.leads += 1
        self.committing = Committing(
            self.config.log,
            FrontEpoch(view.number, self.replica.begun),
            self.replica,
            self._questions,
            bounds=self.config.bounds,
            counters=self.counters,
        )

    def _stop(self) -> None:
        assert self.committing is None or self.counters.leads > 0
        self._questions.forget()
        self.committing = None

    def _on_stable(self, stable: Position) -> None:
        """There may be room for what waits to be taken."""
        assert stable <= self.replica.ordered
        self._stirred = True

    # What clients ask.

    def _asked(self, token: Token, message: object) -> None:
        ended = self.committing.ended if self.committing is not None else None
        if ended is not None and isinstance(message, Append | FindPosition):
            self._reply(token, ended)
            return
        if isinstance(message, Append) and self._draining.begun:
            self._refuse(token, Unavailable(f"sequencer {self.config.node}", "it is about to stop"))
            return
        if isinstance(message, Append) and self._ends:
            # Others may have taken it, and hold it in the ring that the next leader begins with.
            advice = "open the log again, and look before you repeat it"
            error = OutcomeUnknown("the append", "the log's appends become direct", advice)
            self._refuse(token, error)
            return
        if isinstance(message, Append):
            self.pace.note(len(message.batch))
        if self.replica.requested(token, message):
            return
        match message:
            case Locate():
                self._reply(token, directory(self.configuration, self.view))
            case Survey():
                self._reply(token, survey(self, self._control, self._alarms.now))
            case Inspect() if self.committing is not None and not self.committing.over:
                self._reply(token, status(self, self._limits.ring_bytes_max))
            case Inspect():
                leader = self.view.leader if self.view is not None else ""
                self._reply(token, Elsewhere(leader if leader != self.config.node else ""))
            case _:
                what = f"{type(message).__name__.lower()} at {self.config.node}"
                self._refuse(token, BadRequest(what, "it is a lazy front: ask the log"))

    def _reply(self, token: Token, message: object) -> None:
        assert message is not None
        self._effects.append(Reply(token, message))

    def _refuse(self, token: Token, error: AnabranchError) -> None:
        self._reply(token, Refused.of(error))
