"""A black box that somebody harms under a shard that runs."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from anabranch.core.errors import (
    BlackBoxBehind,
    BlackBoxChanged,
    BlackBoxFailed,
    BlackBoxFenced,
    BlackBoxReplaced,
    BlackBoxTaken,
    BlackBoxUnfit,
)
from anabranch.core.storage.black_box import Kind, Part, encode
from anabranch.shell.journal.black_box import LOOK_S, BlackBoxJournal
from anabranch_sim.world.black_box import SimBlackBox

OWNER = "cluster audit.1.2 shard-0"
Harm = Callable[["HarmedBox"], None]


class HarmedBox(SimBlackBox):
    """Never fails, and does what its servers' owner tells it."""

    def __init__(self) -> None:
        super().__init__(Random(7))
        self.unfit = self.unreachable = self.silent = False
        self.told = 0
        """Where it begins, as answers to appends tell."""

    @property
    def begin(self) -> int:
        return self.told

    def look(self) -> tuple[int, int]:
        if self.unreachable:
            raise BlackBoxFailed(self.where, "it doesn't answer")
        if self.unfit:
            raise BlackBoxUnfit(self.where, "its retention.ms is 1000")
        return super().look()

    def append(self, records: Sequence[bytes]) -> list[int]:
        if self.silent:
            raise BlackBoxFailed(self.where, "no answer came")
        return super().append(records)

    def fill(self, contents: list[bytes]) -> None:
        """What it holds from now on."""
        self.records = list(enumerate(contents))
        self._begin, self._end = 0, len(contents)

    @property
    def contents(self) -> list[bytes]:
        return [record for _, record in self.records]

    def restarted(self, life: int = 2, *, noted: int = 0) -> BlackBoxJournal:
        again = BlackBoxJournal(self, OWNER, life, noted=noted, now=lambda: 0.0)
        again.recover()
        return again


class Shard:
    """A journal that has run for a while, and its clock."""

    def __init__(self) -> None:
        self.box = HarmedBox()
        self.now = 100.0
        self.journal = BlackBoxJournal(self.box, OWNER, 1, now=lambda: self.now)
        self.journal.recover()
        self.journal.append([b"one", b"two", b"three"])

    def looks(self) -> None:
        """As an idle machine asks now and then."""
        self.now += LOOK_S
        self.journal.append([])


def trimmed(box: HarmedBox) -> None:
    box.trim(3)


def emptied(box: HarmedBox) -> None:
    box.trim(4)


def cut_short(box: HarmedBox) -> None:
    box.fill(box.contents[:2])


def made_again_empty(box: HarmedBox) -> None:
    box.fill([])


def made_again_with_as_many(box: HarmedBox) -> None:
    box.fill([b"theirs"] * 4)


def made_again_with_more(box: HarmedBox) -> None:
    box.fill([b"theirs"] * 20)


def put_back_from_an_older_copy(box: HarmedBox) -> None:
    box.fill([*box.contents[:2], b"theirs", b"theirs", b"theirs"])


