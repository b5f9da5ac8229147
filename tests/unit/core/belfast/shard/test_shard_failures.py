"""Shards that fail, in part and as a whole: nothing that was acknowledged is lost, what was
foretold is confirmed or failed.
"""

from tests.unit.core.belfast.shard.shard_stage import LEADER, Stage

from anabranch.core.belfast.ledger.decisions import (
    Admit,
    Arrange,
    ChangeView,
    CutFreely,
    Release,
    TrimTo,
)
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import Alive, Seal, Sealed
from anabranch.core.belfast.protocol.messages import Confirmed, Delivered, Elsewhere, Eras, Failed
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Received

PAIR = {"a": ("a1", "a2")}
THREE = {"a": ("a1",), "b": ("b1",), "c": ("c1",)}


def code(stage: Stage, token: int) -> str:
    refused = stage.answers[token][-1]
    assert isinstance(refused, Refused), refused
    return refused.code


def alive(stage: Stage, node: str) -> Alive:
    found = [
        letter for sender, letter in stage.letters if sender == node and isinstance(letter, Alive)
    ]
    return found[-1]


def fail(stage: Stage, *failed: int, stand_in: int) -> None:
    stage.decide(ChangeView(view=stage.ledger.view + 1, failed=failed, stand_in=stand_in))


def test_an_append_outlives_its_primary() -> None:
    stage = Stage(PAIR)
    stage.admit(2)
    first = stage.append("a1", "v0", "v1", producer=5, sequence=0)
    stage.cut(0, 1)
    second = stage.append("a1", "v2", "v3", producer=5, sequence=2)
    assert stage.positions(first) == [0, 1]
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    assert stage.waits(second)
    again = stage.append("a2", "v2", "v3", producer=5, sequence=2)
    assert stage.waits(again)
    assert (stage.report("a2").epoch, stage.report("a2").rounds) == (2, 2)
    stage.cut(0, 2)
    assert stage.positions(again) == [2, 3]
    earlier = stage.append("a2", "v0", "v1", producer=5, sequence=0)
    assert stage.positions(earlier) == [0, 1]
    reader = stage.subscribe("a2", "a")
    assert [value for _, value, _ in stage.delivered(reader)] == ["v0", "v1", "v2", "v3"]


def test_who_isnt_primary_any_more_sends_everybody_on() -> None:
    stage = Stage(PAIR)
    stage.admit(2)
    stage.nodes["a2"].held = True
    token = stage.append("a1", "v")
    reader = stage.subscribe("a1", "a")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a1", "a2")))
    assert stage.answer(token) == Elsewhere("a2")
    assert stage.answers[reader][-1] == Elsewhere("a2")
    assert stage.answer(stage.append("a1", "w")) == Elsewhere("a2")


def test_what_a_majority_lacks_is_not_foretold() -> None:
    """F3."""
    stage = Stage(PAIR)
    stage.admit(2)
    reader = stage.subscribe("a1", "a")
    stage.nodes["a2"].held = True
    stage.append("a1", "v0", "v1")
    assert stage.delivered(reader) == []
    stage.nodes["a2"].held = False
    stage.settle()
    assert stage.delivered(reader) == [(0, "v0", True), (1, "v1", True)]


def test_others_hear_of_a_failed_shard_before_anything_of_the_new_view() -> None:
    """4.8; F11."""
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    reader = stage.subscribe("b1", "b")
    stage.append("b1", "v0", "v1", "v2")
    stage.cut(0, 1)
    stage.append("b1", "w0", "w1", "w2")
    fail(stage, 0, stand_in=1)
    assert stage.answers[reader][-1] == Failed(view=1, since=7, shards=("a",), upto=70)
    assert stage.report("b1").view == 1
    assert stage.report("b1").rounds == 2
    stage.append("b1", "x0", "x1", "x2")
    last = stage.of(reader, Delivered)[-1]
    assert (last.view, last.runs[0].first) == (1, 16)
    stage.cut(0, 3)
    assert stage.of(reader, Confirmed)[-1] == Confirmed(1, 21)


