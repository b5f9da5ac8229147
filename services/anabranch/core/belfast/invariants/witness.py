"""Rules that hold of every letter and every answer of a Belfast deployment (spec, F1-F12).

The witness gets every entry that a member of the sequencing group commits, and applies it to a
ledger of its own before any node does, so that it knows at least as much as any node that speaks.
"""

from bisect import bisect_right
from typing import Any

import msgspec

from anabranch.core.belfast.invariants.durability import DurabilityClaims
from anabranch.core.belfast.ledger.decisions import (
    AnyDecision,
    ChangeView,
    CutFreely,
    CutTo,
    OpenWindow,
    decode_entry,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.windows import Run, ShardId, Window
from anabranch.core.belfast.protocol.letters import Decided, Report, Restored
from anabranch.core.belfast.protocol.messages import Appended, Confirmed, Delivered, Failed
from anabranch.core.machine import Effect, Replies, Reply, Send
from anabranch.core.replication.letters import Copy, Stored
from anabranch.core.types import Position

_pack = msgspec.msgpack.Encoder().encode


class Witness:
    """Sees all that nodes say, and records what breaks a rule."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.index = 0
        """The last entry that the group is known to have decided."""
        self.violations: list[str] = []
        self.views: dict[int, Position] = {0: 0}
        """What was confirmed when each view began."""
        self.cuts = 0
        self.windows: list[Window] = []
        """Every window that was ever published."""
        self._entries: dict[int, bytes] = {}
        self._images: dict[int, bytes] = {}
        self._reported: dict[ShardId, tuple[int, int]] = {}
        """The last window, and rounds of it, that each shard has reported."""
        self._durable_of: dict[ShardId, int] = {}
        """The most records that each shard has ever reported as durable."""
        self._starts: list[Position] = []
        self._by_node: dict[str, str] = {}
        self._durability = DurabilityClaims()
        self._streams: dict[tuple[str, int], int] = {}
        """The view that each subscriber has seen last."""

    def observe(self, node: str, effect: Effect) -> None:
        """A node performs this effect."""
        match effect:
            case Send(_, message):
                self._letter(node, message)
            case Reply(token, message):
                self._answer(node, token, message)
            case Replies(tokens, answers):
                for token, each in zip(tokens, answers, strict=True):
                    self._answer(node, token, each)
            case _:
                pass

    def _violated(self, rule: str, says: str) -> None:
        self.violations.append(f"{rule}: {says}")

    def add_replica(self, node: str, shard: str) -> None:
        """A replica of a shard was started here."""
        self._by_node[node] = shard

    def _letter(self, node: str, letter: Any) -> None:
        match letter:
            case Decided(_, first, entries):
                for index, entry in enumerate(entries, first):
                    if self._entries.get(index) != entry:
                        self._violated(
                            "C1 one log", f"{node} sends another entry {index} than was committed"
                        )
            case Restored(index=index, image=image):
                self._restored(node, index, _pack(image))
            case Report():
                self._report(node, letter)
                name = self.ledger.members[letter.shard].name
                self._durable(node, name, letter.epoch, letter.durable, whole=False)
            case Stored():
                self._durability.stored(node, letter)
            case Copy(shard, epoch):
                self._durable(node, shard, epoch, letter.durable, whole=True)
            case _:
                pass

    def _durable(self, node: str, shard: str, epoch: int, upto: int, *, whole: bool) -> None:
        if not self._durability.claim(node, shard, epoch, upto, whole=whole):
            self._violated("F3", f"{node} claims {upto} records as durable, which no majority has")

    def on_commit(self, node: str, index: int, entry: bytes) -> None:
        """A member of the group commits an entry: all members have the same log."""
        known = self._entries.setdefault(index, entry)
        if known != entry:
            self._violated("C1 one log", f"{node} commits another entry {index} than was committed")
        if index == self.index + 1:
            self.index = index
            self._apply(decode_entry(entry))
            self._images[index] = _pack(self.ledger.image())
        elif index > self.index:
            self._violated("C1 one log", f"{node} commits entry {index}, the last was {self.index}")

    def _restored(self, node: str, index: int, image: bytes) -> None:
        if self._images.get(index, image) != image:
            self._violated("C1 one log", f"{node} sent another state after entry {index}")

    def _apply(self, decisions: list[AnyDecision]) -> None:
        for decision in decisions:
            ledger, before = self.ledger, self.ledger.confirmed
            self._apply_one(decision)
            if ledger.confirmed < before:
                self._violated("F6", f"confirmed was {before}, and is {ledger.confirmed}")
            for member in ledger.members.values():
                self._durability.arranged(member)
                if member.standing in {Standing.FAILED, Standing.LEFT}:
                    self._durability.cut_back(member.name, member.placed)

    def _apply_one(self, decision: AnyDecision) -> None:
        ledger = self.ledger
        match decision:
            case OpenWindow():
                expected = ledger.horizon
                ledger.apply((decision,))
                window = ledger.windows[-1]
                if window.start != expected:
                    self._violated("F12", f"window {window.number} starts at {window.start}")
                self.windows.append(window)
                self._starts.append(window.start)
            case CutTo(window=number, cut=cut):
                self._check_cut(number, cut)
                ledger.apply((decision,))
                self.cuts += 1
            case CutFreely(number, counts):
                self._check_free_cut(number, counts)
                ledger.apply((decision,))
                self.cuts += 1
            case ChangeView(view=view):
                self.views[view] = ledger.confirmed
                ledger.apply((decision,))
            case _:
                ledger.apply((decision,))

    def _check_cut(self, number: int, cut: int) -> None:
        """Every seat has reported its part, or has failed (F4)."""
        window = self.ledger.window(number)
        assert window is not None, f"a cut of window {number}, which isn't published"
        for seat in window.seats:
            needed = window.rounds_in(seat, cut)
            gap = self.ledger.gap(window, seat)
            needed = needed if gap is None else min(needed, gap)
            reported = self._reported.get(seat.shard, (-1, 0))
            if needed and reported < (number, needed):
                says = f"cut {cut} of window {number} needs {needed} rounds of shard {seat.shard}"
                self._violated("F4", f"{says}, which reported {reported}")

    def _check_free_cut(self, number: int, counts: tuple[int, ...]) -> None:
        """Every record has been reported as durable by its shard (F4)."""
        window = self.ledger.window(number)
        assert window is not None, f"a cut of window {number}, which isn't published"
        for seat, count in zip(window.seats, counts, strict=True):
            durable = self._durable_of.get(seat.shard, 0)
            if count and seat.base + count > durable:
                says = f"a cut of window {number} has {seat.base + count} records of {seat.shard}"
                self._violated("F4", f"{says}, which reported {durable}")

    def _report(self, node: str, report: Report) -> None:
        shard = report.shard
        self._durable_of[shard] = max(self._durable_of.get(shard, 0), report.durable)
        window = next((each for each in self.windows if each.number == report.window), None)
        if window is None:
            if report.rounds:
                self._violated("F1", f"{node} reports of window {report.window}, not published yet")
            return
        known = self._reported.get(report.shard, (-1, 0))
        # Each holds all of those before, to the end of the windows before.
        self._reported[report.shard] = max(known, (report.window, report.rounds))
        seat = window.by_shard.get(report.shard)
        if seat is None or not window.foreseen:
            return
        if report.rounds > window.rounds:
            self._violated("F3", f"{node} reports {report.rounds} rounds of window {window.number}")
        if report.rounds and report.durable < seat.base + report.rounds * seat.quota:
            self._violated("F3", f"{node} reports {report.rounds} rounds, has {report.durable}")

    def _answer(self, node: str, token: int, answer: Any) -> None:
        match answer:
            case Appended(runs):
                self._acknowledged(node, runs)
            case Delivered(view):
                self._stamped(node, view)
                self._in_view(node, token, view)
                self._delivered(node, answer)
            case Confirmed(view, upto):
                self._stamped(node, view)
                self._in_view(node, token, view)
                if upto > self.ledger.confirmed:
                    self._violated("F6", f"{node} confirms up to {upto}, beyond the cuts")
            case Failed(view=view, since=since):
                self._stamped(node, view)
                # A stand-in starts with the failure that it stands in for, whatever came after.
                if (node, token) in self._streams:
                    self._streams[node, token] = view
                if self.views.get(view, since) != since:
                    says = f"{node} fails {since} in view {view}, confirmed is {self.views[view]}"
                    self._violated("F9", says)
            case _:
                pass

    def on_delivery(self, client: str, position: Position, *, speculative: bool) -> None:
        """A client hands a record to its program."""
        if not speculative and position >= self.ledger.confirmed:
            says = f"{client} delivers {position} as final, cuts are at {self.ledger.confirmed}"
            self._violated("F6", says)

    def _stamped(self, node: str, view: int) -> None:
        if view > self.ledger.view:
            self._violated("F11", f"{node} speaks of view {view}, decided is {self.ledger.view}")

    def _in_view(self, node: str, token: int, view: int) -> None:
        """On a stream, another view starts with what failed."""
        if self._streams.setdefault((node, token), view) != view:
            self._violated("F9", f"{node} goes on in view {view} without saying what failed")

    def _acknowledged(self, node: str, runs: tuple[Run, ...]) -> None:
        if any(run.end > self.ledger.confirmed for run in runs):
            self._violated("F7", f"{node} acknowledges {runs}; cuts are at {self.ledger.confirmed}")
        self._owned(node, runs)

    def _delivered(self, node: str, told: Delivered) -> None:
        if told.speculative:
            if told.upto > self.ledger.horizon:
                says = f"{node} speculates up to {told.upto}, published is {self.ledger.horizon}"
                self._violated("F8", says)
        elif any(run.end > self.ledger.confirmed for run in told.runs):
            self._violated("F6", f"{node} delivers {told.runs} as final, beyond the cuts")
        self._owned(node, told.runs)

    def _owned(self, node: str, runs: tuple[Run, ...]) -> None:
        """Positions of a window with a predetermined order belong to one shard each."""
        member = self.ledger.member(self._by_node.get(node, ""))
        for run in runs if member is not None else ():
            assert member is not None
            window = self._window_of(run.first)
            if window is None or not window.foreseen:
                continue
            seat, end = window.by_shard.get(member.id), min(run.end, window.end)
            owned = 0
            if seat is not None:
                owned = window.records_below(seat, end) - window.records_below(seat, run.first)
            if owned != end - run.first:
                self._violated("F1", f"{node} claims {run}, which isn't its own")

    def _window_of(self, position: Position) -> Window | None:
        """The last window that starts there or before: a window of free will may be empty."""
        found = bisect_right(self._starts, position) - 1
        return self.windows[found] if found >= 0 else None
