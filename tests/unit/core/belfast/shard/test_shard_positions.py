"""A replica that wasn't there when its shard's records were placed: it serves what it knows of
them, and asks the others.
"""

import random

import pytest
from tests.unit.core.belfast.shard.shard_stage import Stage

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    Arrange,
    ChangeView,
    CutFreely,
    Release,
    TrimTo,
)
from anabranch.core.belfast.ledger.placements import Placements
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import Alive, Places
from anabranch.core.belfast.protocol.messages import Failed
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Received

SHARDS = {"a": ("a1", "a2"), "b": ("b1",)}


def fail_and_return(stage: Stage, epoch: int) -> None:
    """Shard a, which comes back without its backup."""
    view = stage.ledger.view + 1
    stage.decide(ChangeView(view=view, failed=(0,), stand_in=1))
    stage.decide(
        Admit("a", ("a1",), 0), Arrange(shard=0, epoch=epoch, primary="a1", replicas=("a1",))
    )


def away_over_two_failures() -> Stage:
    """What lies behind position 15 of shard a's was void, in the two windows published then."""
    stage = Stage(SHARDS)
    stage.admit(2, 1, windows=2)
    stage.append("a1", *(f"v{nth}" for nth in range(10)))
    stage.cut(0, 5)
    stage.nodes["a2"].deaf = True
    fail_and_return(stage, 2)
    stage.open(2, 1)
    stage.append("a1", *(f"w{nth}" for nth in range(30)))
    for window in range(3):
        stage.cut(window, 10)
    stage.open(2, 1)
    fail_and_return(stage, 3)
    stage.open(2, 1)
    stage.cut(3, 10)
    stage.cut(4, 5)
    stage.nodes["a2"].deaf = False
    return stage


def code(stage: Stage, token: int) -> str:
    refused = stage.answers[token][-1]
    assert isinstance(refused, Refused), refused
    return refused.code


def places(stage: Stage, node: str) -> Placements:
    return stage.nodes[node].machine._seating.placements  # pyright: ignore[reportPrivateUsage]


def with_a_hole(stage: Stage, windows: int) -> None:
    """Shard a's backup has the log, and heard of so many windows before those of now."""
    stage.admit(2, 1)
    for nth in range(1, 6):
        stage.nodes["a2"].deaf = nth >= windows
        stage.append("a1", *(f"{nth}-{each}" for each in range(20)))
        stage.open(1 + nth, 1)
        stage.cut(nth - 1, 10)
    if not windows:
        stage.wipe("a2")
    stage.nodes["a2"].deaf = False
    stage.restore("a2")


def test_what_lies_behind_places_that_arent_known_isnt_delivered_nor_passed_over() -> None:
    stage = Stage(SHARDS)
    with_a_hole(stage, 2)
    true = read(stage, "a1")
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    reader = stage.subscribe("a2", "a")
    begin = stage.delivered(reader)
    assert 0 < len(begin) < len(true)
    assert begin == true[: len(begin)]
    assert stage.upto(reader) == begin[-1][0] + 1
    assert code(stage, reader) == "shard-away"
    stage.restart("a1")
    stage.restore("a1")
    stage.sleep(6)
    assert begin + read(stage, "a2", stage.upto(reader)) == true


def test_a_replica_that_knows_no_older_places_serves_none_of_what_has_them() -> None:
    stage = Stage(SHARDS)
    with_a_hole(stage, 0)
    true = read(stage, "a1")
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    for start in (0, 20, places(stage, "a2").rows[0].first - 1):
        reader = stage.subscribe("a2", "a", start)
        assert stage.delivered(reader) == []
        assert code(stage, reader) == "shard-away"
    stage.restart("a1")
    stage.restore("a1")
    stage.sleep(6)
    assert read(stage, "a2") == true


def test_a_replica_says_how_far_it_knows_places() -> None:
    stage = Stage(SHARDS)
    with_a_hole(stage, 2)

    def said() -> int:
        return [
            letter.placed
            for sender, letter in stage.letters
            if sender == "a2" and isinstance(letter, Alive)
        ][-1]

    stage.crash("a1")
    stage.sleep(6)
    assert said() < stage.ledger.tells_from(0)
    stage.restart("a1")
    stage.restore("a1")
    stage.sleep(12)
    assert said() == stage.ledger.members[0].placed