def test_a_failed_shard_cuts_back_and_is_asked_back() -> None:
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    acked = stage.append("a1", "v0", "v1", producer=3, sequence=0)
    reader = stage.subscribe("a1", "a")
    void = stage.append("a1", "w0", "w1", producer=3, sequence=2)
    stage.cut(0, 1)
    stage.nodes["a1"].deaf = True
    fail(stage, 0, stand_in=1)
    stage.cut(0, 2)
    assert stage.waits(void)
    stage.sleep(6)
    assert alive(stage, "a1").standing == Standing.SEATED
    stage.nodes["a1"].deaf = False
    stage.tell("a1", 1)
    assert stage.positions(acked) == [0, 1]
    assert code(stage, void) == "record-voided"
    assert isinstance(stage.answers[reader][-2], Failed)
    assert stage.answers[reader][-1] == Elsewhere("b1")
    assert code(stage, stage.append("a1", "x")) == "shard-away"
    stage.sleep(6)
    assert (alive(stage, "a1").standing, alive(stage, "a1").view) == (Standing.FAILED, 1)
    stage.decide(Admit("a", ("a1",), 0))
    stage.open(2, 3, 2)
    again = stage.append("a1", "w0", "w1", producer=3, sequence=2)
    stage.cut(0, 10)
    stage.cut(1, 1)
    assert stage.positions(again) == [70, 71]
    whole = stage.subscribe("a1", "a")
    assert stage.delivered(whole) == [
        (0, "v0", False),
        (1, "v1", False),
        (70, "w0", False),
        (71, "w1", False),
    ]
    assert stage.nodes["a1"].machine.counters.voided == 18


def test_what_was_foretold_and_what_came_of_it_is_reported_also_after_a_restart() -> None:
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    stage.append("a1", "u", "v", "w", "x", "y", "z")
    stage.cut(0, 2)
    stage.open(2, 3, 2)
    stage.sleep(6)
    assert (stage.report("a1").records, stage.report("a1").foretold) == (6, 4)
    fail(stage, 0, stand_in=1)
    stage.nodes["a1"].fall()
    stage.nodes["a1"].start()
    stage.lead(2)
    stage.tell("a1", 1)
    stage.decide(Admit("a", ("a1",), 0))
    stage.open(2, 3, 2)
    stage.append("a1", "q", "r", "s")
    for window in (0, 1):
        stage.cut(window, 10)
    stage.cut(2, 1)
    stage.sleep(6)
    last = stage.report("a1")
    # Four came true before it failed, two were void, and two more have come true since.
    assert (last.foretold, last.voided) == (6, 2)


def test_the_first_report_of_a_primary_that_was_restarted_tells_all_that_was_cut() -> None:
    """Or a new leader takes the next one for the arrival of everything at once."""
    stage = Stage(PAIR)
    stage.admit(2)
    stage.append("a1", *"abcdef")
    stage.cut(0, 3)
    stage.nodes["a1"].fall()
    before = len(stage.reports("a1"))
    stage.restart("a1")
    stage.tell("a1", 1)
    stage.sleep(6)
    told = [report.records for report in stage.reports("a1")[before:]]
    assert set(told) == {6}


def test_a_primary_whose_disk_is_full_falls_silent_until_there_is_room() -> None:
    """The other replica has to take over before the shard fails as a whole."""
    stage = Stage(PAIR)
    stage.admit(2)
    stage.nodes["a1"].held = True
    stage.append("a1", *"abcd")
    stage.nodes["a1"].fail_to_write()
    stage.letters.clear()
    stage.sleep(30)
    assert {sender for sender, _ in stage.letters} == {"a2"}
    stage.nodes["a1"].held = False
    stage.sleep(30)
    assert stage.report("a1").records == 4
    assert alive(stage, "a1")


def test_nothing_is_cut_back_twice() -> None:
    """Whoever starts anew hears of its old failures once more."""
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    stage.append("a1", "v0", "v1")
    stage.append("a1", "void")
    stage.cut(0, 1)
    fail(stage, 0, stand_in=1)
    stage.decide(Admit("a", ("a1",), 0))
    stage.open(2, 3, 2)
    token = stage.append("a1", "w0", "w1")
    stage.cut(0, 10)
    stage.cut(1, 1)
    assert stage.positions(token) == [70, 71]
    stage.crash("a1")
    stage.restart("a1")
    for first in range(1, len(stage.entries) + 1):
        stage.nodes["a1"].deaf = True
        stage.tell("a1", first if first == 1 else 1)
    reader = stage.subscribe("a1", "a")
    assert [place for place, _, _ in stage.delivered(reader)] == [0, 1, 70, 71]


