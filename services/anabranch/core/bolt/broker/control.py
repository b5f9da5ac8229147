"""What a broker hands on: commands to be done once, questions, receipts to be redeemed."""

from enum import Enum
from functools import partial
from typing import assert_never

from msgspec.structs import replace

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.control_requests import ControlRequests
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.pending import Wait, Waits
from anabranch.core.bolt.protocol import commands, messages, queries
from anabranch.core.bolt.protocol.commands import (
    BOLT,
    FRONT,
    EngineSettings,
    Guardable,
)
from anabranch.core.bolt.protocol.fronts import FrontCommand, ReadFront
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.bolt.protocol.marks import CompleteVersion, ReadWriters, ReleaseWriter
from anabranch.core.bolt.protocol.messages import Once, Redeem
from anabranch.core.bolt.protocol.queries import Answer, Query
from anabranch.core.bolt.protocol.set_sums import ReadSetSum
from anabranch.core.bolt.state.catalogue import ENGINES, REPLICAS_APART, SEQUENCERS_APART
from anabranch.core.errors import EngineNotServed, FrontNotServed, ReceiptPending
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token

Question = (
    messages.ReadCursors
    | messages.Describe
    | messages.ListLogs
    | messages.Compare
    | messages.PositionAt
    | messages.Survey
    | messages.ListBrokers
    | messages.FindReceipt
    | ReadFront
    | ReadWriters
    | ReadSetSum
)


class OtherEngines(Enum):
    """Who runs logs of other engines that are created without the addresses of their sequencers."""

    NOBODY = "nobody"
    """Such a creation is refused."""
    THIS_PROCESS = "this process"
    """The log is embedded: its machines run beside this broker."""
    SUPERVISOR = "a supervisor"
    """Somebody starts its processes, and then says where they are."""


_RUN: dict[OtherEngines, tuple[str, ...]] = {
    OtherEngines.NOBODY: (),
    OtherEngines.THIS_PROCESS: ENGINES,
    OtherEngines.SUPERVISOR: ENGINES,
}
"""Engines whose logs they run. One that nobody knows is for the metadata to refuse."""


class Controlling:
    """Control requests on their way to the metadata and back."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        requests: ControlRequests,
        correspondence: Correspondence,
        waits: Waits,
        others: OtherEngines,
    ) -> None:
        self._limits = context.limits
        self._others = others
        self._outbox = context.outbox
        self._requests = requests
        self._correspondence = correspondence
        self._waits = waits

    def do(self, token: Token, message: Once | messages.Guarded) -> None:
        inner = message.message if isinstance(message, messages.Guarded) else message
        if isinstance(inner, messages.CreateLog) and self._runs_nowhere(inner):
            self._outbox.refuse(token, EngineNotServed(inner.name, inner.engine))
            return
        if isinstance(inner, messages.CreateLog | messages.SetAppends) and (
            self._fronts_nowhere(inner)
        ):
            name = inner.name if isinstance(inner, messages.CreateLog) else f"log {inner.log}"
            self._outbox.refuse(token, FrontNotServed(name))
            return
        command = self._command(inner)
        if isinstance(message, messages.Guarded):
            command = commands.Guarded(message.scope, message.epoch, command)
        self._requests.propose_once(token, inner.request, command)

    def _runs_nowhere(self, message: messages.CreateLog) -> bool:
        placed = message.settings is not None and message.settings.addresses
        engine = message.engine
        if engine in ("", BOLT) or placed:
            return False
        return self._others is OtherEngines.NOBODY or (
            engine in ENGINES and engine not in _RUN[self._others]
        )

    def _fronts_nowhere(self, message: messages.CreateLog | messages.SetAppends) -> bool:
        front = message.front
        return front is not None and not front.addresses and self._others is OtherEngines.NOBODY

    def _command(self, message: Once) -> Guardable:
        """A client can't say that a log is embedded: that follows from who runs it."""
        command = _command(message)
        if isinstance(command, commands.CreateLog) and command.engine not in ("", BOLT):
            return replace(command, settings=self._settings(command.engine, command.settings))
        if isinstance(command, commands.CreateLog) and command.front is not None:
            return replace(command, front=self._front(command.front))
        if isinstance(command, commands.SetAppends) and command.front is not None:
            return replace(command, front=self._front(command.front))
        if isinstance(command, commands.SetSettings):
            return replace(command, settings=replace(command.settings, embedded=False))
        return command

    def _front(self, given: EngineSettings) -> EngineSettings:
        """With what the creator of a log with a lazy front left to the service."""
        here = self._others is OtherEngines.THIS_PROCESS and not given.addresses
        apart = self._others is OtherEngines.SUPERVISOR and not given.addresses
        sequencers = given.sequencers or (SEQUENCERS_APART[FRONT] if apart else 1)
        return replace(given, sequencers=sequencers, embedded=here)

    def _settings(self, engine: str, given: EngineSettings | None) -> EngineSettings:
        """With what the creator of a log of another engine left to the service."""
        given = given or EngineSettings(replicas=0, sequencers=0)
        here = self._others is OtherEngines.THIS_PROCESS and not given.addresses
        # The machines of one process fail together, so that more of them would help nobody.
        apart = self._others is OtherEngines.SUPERVISOR and not given.addresses
        sequencers_apart = SEQUENCERS_APART.get(engine, 1)
        # A black box replicates what a shard keeps: one replica serves it.
        replicas_apart = 1 if given.black_box else REPLICAS_APART
        return replace(
            given,
            replicas=given.replicas or (replicas_apart if apart else 1),
            sequencers=given.sequencers or (sequencers_apart if apart else 1),
            embedded=here,
        )

    def do_front(self, token: Token, command: FrontCommand) -> None:
        """A front's machine repeats what it asks until it is answered."""
        self._requests.propose(token, command)

    def ask(self, token: Token, message: Question) -> None:
        self._requests.ask(token, _query(message))

    def redeem(self, token: Token, message: Redeem) -> None:
        """The position behind a receipt; if it is still withheld, wait for the decision."""
        wait = self._waits.begin(token)
        if wait is not None:
            self._redeem(wait, _Redemption(message))

    def _redeem(self, wait: Wait, redemption: "_Redemption") -> None:
        assert not wait.over, "nobody waits for the answer"
        query = queries.ResolveReceipt(redemption.receipt)
        self._correspondence.ask(query, partial(self._redeemed, wait, redemption))

    def _redeemed(self, wait: Wait, redemption: "_Redemption", answer: Answer) -> None:
        if wait.over:
            return
        pending = isinstance(answer, Refused) and answer.code == ReceiptPending.code
        wait_ms = min(redemption.wait_ms, self._limits.read_wait_ms_max)
        left_ms = self._waits.left_ms(wait, wait_ms)
        if not pending or left_ms <= 0:
            self._requests.answer(wait, answer)
            return
        again = partial(self._redeem, wait, redemption)
        too_late = partial(self._requests.answer, wait, answer)
        # Looked at again every so often too: the record may by now be in another log.
        if left_ms > self._limits.watch_ms:
            left_ms, too_late = self._limits.watch_ms, again
        log = redemption.receipt.log
        self._waits.sleep(wait, log, redemption.wakes, again, left_ms, too_late)


