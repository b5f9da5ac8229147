"""A replica that wasn't there when its shard's records were placed: it serves what it knows of
them, and asks the others.
"""

import random

import pytest
from tests.unit.belfast.shard_stage import Stage

from anabranch.core.belfast.decisions import Admit, Arrange, ChangeView, CutFreely, TrimTo
from anabranch.core.belfast.messages import Failed
from anabranch.core.belfast.placements import Placements
from anabranch.core.belfast.windows import Mode

SHARDS = {"a": ("a1", "a2"), "b": ("b1",)}


def fail_and_return(stage: Stage, epoch: int) -> None:
    """Shard a, which comes back without its backup."""
    view = stage.ledger.view + 1
    stage.decide(ChangeView(view, (0,), 1))
    stage.decide(Admit("a", ("a1",), 0), Arrange(0, epoch, "a1", ("a1",)))


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


def places(stage: Stage, node: str) -> Placements:
    return stage.nodes[node].machine._seating.placements  # pyright: ignore[reportPrivateUsage]


def read(stage: Stage, node: str, start: int = 0) -> list[tuple[int, str, bool]]:
    return stage.delivered(stage.subscribe(node, "a", start))


def test_a_replica_that_was_away_over_two_failures_keeps_nothing_that_was_void() -> None:
    stage = away_over_two_failures()
    stage.restore("a2")
    stage.decide(Arrange(0, 4, "a1", ("a1", "a2")))
    stage.sleep(12)
    before = read(stage, "a1")
    assert (15, "w0", False) not in before
    assert (60, "w0", False) in before
    stage.crash("a1")
    stage.decide(Arrange(0, 5, "a2", ("a2",)))
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
    assert stage.of(reader, Failed) == [Failed(1, 0, ("a",), 30), Failed(2, 0, ("a",), 60)]


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
