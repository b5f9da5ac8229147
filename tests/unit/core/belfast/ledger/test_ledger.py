"""The ledger against a log that is written down position by position."""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

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
    decode_entry,
    encode_entry,
)
from anabranch.core.belfast.ledger.ledger import Image, Ledger, Standing, Void
from anabranch.core.belfast.ledger.windows import Mode, ShardId, Window
from anabranch.core.types import LocalSequence, Position


@dataclass
class Slot:
    window: int
    shard: ShardId
    local: LocalSequence
    decreed: bool = False
    """A no-op because its shard had failed."""


@dataclass
class Chronicle:
    """All that a ledger says, kept the long way."""

    ledger: Ledger = field(default_factory=Ledger)
    slots: list[Slot] = field(default_factory=list[Slot])
    confirmed: Position = 0
    written: dict[ShardId, LocalSequence] = field(default_factory=dict[ShardId, LocalSequence])
    """Of each shard, the records that have a place."""
    windows: dict[int, Window] = field(default_factory=dict[int, Window])
    ends: dict[int, Position] = field(default_factory=dict[int, Position])
    decided: list[AnyDecision] = field(default_factory=list[AnyDecision])

    def decide(self, *decisions: AnyDecision) -> None:
        decided = decode_entry(encode_entry(decisions))
        assert decided == list(decisions)
        self.ledger.apply(decided)
        self.decided += decided

    def standing(self, *of: Standing) -> list[ShardId]:
        return [each.id for each in self.ledger.members.values() if each.standing in of]

    def open(self, mode: Mode, rounds: int, groups: int, quotas: list[int]) -> None:
        able = self.standing(Standing.WAITING, Standing.SEATED)
        chosen = tuple((shard, quota) for shard, quota in zip(able, quotas, strict=False) if quota)
        if not chosen:
            return
        number = max(self.windows, default=-1) + 1
        groups = min(groups, len(chosen)) if mode is not Mode.FREE_WILL else 1
        start = len(self.slots)
        self.decide(OpenWindow(number, mode, rounds, groups, chosen))
        opened = self.windows[number] = self.ledger.windows[-1]
        assert opened.start == start, "F12"
        for shard, _ in chosen:
            self.written.setdefault(shard, 0)
        if mode is Mode.FREE_WILL:
            return
        for _ in range(rounds):
            for group in range(groups):
                for nth, (shard, quota) in enumerate(chosen):
                    for _ in range(quota if nth % groups == group else 0):
                        self.slots.append(Slot(number, shard, self.written[shard]))
                        self.written[shard] += 1
        self.ends[number] = len(self.slots)

    def change_view(self, failed: list[ShardId]) -> None:
        alive = [each for each in self.standing(Standing.SEATED) if each not in failed]
        if not failed or not alive:
            return
        view = self.ledger.view + 1
        self.decide(ChangeView(view=view, failed=tuple(failed), stand_in=min(alive)))
        for slot in self.slots[self.confirmed :]:
            if slot.shard in failed:
                slot.decreed = True
        for shard in failed:
            kept = [slot for slot in self.slots if slot.shard == shard and not slot.decreed]
            self.written[shard] = len(kept)

    @property
    def cutting(self) -> int:
        """The window that the next cut is of."""
        current = self.ledger.windows[0]
        return current.number + (self.ends.get(current.number) == self.confirmed)

    def cut(self, cuts: int) -> None:
        window = self.windows[self.cutting]
        done = self.ledger.cut if window is self.ledger.windows[0] else 0
        to = min(window.cuts, done + cuts)
        ended = to % window.groups
        self.decide(CutTo(window=window.number, cut=to))
        per_round = sum(seat.quota for seat in window.seats)
        part = sum(seat.quota for seat in window.seats if seat.group < ended)
        self.confirmed = window.start + to // window.groups * per_round + part

    def cut_freely(self, more: list[int]) -> None:
        window = self.windows[self.cutting]
        current = window is self.ledger.windows[0]
        counts = list(self.ledger.counts) if current else [0] * len(window.seats)
        gone = self.standing(Standing.FAILED, Standing.WAITING)
        for nth, seat in enumerate(window.seats):
            if seat.shard not in gone:
                counts[nth] += more[nth % len(more)]
                for _ in range(more[nth % len(more)]):
                    self.slots.append(Slot(window.number, seat.shard, self.written[seat.shard]))
                    self.written[seat.shard] += 1
        self.decide(CutFreely(window.number, tuple(counts)))
        self.confirmed = len(self.slots)


