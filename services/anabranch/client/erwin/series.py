"""One producer's batches on their way: numbered, sent to all members of the view, and sent again
under the same id until it is known what became of them (LazyLog, 4.1; decision 57).

A batch is acknowledged when all members hold it in one view. When a line breaks, a member refuses
or another view begins, everything on its way is sent again in its order, so that no member's ring
has one client's batches in another order.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from anabranch.client.erwin.dialect import NodeLine
from anabranch.client.erwin.directory import ErwinCommons, Whereabouts
from anabranch.client.erwin.outstanding import Outstanding
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.spread import Spread
from anabranch.client.session.call import UNANSWERED
from anabranch.client.session.commons import heed_ms
from anabranch.client.session.pledge import Numbers
from anabranch.core.alarms import Alarm
from anabranch.core.errors import (
    AnabranchError,
    DeadlineExceeded,
    Mistake,
    OutcomeUnknown,
    QuotaExceeded,
    RecordVoided,
    RequestForgotten,
    Retry,
    ShardAway,
    Unavailable,
)
from anabranch.core.erwin.protocol.messages import Data
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.producers import request_identity
from anabranch.core.records.batch import peek
from anabranch.core.records.digest import DIGEST_BYTES, digest_of_records
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import Append, AppendMeta
from anabranch.core.types import MS, Milliseconds

WHAT = "an append"

LOST = "the records of the view in which it was sent were lost before they were ordered"

FORGOTTEN = "it was sent and not answered, and the log has forgotten this client"

ADVICE = (
    "look at the log before you repeat it, append under a request id, or say retry_unknown where "
    "twice does no harm"
)


_SCOPE = "erwin"
"""Within one log, where its members know requests: the log's name may be given anew."""


class Owner(Protocol):
    """All appends of a client."""

    def settle(self, pledge: Pledge, outcome: AppendId | AnabranchError) -> None: ...


