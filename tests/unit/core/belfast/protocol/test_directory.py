"""What clients are told of a log's shards, once for everybody."""

from anabranch.core.belfast.ledger.decisions import Admit, AnyDecision
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.protocol.directory import Directories, directory


def admitted(*names: str) -> Ledger:
    ledger = Ledger()
    decisions: list[AnyDecision] = [Admit(name, (f"{name}0",), 0) for name in names]
    ledger.apply(decisions)
    return ledger


def test_shards_come_in_the_order_in_which_they_were_admitted() -> None:
    found = directory(admitted("b", "a"), 7, "s0")
    assert (found.index, found.leader, found.view) == (7, "s0", 0)
    assert [(each.name, each.standing, each.replicas) for each in found.shards] == [
        ("b", Standing.WAITING, ("b0",)),
        ("a", Standing.WAITING, ("a0",)),
    ]


def test_everybody_gets_the_same_object_until_something_has_changed() -> None:
    ledger, directories = admitted("a"), Directories()
    first = directories.of(ledger, 1, "s0")
    assert directories.of(ledger, 1, "s0") is first
    assert directories.of(ledger, 1, "s1").leader == "s1"
    ledger.apply([Admit("b", ("b0",), 0)])
    assert directories.of(ledger, 2, "s1") == directory(ledger, 2, "s1")


def test_a_ledger_from_a_snapshot_is_another_one_also_with_the_same_index() -> None:
    directories = Directories()
    directories.of(admitted("a"), 1, "s0")
    restored = admitted("a", "b")
    assert len(directories.of(restored, 1, "s0").shards) == 2
