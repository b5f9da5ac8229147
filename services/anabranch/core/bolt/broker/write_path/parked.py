"""Appends that wait for the promotable fork in their way to be decided (AgileLog, 4.1; D2).

None of them is anywhere yet, so one whose time is up can be refused without a doubt.
"""

from collections.abc import Callable, Container, Iterable
from functools import partial

from anabranch.core.alarms import Alarm
from anabranch.core.askers import asker_of
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.broker.write_path.open_object import Held
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.budget import Budget
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Token
from anabranch.core.types import MS, LogId


class _Lot:
    """One blocked log's appends."""

    __slots__ = ("alarms", "held", "listener", "refusal")

    def __init__(self, refusal: Refused) -> None:
        self.refusal = refusal
        """What the metadata said, and what is said to those whose time is up."""
        self.held: dict[int, Held] = {}
        self.alarms: dict[int, Alarm] = {}
        self.listener = 0


class Parking:
    """Blocked logs as far as this broker has run into them."""

    def __init__(self, context: BrokerContext, watches: Watches) -> None:
        self._limits = context.limits
        self._alarms = context.alarms
        self._watches = watches
        self._lots: dict[LogId, _Lot] = {}
        self.blocked: Container[LogId] = self._lots
        """Logs known to be blocked: an append to one needs no PUT to find out."""
        self._tokens: dict[Token, Held] = {}
        self._room = Budget(context.limits.waits_max)
        """Shared by those whose appends are parked: some of what all appends together have stays
        free for appends to other logs.
        """
        self.on_freed: Callable[[list[Held]], None] = lambda _: None
        """Called with a log's appends, in order of arrival, when it takes appends again."""
        self.on_refused: Callable[[Held, Refused], None] = lambda _held, _refused: None

    def __len__(self) -> int:
        return len(self._tokens)

    def held(self) -> Iterable[Held]:
        return self._tokens.values()

    def block(self, log: LogId, refusal: Refused) -> None:
        """An append to this log was refused as blocked."""
        lot = self._lots.get(log)
        if lot is None:
            lot = self._lots[log] = _Lot(refusal)
            lot.listener = self._watches.listen(log, self._moved)
            if self._watches.latest(log) is not None:
                # What was heard of the log may be older than the refusal.
                self._watches.ask_anew(log)
            self._forget_later(log, lot)
        lot.refusal = refusal

    def park(self, held: Held) -> None:
        assert held.log in self._lots, "its log takes appends"
        lot = self._lots[held.log]
        wait_ms = self._limits.blocked_wait_ms
        if held.wait_ms >= 0:
            wait_ms = min(wait_ms, held.wait_ms)
        left_ms = wait_ms - (self._alarms.now - held.arrived_at) // MS
        if left_ms <= 0 or not self._room.take(asker_of(held.token), 1):
            self.on_refused(held, lot.refusal)
            return
        lot.held[held.serial] = held
        lot.alarms[held.serial] = self._alarms.after(left_ms, partial(self._expire, lot, held))
        self._tokens[held.token] = held

    def drop(self, token: Token) -> Held | None:
        """Nobody waits for this one any more."""
        held = self._tokens.get(token)
        if held is not None:
            self._remove(self._lots[held.log], held).cancel()
        return held

    def _remove(self, lot: _Lot, held: Held) -> Alarm:
        assert self._tokens[held.token] is held
        del lot.held[held.serial], self._tokens[held.token]
        self._room.give(asker_of(held.token), 1)
        return lot.alarms.pop(held.serial)

    def _expire(self, lot: _Lot, held: Held) -> None:
        self._remove(lot, held)
        self.on_refused(held, lot.refusal)

    def _moved(self, moved: Moved) -> None:
        """What an ended log refuses appends with is the metadata's to say, so they go there too."""
        if moved.append_blocked is None or moved.ended is not None:
            self._free(moved.log)

    def _free(self, log: LogId) -> None:
        lot = self._lots.pop(log)
        self._watches.leave(log, lot.listener)
        freed = [lot.held[serial] for serial in sorted(lot.held)]
        for held in freed:
            self._remove(lot, held).cancel()
        assert not lot.held, "all of them go on"
        self.on_freed(freed)

    def _forget_later(self, log: LogId, lot: _Lot) -> None:
        assert self._lots[log] is lot
        self._alarms.after(self._limits.blocked_wait_ms, partial(self._forget, log, lot))

    def _forget(self, log: LogId, lot: _Lot) -> None:
        """A log that nobody appends to any more isn't watched for ever."""
        if self._lots.get(log) is not lot:
            return
        if lot.held:
            self._forget_later(log, lot)
        else:
            self._free(log)
