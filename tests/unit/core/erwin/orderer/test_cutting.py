"""How the ring is cut, and which shard an append goes to."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.erwin.orderer.naive_shard import NaiveShard
from tests.unit.core.erwin.orderer.stage import BOUNDS, Stage

from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.protocol.rows import NO_SHARD, Mode


def stage_of(shards: int = 1, mode: Mode = Mode.M) -> Stage:
    stage = Stage([NaiveShard(number) for number in range(shards)], mode)
    stage.lead()
    stage.round()
    return stage


def pushes(stage: Stage, shard: int = 0) -> list[Push]:
    return [
        letter for to, letter in stage.sent if letter.rows and to == stage.shards[shard].primary
    ]


def test_what_comes_in_one_step_is_one_group() -> None:
    stage = stage_of()
    stage.append(10, 10, 10)
    assert [len(letter.rows) for letter in pushes(stage)] == [3]


def test_small_groups_wait_for_company_while_two_are_under_way() -> None:
    stage = stage_of()
    for _ in range(5):
        stage.append(10)
    assert [len(letter.rows) for letter in pushes(stage)] == [1, 1]
    stage.round()
    assert [len(letter.rows) for letter in pushes(stage)] == [1, 1, 3]


def test_a_full_group_waits_for_nobody() -> None:
    stage = stage_of()
    for _ in range(4):
        stage.append(100)
    assert len(pushes(stage)) == 4
    stage.append(*[1] * 5)
    assert len(pushes(stage)) == 4, "as many bytes are under way as may be"


def test_no_more_groups_are_under_way_than_may_be() -> None:
    stage = stage_of()
    for _ in range(8):
        stage.append(*[1] * BOUNDS.group_rows)
    assert len(pushes(stage)) == BOUNDS.groups_max


def test_in_mode_st_a_group_is_bounded_by_what_shards_store() -> None:
    stage = stage_of(mode=Mode.ST)
    stage.append(60, 60, 60, 60, shard="s0")
    assert [len(letter.rows) for letter in pushes(stage)] == [2, 2]


def test_the_shard_with_the_fewest_bytes_under_way_is_chosen() -> None:
    stage = stage_of(3)
    stage.append(50, 10, 20, 5, 5)
    (push,) = pushes(stage)
    assert [row.shard for row in push.rows] == [0, 1, 2, 1, 1]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=60), st.integers(1, 4))
def test_records_are_spread_as_evenly_as_they_can_be(sizes: list[int], shards: int) -> None:
    stage = stage_of(shards)
    for size in sizes:
        stage.append(size)
        stage.round()
    given = [sum(map(len, shard.durable.batches)) for shard in stage.shards]
    assert max(given) - min(given) <= max(sizes) + len("60")


def test_a_busy_shard_gets_less() -> None:
    stage = stage_of(2)
    stage.append(90, 90)
    stage.deliver()
    stage.sync(stage.shards[1])
    while stage.answers:
        stage.answer()
    stage.append(30, 30, 30, 30)
    assert [row.shard for row in pushes(stage)[-1].rows] == [1, 1, 1, 0]


def test_without_an_open_shard_nothing_is_cut() -> None:
    stage = stage_of()
    stage.shards[0].open = False
    stage.configure()
    stage.append(10)
    assert not pushes(stage)
    stage.shards[0].open = True
    stage.configure()
    assert len(pushes(stage)) == 1


def test_the_order_waits_for_a_shard_that_only_a_client_knows() -> None:
    """The append may be acknowledged: to call its records no-ops would lose it."""
    stage = stage_of(mode=Mode.ST)
    stage.append(10, shard="s0")
    stage.append(10, shard="s1")
    stage.append(10, shard="s0")
    assert [row.shard for letter in pushes(stage) for row in letter.rows] == [0]
    assert stage.ordering.obstacle == "shard s1 isn't known yet"
    stage.shards.append(NaiveShard(1))
    stage.configure()
    stage.round()
    assert {row.first: row.shard for letter in pushes(stage) for row in letter.rows} == {
        0: 0,
        1: 1,
        2: 0,
    }
    assert stage.ordering.obstacle is None


def test_an_append_to_a_removed_shard_has_no_shard() -> None:
    stage = stage_of(2, Mode.ST)
    stage.shards[1].removed = True
    stage.configure()
    stage.append(10, shard="s1")
    stage.append(10, shard="s0")
    assert [row.shard for letter in pushes(stage) for row in letter.rows] == [NO_SHARD, 0]
