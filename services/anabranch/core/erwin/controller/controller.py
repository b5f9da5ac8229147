"""A controller of an Erwin log: decides who is a member of the sequencing layer and which replicas
hold which shard (LazyLog, 4.5; decision 58).

Its state is the last configuration. It is journaled before anybody is told: in a journal of the
controller's own, which leads at once, or in that of a group that elects a leader; the other members
follow, and know what nodes say of themselves when they are elected.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, Fenced
from anabranch.core.erwin.controller.config import ControllerConfig
from anabranch.core.erwin.controller.counters import ControllerCounters
from anabranch.core.erwin.controller.lead import FromNode, Lead, ToNode
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.controller.status import ControllerStatus
from anabranch.core.erwin.protocol.letters import (
    Configuration,
    Control,
    OpenShard,
    ShardPresent,
    ShardSealed,
)
from anabranch.core.lateness import Delays
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Campaign,
    Deposed,
    Drain,
    Effect,
    Effects,
    Elected,
    Event,
    Follow,
    Followed,
    LeaseHeld,
    Linked,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Resign,
    Rest,
    Restored,
    SaveSnapshot,
    Send,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.protocol.letters import Prepared, Present, Sealed
from anabranch.core.types import MS, Nanoseconds

RETRY_MS = 100
"""The pause after a failed write, before it is repeated."""
REPORT_MS = 1_000
"""What a controller does is repeated to sequencers so often: a letter may be lost."""
SNAPSHOT_ENTRIES = 64
"""Each entry is a whole configuration, so the journal needn't keep many."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Configuration).decode


