"""A program that appends: one producer, many appends in flight, in either mode; it may die between
the writes of one append.
"""

from functools import partial
from typing import Any

import msgspec

from anabranch.core.errors import Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.invariants.account import Account, AppendCall, Outcome
from anabranch.core.erwin.protocol.messages import Data, Stored
from anabranch.core.records.record import encode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    Directory,
    Elsewhere,
    FindPosition,
    Found,
    Taken,
)
from anabranch_sim.erwin.client import ErwinClient
from anabranch_sim.erwin.history import records_of
from anabranch_sim.world.deployment import Deployment


class InFlight(msgspec.Struct):
    """An append that isn't acknowledged."""

    call: AppendCall
    shard: str
    """Mode st: the one that has the data."""
    first_view: int
    """The one that it was sent in first."""
    lowest: int
    """What was its producer's lowest sequence when it was sent first: what was acknowledged by then
    is ordered before it, so a shard may forget unordered data below.
    """
    taken: dict[int, set[str]] = {}
    """By view: the members that hold it."""
    stored: dict[int, set[str]] = {}
    """Mode st, by the shard's epoch: the replicas that hold the data."""
    asked: dict[tuple[str, int], int] = {}
    """By node, and view or epoch: the request."""


class Appender(ErwinClient):
    """Its appends are acknowledged when all members of one view hold them, and in mode st all
    replicas of the shard, as the directory names them at that time.
    """

    def __init__(
        self,
        deployment: Deployment,
        account: Account,
        number: int,
        nodes: tuple[str, ...],
        *,
        in_flight: int,
        receipts: float,
        mortal: bool,
    ) -> None:
        super().__init__(deployment, f"appender-{number}", nodes)
        self.account = account
        self.finished = False
        """Nothing more will be appended."""
        self._number = number
        self._epoch = 0
        self._sequence = 0
        self._in_flight = in_flight
        self._receipts = receipts
        self._mortal = mortal
        self._waiting: list[int] = []
        """Numbers of records of what isn't sent yet."""
        self._given_up: list[AppendId] = []
        self._open: dict[AppendId, InFlight] = {}
        self._finding: dict[AppendId, AppendCall] = {}
        self._members: dict[int, tuple[str, ...]] = {}

    @property
    def idle(self) -> bool:
        return self.over or not (self._waiting or self._open or self._finding)

    def waits(self) -> bool:
        return not self.idle or self.directory is None

    def append(self, count: int) -> None:
        if not self.over:
            self._waiting.append(count)
            self._push()

    def on_directory(self, directory: Directory) -> None:
        self._members[directory.view] = directory.members
        lost = [each for each in self._open.values() if each.first_view <= directory.lost_view]
        for each in lost:
            self._give_up(each)
        for call in [each for each in self._finding.values() if each.view <= directory.lost_view]:
            del self._finding[call.id]
        for each in list(self._open.values()):
            self._send(each)
            self._settle(each)
        self._push()

    def _lowest(self, epoch: int) -> int:
        """What was given up holds it back for good, and a position that is asked for until then."""
        held = [*self._open, *self._finding, *self._given_up]
        return min((id.sequence for id in held if id.epoch == epoch), default=self._sequence)

    def _push(self) -> None:
        while self._waiting and len(self._open) < self._in_flight and self.directory is not None:
            shard = self._choose()
            if shard is None:
                return
            self._launch(self._waiting.pop(0), shard)

    def _choose(self) -> str | None:
        """The shard of the next append; empty in mode m."""
        assert self.directory is not None
        if self.directory.mode != "st":
            return ""
        names = [each.name for each in self.directory.shards if each.open and each.replicas]
        return self.world.rng.choice(names) if names else None

    def _launch(self, count: int, shard: str) -> None:
        number = len(self.account.appends)
        batch = encode(
            records_of(number, count),
            producer_id=self._number,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            now=1,
        )
        id = AppendId(self._number, self._epoch, self._sequence)
        call = AppendCall(id=id, count=count, batch=batch, invoked=self.world.stamp())
        assert self.directory is not None
        self._sequence += count
        self.account.appends.append(call)
        self._open[id] = each = InFlight(call, shard, self.directory.view, 0)
        each.lowest = self._lowest(id.epoch)
        if self._mortal and self.world.chance(0.3):
            self._die(each)
        else:
            self._send(each)

    def _die(self, each: InFlight) -> None:
        """In the midst of the writes of one append."""
        self.world.note(self.name, "dies within", each.call.id)
        self._send(each, only=self.world.rng.choice((0.2, 0.5, 0.8)))
        self.finished = True
        self._waiting.clear()
        self.world.after(self.world.between(0, 30_000_000), self.end)

    def _send(self, each: InFlight, only: float = 1.0) -> None:
        """To whoever hasn't been asked yet."""
        directory, call = self.directory, each.call
        assert directory is not None
        lowest = self._lowest(call.id.epoch)
        for node in directory.members:
            key = node, directory.view
            if key in each.asked or not self.world.chance(only):
                continue
            if each.shard:
                size = len(call.batch)
                message: Append | AppendMeta = AppendMeta(
                    directory.view, lowest, call.id, call.count, size, each.shard
                )
            else:
                message = Append(directory.view, lowest, call.batch)
            self._ask(each, key, message)
        shard = self.shard(each.shard)
        if shard is None:
            return
        for node in shard.replicas:
            key = node, shard.epoch
            if key not in each.asked and self.world.chance(only):
                self._ask(each, key, Data(shard.epoch, each.lowest, call.batch))

    def _ask(self, each: InFlight, key: tuple[str, int], message: Any) -> None:
        node, _ = key
        each.asked[key] = self.line(node).ask(message, partial(self._heard, each, key))

    def _heard(self, each: InFlight, key: tuple[str, int], message: Any) -> None:
        node, number = key
        if each.call.id not in self._open:
            return
        match message:
            case Taken(shard):
                if each.shard in {shard, ""} or shard == "":
                    each.taken.setdefault(number, set()).add(node)
                    self._settle(each)
            case Stored():
                each.stored.setdefault(number, set()).add(node)
                self._settle(each)
            case Refused():
                self._refused(each, key, message)
            case _:
                raise AssertionError(message)

    def _refused(self, each: InFlight, key: tuple[str, int], refused: Refused) -> None:
        error = refused.error()
        if error.code == "record-voided":
            each.call.outcome = Outcome.REFUSED
            self._give_up(each)
        elif error.code == "request-forgotten":
            self._give_up(each)
        else:
            again = error.code in {"stale-view", "outcome-unknown"}
            assert again or isinstance(error, Retry), error
            self.locate()
            each.asked.pop(key, None)
            self.later(partial(self._send_again, each))

    def _give_up(self, each: InFlight) -> None:
        """It isn't acknowledged, and never will be: what follows is of another epoch."""
        id = each.call.id
        self._given_up.append(id)
        if id.epoch == self._epoch:
            self._epoch += 1
            self._sequence = 0
        self._close(each)

    def _send_again(self, each: InFlight) -> None:
        if each.call.id in self._open:
            self._send(each)

    def _settle(self, each: InFlight) -> None:
        """All members of one view hold it, and all replicas of one epoch of its shard."""
        shard = self.shard(each.shard)
        if each.shard and not (
            shard is not None and each.stored.get(shard.epoch, set()) >= set(shard.replicas)
        ):
            return
        for view, nodes in each.taken.items():
            if nodes >= set(self._members[view]):
                call = each.call
                call.returned, call.view = self.world.stamp(), view
                call.outcome = Outcome.ACKNOWLEDGED
                self._close(each)
                if self.world.chance(self._receipts):
                    self._finding[call.id] = call
                    self._find(call)
                return

    def _close(self, each: InFlight) -> None:
        del self._open[each.call.id]
        for (node, _), request in each.asked.items():
            self.line(node).forget(request)
        self.world.after(0, self._push)

    def _find(self, call: AppendCall, node: str = "") -> None:
        """Ask for the position of an append that was acknowledged."""
        assert self.directory is not None
        if call.id not in self._finding:
            return
        node = node or self.directory.leader
        if node not in self._nodes:
            self.later(partial(self._find, call))
            return
        line = self.line(node)
        request = line.ask(FindPosition(call.id), partial(self._found, call))
        self.world.after(500_000_000, partial(self._find_again, line, request, call))

    def _find_again(self, line: Any, request: int, call: AppendCall) -> None:
        if line.forget(request) and not self.over:
            self._find(call)

    def _found(self, call: AppendCall, message: Any) -> None:
        match message:
            case Found(position):
                self._finding.pop(call.id, None)
                if call.receipt not in {None, position}:
                    self.account.faults.append(f"E7: {call.id} is at {call.receipt} and {position}")
                if call.receipt is None:
                    call.receipt, call.redeemed = position, self.world.stamp()
            case Elsewhere(node) if node in self._nodes:
                self.later(partial(self._find, call, node))
            case Refused() if message.code == "request-forgotten":
                self._finding.pop(call.id, None)
            case _:
                self.locate()
                self.later(partial(self._find, call))
