"""Requests that a broker hands on to the metadata: each is bounded, and answered once."""

from collections.abc import Callable
from functools import partial

import msgspec

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.pending import Wait, Waits
from anabranch.core.bolt.protocol import commands, queries
from anabranch.core.bolt.protocol.commands import Command, Outcome
from anabranch.core.bolt.protocol.messages import ServerMessage
from anabranch.core.bolt.protocol.queries import Answer, Query
from anabranch.core.errors import BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import KIB
from anabranch.core.machine import Token
from anabranch.core.records.digest import check_request, split_request

COMMAND_BYTES_MAX = 512 * KIB
"""Of a command that a client asks for: whatever the metadata then say, it is journaled. The longest
are completed versions of a writer, with a dozen bytes for each part.
"""

_encode = msgspec.msgpack.Encoder().encode


class ControlRequests:
    def __init__(
        self, context: BrokerContext, *, correspondence: Correspondence, waits: Waits
    ) -> None:
        self._outbox = context.outbox
        self._correspondence = correspondence
        self._waits = waits

    def ask(
        self, token: Token, query: Query, then: Callable[[Wait, Answer], None] | None = None
    ) -> None:
        """Answer with what the metadata answer; with `then`, that decides what to do with it."""
        wait = self._waits.begin(token)
        if wait is not None:
            self._correspondence.ask(query, partial(then or self.answer, wait))

    def propose(self, token: Token, command: Command) -> None:
        """A command that changes nothing when it is done again."""
        wait = self._waits.begin(token)
        if wait is not None:
            self._correspondence.propose(b"", command, partial(self.answer, wait))

    def propose_once(self, token: Token, request: bytes, command: Command) -> None:
        """A command that is done once for its request id, however often it is asked for."""
        try:
            check_request(request)
            _check_size(command)
        except BadRequest as error:
            self._outbox.refuse(token, error)
            return
        wait = self._waits.begin(token)
        if wait is not None:
            wait.in_doubt = True
            identity, digest = split_request(request)
            assert identity, "a command without an id is done as often as it comes"
            done = partial(self.answer, wait)
            self._correspondence.propose(identity, command, done, digest=digest)

    def answer(self, wait: Wait, answer: Outcome | Answer | ServerMessage) -> None:
        if wait.over:
            return
        self._waits.end(wait)
        if isinstance(answer, Refused):
            self._outbox.refuse(wait.token, answer)
            return
        # These are between brokers and the metadata: clients are never told a plan's secret.
        assert not isinstance(
            answer,
            commands.Committed
            | commands.Epoch
            | commands.Swapped
            | queries.Resolved
            | queries.FoundPlan,
        )
        self._outbox.reply(wait.token, answer)


def _check_size(command: Command) -> None:
    size = len(_encode(command))
    if size > COMMAND_BYTES_MAX:
        reason = f"a command has {COMMAND_BYTES_MAX} at most: name less with each"
        raise BadRequest(f"a command of {size} bytes", reason)
