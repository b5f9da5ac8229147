"""One member of a group, written to letter by letter."""

import msgspec
from tests.unit.core.consensus.council import Council, Councillor

from anabranch.core.consensus.disk import Ballot, Joined, Record, Written
from anabranch.core.consensus.letters import (
    AskVote,
    ConsensusLetter,
    Entry,
    Vote,
)


def member(*records: Record, snapshot_entries: int = 10_000) -> tuple[Council, Councillor]:
    """Alone among three, with this on its disk."""
    council = Council(snapshot_entries=snapshot_entries)
    alone = council.members["a"]
    alone.paper.entries = [msgspec.msgpack.encode(each) for each in records]
    alone.start()
    return council, alone


def read(reader: Councillor, sender: str, letter: ConsensusLetter) -> None:
    reader.step(lambda: reader.consensus.received(sender, letter))


def leader() -> tuple[Council, Councillor]:
    """Of term 2, with an entry of term 1 before its own first."""
    council, alone = member(Joined(), Ballot(1, "b"), Written(1, Entry(1, b"old")))
    council.run(500)
    read(alone, "b", Vote(2, granted=True, probing=True, fresh=False))
    council.run(10)
    read(alone, "b", Vote(2, granted=True, probing=False, fresh=False))
    council.run(10)
    assert alone.consensus.leader == "a"
    assert alone.consensus.last == 2
    return council, alone


def restarted_from_a_snapshot() -> tuple[Council, Councillor]:
    """It has voted for b in term 2, and its journal holds nothing but a snapshot."""
    council, alone = member(Joined(), snapshot_entries=1)
    read(alone, "b", AskVote(2, 0, 0, probing=False, bidden=False))
    council.run(10)
    assert council.letters == [("a", "b", Vote(2, granted=True, probing=False, fresh=False))]
    assert alone.paper.snapshot is not None
    assert not alone.paper.entries
    alone.crash()
    council.letters.clear()
    alone.start()
    return council, alone
