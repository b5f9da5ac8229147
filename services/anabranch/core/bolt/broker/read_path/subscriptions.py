"""Subscriptions: records are pushed as they come, also past an undecided promotable fork.

The contract with a subscriber: positions come in order and without a hole. Those below the settled
position are final. Those past it are speculative, and each is confirmed, or failed before it is
delivered again; no position is ever final twice.
"""

from functools import partial

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.rate_limits import Metering
from anabranch.core.bolt.broker.read_path.cache import Extent
from anabranch.core.bolt.broker.read_path.fetches import Fetching
from anabranch.core.bolt.broker.read_path.passages import Damage, damage, passage
from anabranch.core.bolt.broker.read_path.reads import refusal_of, refusal_of_damage
from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.bolt.protocol.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.core.bolt.protocol.queries import Answer, Describe, Resolve, Resolved
from anabranch.core.errors import Overloaded
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token
from anabranch.core.types import NEVER, LogId, Milliseconds, Position
from anabranch.core.wire.session import Credit

UNHEARD = -1
"""The generation of a log that nothing is known of yet."""


class Subscription:
    """Where one subscriber is in its log, and what the broker knows of the log for it."""

    __slots__ = (
        "busy",
        "certain",
        "credit",
        "generation",
        "listener",
        "log",
        "next",
        "over",
        "settled",
        "speculative",
        "tail",
        "token",
    )

    def __init__(self, token: Token, message: Subscribe, credit: int) -> None:
        assert message.start >= 0, "positions begin at 0"
        self.token = token
        self.log: LogId = message.log
        self.speculative = message.speculative
        self.credit = credit
        self.next: Position = message.start
        """The next position to be delivered."""
        self.certain: Position = message.start
        """Everything delivered below it is final; from there up to `next` it is speculative."""
        self.tail: Position = 0
        self.settled: Position = 0
        self.generation = UNHEARD
        """Of the positions that were delivered: another one's mustn't be mixed with them."""
        self.busy = False
        """Something has been asked of the metadata or the store for it."""
        self.over = False
        self.listener = 0

    @property
    def wants(self) -> bool:
        """Is there, as far as is known, something to deliver and leave to deliver it?"""
        horizon = self.tail if self.speculative else self.settled
        unheard = self.generation == UNHEARD
        return not (self.busy or self.over) and self.credit > 0 and (unheard or self.next < horizon)