def test_places_of_another_view_arent_taken() -> None:
    """They may be void."""
    stage = Stage(SHARDS)
    with_a_hole(stage, 2)
    known = places(stage, "a2")
    hole = known.missing(known.end)
    assert hole is not None
    rows = places(stage, "a1").part(*hole, 9)
    for view in (stage.ledger.view + 1, stage.ledger.view):
        assert known.missing(known.end) == hole
        letter = Places(shard="a", view=view, floor=0, upto=hole[1], rows=rows)
        stage.nodes["a2"].give(Received("a1", letter))
    assert known.missing(known.end) is None


def test_who_asks_for_what_is_trimmed_is_told_so() -> None:
    stage = Stage(SHARDS)
    with_a_hole(stage, 0)
    known, end = places(stage, "a2"), stage.ledger.members[0].placed
    (begin, upto) = known.missing(end) or (0, 0)
    assert begin < upto
    stage.nodes["a2"].give(
        Received("a1", Places(shard="a", view=0, floor=upto, upto=upto, rows=[]))
    )
    assert known.missing(end) is None
    assert known.floor == upto


def test_who_asks_is_told_of_more_that_is_trimmed_than_was_asked_for() -> None:
    stage = Stage(SHARDS)
    with_a_hole(stage, 0)
    known, end = places(stage, "a2"), stage.ledger.members[0].placed
    (begin, upto) = known.missing(end) or (0, 0)
    assert begin < upto < end
    stage.nodes["a2"].give(Received("a1", Places(shard="a", view=0, floor=end, upto=upto, rows=[])))
    assert known.missing(end) is None
    assert known.floor == end


def read(stage: Stage, node: str, start: int = 0) -> list[tuple[int, str, bool]]:
    return stage.delivered(stage.subscribe(node, "a", start))


def test_a_replica_that_was_away_over_two_failures_keeps_nothing_that_was_void() -> None:
    stage = away_over_two_failures()
    stage.restore("a2")
    stage.decide(Arrange(shard=0, epoch=4, primary="a1", replicas=("a1", "a2")))
    stage.sleep(12)
    before = read(stage, "a1")
    assert (15, "w0", False) not in before
    assert (60, "w0", False) in before
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=5, primary="a2", replicas=("a2",)))
    assert read(stage, "a2") == before


def test_who_was_away_over_two_failures_tells_subscribers_of_both() -> None:
    stage = Stage(SHARDS)
    stage.admit(2, 1)
    reader = stage.subscribe("b1", "b")
    stage.nodes["b1"].deaf = True
    for epoch in (2, 3):
        fail_and_return(stage, epoch)
        stage.open(2, 1)
    stage.restore("b1")
    assert stage.of(reader, Failed) == [
        Failed(view=1, since=0, shards=("a",), upto=30),
        Failed(view=2, since=0, shards=("a",), upto=60),
    ]


def test_a_shard_that_left_stays_while_its_replicas_look_for_places() -> None:
    stage = Stage(SHARDS)
    stage.admit(2, 1)
    stage.append("a1", "v0", "v1")
    stage.decide(Release(0))
    stage.open(0, 1)
    stage.cut(0, 10)
    stage.cut(1, 10)
    stage.open(0, 1)
    stage.cut(2, 1)
    stage.wipe("a2")
    stage.restore("a2")
    assert not stage.nodes["a2"].machine.may_go
    stage.crash("a1")
    stage.decide(TrimTo(30))
    stage.tell("a2", len(stage.entries))
    assert stage.nodes["a2"].machine.may_go