def check(kept: Chronicle) -> None:
    ledger = kept.ledger
    assert ledger.confirmed == kept.confirmed
    assert ledger.horizon == len(kept.slots)
    for shard, written in kept.written.items():
        assert ledger.members[shard].placed == written
    for window in ledger.windows:
        assert window == kept.windows[window.number], "F2"
    _check_places(kept)
    _check_eras(kept)
    _check_leavers(kept)
    _check_stranded(kept)
    image = msgspec.msgpack.encode(ledger.image())
    again = Ledger(msgspec.msgpack.decode(image, type=Image))
    assert again.image() == ledger.image()


def _check_places(kept: Chronicle) -> None:
    ledger = kept.ledger
    for window in ledger.windows:
        if not window.foreseen:
            continue
        for at in range(window.start, window.end):
            slot = kept.slots[at]
            seat = window.by_shard[slot.shard]
            nth = window.records_below(seat, at)
            assert window.position(seat, nth) == at
            gap = ledger.gap(window, seat)
            assert slot.decreed == (gap is not None and nth >= gap * seat.quota)
            assert slot.decreed or slot.local == seat.base + nth
    placed = [
        (run.first + nth, shard, first + nth)
        for shard, first, run in ledger.placements
        for nth in range(run.count)
    ]
    if ledger.current is not None and not ledger.current.foreseen:
        start = ledger.current.start
        there = enumerate(kept.slots[start : kept.confirmed], start)
        assert placed == [(at, slot.shard, slot.local) for at, slot in there]


def _check_eras(kept: Chronicle) -> None:
    eras = kept.ledger.eras
    for at in range(kept.ledger.trimmed, len(kept.slots)):
        era = [each for each in eras if each.start <= at][-1]
        assert era.shards == tuple(
            sorted(seat.shard for seat in kept.windows[kept.slots[at].window].seats)
        )


def _check_stranded(kept: Chronicle) -> None:
    """Places that are kept beyond their window are true, and join what the windows tell."""
    ledger = kept.ledger
    for shard, placed in ledger.stranded.items():
        assert placed, "a shard of which nothing is kept isn't mentioned"
        end = placed[0][1]
        for owner, local, run in placed:
            assert (owner, local) == (shard, end)
            for nth in range(run.count):
                slot = kept.slots[run.first + nth]
                assert (slot.shard, slot.local, slot.decreed) == (shard, local + nth, False)
            end = local + run.count
        member = ledger.members[shard]
        bases = [each.by_shard[shard].base for each in ledger.windows if shard in each.by_shard]
        assert end in (member.placed, *bases)


def _check_leavers(kept: Chronicle) -> None:
    """Who leaves is there until its last window is cut to the end."""
    counted_on = {
        seat.shard
        for window in kept.ledger.windows
        if not window.foreseen or window.end > kept.confirmed
        for seat in window.seats
    }
    for shard in kept.standing(Standing.LEAVING):
        assert shard in counted_on
    for shard in kept.standing(Standing.LEFT):
        assert shard not in counted_on


def _may_open(kept: Chronicle) -> bool:
    published = kept.ledger.windows
    return len(published) < 4 and (not published or published[-1].foreseen or len(published) == 1)


