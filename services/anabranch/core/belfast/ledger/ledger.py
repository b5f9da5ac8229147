"""The state that all decisions lead to: windows, cuts, members, views. Whoever applied the same
decisions has the same ledger: sequencers, shards, and in part the clients.
"""

from collections.abc import Sequence
from enum import IntEnum

import msgspec
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
from anabranch.core.belfast.ledger.windows import Mode, Run, Seat, ShardId, Window, seats
from anabranch.core.types import LocalSequence, Position


class Standing(IntEnum):
    WAITING = 0
    """For a seat in the next window that is published."""
    SEATED = 1
    LEAVING = 2
    """It keeps its seats in the windows that are published."""
    LEFT = 3
    FAILED = 4


class Void(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What a failure of a shard left of it, when this view began."""

    view: int
    placed: LocalSequence
    """From here on its local log had no places any more."""
    start: Position
    """Where the cuts had come to: from here on its positions were no-ops."""
    end: Position
    """Where the windows ended that were published."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    id: ShardId
    name: str
    standing: Standing
    epoch: int
    primary: str
    replicas: tuple[str, ...]
    demand: int
    placed: LocalSequence = 0
    """Where its seats of all published windows end; of free will, where its last cut does."""
    stand_in: ShardId = -1
    """Who serves its subscribers while it has failed."""
    void_view: int = 0
    """The view that began when it failed last; 0: it never did."""
    void_from: Position = 0
    """Where the cuts had come to then: from here on its positions were no-ops."""
    void_upto: Position = 0
    """Where the windows ended that were published then."""
    disks: tuple[int, ...] = ()
    """Of its replicas, in their order; none if that isn't known."""
    begins: LocalSequence = 0
    """Nothing is left of its local log below: it came back with other disks."""
    voids: tuple[Void, ...] = ()
    """Its failures, as long as a replica that missed one may hold places that are void."""

    def disk(self, node: str) -> int | None:
        """The one that is counted on; None: any."""
        assert node in self.replicas, "it is no replica of this shard"
        return self.disks[self.replicas.index(node)] if self.disks else None


class Era(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """From this position on, up to the next era, positions belong to these shards."""

    start: Position
    shards: tuple[ShardId, ...]


class Gap(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """From this round on a seat's records are no-ops: its shard had failed."""

    window: int
    shard: ShardId
    rounds: int


Placement = tuple[ShardId, LocalSequence, Run]
"""Where a cut of free will put a shard's records from this one on."""


class Image(msgspec.Struct, frozen=True, array_like=True):
    """All of a ledger."""

    view: int
    members: list[Member]
    windows: list[Window]
    cut: int
    counts: tuple[int, ...]
    confirmed: Position
    trimmed: Position
    gaps: list[Gap]
    eras: list[Era]
    placements: list[Placement]
    stranded: dict[ShardId, list[Placement]]


class Ledger:
    """`windows[0]` is being cut; the others are published and come after it."""

    def __init__(self, image: Image | None = None) -> None:
        self.view = 0
        self.members: dict[ShardId, Member] = {}
        self.windows: list[Window] = []
        self.cut = 0
        """Cuts of `windows[0]` so far."""
        self.counts: tuple[int, ...] = ()
        """Of free will: records of each seat of `windows[0]` so far."""
        self.confirmed: Position = 0
        self.trimmed: Position = 0
        self.gaps: dict[tuple[int, ShardId], int] = {}
        self.eras: list[Era] = []
        self.stranded: dict[ShardId, list[Placement]] = {}
        """The placements of a shard in its last window of free will, until a later cut proves that
        it has journaled them, or a shard that failed or left is back. A shard learns of a cut
        after it is made: if all of its replicas are down by then, nobody else would know.
        """
        self.placements: list[Placement] = []
        """Of free will: where the cuts of `windows[0]` put each seat's records."""
        if image is not None:
            self._restore(image)

    def member(self, name: str) -> Member | None:
        return next((each for each in self.members.values() if each.name == name), None)

    @property
    def current(self) -> Window | None:
        return self.windows[0] if self.windows else None

    @property
    def horizon(self) -> Position:
        """Up to where positions are known to belong to somebody: nobody speculates beyond (F8)."""
        if not self.windows:
            return self.confirmed
        last = self.windows[-1]
        return last.end if last.foreseen else max(last.start, self.confirmed)

    def window(self, number: int) -> Window | None:
        first = self.windows[0].number if self.windows else 0
        index = number - first
        return self.windows[index] if 0 <= index < len(self.windows) else None

    def gap(self, window: Window, seat: Seat) -> int | None:
        """From which of the seat's rounds on there are no-ops by decree, if so."""
        return self.gaps.get((window.number, seat.shard))

    def end_of(self, shard: ShardId) -> Position:
        """Where its positions end that are published; what is trimmed, if all of them are."""
        assert shard in self.members, "only shards that were admitted have positions"
        end = self.horizon
        for era in reversed(self.eras):
            if shard in era.shards:
                return end
            end = era.start
        return self.trimmed

    def tells_from(self, shard: ShardId) -> LocalSequence:
        """From here on the ledger knows the places of a shard's records; of those before its
        replicas alone do.
        """
        seats = (window.by_shard.get(shard) for window in self.windows)
        told = [seat.base for seat in seats if seat is not None]
        told += [local for _, local, _ in self.stranded.get(shard, [])[:1]]
        return min((*told, self.members[shard].placed))

    def apply(self, decisions: Sequence[AnyDecision]) -> None:
        for decision in decisions:
            self._apply(decision)

    def image(self) -> Image:
        return Image(
            view=self.view,
            members=list(self.members.values()),
            windows=list(self.windows),
            cut=self.cut,
            counts=self.counts,
            confirmed=self.confirmed,
            trimmed=self.trimmed,
            gaps=[
                Gap(window=window, shard=shard, rounds=rounds)
                for (window, shard), rounds in self.gaps.items()
            ],
            eras=list(self.eras),
            placements=list(self.placements),
            stranded=dict(self.stranded),
        )

    def _restore(self, image: Image) -> None:
        assert image.trimmed <= image.confirmed, "only what is confirmed is trimmed"
        self.view = image.view
        self.members = {member.id: member for member in image.members}
        self.windows = list(image.windows)
        self.cut = image.cut
        self.counts = image.counts
        self.confirmed = image.confirmed
        self.trimmed = image.trimmed
        self.gaps = {(gap.window, gap.shard): gap.rounds for gap in image.gaps}
        self.eras = list(image.eras)
        self.placements = list(image.placements)
        self.stranded = dict(image.stranded)

    def _apply(self, decision: AnyDecision) -> None:
        match decision:
            case CutTo():
                self._cut_to(decision)
            case CutFreely():
                self._cut_freely(decision)
            case OpenWindow():
                self._open(decision)
            case Admit():
                self._admit(decision)
            case Release(shard):
                self._change(shard, standing=Standing.LEAVING)
                self._let_go()
            case Arrange(shard=shard, epoch=epoch, primary=primary, replicas=replicas, disks=disks):
                assert epoch > self.members[shard].epoch
                assert primary in replicas, "a primary is one of its shard's replicas"
                self._change(shard, epoch=epoch, primary=primary, replicas=replicas, disks=disks)
            case ChangeView():
                self._change_view(decision)
            case TrimTo(position):
                self._trim(position)

    def _change(self, shard: ShardId, **what: object) -> None:
        self.members[shard] = replace(self.members[shard], **what)

    def _admit(self, wanted: Admit) -> None:
        assert wanted.replicas, "a shard has one replica at least"
        assert wanted.quota >= 0
        known = self.member(wanted.name)
        if known is None:
            number = max(self.members, default=-1) + 1
            self.members[number] = Member(
                id=number,
                name=wanted.name,
                standing=Standing.WAITING,
                epoch=1,
                primary=wanted.replicas[0],
                replicas=wanted.replicas,
                demand=wanted.quota,
                disks=wanted.disks,
            )
        else:
            assert known.standing in {Standing.LEFT, Standing.FAILED}
            self.stranded.pop(known.id, None)
            pairs = list(zip(known.disks, wanted.disks, strict=False))
            renewed = bool(pairs) and all(old != new for old, new in pairs)
            begins = known.placed if renewed else known.begins
            self._change(
                known.id,
                standing=Standing.WAITING,
                demand=wanted.quota,
                stand_in=-1,
                begins=begins,
            )

    def _open(self, opened: OpenWindow) -> None:
        last = self.windows[-1] if self.windows else None
        assert opened.number == (last.number + 1 if last else 0)
        start = self.horizon
        bases = {shard: self.members[shard].placed for shard, _ in opened.quotas}
        seated = seats(opened.quotas, opened.groups, bases)
        window = Window(
            number=opened.number,
            mode=opened.mode,
            start=start,
            rounds=opened.rounds,
            groups=opened.groups,
            seats=seated,
        )
        if last is not None and (not last.foreseen or (self._finished and len(self.windows) == 1)):
            assert len(self.windows) == 1
            for seat in last.seats:
                self._strand(seat.shard)
            self.windows.clear()
            self._forget_gaps(window.number)
        if not self.windows:
            self._begin(window)
        self.windows.append(window)
        for seat in seated:
            member = self.members[seat.shard]
            standing = Standing.SEATED if member.standing is Standing.WAITING else member.standing
            placed = seat.base + window.rounds * seat.quota if window.foreseen else seat.base
            self._change(seat.shard, standing=standing, placed=placed)
        self._note_era(Era(start, tuple(sorted(seat.shard for seat in seated))))
        self._let_go()

    @property
    def _finished(self) -> bool:
        """Is the window that is being cut, cut to its end?"""
        return self.windows[0].foreseen and self.cut == self.windows[0].cuts

    def _begin(self, window: Window) -> None:
        assert not self.windows or self.windows[0] is window
        self.cut = 0
        self.counts = () if window.foreseen else (0,) * len(window.seats)
        self.placements = []

    def _note_era(self, era: Era) -> None:
        assert not self.eras or self.eras[-1].start <= era.start, "eras follow one another"
        if self.eras and self.eras[-1].start == era.start:
            self.eras.pop()
        if not self.eras or self.eras[-1].shards != era.shards:
            self.eras.append(era)

    def _cutting(self, number: int) -> Window:
        """The window of a cut: this one, or the next if this one is cut to its end."""
        if self.windows[0].number < number:
            assert self._finished
            self.windows.pop(0)
            self._forget_gaps(number)
            self._begin(self.windows[0])
        assert self.windows[0].number == number
        return self.windows[0]

    def _cut_to(self, to: CutTo) -> None:
        window = self._cutting(to.window)
        assert window.foreseen
        assert self.cut < to.cut <= window.cuts
        self.cut = to.cut
        self.confirmed = window.covered(to.cut)
        for shard in [each for each in self.stranded if self._has_gone_on(each, window)]:
            del self.stranded[shard]
        if to.cut == window.cuts:
            self._let_go()

    def _cut_freely(self, to: CutFreely) -> None:
        window = self._cutting(to.window)
        assert window.mode is Mode.FREE_WILL
        assert len(to.counts) == len(window.seats)
        for seat, before, after in zip(window.seats, self.counts, to.counts, strict=True):
            assert before <= after
            if before < after:
                run = Run(self.confirmed, after - before)
                self.placements.append((seat.shard, seat.base + before, run))
                self.confirmed = run.end
                self._change(seat.shard, placed=seat.base + after)
        self.cut += 1
        self.counts = to.counts

    def _let_go(self) -> None:
        """Who leaves has left when no published window that isn't cut counts on it."""
        open_windows = self.windows[1:] if self.windows and self._finished else self.windows
        seated = {seat.shard for window in open_windows for seat in window.seats}
        for member in list(self.members.values()):
            if member.standing is Standing.LEAVING and member.id not in seated:
                self._change(member.id, standing=Standing.LEFT)

    def _change_view(self, change: ChangeView) -> None:
        assert len({*change.failed}) == len(change.failed), "a shard fails once in a view"
        assert change.view == self.view + 1
        self.view = change.view
        for shard in change.failed:
            self._strand(shard)
            void = Void(
                view=change.view, placed=self._void(shard), start=self.confirmed, end=self.horizon
            )
            self._change(
                shard,
                placed=void.placed,
                standing=Standing.FAILED,
                stand_in=change.stand_in,
                void_view=void.view,
                void_from=void.start,
                void_upto=void.end,
                voids=(*self.members[shard].voids, void),
            )
        for member in list(self.members.values()):
            if member.standing is Standing.FAILED and member.stand_in in change.failed:
                self._change(member.id, stand_in=change.stand_in)

    def _strand(self, shard: ShardId) -> None:
        """Remember the placements of this window. Its cuts counted what the shard had reported in
        this window, so the shard had journaled earlier placements by then.
        """
        placed = [each for each in self.placements if each[0] == shard]
        if placed:
            self.stranded[shard] = placed

    def _has_gone_on(self, shard: ShardId, window: Window) -> bool:
        """Do the cuts of this predicted window hold rounds that the shard has reported?"""
        seat = window.by_shard.get(shard)
        if seat is None or self.members[shard].standing is Standing.FAILED:
            return False
        return self.gap(window, seat) is None and window.rounds_in(seat, self.cut) > 0

    def _void(self, shard: ShardId) -> LocalSequence:
        """What the cuts hold of it ends here; no seat of its counts any more."""
        placed = self.members[shard].placed
        for window in reversed(self.windows):
            seat = window.by_shard.get(shard)
            if seat is None or not window.foreseen or (window.number, shard) in self.gaps:
                continue
            cut = self.cut if window is self.windows[0] else 0
            rounds = window.rounds_in(seat, cut)
            if rounds < window.rounds:
                self.gaps[window.number, shard] = rounds
                placed = seat.base + rounds * seat.quota
        assert placed <= self.members[shard].placed, "a failure gives nobody more places"
        return placed

    def _forget_gaps(self, upto: int) -> None:
        self.gaps = {key: rounds for key, rounds in self.gaps.items() if key[0] >= upto}

    def _trim(self, position: Position) -> None:
        assert position <= self.confirmed
        self.trimmed = max(self.trimmed, position)
        while len(self.eras) > 1 and self.eras[1].start <= self.trimmed:
            self.eras.pop(0)
        for member in list(self.members.values()):
            later = [void for void in member.voids if void.start > self.trimmed]
            # What it was placed before one that lies below, nobody asks for: that one is enough.
            below = len(member.voids) - len(later)
            if below > 1:
                self._change(member.id, voids=member.voids[below - 1 :])
