"""Which rows a shard has, by what it was pushed and has answered."""

from tests.unit.core.erwin.invariants.erwin_scene import push, row

from anabranch.core.erwin.invariants.known_rows import KnownRows
from anabranch.core.erwin.protocol.letters import Pushed
from anabranch.core.erwin.protocol.rows import Fence


def answer(known: KnownRows, upto: int, *, start: int = 1, shard: int = 0) -> None:
    known.answered(Pushed(fence=Fence(1, start), shard=shard, upto=upto, trimmed=0))


def known_of(known: KnownRows, shard: int = 0) -> list[int]:
    return [at for at in range(20) if known.has(shard, row(1, at))]


def test_a_shard_has_what_it_has_answered_from_where_it_was_pushed_first() -> None:
    known = KnownRows()
    answer(known, 9)
    assert known_of(known) == [], "nobody has pushed anything"
    known.pushed(0, push(base=3))
    answer(known, 3)
    answer(known, 6)
    answer(known, 5)
    assert known_of(known) == [3, 4, 5]
    assert known_of(known, shard=1) == []
    assert not known.has(0, row(1, 5, count=2)), "not all of it"


def test_a_new_fence_voids_what_lies_behind_its_base_and_may_leave_a_gap() -> None:
    known = KnownRows()
    known.pushed(0, push(base=3))
    answer(known, 9)
    known.pushed(0, push(base=5, start=2))
    answer(known, 6, start=2)
    assert known_of(known) == [3, 4, 5]
    known.pushed(0, push(base=8, start=3))
    answer(known, 10, start=3)
    answer(known, 20, start=2)
    assert known_of(known) == [3, 4, 5, 8, 9]