def test_a_batch_that_is_cut_in_part_isnt_said_to_be_void() -> None:
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    token = stage.append("a1", "v0", "v1", "v2", producer=1, sequence=0)
    stage.cut(0, 1)
    fail(stage, 0, stand_in=1)
    assert stage.waits(token)
    stage.sleep(6)
    assert alive(stage, "a1").standing == Standing.FAILED
    stage.decide(Admit("a", ("a1",), 0))
    stage.open(1, 3, 2)
    stage.cut(0, 10)
    stage.cut(1, 1)
    assert stage.positions(token) == [0, 1, 70]


def test_a_backup_follows_the_cut_back_and_leads_on() -> None:
    stage = Stage({"a": ("a1", "a2"), "b": ("b1",)})
    stage.admit(2, 3)
    stage.append("a1", "v0", "v1", producer=1, sequence=0)
    stage.append("a1", "void", producer=1, sequence=2)
    stage.cut(0, 1)
    fail(stage, 0, stand_in=1)
    stage.sleep(5)
    assert stage.nodes["a2"].machine.replica.log.last == 2
    stage.decide(Admit("a", ("a1", "a2"), 0))
    stage.open(2, 3)
    stage.append("a1", "w0", "w1", producer=1, sequence=2)
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    stage.cut(0, 10)
    stage.cut(1, 1)
    reader = stage.subscribe("a2", "a")
    assert stage.delivered(reader) == [
        (0, "v0", False),
        (1, "v1", False),
        (50, "w0", False),
        (51, "w1", False),
    ]


def test_a_backup_that_takes_over_a_failed_shard_cuts_back() -> None:
    stage = Stage({"a": ("a1", "a2"), "b": ("b1",)})
    stage.admit(2, 3)
    stage.append("a1", "v0", "v1")
    stage.append("a1", "void")
    stage.crash("a1")
    stage.cut(0, 1)
    fail(stage, 0, stand_in=1)
    assert stage.nodes["a2"].machine.replica.log.last == 3
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    assert stage.nodes["a2"].machine.replica.log.last == 2
    stage.sleep(6)
    assert alive(stage, "a2").standing == Standing.FAILED


def test_a_stand_in_says_that_there_is_nothing_more() -> None:
    """4.8: A delivers no-ops for F, and confirms them."""
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    assert stage.answer(stage.subscribe("b1", "a")) == Elsewhere("a1")
    stage.append("b1", "v0", "v1", "v2")
    stage.cut(0, 1)
    fail(stage, 0, stand_in=1)
    assert code(stage, stage.subscribe("b1", "a", start=3)) == "shard-away"
    assert stage.answer(stage.subscribe("c1", "a", start=7)) == Elsewhere("b1")
    reader = stage.subscribe("b1", "a", start=7)
    failed, eras, nothing, confirmed = stage.answers[reader]
    assert failed == Failed(view=1, since=7, shards=("a",), upto=70)
    assert isinstance(eras, Eras)
    assert nothing == Delivered(1, 70, True, (), (), ())
    assert confirmed == Confirmed(1, 7)
    stage.open(0, 3, 2)
    stage.cut(0, 2)
    assert stage.of(reader, Confirmed)[-1] == Confirmed(1, 14)
    stage.decide(Admit("a", ("a1",), 0))
    assert stage.answers[reader][-1] == Elsewhere("a1")


def test_a_stand_in_that_fails_is_followed_by_another() -> None:
    """D6."""
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    fail(stage, 0, stand_in=1)
    fail(stage, 1, stand_in=2)
    reader = stage.subscribe("c1", "a", start=0)
    assert stage.answers[reader][0] == Failed(view=1, since=0, shards=("a",), upto=70)
    other = stage.subscribe("c1", "b", start=0)
    assert stage.answers[other][0] == Failed(view=2, since=0, shards=("b",), upto=70)


