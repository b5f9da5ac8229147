"""What a leader sends to its shards, letter by letter."""

from collections.abc import Sequence

from tests.unit.core.erwin.orderer.naive_shard import NaiveShard
from tests.unit.core.erwin.orderer.stage import NOOP_MS, Stage

from anabranch.core.erwin.orderer.patience import LEAST_PART
from anabranch.core.erwin.protocol.letters import Push, Pushed, Stale
from anabranch.core.erwin.protocol.rows import Fence, Mode
from anabranch.core.sequencing.state.ring import Announcement
from anabranch.core.types import MS


def stage_of(shards: int = 1, *, appends: int = 0, mode: Mode = Mode.M) -> Stage:
    """A leader whose shards know its fence; so many row groups are under way."""
    stage = Stage([NaiveShard(number) for number in range(shards)], mode)
    stage.lead()
    stage.round()
    stage.wait()
    stage.believes = True
    for _ in range(appends):
        stage.append(120)
    return stage


def taken(stage: Stage) -> list[Push]:
    """What was sent since the last look; it arrives nowhere."""
    fresh, stage.fresh = stage.fresh, []
    return [letter for _, letter in fresh]


def firsts(stage: Stage) -> list[int]:
    return [letter.first for letter in taken(stage)]


def pushed(
    *,
    upto: int,
    wanted: int = -1,
    stable: int = 0,
    trimmed: int = 0,
    fence: Fence | None = None,
    voided: Sequence[int] = (),
    excess_bytes: int = 0,
) -> Pushed:
    return Pushed(
        fence=fence or Fence(1, 1),
        shard=0,
        upto=upto,
        trimmed=trimmed,
        stable=stable,
        wanted=wanted,
        voided=list(voided),
        excess_bytes=excess_bytes,
    )


def answer(stage: Stage, letter: Pushed | Stale, *, sender: str = "s0-1") -> None:
    stage.answers.append((sender, letter))
    stage.answer(len(stage.answers) - 1)


def test_a_leader_greets_its_shards_before_it_has_anything_to_order() -> None:
    stage = Stage([NaiveShard(0), NaiveShard(1)])
    stage.lead()
    for letter in taken(stage):
        assert (letter.fence, letter.base, letter.first) == (Fence(1, 1), 0, 0)
        assert not letter.rows
    assert len(stage.sent) == 2


def test_no_row_names_a_shard_that_has_not_answered_in_this_fence() -> None:
    """It may die before anything reaches it, and the log may lose the view: the others' rows would
    be all that is left of records that it never had.
    """
    stage = Stage([NaiveShard(0), NaiveShard(1)])
    stage.lead()
    stage.append(120)
    greetings = taken(stage)
    assert not any(letter.rows for letter in greetings)
    stage.push("s0-1", greetings[0])
    stage.answer()
    assert not any(letter.rows for letter in taken(stage))
    stage.push("s1-1", greetings[1])
    stage.answer()
    assert firsts(stage) == [0, 0]
    assert all(letter.rows for _, letter in stage.sent[2:])


def test_pushes_follow_one_another_without_waiting_for_answers() -> None:
    assert firsts(stage_of(appends=3)) == [0, 1, 2]


def test_all_answers_to_pushes_behind_one_gap_lead_to_one_repetition() -> None:
    stage = stage_of(appends=3)
    assert firsts(stage) == [0, 1, 2]
    answer(stage, pushed(upto=0, wanted=0))
    answer(stage, pushed(upto=0, wanted=0))
    assert firsts(stage) == [0, 1, 2]
    assert stage.counters.repeated == 3
    assert stage.counters.gaps == 1


def test_a_gap_that_is_there_again_is_filled_again_after_a_while() -> None:
    stage = stage_of(appends=2)
    answer(stage, pushed(upto=0, wanted=0))
    taken(stage)
    stage.wait()
    (question,) = taken(stage)
    assert (question.first, question.rows) == (2, [])
    answer(stage, pushed(upto=0, wanted=0))
    assert firsts(stage) == [0, 1]


def test_what_a_shard_holds_is_not_sent_again_for_a_late_answer() -> None:
    stage = stage_of(appends=3)
    taken(stage)
    answer(stage, pushed(upto=2))
    taken(stage)
    answer(stage, pushed(upto=0, wanted=0))
    assert firsts(stage) == [2]


def test_a_silent_shard_is_asked_and_sent_only_what_it_wants() -> None:
    stage = stage_of(appends=3)
    taken(stage)
    stage.wait()
    (question,) = taken(stage)
    assert (question.first, question.rows) == (3, [])
    answer(stage, pushed(upto=1, wanted=2))
    assert firsts(stage) == [2]


def test_a_shard_that_gets_on_is_not_asked() -> None:
    stage = stage_of(appends=3)
    taken(stage)
    answer(stage, pushed(upto=1))
    stage.wait()
    assert not [letter for letter in taken(stage) if letter.first == 3]


def test_nobody_is_asked_when_everything_is_confirmed() -> None:
    stage = stage_of(appends=1)
    stage.round()
    stage.round()
    stage.wait()
    taken(stage)
    stage.wait(10_000)
    assert not taken(stage)


def test_a_shard_is_told_what_is_stable_until_it_knows() -> None:
    stage = stage_of(appends=1)
    taken(stage)
    answer(stage, pushed(upto=1))
    stage.drop()
    assert [letter.stable for letter in taken(stage)] == [1]
    stage.wait()
    stage.wait()
    assert [letter.stable for letter in taken(stage)] == [1]
    answer(stage, pushed(upto=1, stable=1))
    stage.wait()
    stage.wait()
    assert not taken(stage)