class Controller:
    """A machine."""

    def __init__(self, config: ControllerConfig, limits: Limits) -> None:
        self.config = config
        self.counters = ControllerCounters()
        self.configuration = Configuration(
            version=0,
            term=0,
            mode=config.mode,
            fsync=config.fsync,
            view=None,
            shards=(),
            sequencers=config.sequencers,
        )
        """The last that is known to be journaled."""
        self.index = 0
        """Its entry in the journal."""
        self.lead: Lead | None = None
        self.unfit = ""
        """Why this controller can't follow its group, nor lead."""
        self._limits = limits
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self._delays = Delays()
        self._sequencers = Contacts[Present](limits, self._delays)
        self._replicas = Contacts[ShardPresent](limits, self._delays)
        self._persisting: bytes | None = None
        """On its way to the journal, also if it is of an earlier lead."""
        self._failed: str | None = None
        """Why the journal couldn't be written; that is repeated."""
        self._elected: Elected | None = None
        """Waits for the fate of what is on its way."""
        self._saved = 0
        self._reported: Control | None = None
        self._report_at: Nanoseconds = 0
        """When the same is said again."""
        self._ran_at: Nanoseconds = 0
        """Up to here it has said when it didn't run."""
        self._draining = False
        self._rested = False

    @property
    def leads(self) -> bool:
        return self.lead is not None

    @property
    def obstacle(self) -> str | None:
        """Why nothing is decided, or what can't be; None: all is well, or another one leads."""
        if self.unfit:
            return self.unfit
        if self.lead is None:
            return None
        if self.lead.forgotten:
            return f"{self.lead.forgotten} knows of decisions that this journal has forgotten"
        if self._failed is not None:
            return f"the journal can't be written: {self._failed}"
        return self._missing(self.lead)

    def status(self) -> ControllerStatus:
        lead, now = self.lead, self._alarms.now
        configuration = self.configuration
        silent, leaving = list[str](), list[str]()
        names = tuple[str, ...]()
        if lead is not None:
            silent += lead.views.silent(now)
            leaving += lead.views.leaving(now)
            for setup in lead.plan.shards:
                silent += lead.epochs.silent(setup, now)
                leaving += lead.epochs.leaving(setup, now)
            names = tuple(configuration.shards[number].name for number in lead.epochs.taking_over)
        phase = lead.views.phase if lead is not None else None
        return ControllerStatus(
            node=self.config.node,
            leads=self.leads,
            term=lead.plan.term if lead is not None else configuration.term,
            obstacle=self.obstacle,
            configuration=configuration,
            changing="" if phase is None else phase.name.lower(),
            silent=tuple(dict.fromkeys(silent)),
            leaving=tuple(dict.fromkeys(leaving)),
            taking_over=names,
        )

    # A machine.

    def recover(self, snapshot: bytes | None) -> None:
        if snapshot is not None:
            self.configuration = _decode(snapshot)

    def replayed(self, index: int, entry: bytes) -> None:
        assert index > self.index, "entries come in their order"
        self.configuration = _decode(entry)
        self.index = index

    def start(self, now: Nanoseconds) -> Effects:
        assert self.lead is None, "a controller starts once"
        self._alarms.now = now
        # Nodes speak to every controller: one that is elected after a death knows who is silent,
        # and doesn't wait once more to find out.
        self._sequencers.begin(now)
        self._replicas.begin(now)
        if self.config.alone:
            # Another life is another term: what the one before had begun must not be taken for it.
            self._begin(self.configuration.term + 1)
        else:
            self._effects += (Follow(self.index), Campaign())
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
            case Persisted(last):
                self._persisted(last)
            case PersistFailed(error):
                self._persist_failed(error)
            case Followed(first, entries):
                self._follow(first, entries)
            case Restored(index, image):
                self._restore(index, image)
            case Elected():
                self._elect(event)
            case Deposed():
                self._step_down()
            case Drain():
                self._drain()
            case LeaseHeld() | Linked() | SnapshotSaved():
                """What is decided is safe without a clock: the journal refuses a deposed leader."""
            case _:
                raise AssertionError(event)
        return self._settled()

    def _settled(self) -> Effects:
        lead = self.lead
        if lead is not None and not self._draining:
            configuration = lead.settle(self._alarms.now)
            if configuration is not None:
                assert self._persisting is None, "one group is in flight"
                self._persisting = _encode(configuration)
                self._effects.append(Persist([self._persisting]))
        if not self._effects:
            return ()
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def _tick(self) -> None:
        """Silence is seen by looking."""
        self._alarms.after(max(1, self._limits.present_ms // 2), self._tick)
        if self.config.reports and self.lead is not None:
            self._report()

    def _report(self) -> None:
        """What changed is said at once, and all of it again before anybody takes it for old."""
        assert self.leads, "only the controller that leads knows"
        status = self.status()
        report = Control(
            node=status.node,
            term=status.term,
            obstacle=status.obstacle or "",
            changing=status.changing,
            silent=status.silent,
            leaving=status.leaving,
            taking_over=status.taking_over,
        )
        now = self._alarms.now
        if report == self._reported and now < self._report_at:
            return
        self._reported, self._report_at = report, now + REPORT_MS * MS
        for node in self.config.sequencers:
            self._send(node, report)

    def _was_away(self, late: Nanoseconds, now: Nanoseconds) -> None:
        """The timer is late: this controller did not run, and others may have spoken meanwhile."""
        missed = now - max(now - late, self._ran_at)
        assert missed >= 0, "time never goes back"
        self._ran_at = now
        self._delays.note(late, now)
        self._sequencers.was_away(missed, now)
        self._replicas.was_away(missed, now)
        if self.lead is not None:
            self.lead.was_away()

    def _received(self, sender: str, letter: FromNode) -> None:
        assert sender, "a letter has a sender"
        if not self._takes(sender, letter):
            self.counters.nonsense += 1
            return
        now = self._alarms.now
        new = True
        if isinstance(letter, Present):
            new = self._sequencers.heard(
                letter.node,
                letter,
                life=letter.life,
                sent=letter.at,
                now=now,
                leaves=letter.leaving,
            )
        elif isinstance(letter, ShardPresent):
            new = self._replicas.heard(
                letter.node,
                letter,
                life=letter.disk,
                sent=letter.at,
                now=now,
                leaves=letter.leaving,
            )
        if self.lead is not None and new:
            self.lead.received(letter, now)

    def _takes(self, sender: str, letter: FromNode) -> bool:
        """Nobody speaks for another node; and only a shard can be here that isn't known yet."""
        match letter:
            case Present() | Sealed() | Prepared():
                return letter.node == sender and self._is_sequencer(sender)
            case ShardPresent():
                return letter.node == sender and (not letter.nodes or sender in letter.nodes)
            case ShardSealed():
                return letter.node == sender
            case OpenShard():
                return self._is_sequencer(sender)

    def _is_sequencer(self, node: str) -> bool:
        """By what this controller was started with, or by what was decided last."""
        known = self.configuration
        members = known.view.nodes if known.view is not None else ()
        return node in self.config.sequencers or node in known.sequencers or node in members

    def _send(self, to: str, letter: ToNode) -> None:
        self._effects.append(Send(to, letter))

    def _begin(self, term: int) -> None:
        assert self.lead is None, "one lead at a time"
        now = self._alarms.now
        self.counters.leads += 1
        self.lead = Lead(
            self.config,
            Plan(self.configuration, term, self._limits, self.counters),
            now=now,
            sequencers=self._sequencers,
            replicas=self._replicas,
            send=self._send,
        )

    # Its journal.

    def _persisted(self, last: int) -> None:
        assert self._persisting is not None
        image, self._persisting = self._persisting, None
        self._failed = None
        if self._elected is not None:
            # What an earlier lead has journaled comes by `Followed`, before another is elected.
            self._elect(self._elected)
        elif self.lead is not None:
            assert last > self.index, "the journal's indices only grow"
            self.index = last
            self.configuration = self.lead.journaled(self._alarms.now)
            if last - self._saved >= SNAPSHOT_ENTRIES:
                self._saved = last
                self._effects.append(SaveSnapshot(last, image))
        if self._draining:
            self._hand_over()

    def _persist_failed(self, error: AnabranchError) -> None:
        assert self._persisting is not None
        if isinstance(error, Fenced) or self.lead is None:
            # Another one leads, perhaps before `Deposed` came.
            self._persisting = None
            elected = self._elected
            if elected is not None:
                self._elect(elected)
            elif self.lead is not None:
                self._step_down()
                self._effects += (Resign(),) if self._draining else (Resign(), Campaign())
        else:
            self._failed = error.message
            self._alarms.after(RETRY_MS, self._persist_again)
        if self._draining:
            self._hand_over()

    def _persist_again(self) -> None:
        if self.lead is not None and self._persisting is not None:
            self._effects.append(Persist([self._persisting]))

    # Its group.

    def _elect(self, elected: Elected) -> None:
        self._check_log()
        if self.unfit or self._draining:
            self._effects.append(Resign())
            return
        self._elected = elected if self._persisting is not None else None
        if self._elected is None:
            self._begin(elected.term)

    def _check_log(self) -> None:
        """Members come and go one by one. If none is left of those that are journaled, another log
        has this one's name: led from here, its members would be put out of their own log.
        """
        known = self.configuration.sequencers
        if self.configuration.version and set(known).isdisjoint(self.config.sequencers):
            self.unfit = (
                f"the sequencers that are journaled under this cluster's name are "
                f"{', '.join(known)}, of which none is among its members: give each log a name of "
                "its own, or take away what a deleted one has left"
            )

    def _step_down(self) -> None:
        """Nothing counts that isn't journaled: following goes on from there."""
        self._elected = None
        if self.lead is not None:
            self.lead = None
            self._failed = None
            self._effects.append(Follow(self.index))

    def _follow(self, first: int, entries: Sequence[bytes]) -> None:
        if self.lead is not None or self.unfit:
            return
        if first > self.index + 1:
            # Of an earlier `Follow`: what came between was this controller's own, while it led.
            self._effects.append(Follow(self.index))
            return
        for index, entry in enumerate(entries, first):
            if index > self.index:
                self._adopt(index, entry, f"entry {index} of the journal")

    def _restore(self, index: int, image: bytes) -> None:
        if self.lead is None and not self.unfit and index > self.index:
            self._adopt(index, image, f"the snapshot at entry {index}")

    def _adopt(self, index: int, entry: bytes, what: str) -> None:
        assert self.lead is None, "a leader knows its own entries"
        assert index > self.index, "entries are applied once"
        if self.unfit:
            return
        try:
            self.configuration = _decode(entry)
        except msgspec.ValidationError:
            # Better no standby than one that misreads.
            self.unfit = f"this version can't read {what}: upgrade this controller"
            self._effects.append(Resign())
            return
        self.index = index

    # The end.

    def _drain(self) -> None:
        self._draining = True
        if self._persisting is None:
            self._hand_over()

    def _hand_over(self) -> None:
        assert self._draining
        self.lead = None
        if not self._rested:
            self._rested = True
            self._effects += (Rest(),) if self.config.alone else (Resign(), Rest())

    def _missing(self, lead: Lead) -> str | None:
        for setup in lead.plan.shards:
            if not setup.epoch:
                return f"the replicas of {setup.name} have yet to come: {', '.join(setup.nodes)}"
            if lead.epochs.lost_all(setup):
                return f"all replicas of {setup.name} have lost their journals"
        view = self.configuration.view
        if view is None:
            return "the sequencing replicas have yet to come"
        if lead.views.lost_all(view):
            return f"all members of view {view.number} have lost what they held"
        return lead.unfit(self._alarms.now) or None