def test_who_was_away_for_long_gets_the_ledger_and_asks_where_its_records_are() -> None:
    stage = Stage(PAIR)
    stage.admit(2)
    stage.append("a1", "v0", "v1")
    stage.nodes["a2"].deaf = True
    for nth in range(1, 4):
        stage.sleep(20)
        stage.open(nth + 2)
        stage.cut(nth - 1, 10)
    stage.append("a1", "w0", "w1", "w2", "w3", "w4")
    stage.cut(3, 1)
    stage.nodes["a2"].deaf = False
    stage.restore("a2")
    stage.sleep(6)
    assert stage.nodes["a2"].machine.counters.holes >= 1
    stage.crash("a1")
    stage.decide(Arrange(shard=0, epoch=2, primary="a2", replicas=("a2",)))
    reader = stage.subscribe("a2", "a")
    found = stage.delivered(reader)
    assert found[:2] == [(0, "v0", False), (1, "v1", False)]
    assert [value for _, value, _ in found[2:]] == ["w0", "w1", "w2", "w3", "w4"]
    stage.crash("a2")
    stage.restart("a2")
    stage.restore("a2")
    again = stage.subscribe("a2", "a")
    assert stage.delivered(again) == found


def test_a_failure_that_was_missed_is_in_the_ledger() -> None:
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    reader = stage.subscribe("b1", "b")
    void = stage.append("a1", "v0", "v1")
    for name in ("a1", "b1"):
        stage.nodes[name].deaf = True
    fail(stage, 0, stand_in=1)
    stage.open(0, 3, 2)
    for name in ("a1", "b1"):
        stage.restore(name)
    assert code(stage, void) == "record-voided"
    assert stage.nodes["a1"].machine.replica.log.last == 0
    assert stage.of(reader, Failed) == [Failed(view=1, since=0, shards=("a",), upto=70)]
    standing = stage.subscribe("b1", "a")
    assert stage.of(standing, Failed) == [Failed(view=1, since=0, shards=("a",), upto=70)]


def test_free_will_that_is_missed_is_in_the_ledger_too() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit()
    stage.open(1, 1, mode=Mode.FREE_WILL)
    token = stage.append("a1", "v0", "v1")
    stage.nodes["a1"].deaf = True
    stage.decide(CutFreely(0, (2, 0)))
    stage.restore("a1")
    assert stage.positions(token) == [0, 1]


def test_a_restart_keeps_what_is_trimmed_away_and_what_it_left() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(2, 2)
    stage.append("a1", "v0", "v1", producer=1, sequence=0)
    stage.append("a1", "v2", "v3", producer=1, sequence=2)
    stage.cut(0, 2)
    stage.decide(TrimTo(4))
    stage.decide(Release(0))
    stage.open(0, 2)
    stage.crash("a1")
    stage.restart("a1")
    stage.restore("a1")
    assert stage.nodes["a1"].machine.replica.log.first == 2
    reader = stage.subscribe("a1", "a", start=4)
    assert stage.delivered(reader) == [(4, "v2", False), (5, "v3", False)]
    late = stage.append("a1", "v2", "v3", producer=1, sequence=2)
    assert stage.positions(late) == [4, 5]


def test_who_has_come_past_a_failure_isnt_told_of_it_again() -> None:
    stage = Stage(THREE)
    stage.admit(2, 3, 2)
    fail(stage, 0, stand_in=1)
    stage.open(0, 3, 2)
    assert stage.of(stage.subscribe("b1", "a", start=70), Failed) != []
    later = stage.subscribe("b1", "a", start=71)
    assert stage.of(later, Failed) == []
    assert stage.upto(later) == 120


def test_who_is_sealed_says_so_to_whoever_leads_by_then() -> None:
    stage = Stage(PAIR)
    stage.admit(2)
    stage.nodes["a2"].give(Received(LEADER, Seal(shard=0, epoch=2)))
    stage.settle()
    stage.letters.clear()
    stage.sleep(10)
    sealed = [letter for sender, letter in stage.letters if isinstance(letter, Sealed)]
    assert sealed
    assert {each.epoch for each in sealed} == {2}