class _Redemption:
    """A receipt to be redeemed, and what of its log was seen when it was last asked about."""

    __slots__ = ("_seen", "receipt", "wait_ms")

    def __init__(self, message: Redeem) -> None:
        self.receipt = message.receipt
        self.wait_ms = message.wait_ms
        self._seen = (0, 0)

    def wakes(self, moved: Moved) -> bool:
        """Only a decision changes either, and only one past the record can settle it."""
        seen = (moved.generation, moved.settled)
        if moved.settled <= self.receipt.provisional or seen == self._seen:
            return False
        self._seen = seen
        return True


def _command(message: Once) -> Guardable:
    match message:
        case messages.CreateLog():
            return commands.CreateLog(
                message.name,
                message.by,
                message.why,
                message.owner,
                message.engine,
                message.settings,
                message.front,
            )
        case messages.DeleteLog():
            return commands.DeleteLog(message.log, message.force)
        case messages.Fork():
            return _fork(message)
        case messages.PromoteIf():
            return commands.PromoteIf(message.log, message.expect_own)
        case messages.Promote():
            return commands.Promote(message.log)
        case messages.Squash():
            return commands.Squash(message.log, message.by)
        case messages.Trim():
            return commands.Trim(message.log, message.before)
        case messages.CommitCursor():
            return commands.CommitCursor(
                message.log, message.name, message.position, message.on_promote
            )
        case messages.DeleteCursor():
            return commands.DeleteCursor(message.log, message.name)
        case messages.SetQuota():
            return commands.SetQuota(message.log, message.quota)
        case messages.Adopt():
            return commands.Adopt(message.log, message.owner)
        case messages.SetSettings():
            return commands.SetSettings(message.log, message.settings)
        case messages.SetAppends():
            return commands.SetAppends(message.log, message.front)
        case messages.DrainBroker():
            return commands.DrainBroker(message.broker, message.epoch)
        case messages.ForgetBroker():
            return commands.ForgetBroker(message.broker, message.epoch)
        case CompleteVersion() | ReleaseWriter():
            return replace(message, request=b"")
        case _:
            assert_never(message)


def _fork(message: messages.Fork) -> commands.ForkLog:
    return commands.ForkLog(
        parent=message.parent,
        kind=message.kind,
        name=message.name,
        past=message.past,
        at=message.at,
        promotable=message.promotable,
        ttl_ms=message.ttl_ms,
        on_parent_delete=message.on_parent_delete,
        by=message.by,
        why=message.why,
        exclusive=message.exclusive,
        quota=message.quota,
        owner=message.owner,
    )


def _query(message: Question) -> Query:
    match message:
        case messages.ReadCursors():
            return queries.ReadCursors(message.log)
        case messages.Describe():
            return queries.Describe(message.log)
        case messages.ListLogs():
            return queries.ListLogs(
                message.prefix,
                message.tree,
                message.after,
                message.count_max,
                message.owner,
                message.engine,
            )
        case messages.Compare():
            return queries.Compare(message.a, message.b, message.after)
        case messages.PositionAt():
            return queries.PositionAt(message.log, message.at)
        case messages.Survey():
            return queries.Survey()
        case messages.ListBrokers():
            return queries.ListBrokers()
        case messages.FindReceipt() | ReadFront() | ReadWriters() | ReadSetSum():
            return message
        case _:
            assert_never(message)