def test_only_news_of_what_is_stable_may_be_answered_later_and_its_repetition_not() -> None:
    stage = stage_of(appends=1)
    assert [letter.answer_later for letter in taken(stage)] == [False]
    answer(stage, pushed(upto=1))
    stage.drop()
    assert [letter.answer_later for letter in taken(stage)] == [True]
    stage.wait()
    stage.wait()
    assert [letter.answer_later for letter in taken(stage)] == [False]


def test_answers_of_another_fence_or_another_replica_say_nothing() -> None:
    stage = stage_of(appends=1)
    for letter, sender in (
        (pushed(upto=1, fence=Fence(1, 2)), "s0-1"),
        (pushed(upto=1, fence=Fence(0, 9)), "s0-1"),
        (pushed(upto=1), "s0-0"),
    ):
        answer(stage, letter, sender=sender)
    assert stage.replica.ordered == 0
    answer(stage, pushed(upto=1))
    assert stage.replica.ordered == 1


def test_an_answer_that_claims_what_was_never_sent_is_ignored() -> None:
    stage = stage_of(appends=1)
    answer(stage, pushed(upto=2))
    answer(stage, pushed(upto=0, wanted=2))
    assert stage.counters.nonsense == 2
    assert stage.replica.ordered == 0


def test_a_leader_whose_fence_is_over_sends_nothing_more() -> None:
    stage = stage_of()
    answer(stage, Stale(Fence(1, 1)))
    answer(stage, Stale(Fence(0, 7)))
    stage.append(10)
    assert firsts(stage) == [0]
    answer(stage, Stale(Fence(2, 1)))
    assert stage.counters.fenced == 1
    stage.append(200)
    stage.wait()
    assert not taken(stage)
    assert stage.ordering.obstacle == "another node leads by now"


def test_a_shard_that_is_added_later_begins_with_what_is_under_way() -> None:
    stage = stage_of(appends=3)
    answer(stage, pushed(upto=1))
    taken(stage)
    stage.shards.append(NaiveShard(1))
    stage.configure()
    assert [(letter.base, letter.first) for letter in taken(stage)] == [(1, 1), (1, 2)]
    answer(stage, pushed(upto=3))
    assert stage.replica.ordered == 1, "what is under way now waits for both"


def test_a_removed_shard_is_waited_for_no_longer() -> None:
    stage = stage_of(2)
    stage.shards[1].open = False
    stage.configure()
    stage.append(10)
    answer(stage, pushed(upto=1))
    assert stage.replica.ordered == 0
    stage.shards[1].removed = True
    stage.configure()
    assert stage.replica.ordered == 1


def test_an_old_configuration_changes_nothing() -> None:
    stage = stage_of()
    old = stage.configuration()
    stage.shards[0].take_over()
    stage.configure()
    assert [to for to, _ in stage.fresh] == ["s0-0"]
    stage.fresh.clear()
    stage.ordering.configured(old)
    stage.append(10)
    assert [to for to, _ in stage.fresh] == ["s0-0"]


def test_a_configuration_of_a_later_view_ends_the_lead() -> None:
    stage = stage_of()
    assert stage.ordering.leading is not None
    stage.replica.start_view(2)
    later = stage.configuration()
    stage.replica.start_view(3)
    stage.ordering.configured(later)
    assert stage.ordering.obstacle == "no shard is known yet"
    stage.configure()
    assert stage.ordering.obstacle is None
    assert stage.replica.view is not None
    stage.replica.view = None
    assert stage.ordering.leader == "q0"


def announce(stage: Stage, who: int, *, age_ms: int = 0) -> None:
    announced = Announcement(who, stage.alarms.now - age_ms * MS)
    stage.replica.append(10, shard="s0", announced=announced)


def waits(stage: Stage) -> list[int]:
    return [wait for letter in taken(stage) for wait in letter.waits_ms]


def test_who_announces_what_never_comes_holds_up_nobody_again() -> None:
    """Each group of announcements without data kept everybody's positions for `noop_ms`."""
    bad, good = 1, 2
    stage = stage_of(mode=Mode.ST)
    announce(stage, bad)
    announce(stage, good)
    stage.settle()
    assert waits(stage) == [NOOP_MS], "one for both"
    stage.wait(NOOP_MS)
    announce(stage, bad)
    announce(stage, good)
    announce(stage, good, age_ms=1_000)
    answer(stage, pushed(upto=2, voided=[0]))
    stage.replica.drop()
    stage.settle()
    assert waits(stage) == [NOOP_MS // LEAST_PART, NOOP_MS, NOOP_MS - 1_000]


def test_what_was_sent_beyond_what_was_announced_is_counted_once() -> None:
    stage = stage_of(mode=Mode.ST)
    announce(stage, 1)
    stage.settle()
    (letter,) = taken(stage)
    assert letter.announced_bytes == 10
    answer(stage, pushed(upto=0, excess_bytes=70))
    answer(stage, pushed(upto=0, excess_bytes=70))
    answer(stage, pushed(upto=1, excess_bytes=100))
    assert stage.replica.uncounted == 100
    stage.shards[0].take_over()
    stage.configure()
    answer(stage, pushed(upto=1, excess_bytes=5), sender=stage.shards[0].primary)
    assert stage.replica.uncounted == 105, "another primary counts from 0"
