"""The broker: it decides how batches become objects, and how they come back.

It gathers appends into objects and has them committed, reads through a cache, pushes to
subscribers, and hands everything else on to the metadata (AgileLog, 5.1, 5.2). One that was
replaced stops at once: its epoch is in the name of every object it could write.
"""

from collections.abc import Callable, Sequence
from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.broker.compactors import ServingCompactors
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.control import Controlling, OtherEngines
from anabranch.core.bolt.broker.control_requests import ControlRequests
from anabranch.core.bolt.broker.copies import Compacting
from anabranch.core.bolt.broker.counters import Counters, Gauges
from anabranch.core.bolt.broker.drain import Draining
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.leader import Allegiance
from anabranch.core.bolt.broker.outbox import Outbox
from anabranch.core.bolt.broker.pending import Waits
from anabranch.core.bolt.broker.rate_limits import Metering
from anabranch.core.bolt.broker.read_path.cache import ExtentCache
from anabranch.core.bolt.broker.read_path.fetches import Fetching
from anabranch.core.bolt.broker.read_path.reads import Reading
from anabranch.core.bolt.broker.read_path.subscriptions import Subscriptions
from anabranch.core.bolt.broker.scans import Scanning
from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.broker.write_path.appends import Appending
from anabranch.core.bolt.broker.write_path.commits import Writing
from anabranch.core.bolt.broker.write_path.marked import Marking
from anabranch.core.bolt.broker.write_path.parked import Parking
from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Done, Epoch, Outcome, RegisterBroker
from anabranch.core.bolt.protocol.fronts import (
    AppendFront,
    ConfigureFront,
    EndFront,
    LeadFront,
    OpenFront,
    ReadFront,
)
from anabranch.core.bolt.protocol.letters import Applied, CopyExtents, Leading, Moved, QueryAnswer
from anabranch.core.bolt.protocol.marks import (
    AppendMarked,
    CompleteVersion,
    ReadWriters,
    ReleaseWriter,
)
from anabranch.core.bolt.protocol.set_sums import ReadSetSum
from anabranch.core.errors import BadRequest, BrokerDraining, BrokerFenced
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Drain,
    Effects,
    Event,
    GetFailed,
    Gone,
    Linked,
    ObjectPut,
    ObjectRead,
    PutFailed,
    PutsSigned,
    RangesSigned,
    Received,
    Request,
    Requests,
    SignFailed,
    TimerFired,
    Token,
)
from anabranch.core.types import Nanoseconds
from anabranch.core.usage import Usage

_REFUSED_WHEN_CLOSED = (
    messages.Append,
    AppendFront,
    AppendMarked,
    messages.Read,
    messages.Subscribe,
    messages.Redeem,
)


