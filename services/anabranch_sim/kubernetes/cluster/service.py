"""The log service's state, asked by the operator as it would be through a broker."""

from collections.abc import Callable
from typing import Any

from anabranch.core.bolt.protocol import commands, queries
from anabranch.core.bolt.protocol.commands import Description, Entry
from anabranch.core.bolt.protocol.queries import BrokerSeat, Listing, Pool
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import LogId, Milliseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.actions import Ask

SCOPE = "operator"


class LogService:
    """One state machine; every command is guarded by the epoch of whoever asks."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.state = State("sim", limits or Limits())
        self.now: Milliseconds = 0
        self.on_change: Callable[[Any, Any], None] | None = None
        """Told of every command and its outcome."""
        self._requests = 0
        self._done: dict[bytes, None] = {}
        self.command(commands.RaiseFormat(commands.FORMAT))

    def ask(self, ask: Ask, epoch: int, scope: str = SCOPE, request: bytes = b"") -> Any:
        """Its outcome. `Describe` is a question; all else are commands, of one request once."""
        if isinstance(ask, actions.Describe | actions.CountOwn):
            return self.state.answer(queries.Describe(ask.log))
        log: LogId | None = None
        if isinstance(ask, actions.Adopt):
            found = self.describe(ask.log) if isinstance(ask.log, str) else ask.log
            if isinstance(found, Refused):
                return found
            log = found.id if isinstance(found, Description) else found
        guarded = commands.Guarded(scope, epoch, _command(self.state, ask, log))
        outcome = self.command(guarded, request)
        if isinstance(ask, actions.Adopt) and not isinstance(outcome, Refused):
            return self.describe(ask.log)
        return outcome

    def describe(self, log: LogId | str) -> Description | Refused:
        answer = self.state.answer(queries.Describe(log))
        assert isinstance(answer, Description | Refused)
        return answer

    def command(self, command: Any, request: bytes = b"") -> Any:
        """Also by others than the operator."""
        self._requests += 1
        request = request or self._requests.to_bytes(8, "big")
        return self.apply(Entry(self.now, request, command))

    def apply(self, entry: Entry) -> Any:
        """What comes again is answered as before, and nothing is done."""
        again, self._done[entry.request] = entry.request in self._done, None
        outcome = self.state.apply(entry)
        if self.on_change is not None and not again:
            self.on_change(entry.command, outcome)
        return outcome

    def owned(self) -> tuple[Description, ...]:
        listing = self.state.answer(queries.ListLogs(owner=names.OWNERS, count_max=1_000_000))
        assert isinstance(listing, Listing), listing
        return tuple(listing.logs)

    def brokers(self) -> tuple[BrokerSeat, ...]:
        pool = self.state.answer(queries.ListBrokers())
        assert isinstance(pool, Pool)
        return tuple(pool.brokers)


def _command(state: State, ask: Ask, log: LogId | None) -> Any:
    match ask:
        case actions.CreateRoot():
            return commands.CreateLog(
                ask.name, "operator", ask.why, ask.owner, ask.engine, ask.settings, ask.front
            )
        case actions.MakeFork():
            return commands.ForkLog(
                ask.parent,
                ask.kind,
                ask.name,
                ask.past,
                ask.at,
                ask.promotable,
                ask.ttl_ms,
                ask.on_parent_delete,
                "operator",
                ask.why,
                ask.exclusive,
                ask.quota,
                ask.owner,
            )
        case actions.Adopt():
            assert log is not None
            return commands.Adopt(log, ask.owner)
        case actions.Promote(log=log, expect_own=expected):
            if expected is None:
                return commands.Promote(log)
            return commands.PromoteIf(log, expected)
        case actions.Squash():
            return commands.Squash(ask.log, "operator")
        case actions.DeleteRoot():
            return commands.DeleteLog(ask.log, ask.force)
        case actions.SetQuota():
            return commands.SetQuota(ask.log, ask.quota)
        case actions.SetSettings():
            return commands.SetSettings(ask.log, ask.settings)
        case actions.SetAppends():
            return commands.SetAppends(ask.log, ask.front)
        case actions.Trim():
            return commands.Trim(ask.log, ask.before)
        case actions.TrimOlder():
            at = state.answer(queries.PositionAt(ask.log, ask.before))
            assert isinstance(at, queries.At)
            return commands.Trim(ask.log, at.position)
        case actions.DrainBroker():
            return commands.DrainBroker(ask.broker, ask.epoch)
        case actions.ForgetBroker():
            return commands.ForgetBroker(ask.broker, ask.epoch)
        case actions.Describe() | actions.CountOwn():
            raise AssertionError(ask)