class Series:
    """Of one producer, or of one request."""

    def __init__(
        self,
        commons: ErwinCommons,
        whereabouts: Whereabouts,
        owner: Owner,
        spread: Spread,
        request_id: str | None = None,
    ) -> None:
        """`request_id`: its batch has an id that follows from that, whoever sends it."""
        self.queue: deque[Pledge] = deque()
        """Not numbered yet; the last may still be open."""
        self.open: Pledge | None = None
        self._commons, self._whereabouts = commons, whereabouts
        self._owner, self._spread, self._request_id = owner, spread, request_id
        self._fixed = None if request_id is None else _identity_of(request_id, 0)
        """Of the request."""
        self._voids = 0
        """So many ids of this request are known to be no-ops."""
        self._window: list[Pledge] = []
        """Numbered and not acknowledged, in their order."""
        self._added = 0
        self._halted = False
        """Since a refusal or a loss: nothing is sent until a pause is over."""
        self._alarm: Alarm | None = None
        self._tries = 0
        self._view = whereabouts.view
        """The latest that this series was told of."""
        self._awaited_view = 0
        """A member has said that the log is in this view."""
        self._refusal: AnabranchError | None = None
        """The last one, until something is acknowledged."""
        self._numbers = Numbers(commons.randbits, self._fixed)
        self._outstanding = Outstanding()

    @property
    def idle(self) -> bool:
        return not self.queue and not self._window

    def add(self, pledge: Pledge) -> None:
        pledge.place = self._added = self._added + 1
        self.queue.append(pledge)

    def pump(self) -> None:
        """Send what there is room for; at the end of each step of the session."""
        if self._halted or not self.queue:
            return
        if self._obstacle:
            self._halted = True
            self._rest()
            return
        room = self._commons.settings.batches_in_flight_max
        while self.queue and len(self._window) < room and not self._halted:
            self._launch(self.queue.popleft())

    def located(self) -> None:
        """Somebody has told anew where the log is: what was sent in an earlier view, or in an
        earlier epoch of a shard, never gets all of its acknowledgements.
        """
        where = self._whereabouts
        moved = any(pledge.epoch != where.epoch(pledge.shard) for pledge in self._window)
        if where.view > self._view or moved:
            self._view = where.view
            for pledge in self._window:
                # News counts once: what can't be sent yet waits for its pause, however often nodes
                # say where the log is. Each pause asks them, so they would be asked without one.
                pledge.epoch = where.epoch(pledge.shard)
            self._stop()
            self._tries = 0
            self._resume()

    def rose(self) -> None:
        """A line is up: it may be what the others wait for."""
        if self._halted and self._window and not self._down:
            self._resume()

    def held(self, pledge: Pledge) -> None:
        self._tries, self._refusal = 0, None
        self._window.remove(pledge)
        self._leave_shard(pledge)
        assert pledge.id is not None
        self._owner.settle(pledge, pledge.id)

    def refused(self, pledge: Pledge, error: AnabranchError, *, sent: bool) -> None:
        self._refusal = pledge.refusal = error
        if isinstance(error, RequestForgotten):
            self._forgotten(pledge, error)
        elif isinstance(error, ShardAway):
            self._shard_away(pledge, sent=sent)
        elif isinstance(error, RecordVoided):
            self._voided(pledge)
        elif isinstance(error, Mistake):
            self._remove(pledge)
            self._owner.settle(pledge, self._certain(pledge, error))
        else:
            # What another member may have taken may be ordered.
            pledge.doubts += sent
            self._commons.retried = error
            asked = error.facts.get("view")
            # In mode st it may be a shard that speaks, and of its epoch.
            if self._whereabouts.mode != Mode.ST and isinstance(asked, int):
                self._awaited_view = max(self._awaited_view, asked)
            self._stop()
            self._rest(heed_ms(error))

    def lost(self, pledge: Pledge, *, sent: bool, refusal: AnabranchError | None) -> None:
        pledge.doubts += sent
        heed = 0
        if refusal is not None:
            # Each member enforces the quota by itself: one that is over it asks for a pause.
            self._refusal = pledge.refusal = self._commons.retried = refusal
            heed = heed_ms(refusal)
        self._stop()
        self._rest(heed)
        self._dial()

    def known_elsewhere(self, pledge: Pledge, shard: str) -> None:
        """Another program has sent the same request, with its data to this shard."""
        pledge.doubts += 1
        self._leave_shard(pledge)
        pledge.shard = shard
        self._spread.began(shard, pledge.size)
        self._stop()
        self._rest()

    def expire(self, pledge: Pledge) -> None:
        """Its caller waits no longer."""
        if pledge in self.queue:
            self.queue.remove(pledge)
            if pledge is self.open:
                self.open = None
            error = self._unsent(self._refusal, self._waited_for)
            self._owner.settle(pledge, self._certain(pledge, error))
            return
        owing = ", ".join(sorted(pledge.attempt.owing))
        waited = f"{owing} didn't answer" if owing else self._waited_for
        reason = f"within {pledge.timeout_ms} ms not all members acknowledged it: {waited}"
        sent = bool(pledge.doubts) or pledge.unsure or pledge.attempt.under_way
        self._remove(pledge)
        if not sent:
            self._owner.settle(pledge, self._unsent(pledge.refusal, reason))
            return
        error: AnabranchError = OutcomeUnknown(WHAT, reason, ADVICE)
        if self._fixed is not None:
            error = DeadlineExceeded(WHAT, pledge.timeout_ms, pledge.request_id)
        error.__cause__ = pledge.refusal
        self._owner.settle(pledge, error)

    def _unsent(self, refusal: AnabranchError | None, reason: str) -> AnabranchError:
        """Why an append that is certainly in no ring wasn't taken in time."""
        if isinstance(refusal, QuotaExceeded):
            return refusal
        error = self._commons.rejection or Unavailable(WHAT, reason)
        error.__cause__ = refusal
        return error

    def close(self, error: AnabranchError) -> None:
        self._stop()
        if self._alarm is not None:
            self._alarm.cancel()
        for pledge in (*self._window, *self.queue):
            self._owner.settle(pledge, self._certain(pledge, error))
        self._window.clear()
        self.queue.clear()

    @property
    def _obstacle(self) -> str:
        """Why nothing can be sent now; empty if it can."""
        where = self._whereabouts
        if where.directory is None:
            return f"no sequencing replica has told where the log is: {self._commons.trouble}"
        if not where.directory.members:
            return "the log has no view yet: its sequencing replicas are being started"
        if where.view < self._awaited_view:
            return f"nobody has told who the members of view {self._awaited_view} are"
        if where.mode == Mode.ST and not where.taking():
            return "no shard takes records"
        return ""

    @property
    def _waited_for(self) -> str:
        """Of what isn't sent, or must be sent again."""
        if self._obstacle:
            return self._obstacle
        if down := self._down:
            names = ", ".join(line.address for line in down)
            return f"{names} can't be reached: {self._commons.trouble}"
        if self._refusal is not None:
            return f"a member refused it: {self._refusal.message}"
        return f"{len(self._window)} batches before it aren't acknowledged yet"

    @property
    def _down(self) -> Sequence[NodeLine]:
        """Lines that aren't up, of those that what is on its way must be sent on."""
        where = self._whereabouts
        lines = [*where.members]
        for pledge in self._window:
            lines += where.replicas(pledge.shard)
        return [line for line in lines if not line.up]

    def _launch(self, pledge: Pledge) -> None:
        if pledge is self.open:
            self.open = None
        if not self._numbers.room_for(pledge.count):
            self._begin_identity()
        self._numbers.stamp(pledge, self._commons.settings.codec, self._commons.now // MS)
        pledge.id = AppendId(*self._numbers.identity, pledge.sequence)
        pledge.outstanding = self._outstanding
        pledge.outstanding.hold(pledge.sequence)
        pledge.lowest = pledge.outstanding.lowest
        self._window.append(pledge)
        self._send(pledge)

    def _send(self, pledge: Pledge) -> None:
        where = self._whereabouts
        assert pledge.outstanding is not None
        assert pledge.id is not None
        lowest = pledge.outstanding.lowest
        pledge.view = where.view
        pledge.since = pledge.since or pledge.view
        if where.mode != Mode.ST:
            pledge.attempt.send(Append(pledge.view, lowest, pledge.batch), where.members)
            return
        if not pledge.shard:
            self._enter_shard(pledge)
        size = len(pledge.batch)
        meta = AppendMeta(
            pledge.view, lowest, pledge.id, pledge.count, size, pledge.shard, self._digest(pledge)
        )
        replicas = where.replicas(pledge.shard)
        if not replicas and where.removed(pledge.shard):
            self._shard_removed(pledge)
            return
        if not replicas:
            # Somebody sent its data to a shard that is new here.
            self._stop()
            self._rest()
            return
        pledge.epoch = where.epoch(pledge.shard)
        # Repetitions say what the first try said: what was acknowledged since may be ordered later,
        # and a shard drops the data of what isn't ordered by then.
        data = Data(pledge.epoch, pledge.lowest, pledge.batch)
        pledge.attempt.send(meta, where.members, data, replicas, pledge.shard)

    def _digest(self, pledge: Pledge) -> bytes:
        if self._fixed is None:
            return b""
        return digest_of_records(pledge.batch, peek(pledge.batch)).to_bytes(DIGEST_BYTES)

    def _enter_shard(self, pledge: Pledge) -> None:
        pledge.shard = self._spread.choose(self._fixed)
        assert pledge.shard, "nothing is sent before a shard takes records"
        self._spread.began(pledge.shard, pledge.size)

    def _leave_shard(self, pledge: Pledge) -> None:
        if pledge.shard:
            self._spread.ended(pledge.shard, pledge.size)
            pledge.shard = ""

    def _stop(self) -> None:
        """Nobody will know what became of the tries that are under way."""
        self._halted = True
        for pledge in self._window:
            if pledge.attempt.under_way:
                pledge.doubts += 1
                pledge.attempt.stop()

    def _rest(self, heed: Milliseconds = 0) -> None:
        """Send everything again after a pause, and learn meanwhile who the members are."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._tries += 1
        commons, away = self._commons, self._obstacle or self._down
        # A view change takes some milliseconds once it has begun: a longer pause would be the gap.
        pause = heed + commons.pause(self._tries, commons.settings.view_ms if away else None)
        self._alarm = commons.alarms.after(pause, self._resume)
        self._whereabouts.ask_another()

    def _resume(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._give_up_lost()
        if self._window and (self._obstacle or self._down):
            self._dial()
            self._rest()
            return
        self._halted = False
        for pledge in list(self._window):
            if not self._halted and not pledge.attempt.under_way:
                self._send(pledge)

    def _dial(self) -> None:
        """What is on its way waits for these lines."""
        for line in self._down:
            line.dial()

    def _give_up_lost(self) -> None:
        """What was sent in a view that was lost can't be proved, and its producer isn't known."""
        lost = self._whereabouts.lost_view
        gone = [pledge for pledge in self._window if pledge.since <= lost]
        for pledge in gone:
            if pledge.doubts and not pledge.retry_unknown:
                self._remove(pledge)
                self._owner.settle(pledge, OutcomeUnknown(WHAT, LOST, ADVICE))
            else:
                self._queue_again(pledge)

    def _shard_away(self, pledge: Pledge, *, sent: bool) -> None:
        """If no member took its id, another shard may have it: under another id, but for a request.
        What may be ordered has to wait for its shard, and holds up nothing that goes elsewhere.
        """
        if not pledge.doubts and self._fixed is None:
            self._queue_again(pledge)
            self._halted = True
        elif not pledge.doubts:
            self._leave_shard(pledge)
            pledge.doubts += sent
        self._rest()

    def _shard_removed(self, pledge: Pledge) -> None:
        """The append may be ordered, and everything that its shard had is trimmed: nobody can tell
        any more whether its positions are no-ops.
        """
        if self._fixed is None and pledge.retry_unknown:
            self._queue_again(pledge)
            return
        shard = pledge.shard
        self._remove(pledge)
        error: AnabranchError = RequestForgotten(f"an append to shard {shard}, which was removed,")
        if self._fixed is None:
            error = OutcomeUnknown(WHAT, f"its shard {shard} was removed", ADVICE)
        self._owner.settle(pledge, error)

    def _forgotten(self, pledge: Pledge, error: AnabranchError) -> None:
        """All members refused it because they don't know this producer any more."""
        if self._fixed is not None:
            self._remove(pledge)
            self._owner.settle(pledge, error)
            return
        if pledge.doubts and not pledge.retry_unknown:
            self._remove(pledge)
            self._owner.settle(pledge, OutcomeUnknown(WHAT, FORGOTTEN, ADVICE))
        else:
            self._queue_again(pledge)

    def _voided(self, pledge: Pledge) -> None:
        """Its positions are no-ops, because its data came too late (LazyLog, 5.4): it may be
        appended under another id. A request's next id is the same for all who repeat the request:
        they all learn that the one before is void, and so append it once.
        """
        assert pledge.id is not None
        pledge.doubts = 0
        if self._request_id is not None and pledge.id.producer == self._fixed:
            self._voids += 1
            self._fixed = _identity_of(self._request_id, self._voids)
            self._numbers = Numbers(self._commons.randbits, self._fixed)
        self._queue_again(pledge)

    def _queue_again(self, pledge: Pledge) -> None:
        """Under another id, before all that was appended later."""
        pledge.unsure = pledge.unsure or pledge.doubts > 0
        self._remove(pledge)
        pledge.doubts = pledge.since = pledge.view = 0
        pledge.id = pledge.outstanding = None
        behind = sum(each.place < pledge.place for each in self.queue)
        self.queue.insert(behind, pledge)

    def _remove(self, pledge: Pledge) -> None:
        """From the window, without an acknowledgement. Its producer's lowest sequence stays where
        it is for good: no member may take for known what others don't hold.
        """
        self._window.remove(pledge)
        pledge.attempt.stop()
        self._leave_shard(pledge)
        if pledge.outstanding is self._outstanding:
            self._begin_identity()

    def _begin_identity(self) -> None:
        self._numbers.begin_identity()
        self._outstanding = Outstanding()

    def _certain(self, pledge: Pledge, error: AnabranchError) -> AnabranchError:
        """What invites to repeat an append is told only if it certainly isn't in the log."""
        sent = pledge.doubts or pledge.attempt.under_way
        if pledge.request_id or not (pledge.unsure or sent):
            return error
        if not pledge.unsure and not isinstance(error, Retry | Mistake):
            return error
        unknown = OutcomeUnknown(WHAT, UNANSWERED, ADVICE)
        unknown.__cause__ = error
        return unknown


def _identity_of(request_id: str, voids: int) -> int:
    """The producer id of a request of which so many ids are no-ops."""
    scope = f"{_SCOPE}/{voids}" if voids else _SCOPE
    return request_identity(scope, request_id)