class Broker:
    """A machine. `Cancel.request` and `Credit.subscription` name requests by their tokens.

    `life` tells one life of a broker from the next, so that registering twice gives one epoch;
    without it the time of its start does. One that clients reach at an `address` of its own writes
    to whichever of the `members` leads; one without has its metadata in the same process.
    `others` says who runs logs of other engines.
    """

    def __init__(
        self,
        name: str,
        cluster: str,
        limits: Limits,
        members: Sequence[str] = ("metadata",),
        life: bytes | None = None,
        address: str = "",
        others: OtherEngines = OtherEngines.NOBODY,
    ) -> None:
        assert name, "a broker has a name"
        assert members, "somebody leads the metadata"
        self.name = name
        self._life = life
        self._limits = limits
        self._address = address
        self._outbox = outbox = Outbox(None if address else members[0])
        self._alarms = alarms = Alarms(outbox.effects)
        context = BrokerContext(name, cluster, limits, outbox, alarms)
        self._correspondence = asking = Correspondence(context)
        self._watches = watches = Watches(context)
        self._cache = cache = ExtentCache(limits.cache_bytes)
        self._waits = waits = Waits(context, watches)
        self._fetching = fetching = Fetching(context, cache)
        self._writing = writing = Writing(context, correspondence=asking, cache=cache)
        self._parking = Parking(context, watches)
        metering = Metering(context, asking)
        self._appending = Appending(
            context, writing=writing, parking=self._parking, metering=metering
        )
        self._marking = Marking(
            context, correspondence=asking, append=self._appending.append_marked
        )
        self._reading = Reading(
            context, correspondence=asking, fetching=fetching, waits=waits, metering=metering
        )
        self._subscriptions = Subscriptions(
            context, correspondence=asking, watches=watches, fetching=fetching, metering=metering
        )
        requests = ControlRequests(context, correspondence=asking, waits=waits)
        self._controlling = Controlling(
            context, requests=requests, correspondence=asking, waits=waits, others=others
        )
        self._scanning = Scanning(context, requests=requests, metering=metering)
        self._compactors = ServingCompactors(
            context, requests=requests, correspondence=asking, waits=waits
        )
        self._compacting = Compacting(
            context, correspondence=asking, fetching=fetching, writing=writing
        )
        self._writing.on_fenced = self._stop
        self._allegiance = Allegiance(context, members)
        self._allegiance.on_leader = self._led_by_another
        self._draining = Draining(
            context,
            correspondence=asking,
            epoch=lambda: self._allegiance.epoch,
            held=lambda: self._appending.held + len(self._waits.in_doubt()),
        )
        self._draining.on_closed = self._close
        self.fenced: BrokerFenced | None = None
        """Set when this life of it is over: nothing is served any more, and it rests."""
        self._others = others
        self._requests = self._request_table()
        self._events = self._event_table()

    @property
    def counters(self) -> Counters:
        return self._outbox.counters

    @property
    def usage(self) -> Usage:
        """Of the object store, by log."""
        return self._outbox.usage

    @property
    def leader(self) -> str | None:
        """The metadata member that this broker writes to."""
        return self._outbox.metadata

    @property
    def epoch(self) -> int:
        """0 until it is registered."""
        return self._allegiance.epoch

    def gauges(self) -> Gauges:
        """As of now."""
        gauges = Gauges()
        gauges.appends_held = self._appending.held
        gauges.appends_held_bytes = self._appending.held_bytes
        gauges.appends_parked = len(self._parking)
        gauges.waits = len(self._waits)
        gauges.subscriptions = len(self._subscriptions)
        gauges.cache_bytes = self._cache.bytes
        return gauges

    def start(self, now: Nanoseconds) -> Effects:
        assert self.fenced is None, "this life of it is over"
        self._alarms.now = now
        if self._life is None:
            self._life = f"{self.name} {now}".encode()
        self._correspondence.begin(self._life)
        self._scanning.begin(self._life)
        if self._address:
            self._allegiance.begin()
        self._register()
        return self._decided()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        if type(event) is Requests:
            self._several(event)
        elif type(event) is Request:
            self._request(event)
        elif self.fenced is None:
            self._events[type(event)](event)
        return self._decided()

    def _decided(self) -> Effects:
        effects = self._outbox.effects
        if not effects:
            return ()
        decided = tuple(effects)
        effects.clear()
        return decided

    def _request(self, event: Request) -> None:
        if self.fenced is not None:
            self._outbox.refuse(event.token, self.fenced)
            return
        message: object = event.message
        if self._draining.closed and isinstance(message, _REFUSED_WHEN_CLOSED):
            self._draining.refuse(event.token)
            return
        serve = self._requests.get(type(message))
        if serve is None:
            reason = "a broker has no answer to it"
            self._outbox.refuse(event.token, BadRequest(type(message).__name__, reason))
            return
        serve(event.token, message)

    def _several(self, event: Requests) -> None:
        """Appends that came together are taken together."""
        taken = self.fenced is None and not self._draining.closed
        if taken and type(event.messages[0]) is messages.Append:
            self._appending.append_many(event.tokens, event.messages)
            return
        for token, message in zip(event.tokens, event.messages, strict=True):
            self._request(Request(token, message))

    def _received(self, event: Received) -> None:
        message = event.message
        if isinstance(message, Moved):
            self._watches.moved(message)
        elif isinstance(message, Leading):
            self._allegiance.leading(event.sender, message)
            if message.epoch > self.epoch > 0:
                self._stop(Refused.of(BrokerFenced(self.name, self.epoch, message.epoch)))
        elif isinstance(message, CopyExtents):
            if not self._draining.begun:
                self._compacting.copy(message)
        else:
            assert isinstance(message, Applied | QueryAnswer), "only the metadata write to a broker"
            self._correspondence.heard(message)

    def _timer_fired(self, event: TimerFired) -> None:
        if event.key == Appending.KEY:
            self._appending.turn_ended()
        else:
            assert event.key == Alarms.KEY
            self._alarms.ring()

    def _landed(self, event: ObjectPut) -> None:
        if event.object == self._compacting.flying:
            self._compacting.landed()
        else:
            self._writing.landed(event.object)

    def _crashed(self, event: PutFailed) -> None:
        if event.object == self._compacting.flying:
            self._compacting.crashed()
        else:
            self._writing.crashed(event.object, event.error)

    def _object_read(self, event: ObjectRead) -> None:
        if self._compactors.owns(event.token):
            self._compactors.read_back(event)
        else:
            self._fetching.arrived(event)

    def _get_failed(self, event: GetFailed) -> None:
        own = self._compactors.owns(event.token)
        (self._compactors if own else self._fetching).failed(event)

    def _sign_failed(self, event: SignFailed) -> None:
        if self._compactors.owns(event.token):
            self._compactors.failed_to_sign(event)
        else:
            self._scanning.failed(event)

    def _gone(self, event: Gone) -> None:
        for token in event.tokens:
            self._drop(token)

    def _drop(self, token: Token) -> None:
        self._waits.drop(token)
        self._subscriptions.drop(token)
        self._appending.drop(token)
        self._marking.drop(token)

    def _register(self) -> None:
        assert self._life is not None
        command = RegisterBroker(self.name, self._address)
        self._correspondence.propose(self._life, command, self._registered, patient=True)

    def _registered(self, outcome: Outcome) -> None:
        if isinstance(outcome, Refused):
            self._alarms.after(self._limits.propose_retry_ms, self._register)
            return
        assert isinstance(outcome, Epoch), "a registration is answered with an epoch"
        self._allegiance.epoch = outcome.epoch
        self._writing.begin(outcome.epoch)

    def _led_by_another(self) -> None:
        self._correspondence.repeat_all()
        self._watches.repeat_all()

    def _close(self) -> None:
        """Whoever waits or listens here goes on elsewhere. What may have been done already is
        finished: a broker that drains refuses nothing but what it hasn't begun.
        """
        assert self._draining.closed, "what is new would still be taken"
        self._appending.let_parked_go(BrokerDraining(self.name))
        self._marking.stop(BrokerDraining(self.name))
        begun = set(self._waits.in_doubt())
        waiting = [token for token in self._waits.tokens() if token not in begun]
        for token in (*waiting, *self._subscriptions.tokens()):
            self._drop(token)
            self._draining.refuse(token)

    def _stop(self, why: Refused) -> None:
        """Answer everything in hand; from now on nothing is done and everything refused."""
        fenced = why.error()
        assert isinstance(fenced, BrokerFenced)
        self.fenced = fenced
        self._appending.stop(fenced)
        self._marking.stop(fenced)
        for token in (*self._waits.tokens(), *self._subscriptions.tokens()):
            self._outbox.refuse(token, fenced)
        self._draining.end()

    def _event_table(self) -> dict[type, Callable[[Any], None]]:
        return {
            Received: self._received,
            TimerFired: self._timer_fired,
            ObjectPut: self._landed,
            PutFailed: self._crashed,
            ObjectRead: self._object_read,
            GetFailed: self._get_failed,
            RangesSigned: self._scanning.signed,
            PutsSigned: self._compactors.signed,
            SignFailed: self._sign_failed,
            Gone: self._gone,
            Linked: lambda event: self._allegiance.linked(event.node),
            Drain: lambda _: self._draining.begin(),
        }

    def _order(self, token: Token, message: messages.Order) -> None:
        """A front with processes of its own; one of this process has a way of its own."""
        if self._others is OtherEngines.THIS_PROCESS:
            reason = (
                "the lazy fronts of this service run in its own process, and no one else orders"
            )
            self._outbox.refuse(token, BadRequest("an order", reason))
        else:
            self._requests[type(message.message)](token, message.message)

    def _request_table(self) -> dict[type, Callable[[Token, Any], None]]:
        do, ask = self._controlling.do, self._controlling.ask
        return {
            messages.Append: self._appending.append,
            messages.Read: self._reading.read,
            messages.Subscribe: self._subscriptions.subscribe,
            messages.Credit: lambda _, message: self._subscriptions.credit(message),
            messages.Cancel: lambda _, message: self._drop(message.request),
            messages.Redeem: self._controlling.redeem,
            AppendFront: self._appending.append_front,
            LeadFront: self._controlling.do_front,
            ConfigureFront: self._controlling.do_front,
            OpenFront: self._controlling.do_front,
            EndFront: self._controlling.do_front,
            ReadFront: ask,
            messages.Order: self._order,
            AppendMarked: self._marking.append,
            CompleteVersion: do,
            ReleaseWriter: do,
            ReadWriters: ask,
            messages.FindReceipt: ask,
            **self._scanning.table(),
            **self._compactors.table(),
            messages.CreateLog: do,
            messages.DeleteLog: do,
            messages.Fork: do,
            messages.Promote: do,
            messages.PromoteIf: do,
            messages.Squash: do,
            messages.Trim: do,
            messages.CommitCursor: do,
            messages.DeleteCursor: do,
            messages.SetQuota: do,
            messages.Adopt: do,
            messages.SetSettings: do,
            messages.SetAppends: do,
            messages.DrainBroker: do,
            messages.ForgetBroker: do,
            messages.Guarded: do,
            messages.ReadCursors: ask,
            messages.Describe: ask,
            messages.ListLogs: ask,
            messages.Compare: ask,
            messages.PositionAt: ask,
            ReadSetSum: ask,
            messages.Survey: ask,
            messages.ListBrokers: ask,
            messages.Ping: lambda token, _: self._outbox.reply(token, Done()),
        }
