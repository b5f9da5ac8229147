"""What decisions mean for the records of one replica's shard: where they are placed, which are
void, which may be forgotten.
"""

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    Arrange,
    ChangeView,
    CutFreely,
    CutTo,
    OpenWindow,
    Release,
    TrimTo,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Placement, Standing
from anabranch.core.belfast.ledger.placements import Placements, Row, row_of, row_of_run
from anabranch.core.belfast.protocol.letters import Places, WherePlaced
from anabranch.core.belfast.shard import journal_notes
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.belfast.shard.duplicates import Retries
from anabranch.core.belfast.shard.journal_notes import Note, ShardImage, Taught
from anabranch.core.belfast.shard.predictions import Forecast
from anabranch.core.belfast.shard.record_counts import Tally
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.entries import Item
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.types import LocalSequence

_ROWS_MAX = 4_096
"""In one letter."""
_NO_CUT = -1


class Seating:
    """Of every replica, whatever its role: each may be the primary next."""

    def __init__(
        self,
        config: ShardConfig,
        following: Following,
        replica: Replica,
        retries: Retries,
        effects: list[Effect],
        counters: ShardCounters,
    ) -> None:
        self._config = config
        self._following = following
        self._replica = replica
        self._retries = retries
        self._effects = effects
        self._counters = counters
        self.placements = Placements()
        self.tally = Tally()
        self.forecast = Forecast(self.tally)
        self.noted = 0
        """What entries up to this one meant is journaled here."""
        self.view = 0
        """The last whose failures are taken account of."""
        self.confirmed: LocalSequence = 0
        """Own records that the cuts have come to."""
        self.journaled: LocalSequence = 0
        """Up to here it is in the journal where records are. No report goes further: when all
        others have forgotten what was published then, this replica must still know.
        """
        self.forgotten = False
        """The ledger lacks decisions that this replica has journaled: its sequencers have lost
        their journals, or part of them. Places would be given out again, so nothing is served.
        """
        self._notes_put = 0
        self._notes_stored = 0
        self._notes_earlier = 0
        """How many notes tell of what came before the last window of free will."""
        self._opened_freely = False
        self._voids = 0
        self._cut: LocalSequence = _NO_CUT
        self._rows: list[Row] = []
        self._trimming = False

    @property
    def current(self) -> bool:
        """Is the ledger past everything that the journal holds the consequences of?"""
        return self._following.applied >= self.noted and not self.forgotten

    @property
    def awaited(self) -> str | None:
        """What this replica waits for before it takes its place again, in words."""
        if self._following.applied >= self.noted:
            return None
        return (
            f"it knows what entry {self.noted} of its sequencers meant, and they have said "
            f"{self._following.applied} so far: if this lasts, they have lost what they decided, "
            "and their journals are to be restored"
        )

    @property
    def durable(self) -> LocalSequence:
        """What the cuts have come to was, even if this primary has yet to hear it again."""
        return max(self._replica.log.durable, min(self.confirmed, self._replica.log.last))

    @property
    def knows_earlier_windows(self) -> bool:
        """Is it in the journal where windows before the last one of free will put records?"""
        return self._notes_stored >= self._notes_earlier

    @property
    def _ledger(self) -> Ledger:
        return self._following.ledger

    def logged(self, item: Item) -> None:
        self.tally.logged(item)
        self._retries.logged(item)
        if item.batch:
            self._counters.records += item.count
        else:
            self._counters.noops += item.count

    def cut_back(self, to: LocalSequence) -> None:
        self.tally.cut_back(to)
        self._retries.cut_back(to)

    def skipped(self, to: LocalSequence) -> None:
        self.placements.forget(to)
        self.tally.skip(to)
        self._retries.partial = True

    def replayed(self, content: bytes) -> None:
        note = journal_notes.decode_note.decode(content)
        if isinstance(note, Taught):
            self._learn(note)
        elif note.index > self.noted:
            self.noted, self.view = note.index, note.view
            if note.cut != _NO_CUT:
                self.placements.cut_back(note.cut)
            for row in note.rows:
                self.placements.add(row)
            self.journaled = self.placements.end
            self.forecast.begin(note.settled, note.foretold, note.voided)
            self.tally.forget(note.settled)

    def restore(self, image: bytes) -> None:
        assert not self.placements.rows, "an image is what everything else comes after"
        known = journal_notes.decode_image.decode(image)
        self.noted, self.view = known.index, known.view
        self.placements.floor = known.floor
        for row in known.rows:
            self.placements.add(row)
        self.journaled = self.placements.end
        self.tally.restore(known.counted)
        self.forecast.begin(known.settled, known.foretold, known.voided)
        self._retries.restore(known.producers)
        self._retries.partial = known.partial

    def decided(self, decision: AnyDecision) -> None:
        """In the ledger it is applied already."""
        me = self._following.me
        if me is None or self.forgotten or self._following.applied <= self.noted:
            return
        match decision:
            case OpenWindow():
                self._opened(me)
            case CutFreely():
                for row in self._placed_freely(me, self._ledger.placements):
                    self._add(row)
                self.forecast.cut(self._confirmed(), foreseen=False)
            case CutTo():
                self._check(me)
                self.forecast.cut(self._confirmed(), foreseen=True)
            case ChangeView():
                self.view = decision.view
                if me.id in decision.failed:
                    self._void(me.placed)
            case TrimTo():
                self._trimming = True
            case Admit() | Release() | Arrange():
                """No record has another position on account of these."""

    def entry_done(self) -> None:
        me = self._following.me
        if me is not None and self.current:
            self.forgotten = self._has_more_than(me)
        if not self.current:
            return
        if self._rows or self._cut != _NO_CUT:
            self._note()
        if self._opened_freely:
            # The cuts in the window's own entry, which end the window before, are noted by now.
            self._opened_freely, self._notes_earlier = False, self._notes_put
        before, self.confirmed = self.confirmed, self._confirmed()
        self._counters.confirmed += max(0, self.confirmed - before)

    def restored(self) -> None:
        """Entries were left out: what they meant follows from the ledger, as far as it matters."""
        ledger, me = self._ledger, self._following.me
        if me is None or not self.current:
            return
        if me.void_view > self.view:
            self._void(min(self._left_by(me), self.placements.below(me.void_from)))
        for row in self._rows_of(me):
            if row.end > self.placements.end:
                if self.placements.rows and row.base < self.placements.end:
                    self._void(row.base)
                self._add(row)
        self.forgotten = ledger.view < self.view or self._has_more_than(me)
        if self.forgotten:
            return
        self._trimming, self.view = True, ledger.view
        self.confirmed = self._confirmed()
        current = ledger.current
        self.forecast.cut(self.confirmed, foreseen=current is not None and current.foreseen)
        self._note()
        self._opened_freely, self._notes_earlier = False, self._notes_put

    def obey(self) -> bool:
        """A primary whose shard has failed, or left, cuts its log back to what the cuts have come
        to: that was never acknowledged, and positions are counted on from there.
        """
        me = self._following.me
        if me is None or me.standing not in {Standing.FAILED, Standing.LEFT} or not self.current:
            return False
        log = self._replica.log
        if self._replica.role is not Role.PRIMARY or log.last <= log.boundary(me.placed):
            return False
        self._replica.truncate(me.placed)
        return True

    def ask(self) -> None:
        """Other replicas, for what this one wasn't there to hear."""
        me, replicas = self._following.me, self._config.replicas
        hole = self.placements.missing(me.placed) if me is not None and self.current else None
        if hole is None:
            return
        self._counters.holes += 1
        low, high = hole
        question = WherePlaced(shard=self._config.shard, low=low, high=high)
        for node in replicas:
            if node != self._config.node:
                self._effects.append(Send(node, question))

    def asked(self, sender: str, letter: WherePlaced) -> None:
        if letter.shard != self._config.shard or not self.current:
            return
        floor = self.placements.floor
        rows = self.placements.part(max(letter.low, floor), letter.high, _ROWS_MAX)
        if rows or floor > letter.low:
            upto = min(letter.high, rows[-1].end if rows else floor)
            places = Places(
                shard=letter.shard, view=self._ledger.view, floor=floor, upto=upto, rows=rows
            )
            self._effects.append(Send(sender, places))

    def told(self, letter: Places) -> None:
        me = self._following.me
        hole = self.placements.missing(me.placed) if me is not None and self.current else None
        if letter.shard != self._config.shard or letter.view != self._ledger.view:
            return
        if hole is None or letter.upto <= hole[0]:
            return
        floor = letter.floor if letter.floor > hole[0] else 0
        taught = Taught(floor=floor, upto=min(letter.upto, hole[1]), rows=letter.rows)
        self._replica.log.note(journal_notes.encode(taught))
        self._learn(taught)
        self.confirmed = self._confirmed()

    def _learn(self, taught: Taught) -> None:
        self.placements.forget(taught.floor)
        self.placements.learn(taught.rows, taught.upto)

    def _opened(self, me: Member) -> None:
        assert self._ledger.windows, "the decision is in the ledger already"
        window = self._ledger.windows[-1]
        seat = window.by_shard.get(me.id)
        if seat is not None and window.foreseen:
            self._add(row_of(window, seat, window.rounds))
        self._opened_freely = self._opened_freely or not window.foreseen

    def _left_by(self, me: Member) -> LocalSequence:
        """Of what was known here, by the failures that were missed."""
        missed = (void.placed for void in me.voids if void.view > self.view)
        return min((me.placed, *missed))

    def _rows_of(self, me: Member) -> Iterator[Row]:
        """What the ledger knows of our places."""
        ledger = self._ledger
        stranded = ledger.stranded.get(me.id, [])
        yield from (row_of_run(local, run) for _, local, run in stranded)
        for window in ledger.windows:
            seat = window.by_shard.get(me.id)
            if seat is None:
                continue
            if window.foreseen:
                gap = ledger.gap(window, seat)
                yield row_of(window, seat, window.rounds if gap is None else gap)
            else:
                mine = [place for place in ledger.placements if place[0] == me.id]
                yield from (row_of_run(local, run) for _, local, run in mine)

    def _placed_freely(self, me: Member, placed: list[Placement]) -> list[Row]:
        """Of the last cut alone: what came before is known."""
        seats = len(self._ledger.windows[0].seats)
        end = self.placements.end
        return [
            row_of_run(local, run)
            for shard, local, run in placed[-seats:]
            if shard == me.id and local >= end
        ]

    def _has_more_than(self, me: Member) -> bool:
        """Are there places here that the ledger doesn't know to be given?"""
        rows = self.placements.rows
        return bool(rows) and rows[-1].end > me.placed

    def _add(self, row: Row) -> None:
        rows = self.placements.rows
        if rows and row.base < rows[-1].end:
            self.forgotten = True
        elif row.count:
            self.placements.add(row)
            self._rows.append(row)

    def _void(self, to: LocalSequence) -> None:
        assert to >= 0, "sequences begin at 0"
        self.forecast.void(to, self.placements.end)
        self._counters.voided += self.placements.cut_back(to)
        self._rows = [replace(row, count=min(row.end, to) - row.base) for row in self._rows]
        self._rows = [row for row in self._rows if row.count > 0]
        self._cut = to
        self._voids += 1
        self.journaled = min(self.journaled, to)

    def _check(self, me: Member) -> None:
        """The actual cut is the one that was predicted (F5)."""
        ledger = self._ledger
        window = ledger.windows[0]
        seat = window.by_shard.get(me.id)
        if seat is None or ledger.gap(window, seat) is not None:
            return
        covered = seat.base + window.rounds_in(seat, ledger.cut) * seat.quota
        if self.placements.missing(covered) is not None:
            return
        known, floor = self.placements.below(ledger.confirmed), self.placements.floor
        # A replica that took over what is left of a trimmed log may be ahead of its own ledger.
        assert max(known, floor) == max(covered, floor), "F5"

    def _stored(self, number: int, voids: int, end: LocalSequence) -> None:
        assert self._notes_stored < number <= self._notes_put, "notes are stored in their order"
        self._notes_stored = number
        if voids == self._voids:
            self.journaled = max(self.journaled, end)

    def _confirmed(self) -> LocalSequence:
        """Where others are still asked for older records' places, nothing beyond is told."""
        confirmed = self.placements.below(self._ledger.confirmed)
        hole = self.placements.missing(confirmed)
        return confirmed if hole is None else hole[0]

    def _note(self) -> None:
        assert self.current, "what is noted must follow from all that was decided"
        self.noted = self._following.applied
        forecast = self.forecast
        note = Note(
            index=self.noted,
            view=self.view,
            settled=forecast.settled,
            cut=self._cut,
            rows=list(self._rows),
            foretold=forecast.foretold,
            voided=forecast.voided,
        )
        self._replica.log.note(journal_notes.encode(note))
        self._notes_put += 1
        stored = partial(self._stored, self._notes_put, self._voids, self.placements.end)
        self._replica.log.journal.when_stored(stored)
        self.tally.forget(forecast.settled)
        self._rows.clear()
        self._cut = _NO_CUT

    def trim(self, keep: LocalSequence) -> None:
        """What lies below the log's beginning is forgotten, once this replica holds more, but
        nothing that somebody has yet to be told of.
        """
        if not self._trimming or not self.current:
            return
        below = min(keep, self.placements.below(self._ledger.trimmed))
        if below <= self.placements.floor or below > self._replica.log.last:
            return
        self._trimming = below == keep
        self.placements.forget(below)
        image = ShardImage(
            index=self._following.applied,
            view=self.view,
            floor=self.placements.floor,
            rows=list(self.placements.rows),
            counted=self.tally.image(),
            producers=self._retries.image(),
            partial=self._retries.partial,
            settled=self.forecast.settled,
            foretold=self.forecast.foretold,
            voided=self.forecast.voided,
        )
        self.noted = self._following.applied
        self._replica.log.trim(below, journal_notes.encode(image))
