"""Appends with writer marks: taken only once the metadata are known to keep marks (decision 76)."""

from collections.abc import Callable

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.protocol.commands import leader_is_earlier
from anabranch.core.bolt.protocol.marks import MARKS_FORMAT, AppendMarked, check_mark
from anabranch.core.bolt.protocol.queries import Answer, ListBrokers, Pool
from anabranch.core.errors import AnabranchError, Overloaded, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token

_WHAT = "an append with a writer mark"


class Marking:
    """A leader of an earlier version would append the batches and leave their marks out, so the
    first marked append of a broker's life asks what the leader knows. The format of the cluster is
    never lowered: what was answered once, holds.
    """

    def __init__(
        self,
        context: BrokerContext,
        *,
        correspondence: Correspondence,
        append: Callable[[Token, AppendMarked], None],
    ) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._correspondence = correspondence
        self._append = append
        self._known = False
        self._asking = False
        self._waiting: dict[Token, AppendMarked] = {}
        self._bytes = 0

    def append(self, token: Token, message: AppendMarked) -> None:
        try:
            check_mark(message.mark, self._limits.writer_chars_max)
        except AnabranchError as error:
            self._outbox.refuse(token, error)
            return
        if self._known:
            self._append(token, message)
            return
        # A batch by itself may be larger than what waits, as with appends that have no mark.
        if self._bytes and self._bytes + len(message.batch) > self._limits.log_queue_bytes_max:
            limit = self._limits.log_queue_bytes_max
            what = "bytes of marked appends that wait for the metadata"
            self._outbox.refuse(token, Overloaded(what, limit, "log_queue_bytes_max"))
            return
        assert token not in self._waiting, "a token names one request"
        self._waiting[token] = message
        self._bytes += len(message.batch)
        if not self._asking:
            self._asking = True
            self._correspondence.ask(ListBrokers(), self._told)

    def drop(self, token: Token) -> None:
        """Nobody waits for this one any more."""
        dropped = self._waiting.pop(token, None)
        if dropped is not None:
            self._bytes -= len(dropped.batch)
            assert self._bytes >= 0, "more went than came"

    def stop(self, why: AnabranchError) -> None:
        for token in self._waiting:
            self._outbox.refuse(token, why)
        self._waiting.clear()
        self._bytes = 0

    def _told(self, answer: Answer) -> None:
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        assert self._asking, "nobody else has asked"
        self._asking = False
        why = Unavailable(_WHAT, "the metadata don't answer")
        if isinstance(answer, Pool):
            self._known = answer.format >= MARKS_FORMAT
            why = leader_is_earlier(_WHAT)
        for token, message in waiting.items():
            if self._known:
                self._append(token, message)
            else:
                self._outbox.refuse(token, Refused.of(why))
