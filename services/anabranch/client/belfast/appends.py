"""Appends on their way: gathered into batches, each numbered at its shard, sent until it is known
what became of them.

A batch carries its producer's id and a sequence, and a shard takes them in that order, each once.
So whatever wasn't answered is sent again to whoever is the shard's primary then. Where a shard
failed as a whole (Belfast, 4.8), what is certainly not in the log may go to another.
"""

from collections import deque
from functools import partial
from typing import Protocol

from anabranch.client.belfast.directory import UNSEEN_MAX, NodeLine, Whereabouts
from anabranch.client.belfast.stream import BelfastCommons
from anabranch.client.session.commons import heed_ms
from anabranch.client.session.delivery import Delivery
from anabranch.client.session.pledge import Numbers, Promise
from anabranch.core.alarms import Alarm
from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Elsewhere,
    ToClient,
    ToServer,
)
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    DeadlineExceeded,
    Mistake,
    NotPrimary,
    OutcomeUnknown,
    Overloaded,
    QuotaExceeded,
    RecordVoided,
    SequenceGap,
    ShardAway,
    ShardElsewhere,
    ShardFailed,
    ShardLeft,
    Unavailable,
    UnknownShard,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, Milliseconds, Position

SHARD_FAILED = "it was sent and not answered, and the shard failed or forgot this client"

ADVICE = (
    "look at the log before you repeat it, append under a request id, or say retry_unknown where "
    "twice does no harm"
)

_ELSEWHERE = (NotPrimary, ShardElsewhere)
"""Another replica takes it."""

_CLOSED = (ShardAway, ShardFailed, ShardLeft)
"""The shard doesn't take it; another may."""

_NOTHING_DONE = (*_ELSEWHERE, *_CLOSED, Overloaded, QuotaExceeded, Mistake, SequenceGap)
"""After these it is certain that this try appended nothing; after others it isn't."""


class Pledge(Promise[Appended]):
    """The records of one batch to one shard."""

    __slots__ = (
        "behind",
        "delivery",
        "named",
        "request_id",
        "retry_unknown",
        "shard",
        "unsure",
        "where",
    )

    def __init__(
        self,
        shard: str,
        timeout_ms: Milliseconds,
        *,
        named: bool,
        retry_unknown: bool,
        request_id: str = "",
    ) -> None:
        super().__init__(timeout_ms)
        self.shard, self.named = shard, named
        self.request_id = request_id
        """Its caller's, under which the shard appends it once however often it is sent."""
        self.retry_unknown = retry_unknown
        self.where: Producer | None = None
        self.delivery: Delivery[ToServer, ToClient] = Delivery(self)
        self.behind = False
        """One before it isn't in the log, so this one isn't either."""
        self.unsure = False
        """It was given up with its outcome unknown, and is appended once more."""

    def position(self, index: int) -> Position:
        """Of the record that is the `index`th of it."""
        assert isinstance(self.outcome, Appended)
        for run in self.outcome.runs:
            if index < run.count:
                return run.first + index
            index -= run.count
        raise BadFrame(f"positions of {self.count} records don't tell that of one of them")

    def answered(self, message: ToClient | AnabranchError) -> None:
        assert self.where is not None
        self.where.answered(self, message)

    def lost(self, *, sent: bool) -> None:
        assert self.where is not None
        self.where.lost(self, sent=sent)


class Owner(Protocol):
    """Who spreads appends over shards."""

    def settle(self, pledge: Pledge, outcome: Appended | AnabranchError) -> None: ...

    def reroute(self, pledge: Pledge) -> None:
        """It is certainly not in the log: append it elsewhere, if its caller didn't say where."""
        ...


