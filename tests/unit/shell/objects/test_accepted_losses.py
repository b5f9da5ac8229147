"""The note of accepted losses."""

from pathlib import Path

import pytest

from anabranch.core.errors import StorageFailed
from anabranch.shell.objects.accepted_losses import FILE, Acceptance, AcceptancesFile


def test_acceptances_are_kept_in_order_and_each_once(tmp_path: Path) -> None:
    file = AcceptancesFile(str(tmp_path))
    assert file.read() == []
    first, second = Acceptance(5, 1, 3), Acceptance(9, 4, 6)
    for each in (first, second, second):
        (tmp_path / f"{FILE}.part").write_text("cut short")
        file.add(each)
    assert AcceptancesFile(str(tmp_path)).read() == [first, second]


def test_a_note_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("?")
    with pytest.raises(StorageFailed, match=FILE):
        AcceptancesFile(str(tmp_path)).read()


def test_an_acceptance_tells_the_journal_that_went_on_from_the_one_that_was_given_up() -> None:
    accepted = Acceptance(entry=5, knew=1, lives=3)
    assert [accepted.is_known(lives) for lives in (2, 3, 4)] == [False, False, True]
    assert [accepted.gave_up(life) for life in (0, 1, 3, 4)] == [False, True, True, False]
