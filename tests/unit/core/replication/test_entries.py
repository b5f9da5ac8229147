"""Journals and letters of the release before views are read; that release reads those of now."""

import msgspec
import pytest

from anabranch.core.replication.entries import (
    Born,
    CutBack,
    Item,
    JournalEntry,
    LogImage,
    Note,
    SealedBelow,
    Skipped,
    decode_entry,
    decode_image,
    encode,
)
from anabranch.core.replication.letters import Copy, Joining, Match, ReplicaLetter, Stored
from anabranch.core.replication.terms import Term

FIRST = 1 << 32
"""The first term of the first epoch."""

ENTRIES: list[tuple[str, JournalEntry]] = [
    ("92a4626f726e07", Born(7)),
    ("93a5726569676ecf000000010000000000", Term(number=FIRST, first=0)),
    ("94a46974656d0002c4026162", Item(0, 2, b"ab")),
    ("94a46974656d0203c400", Item(2, 3, b"")),
    ("93a363757402cf0000000100000000", CutBack(to=2, term=FIRST)),
    ("92a47365616c02", SealedBelow(2)),
    ("92a46e6f7465c4016e", Note(b"n")),
    ("92a4736b697009", Skipped(9)),
]
IMAGE = "980800029193a5726569676ecf000000010000000000cf00000001000000000207c4056f776e6572"
LETTERS: list[tuple[str, ReplicaLetter]] = [
    (
        "95a76a6f696e696e67a16101029193a5726569676ecf000000010000000000",
        Joining(group="a", epoch=1, last=2, terms=(Term(number=FIRST, first=0),)),
    ),
    (
        (
            "9aa56d61746368a16101cf000000010000000102cf0000000100000000cf0000000100000000"
            "02009193a5726569676ecf000000010000000102"
        ),
        Match("a", 1, FIRST + 1, 2, FIRST, FIRST, 2, 0, (Term(number=FIRST + 1, first=2),)),
    ),
    (
        "97a4636f7079a16101cf000000010000000000029194a46974656d0002c4026162",
        Copy("a", 1, FIRST, 0, 2, [Item(0, 2, b"ab")]),
    ),
    (
        "96a673746f726564a16101cf000000010000000002cf0000000100000000",
        Stored("a", 1, FIRST, 2, FIRST),
    ),
]


class OldTerm(msgspec.Struct, frozen=True, array_like=True, tag="reign"):
    """As the release before views has it."""

    number: int
    first: int


@pytest.mark.parametrize(("old", "entry"), ENTRIES, ids=[old for old, _ in ENTRIES])
def test_an_entry_of_the_release_before_views_is_read(old: str, entry: JournalEntry) -> None:
    assert decode_entry(bytes.fromhex(old)) == entry
    if not isinstance(entry, Term):
        assert encode(entry).hex() == old, "what has not changed is written as it was"


def test_an_image_of_the_release_before_views_is_read() -> None:
    image = LogImage(8, 0, 2, (Term(number=FIRST, first=0),), FIRST, 2, 7, b"owner")
    assert decode_image(bytes.fromhex(IMAGE)) == image


@pytest.mark.parametrize(("old", "letter"), LETTERS, ids=[old for old, _ in LETTERS])
def test_a_letter_of_the_release_before_views_is_read(old: str, letter: ReplicaLetter) -> None:
    assert msgspec.msgpack.decode(bytes.fromhex(old), type=ReplicaLetter) == letter


def test_the_release_before_views_reads_a_term_of_now() -> None:
    now = encode(Term(number=FIRST, first=4, view=3))
    assert msgspec.msgpack.decode(now, type=OldTerm) == OldTerm(FIRST, 4)