class Subscriptions:
    """Every subscriber of this broker."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        correspondence: Correspondence,
        watches: Watches,
        fetching: Fetching,
        metering: Metering,
    ) -> None:
        self._cluster = context.cluster
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._watches = watches
        self._fetching = fetching
        self._metering = metering
        self._open: dict[Token, Subscription] = {}

    def __len__(self) -> int:
        return len(self._open)

    def subscribe(self, token: Token, message: Subscribe) -> None:
        limit = self._limits.subscriptions_max
        fault = refusal_of(message.start)
        if fault is None and len(self._open) >= limit:
            fault = Overloaded("subscriptions", limit, "subscriptions_max")
        if fault is not None:
            self._outbox.refuse(token, fault)
            return
        self._outbox.counters.subscriptions += 1
        credit = min(message.credit_bytes, self._limits.subscription_bytes)
        subscription = self._open[token] = Subscription(token, message, credit)
        subscription.listener = self._watches.listen(
            message.log, partial(self._moved, subscription)
        )
        self._resolve(subscription)

    def credit(self, message: Credit) -> None:
        """The subscriber has room for so many bytes more."""
        subscription = self._open.get(message.subscription)
        if subscription is None or message.bytes <= 0:
            return
        credit = subscription.credit + message.bytes
        subscription.credit = min(credit, self._limits.subscription_bytes)
        self._pump(subscription)

    def drop(self, token: Token) -> None:
        subscription = self._open.pop(token, None)
        if subscription is not None:
            subscription.over = True
            self._watches.leave(subscription.log, subscription.listener)

    def tokens(self) -> list[Token]:
        return list(self._open)

    def _pump(self, subscription: Subscription) -> None:
        if subscription.wants:
            self._resolve(subscription)

    def _resolve(self, subscription: Subscription) -> None:
        assert not subscription.over, "nobody listens any more"
        assert not subscription.busy, "one question at a time"
        pause_ms = self._metering.pause_ms(subscription.log)
        if pause_ms:
            self._later(subscription, pause_ms)
            return
        subscription.busy = True
        query = Resolve(
            subscription.log,
            subscription.next,
            self._limits.batch_records_max,
            max(1, min(subscription.credit, self._limits.read_bytes_max)),
            subscription.speculative,
            self._fetching.ahead_bytes,
        )
        self._correspondence.ask(query, partial(self._resolved, subscription))

    def _resolved(self, subscription: Subscription, answer: Answer) -> None:
        subscription.busy = False
        if subscription.over:
            return
        if isinstance(answer, Refused):
            self._end(subscription, answer)
            return
        assert isinstance(answer, Resolved), "Resolve is answered as such"
        self._metering.told((subscription.log,), answer.quotas)
        if not self._same_generation(subscription, answer):
            return
        if not answer.slices:
            if subscription.wants:
                self._later(subscription, self._limits.watch_ms)
            return
        if answer.slices[0].first > subscription.next:
            # Asked before a promotion failed what had been delivered, and answered after it.
            self._pump(subscription)
            return
        subscription.busy = True
        self._fetching.fetch(answer.slices, partial(self._fetched, subscription, answer))
        self._fetching.read_ahead(answer.ahead)

    def _same_generation(self, subscription: Subscription, answer: Resolved) -> bool:
        """May what this answer tells of be delivered after what was?

        If a promotion came between, first the speculative records that it moved must be failed,
        and only the watch says which these are.
        """
        if answer.generation < subscription.generation:
            self._pump(subscription)
            return False
        if answer.generation > subscription.generation:
            if subscription.certain < subscription.next:
                self._watches.ask_anew(subscription.log)
                return False
            subscription.generation = answer.generation
            subscription.tail = subscription.settled = 0
        self._advance(subscription, answer.tail, answer.settled)
        return True

    def _later(self, subscription: Subscription, delay_ms: Milliseconds) -> None:
        """There should be more and there isn't: whoever says so first will have to say it again.

        Or there is more than a quota lets pass by now.
        """
        assert delay_ms > 0

        def again() -> None:
            subscription.busy = False
            self._pump(subscription)

        subscription.busy = True
        self._alarms.after(delay_ms, again)

    def _fetched(
        self, subscription: Subscription, answer: Resolved, extents: list[Extent] | Refused
    ) -> None:
        subscription.busy = False
        if subscription.over:
            return
        if isinstance(extents, Refused):
            self._end(subscription, extents)
            return
        if answer.generation == subscription.generation:
            hurt = damage(answer.slices, extents, subscription.next)
            if hurt is not None and hurt.first == subscription.next:
                subscription.busy = True
                named = partial(self._damaged, subscription, hurt)
                self._correspondence.ask(Describe(subscription.log), named)
                return
            end = hurt.first if hurt else NEVER
            settled = min(subscription.settled, end)
            self._deliver(subscription, answer, extents, settled, False)
            if subscription.speculative and subscription.next >= subscription.settled:
                self._deliver(subscription, answer, extents, end, True)
        self._pump(subscription)

    def _damaged(self, subscription: Subscription, hurt: Damage, described: Answer) -> None:
        assert hurt.first >= subscription.certain, "it was delivered whole"
        if not subscription.over:
            self._end(subscription, refusal_of_damage(self._cluster, hurt, described))

    def _deliver(
        self,
        subscription: Subscription,
        answer: Resolved,
        extents: list[Extent],
        end: Position,
        speculative: bool,
    ) -> None:
        """Push what lies between what was delivered and `end`, as far as the credit goes."""
        if subscription.credit <= 0 or subscription.next >= end:
            return
        found = passage(answer.slices, extents, subscription.next, end, subscription.credit)
        if not found.batches:
            return
        self._outbox.reply(subscription.token, Delivered(found.runs, found.batches, speculative))
        self._outbox.counters.batches_read += len(found.batches)
        self._outbox.counters.bytes_read += found.bytes
        self._metering.read(subscription.log, found.bytes)
        subscription.credit -= found.bytes
        subscription.next = found.next
        assert found.next <= end, "no more than was meant to be delivered"
        if not speculative:
            subscription.certain = found.next

    def _moved(self, subscription: Subscription, moved: Moved) -> None:
        if moved.ended is not None:
            self._end(subscription, moved.ended)
            return
        if moved.generation < subscription.generation:
            return
        if moved.generation > subscription.generation:
            self._fail(subscription, moved.diverges)
            subscription.generation = moved.generation
            subscription.tail = 0
        self._advance(subscription, moved.tail, moved.settled)
        self._pump(subscription)

    def _fail(self, subscription: Subscription, diverges: Position) -> None:
        """A promotion moved records from here on: what was delivered of them comes again (spec
        7).
        """
        since = max(subscription.certain, diverges)
        assert since >= subscription.certain, "what is final stays"
        if since < subscription.next:
            self._outbox.counters.speculations_failed += 1
            self._outbox.reply(subscription.token, Failed(since))
            subscription.next = since

    def _advance(self, subscription: Subscription, tail: Position, settled: Position) -> None:
        """Within one generation both only grow; what settled of the delivered is confirmed."""
        subscription.tail = max(subscription.tail, tail)
        subscription.settled = max(subscription.settled, settled)
        assert subscription.certain <= subscription.next, "what is certain was delivered"
        final = min(subscription.settled, subscription.next)
        if final > subscription.certain:
            subscription.certain = final
            self._outbox.reply(subscription.token, Confirmed(final))

    def _end(self, subscription: Subscription, why: Refused) -> None:
        """The log is gone, or can't be read: what isn't certain by now never will be."""
        self._fail(subscription, subscription.certain)
        self.drop(subscription.token)
        self._outbox.refuse(subscription.token, why)