def go_on(stage: Stage, chance: random.Random) -> None:
    ledger = stage.ledger
    window = ledger.windows[0] if ledger.windows else None
    done = window is None or (ledger.cut == window.cuts if window.foreseen else ledger.cut > 2)
    quotas = chance.choice([1, 2]), chance.choice([0, 1, 3])
    way = chance.random()
    if way < 0.1 and ledger.members[0].epoch < 9:
        fail_and_return(stage, ledger.members[0].epoch + 1)
    elif way < 0.2 and ledger.confirmed > ledger.trimmed:
        stage.decide(TrimTo(chance.randint(ledger.trimmed, ledger.confirmed)))
    elif window is None or (done and len(ledger.windows) == 1):
        mode = chance.choice([Mode.STEADY, Mode.STEADY, Mode.FREE_WILL])
        stage.open(*quotas, rounds=3, mode=mode)
    elif not window.foreseen:
        more = tuple(each + chance.randint(0, 3) for each in ledger.counts)
        stage.decide(CutFreely(window.number, more))
    elif way < 0.5 and len(ledger.windows) < 3:
        stage.open(*quotas, rounds=3)
    elif done:
        stage.cut(window.number + 1, 1)
    else:
        stage.cut(window.number, chance.randint(ledger.cut + 1, window.cuts))


@pytest.mark.parametrize(
    ("mode", "quota"),
    [(Mode.FREE_WILL, 0), (Mode.FREE_WILL, 1), (Mode.STEADY, 0), (Mode.STEADY, 1)],
)
@pytest.mark.parametrize("leaves", [True, False])
def test_a_cut_that_no_replica_heard_of_is_in_the_ledger_after_its_window(
    mode: Mode, quota: int, *, leaves: bool
) -> None:
    """All replicas are down when it is made, and its entry isn't kept until they are back."""
    stage = Stage(SHARDS)
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    stage.append("a1", "x", "y", "z")
    for name in ("a1", "a2"):
        stage.nodes[name].deaf = True
        stage.crash(name)
    stage.decide(CutFreely(0, (1, 1)))
    stage.decide(CutFreely(0, (3, 1)))
    if leaves:
        stage.decide(Release(0))
    stage.open(0 if leaves else quota, 1, mode=mode)
    if not leaves:
        stage.decide(ChangeView(view=1, failed=(0,), stand_in=1))
    for name in ("a1", "a2"):
        stage.restart(name)
        stage.restore(name)
        assert [places(stage, name).position(each) for each in range(3)] == [0, 2, 3]


def test_the_ledger_forgets_places_when_a_later_cut_counts_on_their_shard() -> None:
    stage = Stage(SHARDS)
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    stage.decide(CutFreely(0, (3, 1)))
    stage.open(1, 1, mode=Mode.FREE_WILL)
    assert list(stage.ledger.stranded) == [0, 1]
    stage.decide(CutFreely(1, (2, 0)))
    stage.open(1, 1)
    assert [local for _, local, _ in stage.ledger.stranded[0]] == [3]
    assert [local for _, local, _ in stage.ledger.stranded[1]] == [0], "it reported nothing since"
    stage.cut(2, 1)
    assert stage.ledger.stranded == {}


def test_nothing_is_reported_in_a_window_before_the_last_ones_places_are_journaled() -> None:
    stage = Stage(SHARDS)
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    stage.append("a1", "x", "y", "z")
    stage.nodes["a1"].held = True
    stage.decide(CutFreely(0, (2, 0)))
    stage.open(1, 1, mode=Mode.FREE_WILL)
    stage.sleep(5)
    assert (stage.report("a1").window, stage.report("a1").durable) == (1, 2)
    stage.nodes["a1"].held = False
    stage.sleep(5)
    assert (stage.report("a1").window, stage.report("a1").durable) == (1, 3)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_is_true_whatever_was_missed(seed: int) -> None:
    """Of all that may still be asked for."""
    chance = random.Random(seed)
    stage = Stage(SHARDS)
    stage.admit()
    true, known = (places(stage, name) for name in ("a1", "a2"))
    away = stage.nodes["a2"]
    for _ in range(150):
        go_on(stage, chance)
        if chance.random() < 0.1:
            away.deaf = not away.deaf
            if not away.deaf:
                stage.restore("a2")
        if away.deaf:
            continue
        for local in range(known.floor, true.end):
            found, position = known.position(local), true.position(local)
            assert position is not None
            assert found is None or found == position or position < stage.ledger.trimmed
        start = chance.randint(stage.ledger.trimmed, stage.ledger.horizon)
        assert known.below(start) <= true.below(start)
        assert known.known <= true.known == stage.ledger.members[0].placed
        if not known.rows or known.rows[0].base <= known.floor:
            assert stage.ledger.tells_from(0) <= true.end
