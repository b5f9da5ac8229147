"""What was delivered ahead of its order, confirmed, or rolled back when a shard failed (4.8).

On a new view whatever wasn't confirmed is void. What alive shards had sent keeps its place and is
delivered again from what is kept here; what the failed had sent never comes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec

from anabranch.client.belfast.merge import Merge, Piece
from anabranch.client.session.records import Confirm, Deliver, Event, Fail, LogRecord
from anabranch.core.belfast.protocol.messages import Failed
from anabranch.core.types import NEVER, Position

Predicate = Callable[[LogRecord], bool]


class Standing(Enum):
    """What a message of some view is worth."""

    GOOD = auto()
    STALE = auto()
    """It may be void, and why isn't known: its shard must be asked again."""
    AHEAD = auto()
    """A view that nobody told the failures of: nothing unconfirmed can be relied on."""


class Void(msgspec.Struct, frozen=True):
    """Positions at which a failed shard has nothing."""

    shard: str
    since: Position
    upto: Position


class Rollback:
    """Between the merge and the application."""

    def __init__(
        self,
        merge: Merge,
        release: Callable[[str, int], None],
        only: Predicate | None = None,
        *,
        speculative: bool = True,
    ) -> None:
        """`release`: so many bytes of a shard's are done with."""
        self.merge = merge
        self.view = -1
        """-1: nobody has told of one yet."""
        self.confirmed: Position = merge.next
        """What was heard: it may be further than what was delivered. Before the start there is
        nothing to confirm.
        """
        self._told_from = -1
        """The failures of all views after this one, up to `view`, were told."""
        self._release, self._only, self._speculative = release, only, speculative
        self._kept: deque[Piece] = deque()
        self._due: list[Event] = []
        self._settled_from: Position = NEVER
        """The first prediction that a Confirm in `_due` is about."""
        self._voids: list[Void] = []

    @property
    def final(self) -> Position:
        """Everything below was delivered, and stays as it is."""
        return min(self.confirmed, self.merge.next)

    @property
    def passed(self) -> Position:
        """Everything below is final, and the application knows all that it wants there to be so:
        also where there was nothing to take.
        """
        return min(self.confirmed, self.merge.empty_to(), self.unconfirmed_from())

    def unconfirmed_from(self) -> Position:
        """The first prediction whose Confirm wasn't taken, whatever was heard of it."""
        first = self._kept[0].first if self._kept else NEVER
        return min(first, self._settled_from)

    def ready(self, *, records: bool = True) -> bool:
        """Has the application anything to take?"""
        if self._due or (self._kept and self._kept[0].first < self.final):
            return True
        if not records:
            return False
        edge = self._edge()
        return any(
            track.pieces and track.pieces[0].first < edge for track in self.merge.tracks.values()
        )

    def judge(self, view: int) -> Standing:
        if self.view < 0:
            self.view = self._told_from = view
        if view > self.view:
            return Standing.AHEAD
        return Standing.STALE if view < self._told_from else Standing.GOOD

    def deliver(self, shard: str, upto: Position, pieces: Sequence[Piece]) -> None:
        """What a shard has up to here, in a view that is good."""
        track = self.merge.tracks.get(shard)
        if track is None or not self.merge.wants(shard):
            for piece in pieces:
                self._release(shard, piece.credit)
            return
        for piece in pieces:
            _, fresh = piece.split(track.upto)
            sound = None if fresh is None else self._sound(fresh)
            if sound is None:
                self._release(shard, piece.credit)
            else:
                track.pieces.append(sound)
        track.upto = max(track.upto, upto)
        self._pass_voids(shard)

    def confirm(self, view: int, upto: Position) -> None:
        """One of an older view says nothing that its failure didn't (F11)."""
        if view == self.view:
            self.confirmed = max(self.confirmed, upto)

    def fail(self, failed: Failed) -> Standing:
        """AHEAD: views were missed, and everything unconfirmed was given up."""
        if self.view < 0:
            self.view = self._told_from = failed.view
            self._void(failed)
            return Standing.GOOD
        if failed.view <= self.view:
            self._void(failed)
            return Standing.GOOD
        if failed.view > self.view + 1:
            self.restart(failed.view)
            self._void(failed)
            return Standing.AHEAD
        self.view = failed.view
        # All that lies below `since` was confirmed in the view before.
        self.confirmed = max(self.confirmed, failed.since)
        kept = self._roll_back(max(failed.since, self.final))
        self.merge.give_back(kept)
        self._void(failed)
        return Standing.GOOD

    def restart(self, view: int) -> None:
        """Give up everything that isn't confirmed: all shards are asked again from `final` on."""
        self.view = self._told_from = view
        for piece in self._roll_back(self.final):
            self._release(piece.shard, piece.credit)
        for track in self.merge.tracks.values():
            for piece in track.pieces:
                self._release(piece.shard, piece.credit)
        self.merge.tracks.clear()

    def take(self, records_max: int) -> list[Event]:
        """What the application is told next: at most so many records."""
        events, self._due = self._due, []
        self._settled_from = NEVER
        self._settle(events)
        edge = self._edge()
        while records_max > 0:
            piece = self.merge.take(edge, records_max)
            if piece is None:
                break
            if self._only is not None:
                piece.records = [record for record in piece.records if self._only(record)]
            records_max -= len(piece.records)
            events += [Deliver(each, each.position >= self.confirmed) for each in piece.records]
            # Only predictions are kept: what was delivered as final needs no Confirm.
            _, predicted = piece.split(self.confirmed) if piece.records else (None, None)
            if predicted is None:
                self._release(piece.shard, piece.credit)
            else:
                self._kept.append(predicted)
        self.merge.forget(self.final)
        if self._voids:
            self._voids = [void for void in self._voids if void.upto > self.final]
        return events

    def _edge(self) -> Position:
        edge = self.merge.edge()
        return edge if self._speculative else min(edge, self.confirmed)

    def _settle(self, events: list[Event]) -> None:
        """What was delivered and is final now."""
        up_to, told = self.final, False
        while self._kept and self._kept[0].first < up_to:
            told = True
            _, above = self._kept[0].split(up_to)
            if above is None:
                piece = self._kept.popleft()
                self._release(piece.shard, piece.credit)
            else:
                self._kept[0] = above
        if told:
            events.append(Confirm(up_to))

    def _roll_back(self, since: Position) -> list[Piece]:
        """What was delivered from here on, and is to be forgotten."""
        if self._kept and self._kept[0].first < self.final:
            self._settled_from = self._kept[0].first
        self._settle(self._due)
        kept = list(self._kept)
        if kept:
            assert kept[0].first >= since, "what is confirmed never fails (G4)"
            self._due.append(Fail(since))
        self._kept.clear()
        self.merge.next = min(self.merge.next, since)
        return kept

    def _void(self, failed: Failed) -> None:
        for shard in failed.shards:
            void = Void(shard, failed.since, failed.upto)
            if void in self._voids or void.upto <= self.final:
                continue
            self._voids.append(void)
            track = self.merge.tracks.get(shard)
            if track is None:
                continue
            pieces = list(track.pieces)
            track.pieces.clear()
            for piece in pieces:
                sound = self._sound(piece)
                if sound is None:
                    self._release(shard, piece.credit)
                else:
                    track.pieces.append(sound)
            self._pass_voids(shard)

    def _sound(self, piece: Piece) -> Piece | None:
        """What is left of it by the failures that are known."""
        for void in self._voids:
            if void.shard != piece.shard or void.upto <= piece.first or void.since > piece.last:
                continue
            void_at = range(void.since, void.upto)
            records = [each for each in piece.records if each.position not in void_at]
            if not records:
                return None
            piece = Piece(piece.shard, records, piece.credit)
        return piece

    def _pass_voids(self, shard: str) -> None:
        track = self.merge.tracks[shard]
        for void in self._voids:
            if void.shard == shard and void.since <= track.upto < void.upto:
                track.upto = void.upto