def _go_on(kept: Chronicle, data: st.DataObject) -> None:
    seated = kept.standing(Standing.SEATED)
    may = ["admit"]
    may += ["open"] * 3 * _may_open(kept)
    may += ["cut"] * 4 * (bool(kept.windows) and kept.cutting in kept.windows)
    may += ["release", "fail", "arrange", "trim"] * bool(seated)
    small = st.integers(0, 4)
    match data.draw(st.sampled_from(may)):
        case "admit":
            back = kept.standing(Standing.LEFT, Standing.FAILED)
            names = [kept.ledger.members[shard].name for shard in back]
            new = f"shard-{len(kept.ledger.members)}"
            kept.decide(Admit(data.draw(st.sampled_from([*names, new])), ("one", "two"), 3))
        case "open":
            mode = data.draw(st.sampled_from(list(Mode)))
            quotas = data.draw(st.lists(small, min_size=1, max_size=6))
            kept.open(mode, data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)), quotas)
        case "cut" if kept.windows[kept.cutting].foreseen:
            kept.cut(data.draw(st.integers(1, 4)))
        case "cut":
            kept.cut_freely(data.draw(st.lists(small, min_size=1, max_size=4)))
        case "release":
            kept.decide(Release(data.draw(st.sampled_from(seated))))
        case "arrange":
            shard = data.draw(st.sampled_from(seated))
            epoch = kept.ledger.members[shard].epoch + data.draw(st.integers(1, 3))
            kept.decide(Arrange(shard=shard, epoch=epoch, primary="two", replicas=("two",)))
            assert kept.ledger.members[shard].primary == "two"
        case "fail":
            kept.change_view(data.draw(st.lists(st.sampled_from(seated), max_size=2, unique=True)))
        case _:
            kept.decide(TrimTo(data.draw(st.integers(0, kept.confirmed))))


@settings(deadline=None)
@given(st.data())
def test_a_ledger_says_what_a_written_log_does(data: st.DataObject) -> None:
    kept = Chronicle()
    for _ in range(data.draw(st.integers(1, 40))):
        _go_on(kept, data)
        check(kept)


@settings(deadline=None)
@given(st.data())
def test_an_image_goes_on_as_its_ledger(data: st.DataObject) -> None:
    kept = Chronicle()
    for _ in range(data.draw(st.integers(1, 25))):
        _go_on(kept, data)
    taken = len(kept.decided)
    image = msgspec.msgpack.encode(kept.ledger.image())
    for _ in range(data.draw(st.integers(1, 25))):
        _go_on(kept, data)
    again = Ledger(msgspec.msgpack.decode(image, type=Image))
    again.apply(kept.decided[taken:])
    assert again.image() == kept.ledger.image()


def test_an_image_of_before_failures_were_kept_is_read() -> None:
    kept = Chronicle()
    kept.decide(Admit("a", ("one",), 3), Admit("b", ("two",), 3))
    kept.decide(ChangeView(view=1, failed=(0,), stand_in=1))
    content = msgspec.to_builtins(kept.ledger.image())
    content[1] = [member[:-1] for member in content[1]]
    (failed, _) = msgspec.convert(content, Image).members
    assert (failed.void_view, failed.voids) == (1, ())
    assert kept.ledger.image().members[0].voids == (Void(view=1, placed=0, start=0, end=0),)


def test_failures_are_kept_until_nobody_asks_for_what_came_between_them() -> None:
    kept = Chronicle()
    kept.decide(Admit("a", ("one",), 3), Admit("b", ("two",), 3))
    for number in range(3):
        kept.decide(OpenWindow(number, Mode.STEADY, 2, 1, ((0, 1), (1, 1))))
        kept.decide(
            CutTo(window=number, cut=1),
            ChangeView(view=number + 1, failed=(0,), stand_in=1),
            CutTo(window=number, cut=2),
        )
        kept.decide(Admit("a", ("one",), 3))

    def views() -> list[int]:
        return [void.view for void in kept.ledger.members[0].voids]

    kept.decide(TrimTo(5))
    assert views() == [1, 2, 3]
    kept.decide(TrimTo(6))
    assert views() == [2, 3]
    kept.decide(TrimTo(12))
    assert views() == [3]