HARMS = [
    trimmed,
    emptied,
    cut_short,
    made_again_empty,
    made_again_with_as_many,
    made_again_with_more,
    put_back_from_an_older_copy,
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_harm_is_noticed_though_nothing_is_appended(harm: Harm) -> None:
    shard = Shard()
    shard.looks()
    harm(shard.box)
    with pytest.raises(BlackBoxChanged, match="before you restart"):
        shard.looks()


@pytest.mark.parametrize("harm", HARMS)
def test_nothing_is_acknowledged_that_rests_on_a_harmed_black_box(harm: Harm) -> None:
    shard = Shard()
    harm(shard.box)
    shard.now += LOOK_S
    for _ in range(3):
        with pytest.raises(BlackBoxChanged):
            shard.journal.append([b"four"])


@pytest.mark.parametrize(
    "harm", [cut_short, made_again_empty, made_again_with_more, put_back_from_an_older_copy]
)
def test_what_the_answer_to_an_append_shows_needs_no_look(harm: Harm) -> None:
    """A group larger than what is missing hid that: its end lay behind the old one."""
    shard = Shard()
    harm(shard.box)
    with pytest.raises(BlackBoxChanged):
        shard.journal.append([b"%d" % each for each in range(9)])


def test_an_answer_that_tells_a_later_beginning_is_looked_into_at_once() -> None:
    shard = Shard()
    shard.box.trim(3)
    shard.box.told = 3
    with pytest.raises(BlackBoxChanged, match="position 3"):
        shard.journal.append([b"four"])


def test_a_harmed_black_box_isnt_trimmed_or_written() -> None:
    shard = Shard()
    made_again_with_more(shard.box)
    with pytest.raises(BlackBoxChanged):
        shard.looks()
    for call in (lambda: shard.journal.append([b"x"]), lambda: shard.journal.save_snapshot(3, b"")):
        with pytest.raises(BlackBoxChanged):
            call()
    assert shard.box.contents == [b"theirs"] * 20


def test_a_trim_that_forgets_nothing_needed_is_no_harm() -> None:
    shard = Shard()
    shard.journal.save_snapshot(3, b"three")
    shard.looks()
    shard.journal.append([b"four"])
    shard.journal.save_snapshot(4, b"four")
    shard.looks()
    assert shard.journal.append([b"five"]) == 5
    assert shard.box.restarted().read(5, 6) == [b"five"]


def test_a_trim_beyond_the_snapshot_is_noticed() -> None:
    shard = Shard()
    shard.journal.save_snapshot(3, b"three")
    shard.box.trim(shard.box.bounds()[1])
    with pytest.raises(BlackBoxChanged):
        shard.looks()


def test_what_is_unfit_for_a_while_is_written_again_afterwards() -> None:
    shard = Shard()
    shard.box.unfit = True
    with pytest.raises(BlackBoxUnfit):
        shard.looks()
    with pytest.raises(BlackBoxUnfit):
        shard.journal.append([b"four"])
    shard.box.unfit = False
    shard.looks()
    assert shard.journal.append([b"four"]) == 4


def test_who_was_replaced_is_told_so_though_its_records_were_trimmed_since() -> None:
    for upto in (1, 3):
        shard = Shard()
        other = shard.box.restarted()
        other.append([b"four"])
        other.save_snapshot(upto, b"")
        if upto == 3:
            shard.box.trim(6)
        with pytest.raises(BlackBoxFenced):
            shard.looks()


def test_a_record_that_somebody_forged_in_this_lifes_name_is_noticed() -> None:
    shard = Shard()
    shard.box.append([encode(Part(kind=Kind.ENTRY, life=1, number=4, index=4, content=b"forged"))])
    with pytest.raises(BlackBoxChanged, match="position 4"):
        shard.journal.append([b"four"])


def test_a_look_that_fails_keeps_the_same_records_from_being_sent_again_and_again() -> None:
    shard = Shard()
    shard.box.append([b"theirs"])
    shard.box.unreachable = True
    for _ in range(3):
        with pytest.raises(BlackBoxFailed):
            shard.journal.append([b"four"])
    assert len(shard.box.records) == 6
    shard.box.unreachable = False
    assert shard.journal.append([b"four"]) == 4
    assert shard.box.restarted().read(4, 5) == [b"four"]


def test_an_append_that_fails_is_followed_by_a_look_before_it_is_tried_again() -> None:
    """Whoever appends to what was deleted gets no answer that tells it from one that is away."""
    shard = Shard()
    shard.box.silent = True
    with pytest.raises(BlackBoxFailed):
        shard.journal.append([b"four"])
    shard.box.silent = False
    shard.box.trim(3)
    known = shard.box.contents
    with pytest.raises(BlackBoxChanged):
        shard.journal.append([b"four"])
    assert shard.box.contents == known


def test_records_of_others_are_passed_over() -> None:
    shard = Shard()
    shard.box.append([b"theirs", b"theirs"])
    assert shard.journal.append([b"four"]) == 4
    shard.looks()
    assert shard.box.restarted(noted=4).read(4, 5) == [b"four"]


def test_a_start_that_finds_others_records_in_its_place_doesnt_advise_to_delete_them() -> None:
    box = HarmedBox()
    box.fill([b"theirs"] * 20)
    with pytest.raises(BlackBoxReplaced, match="entry 4") as replaced:
        box.restarted(noted=4)
    with pytest.raises(BlackBoxTaken) as taken:
        box.restarted()
    for error in (replaced, taken):
        assert "or delete" not in error.value.message


def test_a_start_that_misses_records_writes_nothing_in_their_place() -> None:
    """An opening at the beginning would void all that is put back behind it."""
    shard = Shard()
    kept = shard.box.contents
    shard.box.fill([])
    with pytest.raises(BlackBoxBehind):
        shard.box.restarted(noted=3)
    shard.box.append(kept)
    assert shard.box.restarted(3, noted=3).read(1, 4) == [b"one", b"two", b"three"]
