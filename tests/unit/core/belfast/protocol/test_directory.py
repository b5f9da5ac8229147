"""What clients are told of a log's shards, once for everybody."""

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    Arrange,
    ChangeView,
    CutTo,
    OpenWindow,
    TrimTo,
)
from anabranch.core.belfast.ledger.ledger import Ledger, Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.directory import Directories, directory, stand_in_of
from anabranch.core.belfast.protocol.messages import Directory


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


def seated() -> Ledger:
    ledger = admitted("b", "a")
    ledger.apply([OpenWindow(0, Mode.STEADY, 4, 1, ((0, 1), (1, 2)))])
    return ledger


def test_before_anything_is_decided_there_is_nothing_to_tell() -> None:
    assert directory(Ledger(), 0, "") == Directory(0, 0, "", (), 0, 0)


def test_it_says_how_far_the_log_is_final_and_where_it_begins() -> None:
    ledger = seated()
    ledger.apply([CutTo(window=0, cut=3), TrimTo(5)])
    told = directory(ledger, 9, "s1")
    assert (told.confirmed, told.trimmed) == (9, 5)


def test_a_shard_that_has_failed_is_served_by_its_stand_in_under_its_own_name() -> None:
    ledger = seated()
    ledger.apply([ChangeView(view=1, failed=(0,), stand_in=1)])
    told = directory(ledger, 9, "s1")
    assert told.view == 1
    assert [(each.name, each.standing, each.stand_in) for each in told.shards] == [
        ("b", Standing.FAILED, "a"),
        ("a", Standing.SEATED, ""),
    ]
    ledger.apply([Admit("b", ("b0",), 0)])
    assert stand_in_of(ledger, ledger.members[0]) == ""


def test_another_arrangement_is_another_epoch() -> None:
    ledger = seated()
    ledger.apply([Arrange(shard=0, epoch=4, primary="b2", replicas=("b2",))])
    told = directory(ledger, 9, "").shards[0]
    assert (told.epoch, told.primary, told.replicas) == (4, "b2", ("b2",))
