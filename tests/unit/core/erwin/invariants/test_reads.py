"""What a shard may answer: what is stable, all of it, and always the same."""

import pytest
from tests.unit.core.erwin.invariants.erwin_scene import LEADER, Scene, batch_of, push, row

from anabranch.core.erwin.protocol.messages import Delivered, Read, Records, Span, Subscribe
from anabranch.core.erwin.protocol.rows import NO_SHARD
from anabranch.core.machine import Reply, Request, Send


def read(scene: Scene, answer: Records, start: int = 0, token: int = 1) -> None:
    asked = Read(shard="a", start=start, bytes_max=1, records_max=1)
    scene.witness.on_event("a-0", Request(token, asked))
    scene.witness.observe("a-0", Reply(token, answer))


def records(
    *shown: tuple[int, int, bytes],
    upto: int,
    stable: int = 3,
    elsewhere: tuple[Span, ...] = (Span(1, 1, "b"),),
) -> Records:
    return Records(
        upto=upto,
        stable=stable,
        trimmed=0,
        firsts=tuple(each[0] for each in shown),
        counts=tuple(each[1] for each in shown),
        batches=tuple(each[2] for each in shown),
        elsewhere=elsewhere,
    )


ONE, THREE = (0, 1, batch_of(1)), (2, 1, batch_of(3))


def scene() -> Scene:
    """Position 1 is on shard b; shard a is read. Position 3 isn't stable."""
    made = Scene()
    made.settle(row(1, 0), row(2, 1, shard=1), row(3, 2))
    made.say(LEADER, push(row(4, 3)))
    return made


def test_reads_of_all_or_part_of_what_is_stable_are_right() -> None:
    made = scene()
    read(made, records(ONE, THREE, upto=3))
    read(made, records(THREE, upto=3, elsewhere=()), start=2)
    read(made, records(upto=3, elsewhere=()), start=3)
    read(made, records(upto=7, elsewhere=()), start=7)
    assert made.violations == []


@pytest.mark.parametrize(
    "answer",
    [
        records(ONE, THREE, (3, 1, batch_of(4)), upto=4),
        records(ONE, THREE, (3, 1, batch_of(4)), upto=4, stable=4),
        records(ONE, upto=3),
        records(ONE, THREE, upto=2),
        records(ONE, (2, 2, batch_of(3, 2)), upto=3),
        records(ONE, THREE, upto=3, elsewhere=()),
        records(ONE, THREE, upto=3, elsewhere=(Span(0, 1, "b"),)),
        records(ONE, THREE, upto=3, elsewhere=(Span(1, 1, "b"), Span(3, 1, "b"))),
    ],
)
def test_e5_a_read_has_all_that_is_stable_and_nothing_else(answer: Records) -> None:
    made = scene()
    read(made, answer)
    assert made.rules == {"E5"}


def test_e5_an_answer_belongs_to_a_question() -> None:
    made = scene()
    read(made, records(ONE, THREE, upto=3))
    made.witness.observe("a-0", Reply(1, records(ONE, THREE, upto=3)))
    assert made.rules == {"E5"}


def test_e4_what_was_read_stays_as_it_is() -> None:
    made = scene()
    read(made, records(ONE, THREE, upto=3))
    read(made, records(ONE, (2, 1, b""), upto=3))
    assert made.rules == {"E4"}


def test_e7_a_position_has_the_append_of_its_row() -> None:
    made = scene()
    read(made, records(ONE, (2, 1, batch_of(4)), upto=3))
    assert made.rules == {"E7"}


def deliver(made: Scene, *shown: tuple[int, int, bytes], upto: int) -> None:
    firsts, counts = tuple(each[0] for each in shown), tuple(each[1] for each in shown)
    batches = tuple(each[2] for each in shown)
    answer = Delivered(upto=upto, firsts=firsts, counts=counts, batches=batches)
    made.witness.observe("a-0", Reply(5, answer))


def test_e5_a_subscription_has_every_batch_of_its_shard_once() -> None:
    made = scene()
    made.witness.on_event("a-0", Request(5, Subscribe(shard="a", start=0)))
    deliver(made, ONE, upto=2)
    deliver(made, upto=2)
    deliver(made, THREE, upto=3)
    assert made.violations == []
    deliver(made, THREE, upto=3)
    assert made.rules == {"E5"}


def test_e5_a_subscription_leaves_nothing_out_and_goes_on_where_it_was() -> None:
    made = scene()
    deliver(made, upto=0)
    assert made.rules == {"E5"}, "nobody has subscribed"
    made = scene()
    made.witness.on_event("a-0", Request(5, Subscribe(shard="a", start=0)))
    deliver(made, upto=1)
    assert made.rules == {"E5"}


def late(answer: Records) -> Scene:
    """Shard b is pushed nothing below position 2, where it was added; it is read."""
    made = Scene()
    rows = row(1, 0), row(2, 1, shard=NO_SHARD), row(3, 2, shard=1)
    for to, letter in (("a-0", push(*rows)), ("b-0", push(*rows[2:], base=2))):
        made.witness.observe(LEADER, Send(to, letter))
    for shard in (0, 1):
        made.held(shard, 3)
    made.dropped(3)
    made.say(LEADER, push(stable=3))
    asked = Read(shard="b", start=0, bytes_max=1, records_max=1)
    made.witness.on_event("b-0", Request(1, asked))
    made.witness.observe("b-0", Reply(1, answer))
    return made


def test_e5_a_shard_names_any_other_for_what_came_before_it_was_added() -> None:
    made = late(records(THREE, upto=3, elsewhere=(Span(0, 2, "c"),)))
    assert made.violations == []


@pytest.mark.parametrize("named", [(Span(0, 1, "a"),), (), (Span(0, 3, "a"),)])
def test_e5_a_shard_leaves_nothing_out_that_came_before_it_was_added(
    named: tuple[Span, ...],
) -> None:
    assert late(records(THREE, upto=3, elsewhere=named)).rules == {"E5"}