class Producer:
    """One shard's appends by one client, in order."""

    def __init__(
        self,
        commons: BelfastCommons,
        whereabouts: Whereabouts,
        owner: Owner,
        shard: str,
        identity: int | None = None,
    ) -> None:
        """`identity`: of one request. Its batches have that place and no other, ever."""
        self.shard = shard
        self.queue: deque[Pledge] = deque()
        """Not sent under these numbers yet; the last may still be open."""
        self.open: Pledge | None = None
        self.pending_bytes = 0
        self.unseen = 0
        """How many directories in a row don't know the shard, since all have joined."""
        self._commons, self._whereabouts, self._owner = commons, whereabouts, owner
        self._window: deque[Pledge] = deque()
        self._line: NodeLine | None = None
        self._unanswered = 0
        self._halted = False
        """Since a refusal: nothing is sent until all is answered and a pause is over."""
        self._broken_off = False
        """There is a number that the shard will never see: what follows is of another epoch."""
        self._forgotten = False
        """The shard doesn't know the numbers before these."""
        self._alarm: Alarm | None = None
        self._tries = 0
        self._heed_ms: Milliseconds = 0
        """How long the refusals since ask to be left alone."""
        self._refusal: AnabranchError | None = None
        """Why the shard took nothing last, until it takes something."""
        self._fixed = identity is not None
        self._numbers = Numbers(commons.randbits, identity)

    @property
    def idle(self) -> bool:
        return not self.queue and not self._window

    def add(self, pledge: Pledge) -> None:
        pledge.where, pledge.shard = self, self.shard
        self.queue.append(pledge)
        self.pending_bytes += pledge.size
        if self.shard and self._whereabouts.shard(self.shard) is None:
            self._whereabouts.ask()

    def pump(self) -> None:
        """Send what there is room for; at the end of each step of the session."""
        if self._halted or not self.queue:
            return
        known = self._whereabouts.shard(self.shard)
        if known is None or not known.primary or self._whereabouts.failed(self.shard):
            return
        if self._broken_off:
            if self._window:
                return
            self._begin_epoch()
        while self.queue and len(self._window) < self._commons.settings.batches_in_flight_max:
            self._launch(self.queue.popleft())

    def located(self) -> None:
        """Somebody has told anew where the shards are."""
        shard, joining = self._whereabouts.shard(self.shard), self._whereabouts.joining
        self.unseen = self.unseen + 1 if shard is None and not joining else 0
        if self.unseen >= UNSEEN_MAX or self._whereabouts.failed(self.shard):
            self._give_up()
        elif shard is None:
            # While shards join, the session asks now and then.
            if not joining:
                self._whereabouts.ask()
        elif self._line is not None and shard.primary != self._line.address:
            self._leave_line()

    def answered(self, pledge: Pledge, message: ToClient | AnabranchError) -> None:
        self._unanswered -= 1
        assert self._unanswered >= 0, "each request has one answer"
        match message:
            case Appended():
                self._tries, self._refusal = 0, None
                self._done(pledge, message)
            case Refused():
                self._refused(pledge, message.error())
            case Elsewhere():
                self._halted = True
            case _:
                pledge.doubts += 1
                name = type(message).__name__
                self._done(pledge, BadFrame(f"an append was answered with {name}"))
        self._rest()

    def lost(self, pledge: Pledge, *, sent: bool) -> None:
        pledge.doubts += sent
        self._unanswered -= 1
        self._halted = True
        self._rest()

    def expire(self, pledge: Pledge) -> None:
        """Its caller waits no longer."""
        if pledge in self.queue:
            self._drop(pledge)
            error = pledge.refusal or self._refusal or self._unreachable()
            if pledge.doubts and not self._fixed:
                error = unknown(pledge, "a shard to which it was sent has failed")
            self._owner.settle(pledge, error)
            return
        if pledge.refusal is not None and not pledge.doubts and not self._unanswered:
            # Every try was refused and none is on its way, so it isn't in the log.
            self._skip(pledge)
            self.pending_bytes -= pledge.size
            self._owner.settle(pledge, pledge.refusal)
            return
        what, timeout_ms = f"an append to shard {self.shard}", pledge.timeout_ms
        error = (
            DeadlineExceeded(what, timeout_ms, pledge.request_id)
            if self._fixed
            else OutcomeUnknown.late(what, timeout_ms, ADVICE)
        )
        error.__cause__ = pledge.refusal
        # Those behind it have their numbers after it: it stays until the shard has answered.
        self._owner.settle(pledge, error)
        if not self._unanswered and all(each.outcome for each in self._window):
            self._give_up()

    def close(self, error: AnabranchError) -> None:
        for pledge in (*self._window, *self.queue):
            self._owner.settle(pledge, error)
        self._window.clear()
        self.queue.clear()

    def _launch(self, pledge: Pledge) -> None:
        if pledge is self.open:
            self.open = None
        commons = self._commons
        self._numbers.stamp(pledge, commons.settings.codec, commons.now // MS)
        self._window.append(pledge)
        self._send(pledge)

    def _send(self, pledge: Pledge) -> None:
        shard = self._whereabouts.shard(self.shard)
        assert shard is not None
        self._line = self._whereabouts.line(shard.primary)
        self._unanswered += 1
        pledge.delivery.send(Append(pledge.batch), self._line)

    def _unreachable(self) -> AnabranchError:
        commons, where = self._commons, self._whereabouts
        if where.directory is not None and where.joining and where.shard(self.shard) is None:
            return where.missing(self.shard)
        return commons.rejection or Unavailable(f"shard {self.shard}", commons.trouble)

    def _refused(self, pledge: Pledge, error: AnabranchError) -> None:
        pledge.refusal = self._refusal = self._commons.retried = error
        self._heed_ms = max(self._heed_ms, heed_ms(error))
        closed = isinstance(error, _CLOSED) and not pledge.doubts
        if isinstance(error, RecordVoided) or (closed and self._may_leave(pledge, error)):
            self._skip(pledge)
            self._elsewhere(pledge)
        elif isinstance(error, SequenceGap):
            self._forgotten = not pledge.behind
            self._halted = True
        elif isinstance(error, Mistake):
            self._skip(pledge)
            self.pending_bytes -= pledge.size
            self._owner.settle(pledge, error)
        else:
            pledge.doubts += not isinstance(error, _NOTHING_DONE)
            self._halted = True

    def _skip(self, pledge: Pledge) -> None:
        """It isn't in this shard's log, nor are those behind it, which a shard takes in order."""
        index = self._window.index(pledge)
        self._broken_off = True
        for each in list(self._window)[index + 1 :]:
            each.behind, each.doubts = True, 0
        self._window.remove(pledge)
        self._halted = True

    def _may_leave(self, pledge: Pledge, error: AnabranchError) -> bool:
        """Whoever named the shard waits while it is away, and is told that it left."""
        return not pledge.named or isinstance(error, ShardLeft)

    def _elsewhere(self, pledge: Pledge) -> None:
        self.pending_bytes -= pledge.size
        if pledge.outcome is not None:
            return
        if pledge.named and pledge.refusal is not None:
            self._owner.settle(pledge, pledge.refusal)
        else:
            self._owner.reroute(pledge)

    def _done(self, pledge: Pledge, outcome: Appended | AnabranchError) -> None:
        self._window.remove(pledge)
        self.pending_bytes -= pledge.size
        self._owner.settle(pledge, outcome)

    def _drop(self, pledge: Pledge) -> None:
        self.queue.remove(pledge)
        self.pending_bytes -= pledge.size
        if pledge is self.open:
            self.open = None

    def _rest(self) -> None:
        """Once everything on its way is answered, what must be sent again is, after a pause."""
        if self._halted and not self._unanswered:
            if self._alarm is not None:
                self._alarm.cancel()
            self._tries = 1 if self._heed_ms else self._tries + 1
            pause = self._heed_ms + self._commons.pause(self._tries)
            self._heed_ms = 0
            self._alarm = self._commons.alarms.after(pause, self._resume)
            self._whereabouts.ask()

    def _resume(self) -> None:
        if self._unanswered:
            return
        if self._whereabouts.failed(self.shard) or self._forgotten:
            self._give_up()
            return
        shard = self._whereabouts.shard(self.shard)
        if shard is None or not shard.primary:
            self._rest()
            return
        self._halted = False
        behind = [each for each in self._window if each.behind]
        self._window = deque(each for each in self._window if not each.behind)
        self._queue_again(behind)
        for pledge in self._window:
            self._send(pledge)

    def _give_up(self) -> None:
        """The shard failed as a whole, or doesn't know these numbers: whatever is known not to be
        in its log may go elsewhere.
        """
        self._unheard()
        window, self._window = self._window, deque()
        self._halted = self._forgotten = False
        self._broken_off = False
        self._numbers.begin_identity()
        again: list[Pledge] = []
        for pledge in window:
            sure = pledge.doubts == 0 or self._fixed
            if pledge.outcome is None and (sure or pledge.retry_unknown):
                pledge.unsure = pledge.unsure or not sure
                again.append(pledge)
            else:
                self.pending_bytes -= pledge.size
                self._owner.settle(pledge, unknown(pledge, SHARD_FAILED))
        self._queue_again(again)
        if not self._whereabouts.failed(self.shard) and self.unseen < UNSEEN_MAX:
            return
        for pledge in list(self.queue):
            if not pledge.named:
                self._drop(pledge)
                self._owner.reroute(pledge)
            elif self.unseen >= UNSEEN_MAX:
                self._drop(pledge)
                self._owner.settle(pledge, UnknownShard(self.shard))

    def _begin_epoch(self) -> None:
        """From now on the shard refuses copies of older batches that may still be on their way."""
        self._broken_off = False
        self._numbers.begin_epoch()

    def _queue_again(self, pledges: list[Pledge]) -> None:
        """Before all others, with other numbers; those whose callers have gone are forgotten."""
        for pledge in reversed(pledges):
            pledge.behind, pledge.doubts = False, 0
            if pledge.outcome is None:
                self.queue.appendleft(pledge)
            else:
                self.pending_bytes -= pledge.size

    def _unheard(self) -> None:
        """Whatever is on its way: nobody will know what became of it."""
        if self._alarm is not None:
            self._alarm.cancel()
        for pledge in self._window:
            if pledge.delivery.under_way:
                pledge.doubts += 1
                pledge.delivery.stop()
        self._unanswered = 0

    def _leave_line(self) -> None:
        """Another replica is the primary now: what isn't answered is sent to it."""
        self._unheard()
        self._line = None
        if self._window or self._halted:
            self._halted = True
            self._rest()


def unknown(pledge: Pledge, reason: str) -> OutcomeUnknown:
    """It may be in the log, and repeated under other numbers it could be there twice."""
    return OutcomeUnknown(f"an append to shard {pledge.shard}", reason, ADVICE)


def expiring(pledge: Pledge) -> partial[None]:
    """To be called when its time is over, wherever it is by then."""
    return partial(_expire, pledge)


def _expire(pledge: Pledge) -> None:
    assert pledge.where is not None
    pledge.where.expire(pledge)
